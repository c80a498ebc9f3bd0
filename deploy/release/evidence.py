"""Prints docs/evidence/releases.md: sizes of a release's files, whether they were built twice, and the first minute.

deploy/first_minute.sh > minute.tsv
deploy/release/evidence.py minute.tsv > docs/evidence/releases.md
"""

import csv
import json
import platform
import subprocess
import sys
from pathlib import Path

ARTIFACTS = Path("target/release-artifacts")
VERIFIED = Path("target/release-verified")


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    right = "|".join(["---", *["--:"] * (len(header) - 1)])
    return "\n".join([f"| {' | '.join(header)} |", f"|{right}|", *(f"| {' | '.join(it)} |" for it in rows)])


def readable(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def sizes() -> list[tuple[str, ...]]:
    return [(f"`{it.name}`", readable(it.stat().st_size)) for it in sorted(ARTIFACTS.iterdir())]


def conclusion(minute: list[dict[str, str]]) -> str:
    """The time to the first table, by system."""
    total: dict[str, float] = {}
    for row in minute:
        total[row["system, file"]] = total.get(row["system, file"], 0) + float(row["seconds"])
    times = "; ".join(f"{system}: {seconds:.1f} s" for system, seconds in total.items())
    return f"From the file to the first table: {times}."


def main() -> None:
    with Path(sys.argv[1]).open() as lines:
        minute = list(csv.DictReader(lines, delimiter="\t"))
    provenance = json.loads(next(ARTIFACTS.glob("*.provenance.json")).read_text())["predicate"]["buildDefinition"]
    commit = provenance["resolvedDependencies"][0]["digest"]["gitCommit"]
    date = subprocess.run(["date", "+%-d %B %Y"], check=True, capture_output=True, text=True).stdout.strip()
    parameters = provenance["externalParameters"]
    machine = f"{platform.system()} {platform.release().partition('-')[0]}, {platform.machine()}"
    if VERIFIED.exists():
        verified = f"`deploy/release.sh --verify` built the commit in two directories: {VERIFIED.read_text().strip()}."
    else:
        verified = "These files were built once (`deploy/release.sh`), so nothing is said about a second build."
    print(f"""\
# Releases: sizes, a second build, the first minute

{conclusion(minute)}

Commit {commit[:8]}, profile `{parameters["profile"]}`, {date}, {machine},
a shared machine with two processors: times are upper bounds.
`sudo deploy/first_minute.sh > minute.tsv && python3 deploy/release/evidence.py minute.tsv` writes this page.

## Bit for bit

{verified}

## Sizes

{table(("file", "size"), sizes())}

## First minute

Each system is a fresh copy without a network. Debian is the smallest with `python3-venv`.

{table(("system, file", "step", "s"), [tuple(it.values()) for it in minute])}""")


main()
