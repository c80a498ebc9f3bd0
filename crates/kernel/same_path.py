#!/usr/bin/env python3
"""The same downloads three times: in the simulator, by QUIC, and by the controllers in the kernel.

    sudo crates/kernel/same_path.py --uncork target/release/uncork
    sudo crates/kernel/same_path.py --uncork target/release/uncork --scenario bbr-loss-cliff --seeds 3

For each cell of a scenario and each controller: the simulator's p10, median and p90 over its seeds, and the
medians of `uncork serve` and `uncork play` over the same path (LiteSpeed's table only), of the library's
controllers in this kernel, and of the kernel's own, each with its range and the median of its ratios to the
simulator, seed by seed: the same seed draws the same losses. How far a median is outside of the simulator's
range is bold. What is loaded goes with the script.

Needs root, what `uncork emu` and `uncork kernel load` need, and util-linux.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import own_mounts

CONTROLLERS = ["bbr3", "bbr2", "bbr1", "cubic", "reno"]
KERNELS_OWN = ["bbr1", "cubic", "reno"]
LITESPEED = "litespeed-loss"
QUIC = Path(__file__).parents[2] / "docs/real/litespeed-loss-quic.toml"
# For each cell and controller, in the order of the scenario: a value for each seed.
Values = dict[tuple[str, ...], list[float]]


def lab(arguments: argparse.Namespace, scenario: str, engine: str, names: list[str], seeds: range) -> Values:
    """Plays a scenario, seed by seed. Its document has medians, which are values where there is one seed."""
    found: Values = {}
    for seed in seeds:
        if engine != "sim":
            print(f"{engine}, {scenario}: seed {seed} of {seeds[-1]}", file=sys.stderr, flush=True)
        command = [
            arguments.uncork,
            "lab",
            "run",
            scenario,
            "--on",
            engine,
            "--seed",
            str(seed),
            "--seeds",
            "1",
        ]
        command += ["-q", "--format", "json", "--set", f"{cc_key(arguments)}={json.dumps(names)}"]
        if engine != "sim":
            command += ["--jobs", str(arguments.jobs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # 1: a threshold of the scenario is missed, which is not the question here.
        if done.returncode not in (0, 1):
            sys.exit(f"same_path.py: {' '.join(command)}: {done.stderr.strip()}")
        document = json.loads(done.stdout)
        for doubt in document["doubts"]:
            print(f"{engine}, seed {seed}: {doubt}", file=sys.stderr, flush=True)
        for cell in document["cells"]:
            point = tuple(
                axis["values"][place] for axis, place in zip(document["axes"], cell["point"], strict=True)
            )
            [of] = cell["classes"]
            metrics = {one["name"]: one["estimate"] for one in of["metrics"]}
            estimate = metrics.get("completion_p50") or metrics["goodput_mean"]
            value = estimate["value"] if estimate else float("inf")
            found.setdefault(point, []).append(value)
    return found


def cc_key(arguments: argparse.Namespace) -> str:
    shown = subprocess.run(
        [arguments.uncork, "lab", "show", arguments.scenario], capture_output=True, text=True, check=True
    ).stdout
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--uncork", required=True, help="the program")
    parser.add_argument("--scenario", default=LITESPEED, help="with one class, and an axis of controllers")
    parser.add_argument("--seeds", type=int, default=5, help="of the engines in real time")
    parser.add_argument("--simulated", type=int, default=20, help="seeds of the simulator")
    parser.add_argument("--jobs", type=int, default=4, help="downloads at a time, each over its own path")
    arguments = parser.parse_args()
    own_mounts.enter()
    ours = [f"uncork_{name}" for name in CONTROLLERS]
    seeds = range(1, arguments.seeds + 1)
    simulated = lab(arguments, arguments.scenario, "sim", CONTROLLERS, range(1, arguments.simulated + 1))
    subprocess.run([arguments.uncork, "kernel", "load", *ours], check=True, stdout=subprocess.DEVNULL)
    try:
        kernel = lab(arguments, arguments.scenario, "bpf", CONTROLLERS, seeds)
    finally:
        unload = [arguments.uncork, "kernel", "unload", *ours]
        subprocess.run(unload, check=False, stdout=subprocess.DEVNULL)
    own = lab(arguments, arguments.scenario, "netns", KERNELS_OWN, seeds)
    is_litespeed = arguments.scenario == LITESPEED
    quic = lab(arguments, str(QUIC), "netns", CONTROLLERS, seeds) if is_litespeed else {}
    print("| cell | simulator: p10, median, p90 | QUIC | kernel, `uncork_*` | kernel's own |")
    print("|---|---|---|---|---|")
    within = 0
    for point, values in simulated.items():
        low, *_, high = statistics.quantiles(values, n=10, method="inclusive")
        within += low <= statistics.median(kernel[point]) <= high
        others = " | ".join(shown(side.get(point), values) for side in (quic, kernel, own))
        middle = statistics.median(values)
        print(f"| {', '.join(point)} | {low:.2f}, {middle:.2f}, {high:.2f} | {others} |")
    print(f"\nWithin the simulator's p10 to p90: {within} of {len(simulated)} of the kernel's medians.")


if __name__ == "__main__":
    main()
