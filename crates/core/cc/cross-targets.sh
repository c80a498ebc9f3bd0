#!/usr/bin/env bash
# Compares what the controllers decide on a 32-bit x86 and on an emulated 64-bit ARM with what they
# decide on x86-64 (tests/hosts/determinism.rs). On Debian it needs the two targets of Rust and:
#   apt-get install libc6-dev-i386 lib32gcc-12-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
set -euo pipefail
cd "$(dirname "$0")"

export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C link-arg=-m32"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"

for target in i686-unknown-linux-gnu aarch64-unknown-linux-gnu; do
    rustup target add "$target"
    cargo test --locked -p uncork-cc --target "$target" --test hosts determinism
done
