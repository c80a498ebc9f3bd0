#!/usr/bin/env bash
# Builds target/debian/uncork_VERSION_ARCH.deb. Needs cargo-deb (cargo install cargo-deb).
#   deploy/debian/build.sh [PROGRAM]            packages PROGRAM instead of building one
#   deploy/debian/build.sh "$(deploy/pgo.sh)"   with the program optimised by its profile
set -euo pipefail
cd "$(dirname "$0")/../.."

package=target/package
program=${1-target/dist/uncork}
(($#)) || cargo build --locked --profile dist --features aws-lc,mimalloc -p uncork
rm -rf "$package"
mkdir -p "$package/man"
cp "$program" "$package/uncork"

# Writes the manual page of a command and those of its subcommands, which it names.
man() {
    local page
    page=$(IFS=-; echo "uncork${*:+-$*}")
    "$package/uncork" man "$@" >"$package/man/$page.1"
    local name
    for name in $(sed -n 's/^'"${page//-/\\\\-}"'\\-\([a-z-]*\)(1)$/\1/p' "$package/man/$page.1"); do
        [[ $name == help ]] || man "$@" "$name"
    done
}
man
for shell in bash zsh fish; do
    "$package/uncork" completions "$shell" >"$package/uncork.$shell"
done
cargo deb --locked --no-build -p uncork
