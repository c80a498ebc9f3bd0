#!/usr/bin/env python3
"""What the controllers cost on another kernel, compared with its own: instructions, counted under qemu.

    crates/transport/kernel/cost_in_guest.py --uncork target/release/uncork debian-6.12
    crates/transport/kernel/cost_in_guest.py --uncork target/release/uncork debian-6.12 --rate 200mbit --delay 20ms \\
        --megabytes 100

One flow of iperf3 over a veth pair between two network namespaces of the guest: a token bucket limits the
rate, and ACKs are delayed. In virtual time (qemu.py) each instruction takes a nanosecond, so what the guest
does not idle are its instructions, of the kernel and of both iperf3. They hardly differ between rounds, and
not with what else this machine does. What caches and branches cost is not in them: for time see cost.py.

Takes two minutes for each controller's GB, and about one to boot. Needs what kernels.py needs, iproute2 and
iperf3; no root.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import kernels
import qemu
from cost import OURS, OWN_KIND, THEIRS

MODULES = ["veth", "sch_tbf", "sch_netem"]
# Of a guest.
LIMIT_S = 4 * 3600
# Busybox has an `ip` and a `tc` of its own, which know neither namespaces nor these disciplines.
PROGRAMS = {"iperf3": "iperf3", "ip": "ip2", "tc": "tc2"}
INIT = """#!/bin/busybox sh
. /start.sh

# What does not work ends the guest, and the end of its console says why.
must() {
    "$@" || poweroff -f
}

mkdir -p /var/run /run/netns
ln -s /run/netns /var/run/netns
echo "KERNEL $(uname -r)"
must uncork kernel load LOAD
for host in s c; do
    ip2 netns add $host
done
ip2 link add veth0 netns s type veth peer veth0 netns c
ip2 -n s address add 10.99.0.1/24 dev veth0
ip2 -n c address add 10.99.0.2/24 dev veth0
for host in s c; do
    ip2 -n $host link set lo up
    ip2 -n $host link set veth0 up
done
must tc2 -n s qdisc add dev veth0 root tbf rate RATE burst 256kb latency 5ms
must tc2 -n c qdisc add dev veth0 root netem delay DELAY limit 100000

packets() {
    ip2 netns exec $1 cat /sys/class/net/veth0/statistics/tx_packets
}

transfer() {
    ip2 netns exec s iperf3 -s -1 > server.log 2>&1 &
    sleep 1
    sent=$(packets s)
    acks=$(packets c)
    before=$(cat /proc/uptime)
    ip2 netns exec c iperf3 -c 10.99.0.1 -R -J -C $1 -n MEGABYTESM > client.json || { cat client.json; poweroff -f; }
    after=$(cat /proc/uptime)
    wait
    echo "TRANSFER $1 $before $after $(($(packets s) - sent)) $(($(packets c) - acks))"
}

transfer cubic > /dev/null
for round in ROUNDS; do
    for controller in CONTROLLERS; do
        transfer $controller
    done
done
poweroff -f
"""


@dataclass(frozen=True)
class Transfer:
    """One download, by what the guest's clock and counters said."""

    instructions_per_byte: float
    mbit_per_s: float
    bytes_per_packet: float
    # In thousands.
    acks_per_gb: float

    @staticmethod
    def read(words: list[str], received: int) -> Transfer:
        """Uptime and idle time before and after, in s; packets sent by either host."""
        up, idle, later, idle_later, packets, acks = map(float, words)
        busy_ns = ((later - up) - (idle_later - idle)) * 1e9
        return Transfer(
            busy_ns / received,
            received * 8e-6 / (later - up),
            received / packets,
            acks * 1e6 / received,
        )


def play(arguments: argparse.Namespace, controllers: list[str]) -> tuple[str, dict[str, list[Transfer]]]:
    """The kernel's version, and the transfers by controller."""
    parts = kernels.packages(arguments.kernel)
    files = kernels.guest(parts, arguments.uncork, MODULES)
    for program, name in PROGRAMS.items():
        files.program(f"bin/{name}", qemu.installed(program))
    words = {
        "LOAD": " ".join(OURS),
        "RATE": arguments.rate,
        "DELAY": arguments.delay,
        "MEGABYTES": str(arguments.megabytes),
        "ROUNDS": " ".join(map(str, range(arguments.rounds))),
        "CONTROLLERS": " ".join(controllers),
    }
    init = re.sub("|".join(words), lambda word: words[word[0]], INIT)
    files.file("init", init.encode())
    said = qemu.play(kernels.image(parts), files, LIMIT_S)
    kernel = re.search(r"KERNEL (\S+)", said)
    lines = re.findall(r"^TRANSFER (\S+) ([\d. ]+)$", said, re.MULTILINE)
    if kernel is None or len(lines) != len(controllers) * arguments.rounds:
        sys.exit(f"cost_in_guest.py: the guest did not do it; the end of its console:\n{said[-2000:]}")
    transfers: dict[str, list[Transfer]] = {name: [] for name in controllers}
    for name, numbers in lines:
        transfers[name].append(Transfer.read(numbers.split(), arguments.megabytes << 20))
    return kernel[1], transfers


def row(name: str, mine: list[Transfer], own: list[Transfer]) -> str:
    """Medians, and the range of the instructions."""
    each = [one.instructions_per_byte for one in mine]
    middle = statistics.median(each)
    ratio = ""
    if own:
        theirs = statistics.median(one.instructions_per_byte for one in own)
        ratio = f"{100 * (middle / theirs - 1):+.1f} %"
    cells = [
        f"{statistics.median(one.mbit_per_s for one in mine):.0f}",
        f"{statistics.median(one.bytes_per_packet for one in mine):,.0f}",
        f"{statistics.median(one.acks_per_gb for one in mine):.1f}",
        f"{middle:.2f} ({min(each):.2f}–{max(each):.2f})",
        ratio,
    ]
    return f"| `{name}` | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", choices=kernels.KERNELS, metavar="KERNEL", help="one of kernels.py's")
    parser.add_argument("--uncork", type=Path, required=True, metavar="PROGRAM", help="the program")
    parser.add_argument("--rate", default="500mbit", help="of the path, as tc writes it (500mbit)")
    parser.add_argument("--delay", default="1ms", help="of ACKs, as tc writes it (1ms)")
    parser.add_argument("--megabytes", type=int, default=200, metavar="MIB", help="of each download (200)")
    parser.add_argument("--rounds", type=int, default=3, help="(3)")
    parser.add_argument("--controller", action="append", choices=THEIRS + OURS, help="only this one (repeatable)")
    arguments = parser.parse_args()
    if not arguments.uncork.is_file():
        parser.error(f"{arguments.uncork} is not there; build it: cargo build --release --features full")
    controllers = arguments.controller or THEIRS + OURS
    kernel, found = play(arguments, controllers)
    print(f"Linux {kernel}, {arguments.rate}, ACKs {arguments.delay} late:\n")
    print("| | Mbit/s | bytes per packet | thousand ACKs per GB | instructions per byte | next to its own kind |")
    print("|---|---|---|---|---|---|")
    for name, transfers in found.items():
        print(row(name, transfers, found.get(OWN_KIND.get(name, ""), [])))


if __name__ == "__main__":
    main()
