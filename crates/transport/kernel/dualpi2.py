#!/usr/bin/env python3
"""Linux' own DualPI2 as the bottleneck of `uncork_prague` and the kernel's controllers, under qemu in virtual time.

    crates/transport/kernel/dualpi2.py --uncork target/release/uncork > crates/lab/sim/tests/all/l4s/kernel.tsv

Each path and seed boots a guest with Ubuntu's 7.0, a stock kernel that has the discipline, and plays the mixes in
it (dualpi2_in_guest.py). A line of the output is a run: utilisation, what the packets of each flow waited in the
queue, and which were marked or dropped. `cargo test -p uncork-sim --test all l4s::kernel -- --ignored` plays the same
in the simulator, and puts both on the page.

With --udp-prague the sender and receiver of github.com/L4STeam/udp_prague play, too, built by its `make`: Prague by
those who defined it, over UDP.

In virtual time (qemu.py) it does not matter how busy this machine is. A second at 100 Mbit/s takes four. Needs what
kernels.py needs, and iproute2; no root.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import kernels
import qemu

KERNEL = "ubuntu-7.0"
MODULES = ["veth", "sch_netem", "sch_htb", "sch_dualpi2"]
# Busybox has an `ip` and a `tc` of its own, which know neither namespaces nor these disciplines.
PROGRAMS = {"ip": "ip2", "tc": "tc2"}
IN_GUEST = Path(__file__).with_name("dualpi2_in_guest.py")
# Of a guest.
LIMIT_S = 2 * 3600
SECONDS, WARMUP = 20, 5
PRAGUE, UDP_PRAGUE = ("uncork_prague", "l4s"), ("udp_prague", "l4s")
CUBIC, CUBIC_ECN, BBR = ("cubic", "none"), ("cubic", "classic"), ("bbr", "none")
# As the simulator's test names them.
MIXES = {
    "prague": [PRAGUE],
    "cubic": [CUBIC],
    "cubic, ECN": [CUBIC_ECN],
    "bbr1": [BBR],
    "prague and cubic": [PRAGUE, CUBIC],
    "prague and cubic, ECN": [PRAGUE, CUBIC_ECN],
    "prague and bbr1": [PRAGUE, BBR],
    "prague and prague": [PRAGUE, PRAGUE],
    "udp_prague": [UDP_PRAGUE],
    "udp_prague and cubic": [UDP_PRAGUE, CUBIC],
}
DATAGRAMS = ["udp_prague", "udp_prague and cubic"]
FEW = ["prague", "prague and cubic", "prague and cubic, ECN"]
# Mbit/s, ms, who cuts bursts into segments (`run.offload` of a scenario), and the mixes there.
PATHS = [
    (20, 10, "none", FEW),
    (20, 10, "host", FEW),
    (40, 20, "none", FEW),
    (40, 20, "host", FEW),
    (100, 10, "none", ["prague"]),
    (100, 10, "host", [mix for mix in MIXES if mix not in DATAGRAMS]),
]
INIT = """#!/bin/busybox sh
. /start.sh
mkdir -p /var/run /run/netns
ln -s /run/netns /var/run/netns
echo "KERNEL $(uname -r)"
python3 /play.py 'CELLS' 2>&1
poweroff -f
"""
CELL = ["mbit", "rtt_ms", "offload", "mix", "seed"]
OF_RUN = ["used", "share", "busy"]
OF_FLOW = ["p50_ms", "p99_ms", "marked", "dropped"]


# Of PATHS, and a seed.
Run = tuple[int, int, str, list[str], int]


def cells(of: Run, min_tso_segs: int) -> list[dict[str, Any]]:
    """Each flow starts within the first second, by the seed."""
    mbit, rtt_ms, offload, mixes, seed = of
    starts = random.Random(seed)
    common = {"mbit": mbit, "rtt_ms": rtt_ms, "offload": offload, "seed": seed, "min_tso_segs": min_tso_segs}
    common |= {"seconds": SECONDS, "warmup": WARMUP}
    return [{**common, "mix": mix, "flows": [(*kind, starts.random()) for kind in MIXES[mix]]} for mix in mixes]


def play(arguments: argparse.Namespace, of: Run) -> list[dict[str, Any]]:
    """What the guest says of its runs."""
    parts = kernels.packages(KERNEL)
    files = kernels.guest(parts, arguments.uncork, MODULES)
    for program, name in PROGRAMS.items():
        files.program(f"bin/{name}", qemu.installed(program))
    for program in ("udp_prague_sender", "udp_prague_receiver") if arguments.udp_prague else ():
        files.program(f"bin/{program}", arguments.udp_prague / program)
    files.script("play.py", IN_GUEST)
    files.file("init", INIT.replace("CELLS", json.dumps(cells(of, arguments.min_tso_segs))).encode())
    said = qemu.play(kernels.image(parts), files, LIMIT_S)
    found = [json.loads(line) for line in re.findall(r"^CELL (.*)$", said, re.MULTILINE)]
    if len(found) != len(of[3]):
        sys.exit(f"dualpi2.py: the guest did not play {of}; its console ends:\n{said[-2000:]}")
    print(f"{of}: played", file=sys.stderr, flush=True)
    return found


def row(cell: dict[str, Any]) -> list[str]:
    flows = cell["flows"]
    l4s = [flow for flow, (_, ecn) in zip(flows, MIXES[cell["mix"]], strict=True) if ecn == "l4s"]
    in_l, marked = (sum(flow[key] for flow in l4s) for key in ("came", "marked"))
    # What this course rests on: every packet of Prague has ECT(1), and the wire agrees with the discipline.
    if any(flow["ect1"] != flow["came"] for flow in l4s) or cell["not_kept"]:
        sys.exit(f"dualpi2.py: not all packets of Prague had ECT(1), or not all were kept: {cell}")
    if abs(cell["queue"]["in_l"] - in_l) > in_l // 100 or cell["queue"]["marked"] < marked * 0.99:
        sys.exit(f"dualpi2.py: DualPI2 has counted other than the wire: {cell}")
    left = [flow["left_after_warmup"] for flow in flows]
    used = 100 * sum(left) * 1500 * 8 / (cell["mbit"] * 1e6 * (SECONDS - WARMUP))
    values = [f"{used:.2f}", f"{100 * left[0] / sum(left):.2f}", f"{100 * cell['busy']:.0f}"]
    for flow in flows:
        values += [f"{flow['p50_ms']:.3f}", f"{flow['p99_ms']:.3f}"]
        values += [f"{100 * flow[key] / flow['came']:.4f}" for key in ("marked", "dropped")]
    return [*(str(cell[key]) for key in CELL), *values, *[""] * (len(OF_FLOW) * (2 - len(flows)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uncork", type=Path, required=True, metavar="PROGRAM", help="the program")
    parser.add_argument("--udp-prague", type=Path, metavar="DIRECTORY", help="where its programs are")
    parser.add_argument("--seeds", type=int, default=2, help="(2)")
    parser.add_argument("--min-tso-segs", type=int, default=2, metavar="N", help="net.ipv4.tcp_min_tso_segs (2)")
    parser.add_argument("--jobs", type=int, default=2, help="guests at a time (2)")
    arguments = parser.parse_args()
    if not arguments.uncork.is_file():
        parser.error(f"{arguments.uncork} is not there; build it: cargo build --release --features full")
    kernels.packages(KERNEL)
    seeds = range(1, arguments.seeds + 1)
    runs: list[Run] = [(*path, seed) for path in PATHS for seed in seeds]
    if arguments.udp_prague:
        runs += [(*path[:3], DATAGRAMS, seed) for path in PATHS if path[2] == "host" for seed in seeds]
    out = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    out.writerow([*CELL, *OF_RUN, *OF_FLOW, *(f"other_{name}" for name in OF_FLOW)])
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for found in pool.map(lambda one: play(arguments, one), runs):
            out.writerows(map(row, found))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
