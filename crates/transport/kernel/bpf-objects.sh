# What scripts share that build the BPF objects of a crate. Source it in the crate's folder, with the script's arguments: with
# `--check` the built objects are compared with the committed ones, byte for byte, in any clone; otherwise they replace them.
root=$(cd ../../.. && pwd)
target=$root/target/bpf
check=${1-}
status=0

missing() {
    echo "${0##*/}: $1; see the head of this file" >&2
    exit 3
}
command -v clang-22 >/dev/null || missing "clang-22 is not installed"
command -v llvm-strip-22 >/dev/null || missing "llvm-22 is not installed"
mkdir -p "$target"

# compile OPTIONS…
compile() {
    clang-22 -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror \
        -ffile-prefix-map="$root"=/uncork -fdebug-compilation-dir=/uncork "$@"
}

# keep OBJECT, or compare it with the committed one.
keep() {
    local built=$target/${1##*/}
    llvm-strip-22 -g "$built"
    if [[ $check != --check ]]; then
        cp "$built" "$1"
    elif ! cmp "$built" "$1"; then
        echo "$1 is not what the sources give; run ${PWD#"$root/"}/${0##*/}" >&2
        status=1
    fi
}
