#!/usr/bin/env python3
"""The same paths three times: in the simulator, by QUIC, and by the controllers in the kernel.

    sudo crates/transport/kernel/same_path.py --uncork target/release/uncork
    sudo crates/transport/kernel/same_path.py --uncork target/release/uncork --scenario bbr-loss-cliff --seeds 3
    crates/transport/kernel/same_path.py --uncork target/release/uncork --kernel debian-6.12

Without --scenario, LiteSpeed's table and the acceptance paths in `paths`. For each cell of a scenario
and each controller: the simulator's p10, median and p90 over its seeds, and the medians of `uncork
serve` and `uncork play` over the same path (LiteSpeed's table only), of the library's controllers in
this kernel, and of the kernel's own, each with its range and the median of its ratios to the simulator,
seed by seed: the same seed draws the same losses. How far a median is outside of the simulator's range
is bold. The figure is the time where a download completes, otherwise the goodput of one flow in
Mbit/s, or the share of the first of two in per cent. What is loaded goes with the script.

What is played in real time has real-time priority: a packet that waits for a processor is late.

With --kernel another kernel plays, one of kernels.py's or a bzImage, under qemu in virtual time (qemu.py):
each seed boots a guest, `--jobs` at a time. That needs no root, no quiet machine, and takes half a minute for 10 s
at 100 Mbit/s. QUIC is not played there. It needs what kernels.py needs, which fetches the packages.

Without it, needs root, what `uncork emu` and `uncork kernel load` need, and util-linux.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import gzip
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import kernels
import own_mounts
import qemu
from cost import loaded

CONTROLLERS = ["bbr3", "bbr2", "bbr1", "cubic", "reno"]
KERNELS_OWN = ["bbr1", "cubic", "reno"]
PRIORITY = 20


@dataclass(frozen=True)
class Paths:
    """A scenario, and which controllers play it."""

    scenario: str
    controllers: list[str]
    kernels_own: list[str]
    # The scenario with programs that play the same by QUIC.
    quic: str | None = None
    # Of the engines in real time.
    seeds: int = 5
    # Downloads at a time, each over its own path: 100 Mbit/s take a core.
    jobs: int = 2

    def only(self, names: list[str]) -> Paths:
        """With these of its controllers."""
        ours, own = ([name for name in of if name in names] for of in (self.controllers, self.kernels_own))
        return replace(self, controllers=ours, kernels_own=own)


PATHS_HERE = Path(__file__).parent / "paths"
REAL = Path(__file__).parents[3] / "docs/real"
ALL = [
    Paths("litespeed-loss", CONTROLLERS, KERNELS_OWN, str(REAL / "litespeed-loss-quic.toml"), jobs=8),
    Paths(str(PATHS_HERE / "alone.toml"), ["bbr3", "bbr1", "cubic"], ["bbr1", "cubic"], seeds=3),
    Paths(str(PATHS_HERE / "shared.toml"), ["bbr3"], [], seeds=3),
]
# Hosts of the simulator, as `uncork lab agree` has them.
AS_IN_NAMESPACES = ["--set", "run.host_jitter=virtual", "--set", "run.offload=host"]
# Of a guest.
GUEST_S = 4 * 3600
INIT = """#!/bin/busybox sh
. /start.sh
uncork kernel load LOAD
RUN > run.json 2> errors || cat errors
if [ -s run.json ]; then
    echo BEGIN
    gzip -c run.json | base64
    echo END
fi
poweroff -f
"""
# For each cell and controller, in the order of the scenario: a value for each seed.
Values = dict[tuple[str, ...], list[float]]


def run_command(scenario: str, engine: str, key: str, names: list[str], seed: int, jobs: int) -> list[str]:
    """All but the program."""
    command = ["lab", "run", scenario, "--on", engine, "--seed", str(seed), "--seeds", "1"]
    command += ["--jobs", str(jobs), "-q", "--format", "json", "--set", f"{key}={json.dumps(names)}"]
    return command + AS_IN_NAMESPACES if engine == "sim" else command


def lab(uncork: str, scenario: str, engine: str, names: list[str], seeds: range, jobs: int = 2) -> Values:
    """Plays a scenario, seed by seed. Its document has medians, which are values where there is one seed."""
    found: Values = {}
    for seed in seeds if names else []:
        began = time.monotonic()
        command = run_command(scenario, engine, cc_key(uncork, scenario), names, seed, jobs)
        done = subprocess.run([uncork, *command], capture_output=True, text=True, check=False)
        # 1: a threshold of the scenario is missed, which is not the question here.
        if done.returncode not in (0, 1):
            sys.exit(f"same_path.py: {' '.join(command)}: {done.stderr.strip()}")
        read(json.loads(done.stdout), f"{engine}, seed {seed}", found)
        if engine != "sim":
            took = time.monotonic() - began
            print(f"{engine}, {scenario}: seed {seed} in {took:.0f} s", file=sys.stderr, flush=True)
    return found


def read(document: dict[str, Any], source: str, found: Values) -> None:
    """Adds the values of a run, and prints its doubts."""
    for doubt in document["doubts"]:
        print(f"{source}: {doubt}", file=sys.stderr, flush=True)
    for cell in document["cells"]:
        axes = zip(document["axes"], cell["point"], strict=True)
        point = tuple(axis["values"][place] for axis, place in axes)
        found.setdefault(point, []).append(value_of(cell["classes"]))


def lab_in_guests(kernel: str, uncork: str, scenario: str, engine: str, names: list[str], seeds: range, jobs: int) -> Values:
    """The same on another kernel, in virtual time: each seed in a guest of its own."""
    if not names:
        return {}
    if Path(kernel).is_file():
        image, base = Path(kernel), partial(qemu.guest, Path("/bin/busybox"), Path(uncork))
    else:
        parts = kernels.packages(kernel)
        image, base = kernels.image(parts), partial(kernels.guest, parts, Path(uncork))
    file = "/scenario.toml" if scenario.endswith(".toml") else scenario
    key = cc_key(uncork, scenario)

    def play_seed(seed: int) -> dict[str, Any]:
        began = time.monotonic()
        files = base()
        if file != scenario:
            files.file(file, Path(scenario).read_bytes())
        run = shlex.join(["uncork", *run_command(file, engine, key, names, seed, 1)])
        files.file("init", INIT.replace("LOAD", " ".join(ours(names))).replace("RUN", run).encode())
        said = qemu.play(image, files, GUEST_S)
        document = re.search(r"BEGIN\n(.*?)END", said, re.DOTALL)
        if document is None:
            sys.exit(f"same_path.py: the guest did not play seed {seed}; its console ends:\n{said[-2000:]}")
        took = time.monotonic() - began
        print(f"{engine} on {kernel}, {scenario}: seed {seed} in {took:.0f} s", file=sys.stderr, flush=True)
        return json.loads(gzip.decompress(base64.b64decode(document[1])))

    found: Values = {}
    with ThreadPoolExecutor(jobs) as pool:
        for seed, document in zip(seeds, pool.map(play_seed, seeds), strict=True):
            read(document, f"{engine} on {kernel}, seed {seed}", found)
    return found


def ours(names: list[str]) -> list[str]:
    """The controllers to load; a scenario of two flows may have CUBIC next to another."""
    return sorted({f"uncork_{name}" for name in [*names, "cubic"]})


def value_of(classes: list[dict[str, Any]]) -> float:
    """Seconds, Mbit/s, or per cent."""
    metrics = {one["name"]: one["estimate"] for one in classes[0]["metrics"]}
    if len(classes) > 1:
        return float(metrics["share_mean"]["value"])
    if "completion_p50" in metrics:
        estimate = metrics["completion_p50"]
        return float(estimate["value"]) if estimate else float("inf")
    return float(metrics["goodput_sum"]["value"]) / 1e6


def cc_key(uncork: str, scenario: str) -> str:
    if scenario.endswith(".toml"):
        shown = Path(scenario).read_text()
    else:
        command = [uncork, "lab", "show", scenario]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    keys = [line.split("=")[0].strip() for line in shown.splitlines() if '.cc" = [' in line]
    if len(keys) != 1:
        sys.exit("same_path.py: the scenario's matrix must have one axis of controllers")
    return "matrix." + keys[0]


def shown(values: list[float] | None, simulated: list[float]) -> str:
    """The median, its range, its ratio to the simulator, and how far it is outside of its range."""
    if values is None:
        return ""
    low, *_, high = statistics.quantiles(simulated, n=10, method="inclusive")
    median = statistics.median(values)
    ratio = statistics.median(value / same for value, same in zip(values, simulated, strict=False))
    mark = "" if low <= median <= high else f" **{median / (low if median < low else high) - 1:+.1%}**"
    return f"{median:.2f} ({min(values):.2f}–{max(values):.2f}) ×{ratio:.2f}{mark}".replace("%", " %")


def play(arguments: argparse.Namespace, paths: Paths) -> None:
    seeds = range(1, (arguments.seeds or paths.seeds) + 1)
    jobs, controllers = arguments.jobs or paths.jobs, paths.controllers
    guests = arguments.jobs or os.cpu_count() or 1
    simulated = lab(arguments.uncork, paths.scenario, "sim", controllers, range(1, arguments.simulated + 1))

    def on_kernel(engine: str, scenario: str, names: list[str]) -> Values:
        if arguments.kernel:
            return lab_in_guests(arguments.kernel, arguments.uncork, scenario, engine, names, seeds, guests)
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
        try:
            return lab(arguments.uncork, scenario, engine, names, seeds, jobs)
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    kernel = on_kernel("bpf", paths.scenario, controllers)
    own = on_kernel("netns", paths.scenario, paths.kernels_own)
    quic = on_kernel("netns", paths.quic, controllers) if paths.quic and not arguments.kernel else {}
    print("\n| cell | simulator: p10, median, p90 | QUIC | kernel, `uncork_*` | kernel's own |")
    print("|---|---|---|---|---|")
    within = 0
    for point, values in simulated.items():
        low, *_, high = statistics.quantiles(values, n=10, method="inclusive")
        within += low <= statistics.median(kernel[point]) <= high
        others = " | ".join(shown(side.get(point), values) for side in (quic, kernel, own))
        middle = statistics.median(values)
        print(f"| {', '.join(point)} | {low:.2f}, {middle:.2f}, {high:.2f} | {others} |")
    print(
        f"\nWithin the simulator's p10 to p90: {within} of {len(simulated)} of the kernel's medians.",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--uncork", required=True, help="the program")
    parser.add_argument("--scenario", help="only this one; its matrix needs an axis of controllers")
    parser.add_argument("--controller", action="append", choices=CONTROLLERS, help="only this one (repeatable)")
    parser.add_argument("--seeds", type=int, help="of the engines in real time")
    parser.add_argument("--simulated", type=int, default=20, help="seeds of the simulator")
    parser.add_argument("--jobs", type=int, help="downloads at a time, each over its own path; or guests")
    parser.add_argument("--kernel", metavar="NAME|BZIMAGE", help="the kernel that plays, in virtual time")
    arguments = parser.parse_args()
    if arguments.simulated < 2:
        parser.error(f"--simulated {arguments.simulated}: a range needs 2 seeds at least")
    if arguments.kernel and arguments.kernel not in kernels.KERNELS and not Path(arguments.kernel).is_file():
        parser.error(f"unknown kernel {arguments.kernel}; give a bzImage or one of {', '.join(kernels.KERNELS)}")
    known = [paths for paths in ALL if arguments.scenario in (None, paths.scenario)]
    chosen = known or [Paths(arguments.scenario, CONTROLLERS, KERNELS_OWN)]
    if arguments.controller:
        chosen = [paths.only(arguments.controller) for paths in chosen]
    with contextlib.ExitStack() as stack:
        if not arguments.kernel:
            own_mounts.enter()
            names = [name for paths in chosen for name in paths.controllers]
            stack.enter_context(loaded(arguments.uncork, ours(names)))
        for paths in chosen:
            play(arguments, paths)


if __name__ == "__main__":
    main()
