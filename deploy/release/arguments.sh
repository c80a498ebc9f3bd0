# shellcheck shell=bash
# The arguments of deploy/release.sh and deploy/wheels.sh: what is wrong with them is an error before anything is installed or built.
# Source it in the root.

# The targets of static programs, and those of wheels.
PROGRAMS=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
WHEELS_ON_LINUX=(
    x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
    x86_64-unknown-linux-musl aarch64-unknown-linux-musl
)
WHEELS_ON_MACOS=(x86_64-apple-darwin aarch64-apple-darwin)

# refuse PROBLEM REMEDY
refuse() {
    printf 'error: %s\nhelp: %s\n' "$1" "$2" >&2
    exit 2
}

# The comment at the head of the script, for --help.
print_help() {
    sed -n '2,/^[^#]/{s/^# \?//p}' "$0"
    exit 0
}

# check_targets KNOWN… -- GIVEN…
check_targets() {
    local known=() target seen=' '
    while [[ $1 != -- ]]; do known+=("$1"); shift; done
    shift
    for target; do
        [[ $target != -* ]] || refuse "unknown option '$target'" "${0##*/} --help lists the options"
        [[ " ${known[*]} " == *" $target "* ]] || refuse "unknown target '$target'" "use one of ${known[*]}"
        [[ $seen != *" $target "* ]] || refuse "the target '$target' is given twice" "name it once"
        seen+="$target "
    done
}

# check_environment: variables that the scripts read, and those of cargo that move what it builds.
check_environment() {
    local name
    case ${PROFILE-dist} in
        dist | release) ;;
        *) refuse "unknown profile '$PROFILE' (PROFILE)" "use dist or release" ;;
    esac
    for name in CARGO_TARGET_DIR CARGO_BUILD_TARGET CARGO_BUILD_TARGET_DIR CARGO_ENCODED_RUSTFLAGS; do
        [[ -z ${!name-} ]] || refuse "$name is set to '${!name}', and would change what is built or where" "unset $name"
    done
}

# Sets `verify` and `targets`.
read_release_arguments() {
    # shellcheck disable=SC2034 # For the script that sources this.
    verify=
    case ${1-} in
        --verify)
            # shellcheck disable=SC2034
            verify=1
            shift
            ;;
        -h | --help) print_help ;;
    esac
    targets=("$@")
    (($#)) || targets=("${PROGRAMS[@]}")
    check_targets "${PROGRAMS[@]}" -- "${targets[@]}"
    check_environment
    case ${WHEELS-1} in
        '' | 1) ;;
        *) refuse "unknown value '$WHEELS' (WHEELS)" "write WHEELS= to leave out the wheels" ;;
    esac
    [[ -z ${RUSTFLAGS-} ]] || refuse "RUSTFLAGS is set to '$RUSTFLAGS', and a release has its own" "unset RUSTFLAGS"
}

# Sets `targets`.
read_wheel_arguments() {
    case ${1-} in
        -h | --help) print_help ;;
    esac
    targets=("$@")
    (($#)) || targets=("${WHEELS_ON_LINUX[@]}")
    check_targets "${WHEELS_ON_LINUX[@]}" "${WHEELS_ON_MACOS[@]}" -- "${targets[@]}"
    check_environment
}
