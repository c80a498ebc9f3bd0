#!/usr/bin/env bash
# fuzz.sh CRATE TARGET SECONDS: starts from the target's corpus in the crate's tests, looks for more, and writes back as
# few scripts as cover all that was reached. One that breaks something is left in the crate's fuzz/artifacts/: it belongs
# into a test of its own. Needs nightly and cargo-fuzz.
set -euo pipefail
crate=$1 target=$2 seconds=$3
cd "$(dirname "$0")/../crates"/*/"$crate/fuzz"
lines=$(echo ../tests/*/corpus/"$target.hex")

# The crates have no unsafe code for a sanitizer to watch; overflow checks and debug assertions are on.
fuzz() {
    cargo +nightly fuzz run --sanitizer none "$target" "$@"
}

mkdir -p "corpus/$target"
while read -r script; do
    xxd -r -p <<<"$script" >"corpus/$target/$(sha1sum <<<"$script" | cut -c -40)"
done <"$lines"

fuzz "corpus/$target" -- -max_total_time="$seconds" -max_len=500 -timeout=20 -print_final_stats=1

least=$(mktemp -d)
trap 'rm -r "$least"' EXIT
fuzz "$least" "corpus/$target" -- -set_cover_merge=1 -use_counters=0 -max_len=300
for script in "$least"/*; do
    xxd -p "$script" | tr -d '\n'
    echo
done | LC_ALL=C sort >"$lines"
