# shellcheck shell=bash
# The static program of a release, for archives, packages and wheels. Source it in the root, after tools.sh. PROFILE is cargo's.

# musl's allocator is slow, and so is the portable cryptography.
features=full,aws-lc,mimalloc

# Builds the program for TARGET, if it is not current; sets `program`.
build_program() {
    rustup target add "$1"
    # With the list of its dependencies inside, for `cargo audit bin`. Without a time: cargo would keep what C sources made of
    # the time of an earlier commit.
    SOURCE_DATE_EPOCH=0 cargo auditable zigbuild --locked --profile "$PROFILE" --features "$features" --target "$1" -p uncork
    program=target/$1/$PROFILE/uncork
}

# Sets `runner` to the words that start a program for TARGET on this machine. Fails if nothing does.
runner_of() {
    runner=()
    case $1 in
        "$(uname -m)"-unknown-linux-*) ;;
        *-unknown-linux-*) runner=("qemu-${1%%-*}") && command -v "${runner[0]}" >/dev/null ;;
        *) return 1 ;;
    esac
}
