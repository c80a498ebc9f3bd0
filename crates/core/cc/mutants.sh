#!/usr/bin/env bash
# Brings each of four historic bugs of BBR implementations back (`--cfg uncork_mutant`) and demands that the test
# written against it fails. Only this crate's unit tests are built again: dependencies and other targets stay as they are.
set -euo pipefail
cd "$(dirname "$0")"

# The mutant, and the test that must notice:
# - draft-ietf-ccwg-bbr-05 and older: ack_phase is not reset once the feedback of a probe is in;
# - RS.tx_in_flight and RS.lost are read but never assigned;
# - only a round that is not application-limited advances the max_bw filter;
# - the state to return to is saved at the first loss of each round instead of each episode.
mutants="
no-acks-init             bbr3::tests::rules::cruise_does_not_age_max_bw
unassigned-tx-in-flight  bbr3::tests::deviations::a_startup_sees_loss_in_a_shallow_buffer
starved-max-bw           bbr3::tests::deviations::n_max_bw_expires_although_probe_rtt_cuts_every_probe_short
undo-per-round           bbr3::tests::deviations::h_undo_restores_the_state_before_the_episode
"

# Builds the unit tests with these flags of rustc and prints the path of the executable.
build() {
    cargo rustc --locked --quiet -p uncork-cc --lib --profile test --config "profile.test.package.uncork-cc.opt-level=0" --message-format json -- "$@" |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# Prints `ok`, `FAILED`, or nothing if EXECUTABLE has no such TEST.
verdict() {
    local executable=$1 test=$2 output
    output=$("$executable" --exact "$test" 2>&1) || true
    sed -n "s/^test $test \.\.\. \(ok\|FAILED\)$/\1/p" <<<"$output"
}

original=$(build)
while read -r mutant test; do
    [[ -n $mutant ]] || continue
    without=$(verdict "$original" "$test")
    with=$(verdict "$(build --cfg "uncork_mutant=\"$mutant\"")" "$test")
    printf '%-23s %s: %s without it, %s with it\n' "$mutant" "$test" "${without:-missing}" "${with:-missing}"
    [[ $without == ok && $with == FAILED ]] || exit 1
done <<<"$mutants"
