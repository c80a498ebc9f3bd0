#!/usr/bin/env bash
# Writes the manual pages and the completions that a program prints: DIRECTORY/man/*.1, DIRECTORY/completions/uncork.*.
#   deploy/manuals.sh DIRECTORY PROGRAM
#   deploy/manuals.sh DIRECTORY qemu-aarch64 PROGRAM     if the program is for another processor
set -euo pipefail
directory=$1
program=("${@:2}")
mkdir -p "$directory/man" "$directory/completions"

# The page of a command, and those of its subcommands, which it names.
man() {
    local page name
    page=$(IFS=-; echo "uncork${*:+-$*}")
    "${program[@]}" man "$@" >"$directory/man/$page.1"
    for name in $(sed -n 's/^'"${page//-/\\\\-}"'\\-\([a-z-]*\)(1)$/\1/p' "$directory/man/$page.1"); do
        [[ $name == help ]] || man "$@" "$name"
    done
}
man
for shell in bash zsh fish; do
    "${program[@]}" completions "$shell" >"$directory/completions/uncork.$shell"
done
