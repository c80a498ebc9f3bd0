#!/usr/bin/env bash
# Builds the objects in bpf/ from the sources: `build-bpf.sh` writes them, `build-bpf.sh --check` compares
# with the committed ones. Exit status 3 where the toolchain is missing: clang 22 and LLVM 22 (Debian 12:
# apt-get install clang-22 llvm-22).
set -euo pipefail
cd "$(dirname "$0")"
source ../../transport/kernel/bpf-objects.sh

for name in steer move; do
    compile -c "bpf/$name.bpf.c" -o "$target/$name.bpf.o"
    keep "bpf/$name.bpf.o"
done
sha256sum bpf/*.bpf.o
exit "$status"
