#!/usr/bin/env bash
# Prints the bill of materials of the program for TARGET with FEATURES, as CycloneDX.
#   deploy/release/sbom.sh x86_64-unknown-linux-musl full,aws-lc,mimalloc
# Needs cargo-cyclonedx, which writes a file into the folder of each crate of the workspace.
set -euo pipefail
cd "$(dirname "$0")/../.."

name=uncork.cdx
finish() { find crates -name "$name.json" -delete; }
trap finish EXIT
cargo cyclonedx --quiet --manifest-path crates/tools/cli/Cargo.toml --format json --spec-version 1.5 --target "$1" --features "$2" \
    --override-filename "$name"
# It names crates by their directories.
sed "s|path+file://$PWD/|path+file:///uncork/|" "crates/tools/cli/$name.json"
