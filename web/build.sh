#!/usr/bin/env bash
# Builds the playground into target/web: the page, and the crates as WebAssembly. Needs rustup and npm.
#
#   web/build.sh && python3 -m http.server --directory target/web --bind 127.0.0.1
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
rustup target list --installed | grep -qx "$target" || rustup target add "$target"
rustup component list --installed | grep -qx rust-src || rustup component add rust-src
optimiser=web/node_modules/.bin/wasm-opt
[[ -x $optimiser ]] || npm ci --prefix web --no-audit --no-fund
export CARGO_TARGET_DIR=target
# No page shows the text of a panic. So the standard library is built from its sources, without these texts and for size. Only nightly
# compilers take these options; with RUSTC_BOOTSTRAP the stable one does, as for the kernel's programs.
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-Zunstable-options -Cpanic=immediate-abort -Zfmt-debug=shallow -Zlocation-detail=none \
    --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/uncork"
cargo build --locked --profile wasm --target "$target" -Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size \
    -p uncork-playground
rm -rf target/web && mkdir -p target/web
# Without the lines that are comments, without indents, and with lines joined where a statement or list goes on: a page loads them.
for script in web/*.js; do
    [[ $script == */offline.js ]] || sed -E "/^ *(\/\/|\/\*\*.*\*\/$)/d; s/^ +//" "$script" |
        sed -Ez 's/\n\n+/\n/g; s/([,;{([])\n/\1/g' >"target/$script"
done
sed -E 's/^ +//' web/index.html >target/web/index.html
cp web/style.css docs/start/first-comparison.svg target/web/
# Each function once, and those with similar names next to each other: both compress well. Most other passes make the file smaller, and
# larger when it is compressed.
"$optimiser" --reorder-functions-by-name --rse --vacuum --duplicate-function-elimination --reorder-locals --strip-debug --strip-producers \
    --strip-target-features "target/$target/wasm/uncork_playground.wasm" --output target/web/uncork.wasm
# The worker for times without a network names every file, and changes with each of them.
cd target/web
files=$(printf '"%s", ' *)
version=$(cat -- * | sha256sum | cut -c1-16)
sed -e "s/VERSION/$version/" -e "s/\"FILES\"/${files%, }/" ../../web/offline.js >offline.js
