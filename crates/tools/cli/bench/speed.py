#!/usr/bin/env python3
"""Compares the simulator's speed with that of another build, and writes the tables of docs/evidence/speed.md.

    cargo build --release -p uncork-cost
    crates/tools/cli/bench/speed.py target/release/speed                            # speeds alone
    crates/tools/cli/bench/speed.py target/release/speed --before OLD --write       # also ratios, into the page

Both builds run each case in turn, round by round: what else the machine does meets both. Their results must be equal.
"""

import argparse
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import evidence_tables

CASES = (
    "1xcubic:1000:4000",
    "1xbbr3:1000:4000",
    "100xreno:1000:2000",
    "100xcubic:1000:2000",
    "100xbbr1:1000:2000",
    "100xbbr3:1000:2000",
    "1000xcubic:10000:200",
    "1000xbbr3:10000:200",
)
INSTRUCTIONS = Path(__file__).resolve().parents[4] / ".ci/instructions.tsv"


@dataclass(frozen=True)
class Run:
    seconds: float
    """CPU time."""
    millions: float
    """Packets per second of it."""
    kilobytes: float
    """Per flow."""
    result: str


def run(program: Path, case: str) -> Run:
    done = subprocess.run([program, case], check=True, capture_output=True, text=True)
    _, _, seconds, millions, kilobytes, result = done.stdout.splitlines()[-1].split()
    return Run(float(seconds), float(millions), float(kilobytes), result)


def row(case: str, runs: list[Run], before: list[Run]) -> str:
    if len({one.result for one in [*runs, *before]}) != 1:
        raise SystemExit(f"{case}: the results differ")
    cells = [f"`{case}`", f"{statistics.median(one.millions for one in runs):.2f}", f"{runs[-1].kilobytes:.1f}"]
    if before:
        ratios = [now.seconds / then.seconds for now, then in zip(runs, before, strict=True)]
        cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    return f"| {' | '.join(cells)} |\n"


def of_simulator(program: Path, before: Path | None, rounds: int) -> str:
    head = ["case", "M packets per CPU-s", "kB per flow", *(["CPU time, of before"] if before else [])]
    text = f"| {' | '.join(head)} |\n|---{'|--:' * (len(head) - 1)}|\n"
    for case in CASES:
        runs, others = [], []
        for _ in range(rounds):
            runs.append(run(program, case))
            if before:
                others.append(run(before, case))
        line = row(case, runs, others)
        print(line, end="", flush=True)
        text += line
    return text


def of_instructions() -> str:
    """The table that `.ci/instructions.py` holds the program to."""
    lines = [line.split("\t") for line in INSTRUCTIONS.read_text(encoding="utf-8").splitlines() if "\t" in line]
    text = "| case | instructions |\n|---|--:|\n"
    return text + "".join(f"| {name} | {count} |\n" for name, count, *_ in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("speed", type=Path, help="the program of uncork-cost")
    parser.add_argument("--before", type=Path, help="the same program of another build")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case and build [default: 3]")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    arguments = parser.parse_args()
    tables = {
        "simulator": of_simulator(arguments.speed, arguments.before, arguments.rounds),
        "instructions": of_instructions(),
    }
    if arguments.write:
        evidence_tables.write("speed.md", tables)


if __name__ == "__main__":
    main()
