#!/usr/bin/env python3
"""Compares forecasts of `uncork lab run --dry-run` with what the runs then cost, in docs/evidence/forecasts.md.

    crates/tools/cli/bench/forecasts.py target/release/uncork            # prints the tables
    crates/tools/cli/bench/forecasts.py target/release/uncork --write    # also writes them

Each scenario is forecast, run and forecast again with the same options. A scenario that would take more than six
seconds of CPU time has fewer seeds, at least one. The table says how many of how many.
"""

import json
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

import evidence_tables

# CPU time. Longer scenarios have fewer seeds.
MAX_SECONDS = 6
MAX_FACTOR = 2
HERE = Path(__file__).resolve().parent
BUILTIN = HERE.parents[2] / "lab/lab/scenarios"
OURS = HERE / "forecasts"


def lab_run(uncork: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a scenario. A threshold that is missed gives the status 1, which is not of interest here."""
    done = subprocess.run([uncork, "lab", "run", *words], capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise SystemExit(done.stderr)
    return done


def dry_run(uncork: Path, *words: str) -> list[dict[str, Any]]:
    plans: list[dict[str, Any]] = json.loads(lab_run(uncork, *words, "--dry-run", "--format", "json").stdout)["scenarios"]
    return plans


def total(plans: list[dict[str, Any]], key: str) -> float:
    return sum(float(plan[key]) for plan in plans)


def cpu_seconds() -> float:
    """CPU time of all programs that were run and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(uncork: Path, scenario: str) -> tuple[str, float]:
    """A row of the table, and the CPU time of the runs, of that of the forecast."""
    first = dry_run(uncork, scenario)
    expected = total(first, "cpu_seconds")
    seeds = max(plan["runs"] // plan["cells"] for plan in first)
    fewer = max(1, int(seeds * MAX_SECONDS / expected)) if expected > MAX_SECONDS else seeds
    words = (scenario,) if fewer == seeds else (scenario, "--seeds", str(fewer))
    before = first if fewer == seeds else dry_run(uncork, *words)
    start, used = time.monotonic(), cpu_seconds()
    lab_run(uncork, *words, "--quiet")
    taken, used = time.monotonic() - start, cpu_seconds() - used
    forecast = {key: (total(before, key) + total(dry_run(uncork, *words), key)) / 2 for key in ("cpu_seconds", "seconds")}
    ratio = used / forecast["cpu_seconds"]
    cells = (
        f"`{Path(scenario).stem}`",
        f"{fewer} of {seeds}" if fewer < seeds else "all",
        f"{total(before, 'packets') / 1e6:.1f}",
        *(f"{value:.2f}" for value in (forecast["cpu_seconds"], used, ratio)),
        *(f"{value:.2f}" for value in (forecast["seconds"], taken, taken / forecast["seconds"])),
    )
    return f"| {' | '.join(cells)} |\n", ratio


def table(uncork: Path, scenarios: list[str]) -> str:
    text = (
        "| scenario | seeds | packets, millions | CPU-s, forecast | CPU-s | ratio | s, forecast | s | ratio |\n"
        "|---|---|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    ratios = []
    for scenario in scenarios:
        line, ratio = row(uncork, scenario)
        print(line, end="", flush=True)
        text += line
        ratios.append(ratio)
    within = sum(1 / MAX_FACTOR <= ratio <= MAX_FACTOR for ratio in ratios)
    ends = f"from {min(ratios):.2f} to {max(ratios):.2f}"
    return f"{text}\nCPU time within a factor of {MAX_FACTOR} of the forecast: {within} of {len(ratios)}, {ends}.\n"


def of_builtin(uncork: Path) -> str:
    names = sorted(file.stem for file in BUILTIN.glob("*.toml") if not file.stem.endswith(".suite"))
    return table(uncork, names)


def of_ours(uncork: Path) -> str:
    return table(uncork, sorted(str(file) for file in OURS.glob("*.toml")))


if __name__ == "__main__":
    evidence_tables.main(__doc__, "forecasts.md", {"built-in": of_builtin, "ours": of_ours})
