#!/usr/bin/env bash
# Measures the time from a file of the release to the first table, on systems that have nothing of uncork: seconds for each step.
#   deploy/first_minute.sh [ARTIFACTS]                    default: target/release-artifacts
#   deploy/first_minute.sh ARTIFACTS NAME=DIRECTORY…      also in these root directories, which have Python with venv
# The systems: an empty directory; and the smallest Debian with python3-venv, by mmdebstrap, which stays in target/first-minute.
# Needs root. Each measurement has a copy of the system, by an overlay, and no network but its own loopback.
set -euo pipefail
cd "$(dirname "$0")/.."

artifacts=$(realpath "${1-target/release-artifacts}")
(($# == 0)) || shift
work=$PWD/target/first-minute
machine=$(uname -m)
debian=$work/debian
mkdir -p "$work/empty"
if [[ ! -d $debian ]]; then
    mmdebstrap --quiet --variant=minbase --include=python3-venv bookworm "$work/new"
    mv "$work/new" "$debian"
fi

# The one file of the release that a pattern means.
find_file() {
    local found=("$artifacts"/$1)
    if [[ ! -e ${found[0]} ]]; then
        echo "error: no $1 in $artifacts; make it by deploy/release.sh" >&2
        return 1
    fi
    echo "${found[0]}"
}

# in_copy SYSTEM FILE SCRIPT: the script in a copy of the system, which has the file as /FILE. It names its steps by `step`.
in_copy() {
    unshare --mount --net --pid --fork --kill-child bash -euo pipefail -c '
        system=$1 file=$2
        mount -t tmpfs none "$3"
        mkdir "$3/upper" "$3/work" "$3/root"
        mount -t overlay none -o "lowerdir=$system,upperdir=$3/upper,workdir=$3/work" "$3/root"
        root=$3/root
        cp "$file" "$root/"
        if [[ -x $root/bin/sh ]]; then
            mount -t proc none "$root/proc"
            mount --bind /dev "$root/dev"
        fi
        # step NAME COMMAND…: runs it in the system, and prints its seconds.
        step() {
            local name=$1 begin=${EPOCHREALTIME/./} all
            shift
            if ! all=$(chroot "$root" "$@" 2>&1); then
                echo "error: $name failed in $system: $all" >&2
                exit 1
            fi
            local took=$(((${EPOCHREALTIME/./} - begin) / 1000))
            printf "%s\t%s\t%d.%03d\n" "$label" "$name" $((took / 1000)) $((took % 1000))
            last=$all
        }
        # The table has a row for each controller.
        table() {
            step "first table" "$@" compare
            grep -q "^bbr3 " <<<"$last"
        }
        label=$4
        eval "$5"' bash "$1" "$2" "$work/mount" "$3" "$4"
}

mkdir -p "$work/mount"
printf 'system, file\tstep\tseconds\n'

archive=$(find_file "uncork-*-$machine-unknown-linux-musl.tar.gz")
tar -xzf "$archive" -C "$work" --strip-components=1 --wildcards '*/uncork'
in_copy "$work/empty" "$work/uncork" "empty directory, static program" 'table /uncork'

deb=$(find_file "uncork_*_$(dpkg --print-architecture).deb")
in_copy "$debian" "$deb" "Debian 12, .deb" "step 'dpkg --install' dpkg --install '/$(basename "$deb")'; table uncork"

for system in "Debian 12=$debian" "$@"; do
    root=${system#*=}
    libc=manylinux
    [[ ! -e $root/lib/ld-musl-$machine.so.1 ]] || libc=musllinux
    wheel=$(find_file "uncork-*${libc}_*_$machine.whl") || {
        echo "*** NOT MEASURED: the wheel in ${system%%=*} ***" >&2
        continue
    }
    in_copy "$root" "$wheel" "${system%%=*}, wheel" "
        step 'python3 -m venv' python3 -m venv /env
        step 'pip install' /env/bin/pip install --no-deps --no-index '/$(basename "$wheel")'
        table /env/bin/uncork"
done
