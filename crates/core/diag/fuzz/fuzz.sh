#!/usr/bin/env bash
# fuzz.sh SECONDS: starts from the recorded datagrams. A datagram that breaks something is left in
# artifacts/: it belongs into a test of its own. Needs nightly and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"

mkdir -p corpus/replies
while read -r datagram; do
    xxd -r -p <<<"$datagram" >"corpus/replies/$(sha1sum <<<"$datagram" | cut -c -40)"
done < <(cat ../tests/recorded/*.hex)

# The crate has no unsafe code for a sanitizer to watch; overflow checks and debug assertions are on.
cargo +nightly fuzz run --sanitizer none replies -- -max_total_time="$1" -max_len=4096 \
    -print_final_stats=1
