#!/usr/bin/env bash
# fuzz.sh SECONDS: calls of the C interface with arbitrary values under AddressSanitizer. A sequence that breaks something is left in
# artifacts/: it belongs into a test of its own. Needs nightly and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"
cargo +nightly fuzz run --sanitizer address calls -- -max_total_time="$1" -max_len=4096 -timeout=20 -print_final_stats=1
