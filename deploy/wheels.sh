#!/usr/bin/env bash
# Builds the wheels of a release and the source distribution in target/wheels, and checks them.
#   deploy/wheels.sh                                  Linux, glibc and musl, x86-64 and arm64
#   deploy/wheels.sh aarch64-unknown-linux-gnu …      only these targets
# Needs `pip install maturin ziglang cargo-zigbuild auditwheel twine`. zig has the C libraries of all targets, in old versions, too.
# A wheel for aarch64 starts under qemu-aarch64 (Debian's qemu-user) where that is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("$@")
(($#)) || targets=(
    x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
    x86_64-unknown-linux-musl aarch64-unknown-linux-musl
)
wheels=target/wheels
# `dist` optimises the program as a whole; `release` builds in a third of the time, to try this script.
profile=${PROFILE-dist}
mkdir -p "$wheels"

# The oldest C library that Rust's standard library and the dependencies work with.
compatibility() {
    case $1 in
        *-linux-gnu) echo manylinux_2_17 ;;
        *-linux-musl) echo musllinux_1_2 ;;
        *) echo off ;;
    esac
}

# Starts the program in a wheel, on this machine or an emulated one. A program for glibc needs that of its machine.
starts() {
    local wheel=$1 target=$2 root runner=()
    root=$(mktemp -d)
    python3 -m zipfile --extract "$wheel" "$root"
    chmod +x "$root"/*.data/scripts/uncork
    case $target in
        "$(uname -m)"-unknown-linux-*) ;;
        aarch64-unknown-linux-*) runner=(qemu-aarch64 -L "${QEMU_LD_PREFIX-/usr/aarch64-linux-gnu}") ;;
        *) runner=(false) ;;
    esac
    if ((${#runner[@]})) && ! command -v "${runner[0]}" >/dev/null || [[ ${runner[0]-} == false ]]; then
        echo "*** NOT STARTED: $(basename "$wheel"): this machine cannot run it ***"
    else
        "${runner[@]}" "$root"/*.data/scripts/uncork compare --size 1MB --seeds 1 >/dev/null
        echo "started: $(basename "$wheel")"
    fi
    rm -r "$root"
}

for target in "${targets[@]}"; do
    rustup target add "$target"
    before=$(mktemp)
    maturin build --profile "$profile" --target "$target" --zig --compatibility "$(compatibility "$target")" --out "$wheels"
    wheel=$(find "$wheels" -name '*.whl' -newer "$before")
    rm "$before"
    [[ $target != *-linux-* ]] || auditwheel show "$wheel"
    starts "$wheel" "$target"
done
maturin sdist --out "$wheels"
twine check --strict "$wheels"/*
