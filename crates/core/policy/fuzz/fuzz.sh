#!/usr/bin/env bash
# fuzz.sh SECONDS: starts from the policies in docs/reference/policy.md. A text that breaks something is left in artifacts/: it belongs
# into a test of its own; `cargo test` changes a policy with something of everything. Needs nightly and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"

mkdir -p corpus/texts
awk '/^```toml/ { number++; inside = 1; next } /^```/ { inside = 0 }
     inside { print > ("corpus/texts/documented-" number) }' ../../../../docs/reference/policy.md

# The crate has no unsafe code for a sanitizer to watch; overflow checks and debug assertions are on.
cargo +nightly fuzz run --sanitizer none texts -- -max_total_time="$1" -max_len=3000 -timeout=20 -print_final_stats=1
