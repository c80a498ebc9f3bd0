#!/usr/bin/env bash
# Builds the wheels of a release and the source distribution in target/wheels, and checks them.
#   deploy/wheels.sh                                  Linux, glibc and musl, x86-64 and arm64
#   deploy/wheels.sh aarch64-unknown-linux-gnu …      only these targets
# It installs its tools into target/release-tools. Zig has the C libraries of all targets, in old versions, too.
# What is built for aarch64 starts under qemu-aarch64 (Debian's qemu-user) where that is installed, and is imported by Debian's Python for
# arm64 where mmdebstrap is, too. MUSL_PYTHON names a Python of this machine that uses musl, if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

source deploy/release/arguments.sh
read_wheel_arguments "$@"
wheels=target/wheels
# `dist` optimises the program as a whole; `release` builds in a third of the time, to try this script.
export PROFILE=${PROFILE-dist} CARGO_PROFILE_DIST_STRIP=true CARGO_PROFILE_RELEASE_STRIP=true
source deploy/release/tools.sh
source deploy/release/program.sh
mkdir -p "$wheels"

# Builds the module for TARGET, in cargo-zigbuild's words, into target/module.
build_module() {
    # In a Python process a panic is an exception, and not the end.
    CARGO_PROFILE_DIST_PANIC=unwind CARGO_PROFILE_RELEASE_PANIC=unwind \
        cargo zigbuild --locked --profile "$PROFILE" --target-dir target/module --target "$1" -p uncork-python
}

# Makes the wheel of a program and a module. Its tag names the oldest C library that Rust's standard library and the dependencies work
# with. On Linux the program is the static one of the release, so each processor has one program for both C libraries.
build() {
    local target=$1 machine=${1%%-*} platform modules=target/module/$1/$PROFILE
    case $target in
        *-linux-gnu)
            platform=manylinux_2_17_$machine
            build_module "$target.2.17"
            build_program "$machine-unknown-linux-musl"
            ;;
        *-linux-musl)
            platform=musllinux_1_2_$machine
            # It shares the C library of Python. The name that Zig gives it is that of glibc's linker script, too.
            RUSTFLAGS="${RUSTFLAGS-} -C target-feature=-crt-static" build_module "$target"
            patchelf --replace-needed libc.so "libc.musl-$machine.so.1" "$modules/libuncork_native.so"
            build_program "$target"
            ;;
        *-apple-darwin)
            [[ $machine == x86_64 ]] && platform=macosx_10_12_x86_64 || platform=macosx_11_0_arm64
            # Python's symbols come from the process that loads it.
            RUSTFLAGS="${RUSTFLAGS-} -C link-arg=-undefined -C link-arg=dynamic_lookup" build_module "$target"
            cargo zigbuild --locked --profile "$PROFILE" --target "$target" -p uncork --features full
            program=target/$target/$PROFILE/uncork
            ;;
    esac
    cp "$program" "$modules/"
    UNCORK_BUILT=$modules UNCORK_PLATFORM=$platform hatchling build -t wheel -d "$wheels"
}

# Checks that a wheel needs no newer C library than its name says; sets `needed`, the oldest platform that it runs on.
complies() {
    local wheel=$1 tag shown
    tag=$(basename "${wheel##*-}" .whl)
    shown=$(auditwheel show "$wheel")
    echo "$shown"
    needed=$(grep --only-matching '\(many\|musl\)linux_[0-9a-z_]*' <<<"${shown#*platform tag:}" | head -1)
    [[ $(printf '%s\n' "$needed" "$tag" | sort --version-sort | tail -1) == "$tag" ]] ||
        { echo "error: $(basename "$wheel") needs $needed" >&2 && exit 1; }
}

# Sets `python` to the words that start a Python for TARGET here, and `emulated` to the emulator if it needs one. Fails if there is none.
python_of() {
    local machine=${1%%-*} root
    python=() emulated=
    case $1 in
        "$(uname -m)"-unknown-linux-gnu) python=(python3) ;;
        "$(uname -m)"-unknown-linux-musl) python=(${MUSL_PYTHON:+"$MUSL_PYTHON"}) ;;
        *-unknown-linux-gnu)
            root=target/python-$machine
            runner_of "$1" && command -v mmdebstrap >/dev/null || return 1
            if [[ ! -d $root ]]; then
                mmdebstrap --quiet --variant=extract --include=python3-minimal,libpython3.11-stdlib --arch="${debian[$machine]}" bookworm "$root.new"
                mv "$root.new" "$root"
            fi
            emulated=${runner[0]}
            python=("${runner[@]}" -L "$root" "$root/usr/bin/python3.11")
            ;;
    esac
    ((${#python[@]}))
}
declare -A debian=([x86_64]=amd64 [aarch64]=arm64)

# Starts the program in a wheel, on this machine or an emulated one, imports the module, and compares their results; sets `started` and
# `imported`.
starts() {
    local wheel=$1 target=$2 root
    started=no imported=no
    root=$(mktemp -d)
    python3 -m zipfile --extract "$wheel" "$root"
    chmod +x "$root"/*.data/scripts/uncork
    if runner_of "$target"; then
        "${runner[@]}" "$root"/*.data/scripts/uncork compare --size 1MB --seeds 1 --format json >"$root/program.json"
        started=${runner[0]-yes}
    else
        echo "*** NOT STARTED: $(basename "$wheel"): this machine cannot run it ***"
    fi
    if python_of "$target"; then
        PYTHONPATH=$root "${python[@]}" -S -c "import uncork; print(uncork.compare(size='1MB', seeds=1).json, end='')" >"$root/module.json"
        cmp "$root/program.json" "$root/module.json"
        imported=${emulated:-yes}
    else
        echo "*** NOT IMPORTED: $(basename "$wheel"): no Python for it here ***"
    fi
    rm -r "$root"
}

# What the checks found, for docs/evidence/releases.md.
printf 'wheel\tauditwheel show\tabi3audit\tprogram started\tmodule imported\n' >target/wheels.tsv
for target in "${targets[@]}"; do
    rustup target add "$target"
    before=$(mktemp)
    build "$target"
    wheel=$(find "$wheels" -name '*.whl' -newer "$before")
    rm "$before"
    needed=-
    [[ $target != *-linux-* ]] || complies "$wheel"
    abi3audit --strict "$wheel"
    starts "$wheel" "$target"
    printf '%s\t%s\tpassed\t%s\t%s\n' "$(basename "$wheel")" "$needed" "$started" "$imported" >>target/wheels.tsv
done
hatchling build -t sdist -d "$wheels"
twine check --strict "$wheels"/*
