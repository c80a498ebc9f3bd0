#!/usr/bin/env bash
# Makes the files of a release in target/release-artifacts, from what is committed. docs/howto/release.md has the steps around it.
#   deploy/release.sh                       static programs for x86-64 and arm64 in archives, .deb and .rpm, wheels, documents
#   deploy/release.sh TARGET…               only these targets, such as x86_64-unknown-linux-musl, and wheels for their processors
#   deploy/release.sh --verify [TARGET…]    afterwards clones and builds all again in another directory, and compares the files
# PROFILE=release builds in a third of the time, to try this script. WHEELS= leaves out wheels and source distribution.
# It installs its tools into target/release-tools. Equal sources, tools and compiler shall give equal files in any directory: --verify shows it.
set -euo pipefail
cd "$(dirname "$0")/.."

source deploy/release/arguments.sh
read_release_arguments "$@"
export PROFILE=${PROFILE-dist}
wheels=${WHEELS-1}
artifacts=$PWD/target/release-artifacts
staging=$PWD/target/release-staging

commit=$(git rev-parse HEAD)
# What is built is the commit, and still so at the end.
check_tree() {
    if [[ -n $(git status --porcelain) || $(git rev-parse HEAD) != "$commit" ]]; then
        echo "error: uncommitted changes: a release is what a commit has (git status)" >&2
        echo "help: commit them, or run this script in a clone that nothing else changes" >&2
        exit 1
    fi
}
check_tree
declare -A package_of=([umoci]=umoci [qemu-aarch64]=qemu-user)
for needed in "${!package_of[@]}"; do
    if ! command -v "$needed" >/dev/null; then
        echo "error: $needed is not installed" >&2
        echo "help: apt-get install ${package_of[$needed]}" >&2
        exit 1
    fi
done
version=$(python3 .ci/versions.py print)
python3 .ci/versions.py
source deploy/release/tools.sh
source deploy/release/program.sh

# What would differ between two directories or days: paths, times, the order of names.
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH CARGO_INCREMENTAL=0 CARGO_PROFILE_DIST_STRIP=true CARGO_PROFILE_RELEASE_STRIP=true
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
umask 022
home=${CARGO_HOME:-$HOME/.cargo}
# Where the compiler finds the sources of its library, if it has them; otherwise it writes the other path itself.
library=$(rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')
export RUSTFLAGS="--remap-path-prefix=$PWD=/uncork --remap-path-prefix=$home=/cargo --remap-path-prefix=$library"
export CFLAGS="-ffile-prefix-map=$PWD=/uncork -ffile-prefix-map=$home=/cargo"
export CXXFLAGS=$CFLAGS

declare -A architectures=([x86_64]=amd64 [aarch64]=arm64)

# DIRECTORY as ARCHIVE, the same for the same files.
archive() {
    tar --create --directory "$(dirname "$1")" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --mode=u+rw,go=rX --format=ustar "$(basename "$1")" | gzip --best --no-name >"$2"
}

# Builds the program of a target, and starts it; sets `program`, and `runs`, the words that start it here.
build() {
    build_program "$1"
    runner_of "$1"
    runs=("${runner[@]}" "$program")
    "${runs[@]}" compare --size 1MB --seeds 1 >/dev/null
}

# The folder of a program: with its pages, and the licences of what is in it.
gather() {
    folder=$staging/uncork-$version-$1
    mkdir -p "$folder"
    cp "$program" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$folder"
    cp -r "$staging/manuals/." "$folder"
    python3 deploy/release/notices.py "$1" "$features" >"$folder/THIRD-PARTY.txt"
}

# The packages for Debian and Fedora, of the same folder.
package() {
    rm -rf target/package
    cp -r "$folder" target/package
    cargo deb --locked --quiet --no-build --no-strip --target "$1" -p uncork --output "$artifacts/"
    python3 deploy/release/rpm.py target/package >"$staging/rpm.toml"
    # In a copy, where all files have the time of the commit: a file that is older would keep its own.
    rm -rf "$staging/rpm"
    mkdir -p "$staging/rpm/target"
    git archive HEAD | tar --extract --directory "$staging/rpm"
    cp -r "$folder" "$staging/rpm/target/package"
    find "$staging/rpm/target" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +
    (cd "$staging/rpm" && cargo generate-rpm --package crates/tools/cli --metadata-overwrite "$staging/rpm.toml" --arch "${1%%-*}" \
        --source-date "$SOURCE_DATE_EPOCH" --output "$artifacts/")
}

rm -rf "$artifacts" "$staging" target/release-verified
mkdir -p "$artifacts" "$staging"
for target in "${targets[@]}"; do
    build "$target"
    # All programs print the same pages.
    [[ -d $staging/manuals ]] || deploy/manuals.sh "$staging/manuals" "${runs[@]}"
    gather "$target"
    archive "$folder" "$artifacts/$(basename "$folder").tar.gz"
    package "$target"
    architecture=${architectures[${target%%-*}]}
    deploy/release/image.sh "$folder" "$architecture" "$artifacts/uncork-$version-$architecture.oci.tar"
    deploy/release/sbom.sh "$target" "$features" >"$artifacts/uncork-$version-$target.cdx.json"
done
git archive --format=tar --prefix="uncork-$version/" HEAD | gzip --best --no-name >"$artifacts/uncork-$version-source.tar.gz"
if [[ -n $wheels ]]; then
    rm -rf target/wheels
    # For both C libraries of each processor.
    machines=("${targets[@]%%-*}")
    deploy/wheels.sh "${machines[@]/%/-unknown-linux-gnu}" "${machines[@]/%/-unknown-linux-musl}"
    cp target/wheels/* "$artifacts"
fi

repository=$(python3 -c 'import tomllib; print(tomllib.load(open("Cargo.toml", "rb"))["workspace"]["package"].get("repository", ""))')
if [[ -z $repository ]]; then
    repository=https://forge.example/uncork
    echo "*** the formula names $repository: workspace.package in Cargo.toml has no repository ***"
fi
check_tree
(cd "$artifacts" && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
python3 deploy/release/formula.py "$version" "$repository/releases/download/v$version" "$artifacts/SHA256SUMS" >"$artifacts/uncork.rb"
RELEASE_TOOLS=$tools python3 deploy/release/provenance.py "$artifacts/SHA256SUMS" targets="${targets[*]}" profile="$PROFILE" \
    features="$features" wheels="$wheels" >"$artifacts/uncork-$version.provenance.json"

[[ -n $verify ]] || exit 0
# A stranger's build: another directory, nothing built before but the tools.
second=$(mktemp -d)
trap 'rm -rf "$second"' EXIT
git clone --quiet --no-local . "$second/elsewhere"
mkdir "$second/elsewhere/target"
ln -s "$tools" "$second/elsewhere/target/release-tools"
env -u RUSTFLAGS -u CFLAGS -u CXXFLAGS WHEELS="$wheels" "$second/elsewhere/deploy/release.sh" "${targets[@]}"
diff -r "$artifacts" "$second/elsewhere/target/release-artifacts"
echo "the same, bit for bit: $(find "$artifacts" -type f | wc -l) files from two directories" | tee target/release-verified
