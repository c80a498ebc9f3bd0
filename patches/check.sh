#!/usr/bin/env bash
# Applies each patch to a copy of the published sources, and runs the tests that it adds. Takes some minutes.
set -euo pipefail
patches=$(cd "$(dirname "$0")" && pwd)
sources=$(echo "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=$work/target

# PATCH, CRATE, options of `cargo test`, names of the tests.
check() {
    local patch=$1 crate=$2
    shift 2
    rm -rf "$work/$crate"
    cp -r "$sources$crate" "$work/"
    cd "$work/$crate"
    patch --quiet -p1 <"$patches/$patch.patch"
    # h3's own tests need h3-quinn from its repository.
    [[ $crate != h3-* ]] || sed -i '/^mod tests;$/d' src/lib.rs
    # Not part of a workspace in a directory above.
    printf '\n[workspace]\n' >>Cargo.toml
    cargo test --lib "$@"
}

check h3-0.0.8 h3-0.0.8 write_buf
noq=(noq-proto-1.4.0 --no-default-features --features rustls-ring --)
check noq-proto-1.4.0 "${noq[@]}" controllers_are_told acks_of_an_ack_frame
check noq-proto-1.4.0-amplification "${noq[@]}" anti_amplification migration handshake_anti_deadlock server_can_send_3
