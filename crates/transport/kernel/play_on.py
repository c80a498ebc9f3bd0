#!/usr/bin/env python3
"""Plays a scenario on another kernel under qemu, in virtual time, and in the simulator, too.

    cd crates/transport/kernel
    ./play_on.py bzImage scenarios/bbr2-starts.toml --bbr bbr2 --uncork ../../../target/release/uncork

For controllers that no stock kernel has, such as BBRv2 and BBRv3: build a kernel with their patch, in which
the controller is named `bbr`. `--bbr` says which of the scenario's controllers that is.

How busy this machine is does not matter (qemu.py). Needs neither root nor /dev/kvm. A second of two flows at
50 Mbit/s takes one to two.

The kernel needs TUN, namespaces, INET_TCP_DIAG, a serial console and an initramfs, all built in. Needs
qemu-system-x86_64, ldd and a static busybox.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import qemu

METRICS = {
    "share_mean": ("share, %", 1),
    "goodput_sum": ("goodput, Mbit/s", 1e-6),
    "queue_delay_p95": ("queue delay p95, ms", 1e3),
    "retransmitted_mean": ("sent again, %", 1),
}
INIT = """#!/bin/busybox sh
. /start.sh
echo "KERNEL $(uname -r)"
uncork lab run /scenario.toml --on netns --seeds SEEDS --jobs 1 -q -o out 2>&1 || echo "STATUS $?"
echo BEGIN
cat out/cells.csv
echo END
poweroff -f
"""


def guest(arguments: argparse.Namespace) -> qemu.Initramfs:
    files = qemu.guest(arguments.busybox, arguments.uncork)
    # The laboratory's names of the kernel's controllers are those of version 1 and of the standard.
    text = arguments.scenario.read_text().replace(f'"{arguments.bbr}"', '"bbr1"')
    files.file("scenario.toml", text.replace('"cubic:linux"', '"cubic"').encode())
    files.file("init", INIT.replace("SEEDS", str(arguments.seeds)).encode())
    return files


def play(arguments: argparse.Namespace) -> tuple[str, str]:
    """The kernel's version, and its cells."""
    said = qemu.play(arguments.kernel, guest(arguments), arguments.timeout)
    kernel, cells = re.search(r"KERNEL (\S+)", said), re.search(r"BEGIN\n(.*?)END", said, re.DOTALL)
    if kernel is None or cells is None or not cells[1]:
        sys.exit(f"play_on.py: the guest did not play it; the end of its console:\n{said[-2000:]}")
    return kernel[1], cells[1]


def simulate(arguments: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        command = [arguments.uncork, "lab", "run", arguments.scenario, "-q", "-o", f"{scratch}/out"]
        # 1: a threshold of the scenario is missed, which is not the question here.
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"play_on.py: {done.stderr.strip()}")
        return (Path(scratch) / "out" / "cells.csv").read_text()


def values(text: str) -> dict[tuple[str, ...], float]:
    """By the values of the axes, the class of flows, and the metric."""
    found = {}
    for row in csv.DictReader(io.StringIO(text)):
        names = list(row)
        # Axes come first, each with and without its unit.
        axes = [row[name] for name in names[: names.index("class")] if not name.endswith("_ns")]
        if row["metric"] in METRICS and row["value"]:
            found[(*axes, row["class"], row["metric"])] = float(row["value"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", type=Path, help="bzImage of the kernel")
    parser.add_argument("scenario", type=Path, help="file of a scenario")
    parser.add_argument("--uncork", type=Path, required=True, metavar="PROGRAM", help="the program to run")
    parser.add_argument("--bbr", required=True, metavar="NAME", help="the scenario's controller that the kernel has as bbr")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="on the kernel (2)")
    parser.add_argument("--busybox", type=Path, default=Path("/bin/busybox"), metavar="PROGRAM", help="/bin/busybox")
    parser.add_argument("--timeout", type=float, default=3600, metavar="S", help="of the guest (3600 s)")
    arguments = parser.parse_args()
    for path in (arguments.kernel, arguments.scenario, arguments.uncork, arguments.busybox):
        if not path.is_file():
            parser.error(f"{path} is not there")
    simulated = values(simulate(arguments))
    kernel, cells = play(arguments)
    print(f"| cell, flows | | Linux {kernel} | simulator |\n|---|---|---:|---:|")
    for key, value in values(cells).items():
        label, scale = METRICS[key[-1]]
        here = f"{simulated[key] * scale:.3g}" if key in simulated else "–"
        print(f"| {', '.join(key[:-1])} | {label} | {value * scale:.3g} | {here} |")


if __name__ == "__main__":
    main()
