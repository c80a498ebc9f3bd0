#!/usr/bin/env bash
# Checks the documentation, and builds it into target/site/html, with the playground. Needs npm, and mdBook: two minutes of CPU, once.
#
#   cargo install --locked --debug --no-default-features --features search mdbook
#   site/build.sh                                        # then open target/site/html/index.html
#   UNCORK_FORGE=https://example.org/uncork/blob/main site/build.sh    # with links to the sources
set -euo pipefail
cd "$(dirname "$0")/.."
python3 site/check.py
mdbook build site
web/build.sh
rm -rf target/site/html/playground
cp -r target/web target/site/html/playground
