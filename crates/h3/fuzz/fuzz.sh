#!/usr/bin/env bash
# fuzz.sh SECONDS: starts from the checked-in corpus of the target `wire`, looks for more, and writes
# back as few scripts as cover all that was reached. One that breaks something is left in artifacts/: it belongs into a
# test of its own. Needs nightly and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"
seconds=$1
lines=../tests/scripts/corpus/wire.hex

# The crate has no unsafe code for a sanitizer to watch; overflow checks and debug assertions are on.
fuzz() {
    cargo +nightly fuzz run --sanitizer none wire "$@"
}

mkdir -p corpus/wire
while read -r script; do
    xxd -r -p <<<"$script" >"corpus/wire/$(sha1sum <<<"$script" | cut -c -40)"
done <"$lines"

fuzz corpus/wire -- -max_total_time="$seconds" -max_len=300 -timeout=20 -print_final_stats=1

least=$(mktemp -d)
trap 'rm -r "$least"' EXIT
fuzz "$least" corpus/wire -- -set_cover_merge=1 -use_counters=0 -max_len=200
for script in "$least"/*; do
    xxd -p "$script" | tr -d '\n'
    echo
done | LC_ALL=C sort >"$lines"
