# What the scripts of this folder share. Source it; it changes to the root of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# A build from nothing gains nothing from incremental compilation, and panics name their lines without tables of lines.
[[ -d target/debug ]] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
# Images of Python set it. Then each command of the tests compiles all that it imports.
unset PYTHONDONTWRITEBYTECODE
package=python/uncork
python=target/python

# Runs a command, after a line with the seconds since the script began; then prints what the command took.
step() {
    printf '\n== %4d s: %s\n' "$SECONDS" "$*"
    local TIMEFORMAT="== took %0R s, %0U + %0S CPU-s: $*"
    time "$@"
}

# Parts that run at the same time wait for each other.
install() {
    mkdir -p target
    local apt=(flock target/apt.lock apt-get install -y --no-install-recommends "$@")
    step "${apt[@]}" || { step flock target/apt.lock apt-get update && step "${apt[@]}"; }
}

has() { command -v "$1" >/dev/null; }

# Prints `capability` and a reason for each one that the tests may miss on this machine, and sets
# UNCORK_REQUIRE to the others: their tests fail if they cannot run.
require() {
    local required=browser,programs not_required=()
    if ((EUID == 0)) && [[ -c /dev/net/tun ]]; then
        required+=,netns,mount
    else
        not_required+=("netns, mount: needs root and /dev/net/tun")
    fi
    local program
    for program in promtool nginx; do
        if has "$program"; then required+=,$program; else not_required+=("$program: not installed"); fi
    done
    local available=/proc/sys/net/ipv4/tcp_available_congestion_control
    if ((EUID == 0)) && ! grep -qw bbr "$available"; then modprobe tcp_bbr 2>/dev/null || true; fi
    if grep -qw bbr "$available"; then required+=,bbr; else not_required+=("bbr: the kernel has no tcp_bbr"); fi
    if [[ -e /proc/sys/net/ipv6 && $(cat /proc/sys/net/ipv6/conf/lo/disable_ipv6) == 0 ]]; then
        required+=,ipv6
    else
        not_required+=("ipv6: disabled on loopback")
    fi
    # Effective capabilities 38 and 39: CAP_PERFMON and CAP_BPF. The loader does not check a version: here the version says
    # that nothing may be missing.
    local capabilities=$((16#$(sed -n 's/^CapEff:\t//p' /proc/self/status)))
    if ((capabilities >> 38 & capabilities >> 39 & 1)) && [[ -e /sys/kernel/btf/vmlinux ]] &&
        [[ $(printf '6.1\n%s\n' "$(uname -r)" | sort -V | head -1) == 6.1 ]]; then
        required+=,bpf
    else
        not_required+=("bpf: needs CAP_BPF, CAP_PERFMON and Linux 6.1 with BTF")
    fi
    export UNCORK_REQUIRE=${UNCORK_REQUIRE-$required}
    printf '\n== UNCORK_REQUIRE=%s\n' "$UNCORK_REQUIRE"
    local one
    for one in "${not_required[@]}"; do not_required "$one"; done
}

not_required() {
    printf '\n*** NOT REQUIRED ON THIS MACHINE: %s. Tests of it may not have run. ***\n' "$1"
}
