#!/usr/bin/env bash
# fuzz.sh SECONDS: starts from a whole body. One that breaks something is left in artifacts/: it belongs into a test of its own;
# `cargo test` reads random ones. Needs nightly and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"

mkdir -p corpus/bundle
printf '{"version":1,"made_unix_s":1,"expires_unix_s":2,"files":[{"name":"policy.toml","size":3}]}\nabc' >corpus/bundle/whole

# The crate has no unsafe code for a sanitizer to watch; overflow checks and debug assertions are on.
cargo +nightly fuzz run --sanitizer none bundle -- -max_total_time="$1" -max_len=3000 -timeout=20 -print_final_stats=1
