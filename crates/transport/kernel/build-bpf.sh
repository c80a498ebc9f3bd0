#!/usr/bin/env bash
# Builds the objects in bpf/ from the sources: `build-bpf.sh` writes them, `build-bpf.sh --check`
# compares with the committed ones. Exit status 3 where the toolchain is missing.
#
# Toolchain, in these versions only: rustc 1.95.0 with rust-src (rustup), clang 22 and LLVM 22 (Debian 12:
# apt-get install clang-22 llvm-22-dev), and the linker, about four minutes of CPU:
#   LLVM_SYS_221_PREFIX=/usr/lib/llvm-22 LLVM_PREFIX=/usr/lib/llvm-22 \
#     cargo install bpf-linker@0.13.0 --locked --no-default-features --features llvm-22
set -euo pipefail
cd "$(dirname "$0")"
source ./bpf-objects.sh
rust=1.95.0

linker=$(command -v bpf-linker || echo "${BPF_LINKER:-}")
[[ -n $linker && $("$linker" --version) == "bpf-linker 0.13.0" ]] ||
    missing "bpf-linker 0.13.0 is not in PATH, nor named by BPF_LINKER"
[[ $(rustc "+$rust" --version 2>/dev/null) == "rustc $rust "* ]] || missing "rustc $rust is not installed"
sysroot=$(rustc "+$rust" --print sysroot)
[[ -d $sysroot/lib/rustlib/src/rust/library ]] || missing "rust-src of rustc $rust is not installed"

# Rust's functions stay inside: exported, they would be global BPF functions, and the verifier would
# take their arguments for possibly null. Those of the shim are the global ones, and one with numbers only: `narrow_div`. The shim
# is named here and not by a flag of rustc, so that all objects share the compiled library.
cat >"$target/linker" <<'EOF'
#!/usr/bin/env bash
args=()
while (($#)); do
    if [[ $1 == --export-symbols ]]; then shift; else args+=("$1"); fi
    shift
done
exec "$UNCORK_LINKER" "${args[@]}" "--export=$UNCORK_EXPORTS,narrow_div" "$UNCORK_SHIM"
EOF
# Names of functions contain a hash of `-C metadata`, which cargo makes of the directories of the crates.
# There is one version of each crate, so its name is enough.
cat >"$target/rustc" <<'EOF'
#!/usr/bin/env bash
args=()
for argument; do
    [[ $argument == metadata=* ]] && argument=metadata=uncork
    args+=("$argument")
done
exec "${args[@]}"
EOF
chmod +x "$target/linker" "$target/rustc"

flags=(-C target-cpu=v3 "--remap-path-prefix=$root=/uncork" "--remap-path-prefix=$sysroot=/rust"
    -C link-arg=--btf
    # Otherwise a call of memset is left, which BPF does not have.
    -C link-arg=--disable-memory-builtins -C link-arg=--disable-expand-memcpy-in-order)
export RUSTC_BOOTSTRAP=1 RUSTC_WRAPPER=$target/rustc CARGO_TARGET_DIR=$target/rust
export CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER=$target/linker UNCORK_LINKER=$linker
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}")
export CARGO_ENCODED_RUSTFLAGS

# build NAME REST_WORDS
build() {
    local name=$1 words=$2 shim=$target/$1.shim.bc with=()
    [[ $name != prague ]] || with=(-DWITH_ECT1)
    compile -Wno-unused-parameter -DREST_WORDS="$words" "${with[@]}" -emit-llvm -c bpf/shim.bpf.c -o "$shim"
    UNCORK_SHIM=$shim \
        UNCORK_EXPORTS=$(llvm-nm-22 --defined-only --extern-only --just-symbol-name "$shim" | paste -sd,) \
        cargo "+$rust" build --quiet --locked --release --target bpfel-unknown-none -Z build-std=core \
        --manifest-path bpf/Cargo.toml --features "$name"
    cp "$CARGO_TARGET_DIR/bpfel-unknown-none/release/libuncork_kernel_bpf.so" "$target/$name.bpf.o"
}

# Each controller of bpf/src/lib.rs, with its words.
controllers=$(sed -n 's/^controller!("\([a-z0-9]*\)",.*, \([0-9]*\));$/\1 \2/p' bpf/src/lib.rs)
while read -r name words; do
    build "$name" "$words"
    keep "bpf/$name.bpf.o"
done <<<"$controllers"
sha256sum bpf/*.bpf.o
exit "$status"
