#!/usr/bin/env python3
"""What the controllers cost in the kernel, compared with its own: CPU time per GB, and nanoseconds per call.

    sudo crates/transport/kernel/cost.py --uncork target/release/uncork

One flow of iperf3 over a veth pair between two network namespaces. The CPU time is that of a cgroup
with both iperf3, which pays for the kernel's work in its context, too. Controllers take turns, and each
is compared with the kernel's own of its kind in the same round. The size of packets before they are
segmented, retransmissions, and the number of ACKs are reported, too. The CPU time follows the
number of ACKs, which depends on whether the receiver sleeps between packets: so each is compared with
its kind at the same number of ACKs. Nanoseconds per call are the kernel's own statistics of BPF
programs, in runs of their own, because taking them costs time, too.
With `--rate` the path limits the transfer, as most paths do: each controller then sends as fast as the
others, and processors idle between packets. Timers run in the context that they interrupt, so the CPU time is
all that the machine does not idle: it must have no other work.
Everything created is removed, also after Ctrl-C.

Needs root, iperf3, iproute2, ethtool, bpftool, util-linux, and cgroups of version 2.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import own_mounts
from own_cgroup import group

OURS = ["uncork_bbr1", "uncork_bbr2", "uncork_bbr3", "uncork_cubic", "uncork_reno", "uncork_prague"]
THEIRS = ["bbr", "cubic", "reno"]
# What each is compared with.
OWN_KIND = {
    "uncork_bbr1": "bbr",
    "uncork_bbr2": "bbr",
    "uncork_bbr3": "bbr",
    "uncork_cubic": "cubic",
    "uncork_reno": "reno",
    "uncork_prague": "uncork_cubic",
}
# Negotiates AccECN where both hosts have it, and sends ECT(1) through devices with its program.
L4S = "uncork_prague"
SERVER, CLIENT = "uncork-cost-s", "uncork-cost-c"
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
# Of one run.
LIMIT_S = 120


def run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except FileNotFoundError:
        sys.exit(f"{Path(sys.argv[0]).name}: {command[0]} is not installed")
    if done.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: {' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def inside(name: str) -> list[str]:
    """In a network namespace, but with the cgroups of here, which `ip netns exec` hides."""
    return ["nsenter", f"--net=/run/netns/{name}"]


@contextlib.contextmanager
def hosts(offloads: bool, rate: str | None = None) -> Iterator[None]:
    """Two namespaces with a veth pair, which sends at most at this rate."""
    switch = "on" if offloads else "off"
    try:
        for name in (SERVER, CLIENT):
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "veth0", "netns", SERVER, "type", "veth", "peer", "veth0", "netns", CLIENT)
        for name, address in ((SERVER, "10.99.0.1/24"), (CLIENT, "10.99.0.2/24")):
            run("ip", "-n", name, "address", "add", address, "dev", "veth0")
            run("ip", "-n", name, "link", "set", "veth0", "up")
            features = [word for feature in ("tso", "gso", "gro") for word in (feature, switch)]
            run(*inside(name), "ethtool", "-K", "veth0", *features)
            # A card has one queue for a flow. A veth pair has one for each processor that sends, so what a timer sends
            # on one overtakes what an ACK sends on another, and is taken for loss.
            first = "echo 1 > /sys/class/net/veth0/queues/rx-0/rps_cpus"
            run("ip", "netns", "exec", name, "sh", "-c", first)
        if rate:
            shaper = ["tbf", "rate", rate, "burst", "256kb", "latency", "5ms"]
            run("tc", "-n", SERVER, "qdisc", "add", "dev", "veth0", "root", *shaper)
        yield
    finally:
        for name in (SERVER, CLIENT):
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)


def cpu_seconds(cgroup: Path) -> float:
    fields = dict(line.split() for line in (cgroup / "cpu.stat").read_text().splitlines())
    return int(fields["usage_usec"]) / 1e6


def busy_seconds() -> float:
    """Of all processors, in which they did not idle."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    _, _, _, idle, waiting, *_ = ticks
    return (sum(ticks) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def packets_sent(host: str) -> int:
    """Before segmentation."""
    [link] = json.loads(run("ip", "-n", host, "-json", "-statistics", "link", "show", "veth0"))
    return int(link["stats64"]["tx"]["packets"])


@dataclass(frozen=True)
class Transfer:
    """One download."""

    gbit_per_s: float
    cpu_s_per_gb: float
    # Before segmentation.
    bytes_per_packet: float
    sent_again: int
    # In thousands: all packets of the client.
    acks_per_gb: float


def transfer(controller: str, gigabytes: float, cgroup: Path, machine: bool = False) -> Transfer:
    """The CPU time is that of the whole machine if asked."""

    def command(name: str, *arguments: str) -> list[str]:
        enter = f'echo $$ > {cgroup}/cgroup.procs && exec nice -n -20 "$@"'
        return [*inside(name), "sh", "-c", enter, "sh", "iperf3", *arguments]

    if controller == L4S:
        for name in (SERVER, CLIENT):
            run(*inside(name), "sh", "-c", f"echo {L4S} > /proc/sys/net/ipv4/tcp_congestion_control")
    spent = busy_seconds if machine else lambda: cpu_seconds(cgroup)
    before, sent, acks = spent(), packets_sent(SERVER), packets_sent(CLIENT)
    with subprocess.Popen(command(SERVER, "-s", "-1"), stdout=subprocess.DEVNULL) as server:
        try:
            for _ in range(100):
                if run(*inside(SERVER), "ss", "-Hltn", "sport = 5201"):
                    break
                time.sleep(0.05)
            size = str(int(gigabytes * 1e9))
            client = command(CLIENT, "-c", "10.99.0.1", "-R", "-J", "-C", controller, "-n", size)
            result = json.loads(run(*client))
            server.wait(LIMIT_S)
        finally:
            server.kill()
    received = result["end"]["sum_received"]
    return Transfer(
        gbit_per_s=received["bits_per_second"] / 1e9,
        cpu_s_per_gb=(spent() - before) / (received["bytes"] / 1e9),
        bytes_per_packet=received["bytes"] / (packets_sent(SERVER) - sent),
        sent_again=result["end"]["sum_sent"]["retransmits"],
        acks_per_gb=(packets_sent(CLIENT) - acks) / 1e3 / (received["bytes"] / 1e9),
    )


def programs() -> dict[int, dict[str, int | str]]:
    """The struct_ops programs that there are, by number."""
    return {one["id"]: one for one in json.loads(run("bpftool", "-j", "prog", "show")) if one["type"] == "struct_ops"}


@contextlib.contextmanager
def loaded(uncork: str, controllers: list[str]) -> Iterator[None]:
    run(uncork, "kernel", "load", *controllers)
    try:
        yield
    finally:
        subprocess.run([uncork, "kernel", "unload", *controllers], stdout=subprocess.DEVNULL, check=False)


def send_ect1(uncork: str) -> None:
    """Programs at the server's devices; the controller is loaded."""
    run(*inside(SERVER), uncork, "kernel", "load", L4S)


def with_range(values: list[float] | list[int], digits: int) -> str:
    """Median and range."""
    middle, low, high = (f"{one:.{digits}f}" for one in (statistics.median(values), min(values), max(values)))
    return f"{middle}, {low}–{high}"


def ratio_to(mine: list[float], theirs: list[float]) -> str:
    """The median of the ratios, round by round, and its interval by order statistics (binomial)."""
    if not theirs:
        return ""
    ratios = sorted(100 * (one / other - 1) for one, other in zip(mine, theirs, strict=True))
    count, rank, tail = len(ratios), 0, 0.5 ** len(ratios)
    while tail <= 0.025:
        rank += 1
        tail += math.comb(count, rank) * 0.5**count
    interval = f", {ratios[rank - 1]:+.1f} to {ratios[-rank]:+.1f}" if rank else ""
    return f"{statistics.median(ratios):+.1f} %{interval}"


def at_the_same_acks(mine: list[Transfer], theirs: list[Transfer]) -> str:
    """How much more CPU time, by two parallel lines over the number of ACKs, and its 95 % interval."""
    if not theirs or len(mine) < 3:
        return ""
    sides = [[(one.acks_per_gb, one.cpu_s_per_gb) for one in side] for side in (mine, theirs)]
    means = [[statistics.mean(values) for values in zip(*side, strict=True)] for side in sides]
    apart = [(x - mx, y - my) for side, (mx, my) in zip(sides, means, strict=True) for x, y in side]
    spread = sum(x * x for x, _ in apart)
    slope = sum(x * y for x, y in apart) / spread
    (x_mine, y_mine), (x_theirs, y_theirs) = means
    more = y_mine - y_theirs - slope * (x_mine - x_theirs)
    noise = math.sqrt(sum((y - slope * x) ** 2 for x, y in apart) / (len(apart) - 3))
    error = noise * math.sqrt(1 / len(mine) + 1 / len(theirs) + (x_mine - x_theirs) ** 2 / spread)
    low, middle, high = (100 * (more + side * 1.96 * error) / y_theirs for side in (-1, 0, 1))
    return f"{middle:+.1f} %, {low:+.1f} to {high:+.1f}"


def measure_cpu(arguments: argparse.Namespace, cgroup: Path, offloads: bool) -> None:
    chosen = arguments.controller or THEIRS + OURS
    rounds: dict[str, list[Transfer]] = {name: [] for name in chosen}
    names = list(rounds)
    rate = arguments.rate
    with loaded(arguments.uncork, OURS), hosts(offloads, rate):
        send_ect1(arguments.uncork)
        transfer("cubic", arguments.gigabytes, cgroup)
        for number in range(arguments.rounds):
            # Each begins as often as the others.
            for name in names[number % len(names) :] + names[: number % len(names)]:
                rounds[name].append(transfer(name, arguments.gigabytes, cgroup, bool(rate)))
    switch = (f"{rate}, " if rate else "") + ("with" if offloads else "without")
    columns = [
        "Gbit/s",
        "bytes per packet",
        "resent, range",
        "thousand ACKs per GB, range",
        "CPU s/GB, range",
        "relative to its own kind, 95 %",
        "at the same ACKs, 95 %",
    ]
    print(f"\n| {' | '.join([f'{switch} TSO, GSO, GRO', *columns])} |\n|{'---|' * 8}")
    for name, results in rounds.items():
        own = rounds.get(OWN_KIND.get(name, ""), [])
        cells = [
            f"{statistics.median(one.gbit_per_s for one in results):.1f}",
            f"{statistics.median(one.bytes_per_packet for one in results):.0f}",
            with_range([one.sent_again for one in results], 0),
            with_range([one.acks_per_gb for one in results], 1),
            with_range([one.cpu_s_per_gb for one in results], 3),
            ratio_to([one.cpu_s_per_gb for one in results], [one.cpu_s_per_gb for one in own]),
            at_the_same_acks(results, own),
        ]
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


def measure_calls(arguments: argparse.Namespace, cgroup: Path, offloads: bool) -> None:
    switch = "with" if offloads else "without"
    print(f"\n| {switch} TSO, GSO, GRO | ACKs per GB | ns per ACK | all calls, ms/GB |")
    print("|---|---|---|---|")
    was = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        for name in OURS:
            others = programs().keys()
            with loaded(arguments.uncork, [name]), hosts(offloads):
                if name == L4S:
                    send_ect1(arguments.uncork)
                transfer(name, arguments.gigabytes, cgroup)
                ours = [one for number, one in programs().items() if number not in others]
            time_ns = sum(int(one.get("run_time_ns", 0)) for one in ours)
            [ack] = [one for one in ours if one["name"] == "cong_control"]
            count, spent = int(ack.get("run_cnt", 0)), int(ack.get("run_time_ns", 0))
            per_gb = count / arguments.gigabytes
            each = spent / max(count, 1)
            print(
                f"| `{name}` | {per_gb:.0f} | {each:.0f} | {time_ns / 1e6 / arguments.gigabytes:.1f} |",
                flush=True,
            )
    finally:
        STATISTICS.write_text(was)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--uncork", required=True, help="the program")
    parser.add_argument("--gigabytes", type=float, default=4, help="of each download")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--controller", action="append", choices=THEIRS + OURS, help="only this one (repeatable)")
    parser.add_argument("--cpu-with-offloads", action="store_true", help="nothing but the CPU time, with offloads")
    parser.add_argument("--rate", help="of the path, such as 2gbit: the CPU time of the machine (implies the last)")
    arguments = parser.parse_args()
    own_mounts.enter()
    with group() as cgroup:
        if arguments.cpu_with_offloads or arguments.rate:
            measure_cpu(arguments, cgroup, True)
            return
        for offloads in (True, False):
            measure_calls(arguments, cgroup, offloads)
            measure_cpu(arguments, cgroup, offloads)
            # Without offloads a GB takes several times as long.
            arguments.gigabytes /= 4


if __name__ == "__main__":
    main()
