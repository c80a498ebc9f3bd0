#!/usr/bin/env bash
# Brings each of four historic bugs of BBR implementations back (the features `mutant-...` of this
# crate) and demands that the test written against it fails, and by that test's own verdict.
set -euo pipefail
cd "$(dirname "$0")"

# feature, and the test that must notice
mutants="
mutant-no-acks-init             bbr3::tests::rules::cruise_does_not_age_max_bw
mutant-unassigned-tx-in-flight  bbr3::tests::deviations::a_startup_sees_loss_in_a_shallow_buffer
mutant-starved-max-bw           bbr3::tests::deviations::n_max_bw_forgets_although_probe_rtt_cuts_every_probe_short
mutant-undo-per-round           bbr3::tests::deviations::h_an_undo_reaches_back_to_the_start_of_the_episode
"

# What becomes of a test; options of cargo follow.
verdict() {
    local test=$1 output
    shift
    output=$(cargo test --locked -p uncork-cc --lib "$@" -- --exact "$test" 2>&1) || true
    grep -oE "^test $test \.\.\. (ok|FAILED)$" <<<"$output" || echo "no verdict on $test"
}

while read -r feature test; do
    [[ -n $feature ]] || continue
    with=$(verdict "$test" --features "$feature")
    without=$(verdict "$test")
    printf '%-31s %s\n' "$feature" "$with"
    [[ $with == *FAILED && $without == *ok ]] || { printf 'without it: %s\n' "$without"; exit 1; }
done <<<"$mutants"
