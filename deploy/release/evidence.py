"""Prints docs/evidence/releases.md: a release's sizes and wheels, whether it was built twice, and the first minute.

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
WHEELS = Path("target/wheels.tsv")


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


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def wheels() -> str:
    """What deploy/wheels.sh found, which ends at the first wheel that fails."""
    if not any(ARTIFACTS.glob("*.whl")):
        return "This release was made without wheels (`WHEELS=`)."
    found = read(WHEELS)
    return f"""\
`deploy/wheels.sh` checked each wheel, and `twine check --strict` passed for all. `auditwheel show` names the oldest platform
that a wheel runs on. `yes` is on this machine, and a name is that of the emulator. Where the program started and the module was
imported, the results of `compare` of both are equal, byte for byte. No wheel for macOS was built.

{table(tuple(found[0]), [(f"`{row.pop('wheel')}`", *row.values()) for row in found])}"""


def main() -> None:
    minute = read(Path(sys.argv[1]))
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

## Wheels

{wheels()}

## Sizes

{table(("file", "size"), sizes())}

## First minute

Each system is a fresh copy without a network. Debian is the smallest with `python3-venv`.

{table(("system, file", "step", "s"), [tuple(it.values()) for it in minute])}""")


main()
