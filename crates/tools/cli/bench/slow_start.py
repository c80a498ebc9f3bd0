#!/usr/bin/env python3
"""Compares the methods that end slow start, and writes their table into docs/evidence/slow-start.md.

    crates/tools/cli/bench/slow_start.py target/release/uncork            # prints the table
    crates/tools/cli/bench/slow_start.py target/release/uncork --write    # also writes it

Each row is `uncork compare` over one path: ten seeds, no random loss.
"""

import csv
import io
import subprocess
from pathlib import Path

import evidence_tables

METHODS = {
    "cubic": "HyStart++, ACK train",
    "cubic:linux": "HyStart of Linux",
    "cubic:start=search": "SEARCH",
    "cubic:start=rapid": "Rapid Start",
}
# Rate, RTT, buffer, jitter, size.
PATHS = (
    ("100mbit", "50ms", "20p", "0ms", "10MB"),
    ("100mbit", "50ms", "1bdp", "0ms", "10MB"),
    ("100mbit", "50ms", "2bdp", "0ms", "10MB"),
    ("100mbit", "50ms", "5bdp", "0ms", "10MB"),
    ("100mbit", "50ms", "1bdp", "30ms", "10MB"),
    ("100mbit", "50ms", "5bdp", "30ms", "10MB"),
    ("50mbit", "50ms", "2bdp", "20ms", "2MB"),
    ("20mbit", "30ms", "2bdp", "0ms", "1MB"),
    ("100mbit", "50ms", "1bdp", "0ms", "200kB"),
    ("100mbit", "50ms", "1bdp", "0ms", "1MB"),
    ("20mbit", "50ms", "20p", "0ms", "200kB"),
    ("500mbit", "100ms", "1bdp", "0ms", "5MB"),
    ("250mbit", "600ms", "1bdp", "0ms", "100MB"),
    ("250mbit", "600ms", "5bdp", "0ms", "100MB"),
)
COLUMNS = (("completion_p50", 1, "{:.2f}"), ("queue_delay_p95", 1_000, "{:.0f}"), ("retransmitted_mean", 1, "{:.1f}"))


def measured(uncork: Path, path: tuple[str, ...]) -> dict[tuple[str, str], float]:
    """Values by controller and metric."""
    names = ("--rate", "--rtt", "--buffer", "--jitter", "--size")
    words = [word for pair in zip(names, path, strict=True) for word in pair]
    command = [str(uncork), "compare", *words, "--loss", "0%", "--cc", ",".join(METHODS), "--format", "csv"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = csv.DictReader(io.StringIO(done.stdout))
    return {(row["cc"], row["metric"]): float(row["value"] or "nan") for row in rows}


def table(uncork: Path) -> str:
    lines = [
        "| path | download | method | completion p50, s | queue p95, ms | resent, % |",
        "|---|---|---|---|---|---|",
    ]
    for path in PATHS:
        rate, rtt, buffer, jitter, size = path
        values = measured(uncork, path)
        name = f"{rate}, {rtt}, buffer {buffer}" + (f", jitter {jitter}" if jitter != "0ms" else "")
        for cc, method in METHODS.items():
            cells = [form.format(values[cc, metric] * scale) for metric, scale, form in COLUMNS]
            lines.append(f"| {name} | {size} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    evidence_tables.main(__doc__, "slow-start.md", {"methods": table})
