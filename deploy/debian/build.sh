#!/usr/bin/env bash
# Builds target/debian/uncork_VERSION_ARCH.deb. Needs cargo-deb (cargo install cargo-deb).
#   deploy/debian/build.sh [PROGRAM]            packages PROGRAM instead of building one
#   deploy/debian/build.sh "$(deploy/pgo.sh)"   with the program optimised by its profile
set -euo pipefail
cd "$(dirname "$0")/../.."

package=target/package
features=full,aws-lc,mimalloc
program=${1-target/dist/uncork}
(($#)) || cargo build --locked --profile dist --features "$features" -p uncork
rm -rf "$package"
mkdir -p "$package"
cp "$program" "$package/uncork"
deploy/manuals.sh "$package" "$program"
python3 deploy/release/notices.py "$(rustc -vV | sed -n 's/^host: //p')" "$features" >"$package/THIRD-PARTY.txt"
cargo deb --locked --no-build -p uncork
