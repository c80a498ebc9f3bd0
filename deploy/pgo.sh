#!/usr/bin/env bash
# Builds target/pgo/uncork: `--profile dist` with what the server's package has, optimised for what it does most.
#
#   deploy/pgo.sh [FEATURES]    in addition to `full`; default: aws-lc,mimalloc; "" for none
#
# It builds a program that counts its branches, lets it serve and simulate for about a minute, and builds it
# again with these counts. Needs llvm-profdata, of the LLVM that rustc has or a newer one: rustup component add
# llvm-tools, or the package llvm-NN of the distribution; LLVM_PROFDATA names another. Sends nothing beyond
# loopback.
set -euo pipefail
cd "$(dirname "$0")/.."

features=full,${1-aws-lc,mimalloc}
out=target/pgo
counts=$PWD/$out/counts
says=$(rustc -vV)
host=$(sed -n 's/^host: //p' <<<"$says")
llvm=$(sed -n 's/^LLVM version: \([0-9]*\).*/\1/p' <<<"$says")

# The first llvm-profdata that can read what this rustc's programs write.
find_profdata() {
    local each major
    for each in "${LLVM_PROFDATA-}" "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" \
        "llvm-profdata-$llvm" "llvm-profdata-$((llvm + 1))" llvm-profdata; do
        [[ -n $each ]] && command -v "$each" >/dev/null || continue
        # Old versions do not print their version.
        major=$("$each" --version 2>/dev/null | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p') || true
        if ((${major:-0} >= llvm)); then
            command -v "$each"
            return
        fi
        echo "note: $each is too old: LLVM ${major:-unknown}" >&2
    done
    echo "error: no llvm-profdata of LLVM $llvm or newer, which this rustc needs: run" \
        "'rustup component add llvm-tools', install llvm-$llvm, or set LLVM_PROFDATA" >&2
    return 1
}
profdata=$(find_profdata)

# With --target, flags are for the program alone, not for build scripts and macros.
build() {
    RUSTFLAGS="${RUSTFLAGS-} $1" cargo build --locked --profile dist -p uncork --features "$features" \
        --target "$host" --target-dir "$out/$2"
    program=$out/$2/$host/dist/uncork
}

rm -rf "$counts"
build "-Cprofile-generate=$counts" counting
# All runs add to one file.
export LLVM_PROFILE_FILE="$counts/%m.profraw"

# What it does most, over each HTTP: objects of several sizes, on one connection and on many, with records of
# both kinds and without; requests that are not for a whole file. A profile of one workload alone would slow
# down all that it has not seen.
work=$(mktemp -d)
server=
finish() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
mkdir "$work/files"
for size in 200 1024 12000 100000 3000000 100000000; do
    head -c "$size" /dev/urandom >"$work/files/$size"
done
# A server keeps a file in memory only if it has not changed for a while.
sleep 3

serve() {
    "$program" serve --root "$work/files" --self-signed --listen 127.0.0.1:0 --network-share 100 --quiet "$@" \
        >"$work/urls" &
    server=$!
    for ((i = 0; i < 200; i++)); do
        url=$(sed -n 's|^\(https://[^ ]*\) .*|\1|p' "$work/urls" | head -1)
        [[ -z $url ]] || return 0
        kill -0 "$server" && sleep 0.1
    done
    echo "error: the server does not start" >&2
    return 1
}

# The server writes its counts when it ends.
stop() {
    kill "$server"
    wait "$server" || true
    server=
}

get() {
    "$program" play get --insecure --quiet --format csv "$@" >"$work/got"
    # A profile of errors would be one of the wrong program.
    if ! grep -q ',200,\|,206,' "$work/got"; then
        echo "error: 'uncork play get $*' has got nothing" >&2
        return 1
    fi
}

fetch() {
    local http few
    for http in 1.1 2 3; do
        few=one
        [[ $http != 1.1 ]] || few=kept
        get --http "$http" --connections kept --parallel 64 --repeat 20000 "$url/1024"
        get --http "$http" --connections "$few" --parallel 64 --repeat 10000 "$url/200" "$url/1024" "$url/12000"
        get --http "$http" --connections each --parallel 8 --repeat 200 "$url/1024" "$url/100000"
        get --http "$http" --connections kept --parallel 4 --repeat 30 "$url/3000000"
        get --http "$http" --connections kept --repeat 300 --range 1000-50000 "$url/100000"
        get --http "$http" --repeat 5 "$url/100000000"
    done
}

serve
fetch
stop
serve --records "$work/records.jsonl" --admin "unix:$work/admin" --access-log "$work/access.log"
fetch
stop
serve --records "$work/records/" --quic-cc bbr3
fetch
stop
# The same program simulates; without this it would take that for code that never runs.
"$program" compare --cc bbr3,cubic,reno --flows 2 --duration 20s --loss 0%,1% --quiet >/dev/null

"$profdata" merge -o "$out/uncork.profdata" "$counts"
# Cargo builds again for other flags, not for other contents of a file.
profile=$PWD/$out/$(sha256sum "$out/uncork.profdata" | cut -c1-16).profdata
mv "$out/uncork.profdata" "$profile"
build "-Cprofile-use=$profile" optimised
cp "$program" "$out/uncork"
echo "$out/uncork"
