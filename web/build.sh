#!/usr/bin/env bash
# Builds the playground into target/web: the page, and the crates as WebAssembly. Needs the target wasm32-unknown-unknown.
#
#   web/build.sh && python3 -m http.server --directory target/web --bind 127.0.0.1
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
rustup target list --installed | grep -qx "$target" || rustup target add "$target"
export CARGO_TARGET_DIR=target
# Messages of panics name sources: equal ones on every machine.
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/uncork"
cargo build --locked --profile wasm --target "$target" -p uncork-playground
rm -rf target/web && mkdir -p target/web
# Without the lines that are comments: a page loads them.
for script in web/*.js; do
    [[ $script == */offline.js ]] || sed -E '/^ *(\/\/|\/\*\*.*\*\/$)/d' "$script" >"target/$script"
done
cp web/index.html web/style.css docs/start/first-comparison.svg target/web/
cp "target/$target/wasm/uncork_playground.wasm" target/web/uncork.wasm
# The worker for times without a network names every file, and changes with each of them.
cd target/web
files=$(printf '"%s", ' *)
version=$(cat -- * | sha256sum | cut -c1-16)
sed -e "s/VERSION/$version/" -e "s/\"FILES\"/${files%, }/" ../../web/offline.js >offline.js
