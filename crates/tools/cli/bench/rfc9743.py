#!/usr/bin/env python3
"""Judges controllers by the criteria of RFC 9743, and writes the table into docs/evidence/l4s.md.

    crates/tools/cli/bench/rfc9743.py target/release/uncork            # prints the table
    crates/tools/cli/bench/rfc9743.py target/release/uncork --write    # also writes it

Each column is `uncork lab run rfc9743` with that controller as the one under test. Prague sends ECT(1).
"""

import json
import re
import subprocess
from pathlib import Path

import evidence_tables

CONTROLLERS = {"prague": "ect1", "cubic": "none", "bbr3": "none"}


def judged(uncork: Path, cc: str, ecn: str) -> list[dict]:
    """The documents of the suite's scenarios."""
    settings = ["--set", f"flow.main.cc={cc}", "--set", f"flow.main.ecn={ecn}"]
    command = [str(uncork), "lab", "run", "rfc9743", *settings, "--quiet", "--format", "json"]
    # Status 1: a threshold is missed.
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)["scenarios"]


def share(scenario: dict) -> str:
    thresholds = scenario["thresholds"]
    return f"{sum(one['passed'] for one in thresholds)} of {len(thresholds)}"


def missed(scenario: dict) -> str:
    """What is missed, with the worst value of each bound."""
    bounds: dict[str, list[float]] = {}
    for one in scenario["thresholds"]:
        if not one["passed"]:
            bounds.setdefault(f"{one['class']}: {one['text']}", []).append(one["measured"])
    show = "{}, measured {}".format
    return "; ".join(show(bound, " ".join(f"{value:.2f}" for value in values)) for bound, values in bounds.items())


def table(uncork: Path) -> str:
    suites = {cc: judged(uncork, cc, ecn) for cc, ecn in CONTROLLERS.items()}
    lines = [f"| criterion | {' | '.join(suites)} | bounds that prague misses |", "|---|--:|--:|--:|---|"]
    for scenarios in zip(*suites.values(), strict=True):
        criterion = re.sub("^RFC 9743 ", "", scenarios[0]["title"])
        lines.append(f"| {criterion} | {' | '.join(map(share, scenarios))} | {missed(scenarios[0])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    evidence_tables.main(__doc__, "l4s.md", {"rfc9743": table})
