#!/usr/bin/env python3
"""Compares initial windows on access networks, and writes the table into docs/evidence/start-windows.md.

    crates/tools/cli/bench/start_windows.py target/release/uncork            # prints the tables
    crates/tools/cli/bench/start_windows.py target/release/uncork --write    # also writes them

Three runs of `uncork lab run` in virtual time: objects over the presets, a download over a satellite with and without
what an earlier connection measured, and the built-in scenario `starts`.
"""

import csv
import io
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import evidence_tables

PRESETS = ["fibre", "cable", "dsl", "wifi", "3g", "slow-4g", "lte", "5g", "satellite-geo", "satellite-leo", "intercontinental"]
SIZES = ["100kB", "500kB", "2MB"]
WINDOWS = ["10p", "20p", "40p", "64p"]
OBJECTS = """
[run]
seeds = 30
end = "120s"

[path]
preset = "fibre"

[flow.object]
cc = "cubic"
transfer = "100kB"

[matrix]
"path.preset" = {presets}
"flow.object.transfer" = {sizes}
"flow.object.initial_window" = {windows}
"""
SATELLITE = """
[run]
seeds = 10
end = "120s"

[path]
rate = "250mbit"
rtt = "600ms"
buffer = "1bdp"

[flow.download]
cc = "cubic"
transfer = "100MB"
{resume}
"""
RESUME = 'resume = {{ window = "{window}", rtt = "600ms" }}'
BDP = "18750kB"
STARTS = Path(__file__).parents[3] / "lab" / "lab" / "scenarios" / "starts.toml"
"""The built-in scenario: the axes that the table has."""
LINES, TRACE = "path.trace_scale,path.buffer", "path.trace"
CC, WINDOW = "flow.objects.cc", "flow.objects.initial_window"
NAMES = {"cubic": "HyStart++", "cubic:start=search": "SEARCH", "cubic:start=rapid": "Rapid Start"}


def run(uncork: Path, text: str) -> list[dict[str, str]]:
    """The rows of the result's CSV."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "starts.toml")
        file.write_text(text, encoding="utf-8")
        command = [str(uncork), "lab", "run", str(file), "--format", "csv", "--quiet"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def cells(rows: Iterable[dict[str, str]]) -> dict[tuple[str, str, str], dict[str, float]]:
    """Metrics by preset, size and window."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:
        key = (row["path.preset"], row["flow.object.transfer"], row["flow.object.initial_window"])
        found.setdefault(key, {})[row["metric"]] = float(row["value"] or "nan")
    return found


def windows_table(uncork: Path) -> str:
    values = cells(run(uncork, OBJECTS.format(presets=PRESETS, sizes=SIZES, windows=WINDOWS).replace("'", '"')))
    lines = [
        "| network | object | 10: p50, s | 20 | 40 | 64 | 10: p90, s | 20 | 40 | 64 | 10: resent, % | 20 | 40 | 64 |",
        "|---|---|" + "--:|" * 12,
    ]
    for preset in PRESETS:
        for size in SIZES:
            base = values[preset, size, "10p"]
            row = [preset, size]
            for metric in ("completion_p50", "completion_p90"):
                row.append(f"{base[metric]:.3f}")
                row += [change(values[preset, size, window][metric], base[metric]) for window in WINDOWS[1:]]
            row += [f"{values[preset, size, window]['retransmitted_mean']:.1f}" for window in WINDOWS]
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def change(value: float, base: float) -> str:
    return f"{100 * (value / base - 1):+.0f} %".replace("-", "−")


def resume_table(uncork: Path) -> str:
    lines = ["| start | completion p50, s | resent, % |", "|---|--:|--:|"]
    for name, resume in {"HyStart++": "", "resumed, 1 BDP measured": RESUME.format(window=BDP)}.items():
        values = {row["metric"]: float(row["value"] or "nan") for row in run(uncork, SATELLITE.format(resume=resume))}
        lines.append(f"| {name} | {values['completion_p50']:.2f} | {values['retransmitted_mean']:.1f} |")
    return "\n".join(lines) + "\n"


def starts_table(uncork: Path) -> str:
    """What objects get, and what the call next to them loses."""
    values: dict[tuple[str, ...], float] = {}
    for row in run(uncork, STARTS.read_text(encoding="utf-8")):
        key = (row[LINES], row[TRACE], row[CC], row[WINDOW], row["class"], row["metric"])
        values[key] = float(row["value"] or "nan")
    lines = [
        "| lines | trace | start | 10: p50, s | 20 | 40 | 64 | 10: resent, % | 20 | 40 | 64 | 10: lost, % | 20 | 40 | 64 |",
        "|---|---|---|" + "--:|" * 12,
    ]
    for where in dict.fromkeys(key[:3] for key in values):
        times = [values[*where, window, "objects", "completion_p50"] for window in WINDOWS]
        line = [where[0], where[1], NAMES[where[2]], f"{times[0]:.3f}", *(change(one, times[0]) for one in times[1:])]
        line += [f"{values[*where, window, 'objects', 'retransmitted_mean']:.1f}" for window in WINDOWS]
        line += [f"{values[*where, window, 'call', 'dropped_mean']:.2f}" for window in WINDOWS]
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    tables = {"windows": windows_table, "resume": resume_table, "starts": starts_table}
    evidence_tables.main(__doc__, "start-windows.md", tables)
