#!/usr/bin/env bash
# Compares vendor/ with the published sources and its patches. Then applies each patch to a copy of the published
# sources, and runs the tests that it adds, which takes some minutes. `--vendor` only compares.
set -euo pipefail
patches=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=$work/target

# Prints the directory of a published crate. Cargo has one folder for each registry and protocol.
published() {
    local directory
    for directory in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1"; do
        if [[ -d $directory ]]; then echo "$directory" && return; fi
    done
    return 1
}

# The workspace builds its own noq-proto, so the published one may not have been downloaded.
if ! published noq-proto-1.4.0 >/dev/null; then
    mkdir -p "$work/fetch/src"
    touch "$work/fetch/src/lib.rs"
    printf '[package]\nname = "fetch"\nedition = "2024"\n[dependencies]\nnoq-proto = "=1.4.0"\n[workspace]\n' >"$work/fetch/Cargo.toml"
    cargo fetch --manifest-path "$work/fetch/Cargo.toml"
fi

# PATCH, CRATE, options of `cargo test`, names of the tests.
check() {
    local patch=$1 crate=$2
    shift 2
    rm -rf "$work/$crate"
    cp -r "$(published "$crate")" "$work/"
    cd "$work/$crate"
    patch --quiet -p1 <"$patches/$patch.patch"
    # h3's own tests need h3-quinn from its repository.
    [[ $crate != h3-* ]] || sed -i '/^mod tests;$/d' src/lib.rs
    # Not part of a workspace in a directory above.
    printf '\n[workspace]\n' >>Cargo.toml
    cargo test --lib "$@"
}

# CRATE, then its patches in the order in which they were applied.
compare_vendored() {
    local crate=$1 patch
    shift
    cp -r "$(published "$crate")" "$work/vendored"
    # Left out: tests in files of their own, and what only publishing needs.
    rm -rf "$work"/vendored/{.cargo-ok,.cargo_vcs_info.json,Cargo.lock,Cargo.toml.orig,release.toml,proptest-regressions}
    for patch in "$@"; do
        (cd "$work/vendored" && patch --quiet --no-backup-if-mismatch -p1 <"$patches/$patch.patch")
    done
    rm -rf "$work/vendored/src/tests"
    diff -r "$work/vendored" "$patches/../vendor/${crate%-*}"
    echo "vendor/${crate%-*} is $crate with $*"
}

compare_vendored noq-proto-1.4.0 noq-proto-1.4.0-recovery noq-proto-1.4.0-amplification noq-proto-1.4.0-ecn
[[ ${1-} != --vendor ]] || exit 0

check h3-0.0.8 h3-0.0.8 write_buf
noq=(noq-proto-1.4.0 --no-default-features --features rustls-ring --)
check noq-proto-1.4.0 "${noq[@]}" controllers_are_told acks_of_an_ack_frame
check noq-proto-1.4.0-recovery "${noq[@]}" reordering_window rtt_estimate_restarts gaps_between_full_packets
check noq-proto-1.4.0-amplification "${noq[@]}" anti_amplification migration handshake_anti_deadlock server_can_send_3
