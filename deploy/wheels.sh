#!/usr/bin/env bash
# Builds the wheels of a release and the source distribution in target/wheels, and checks them.
#   deploy/wheels.sh                                  Linux, glibc and musl, x86-64 and arm64
#   deploy/wheels.sh aarch64-unknown-linux-gnu …      only these targets
# Needs `pip install hatchling ziglang cargo-zigbuild auditwheel abi3audit twine`. zig has the C libraries of all targets, in old versions, too.
# A wheel for aarch64 starts under qemu-aarch64 (Debian's qemu-user) where that is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("$@")
(($#)) || targets=(
    x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
    x86_64-unknown-linux-musl aarch64-unknown-linux-musl
)
wheels=target/wheels
# `dist` optimises the program as a whole; `wheel` builds in a third of the time, to try this script.
profile=${PROFILE-dist}
# In a Python process a panic is an exception, and not the end.
export CARGO_PROFILE_DIST_PANIC=unwind CARGO_PROFILE_DIST_STRIP=true
mkdir -p "$wheels"

# Builds the program and the module with cargo, and makes the wheel of them. Its tag names the oldest C library that Rust's standard
# library and the dependencies work with.
build() {
    local target=$1 machine=${1%%-*} platform suffix=
    local options=(--profile "$profile" --locked)
    case $target in
        *-linux-gnu) platform=manylinux_2_17_$machine suffix=.2.17 ;;
        *-linux-musl) platform=musllinux_1_2_$machine ;;
        aarch64-apple-darwin) platform=macosx_11_0_arm64 ;;
        x86_64-apple-darwin) platform=macosx_10_12_x86_64 ;;
        *) echo "error: no platform of Python is known for '$target'" >&2 && exit 2 ;;
    esac
    options+=(--target "$target$suffix")
    if [[ $target == *-musl ]]; then
        # The program is static. A module shares the C library of Python.
        cargo zigbuild "${options[@]}" -p uncork --features full
        RUSTFLAGS="${RUSTFLAGS-} -C target-feature=-crt-static" cargo zigbuild "${options[@]}" -p uncork-python --target-dir target/module
        cp "target/module/$target/$profile/libuncork_native.so" "target/$target/$profile/"
    else
        cargo zigbuild "${options[@]}" -p uncork -p uncork-python --features uncork/full
    fi
    UNCORK_BUILT=target/$target/$profile UNCORK_PLATFORM=$platform hatchling build -t wheel -d "$wheels"
}

# Checks that a wheel needs no newer C library than its name says.
complies() {
    local wheel=$1 tag shown needed
    tag=$(basename "${wheel##*-}" .whl)
    shown=$(auditwheel show "$wheel")
    echo "$shown"
    needed=$(grep --only-matching '\(many\|musl\)linux_[0-9a-z_]*' <<<"${shown#*platform tag:}" | head -1)
    [[ $(printf '%s\n' "$needed" "$tag" | sort --version-sort | tail -1) == "$tag" ]] ||
        { echo "error: $(basename "$wheel") needs $needed" >&2 && exit 1; }
}

# Starts the program in a wheel, on this machine or an emulated one, and imports the module on this one. A program for glibc needs that of
# its machine.
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
    if [[ $target == "$(uname -m)-unknown-linux-gnu" ]]; then
        PYTHONPATH=$root python3 -S -c "import uncork; uncork.compare(size='1MB', seeds=1)"
        echo "imported: $(basename "$wheel")"
    fi
    rm -r "$root"
}

for target in "${targets[@]}"; do
    rustup target add "$target"
    before=$(mktemp)
    build "$target"
    wheel=$(find "$wheels" -name '*.whl' -newer "$before")
    rm "$before"
    [[ $target != *-linux-* ]] || complies "$wheel"
    abi3audit --strict "$wheel"
    starts "$wheel" "$target"
done
hatchling build -t sdist -d "$wheels"
twine check --strict "$wheels"/*
