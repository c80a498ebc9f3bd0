"""Checks which groups of crates use which: the folders of `crates/` are layers.

    python3 .ci/layers.py    # prints each use that is not allowed; exits with 1 if there is one

A crate imports crates, and its scripts and C sources name files of crates. Tests may use any crate, and scripts any tests.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ALLOWED = {
    "core": {"core"},
    "transport": {"core", "transport"},
    "lab": {"core", "transport", "lab"},
    "production": {"core", "transport", "production"},
    "tools": {"core", "transport", "lab", "production", "tools"},
}
SCRIPTS = ("*.py", "*.sh", "*.c", "*.h")


def imports() -> Iterator[tuple[str, str, str, str]]:
    """A crate with its group, and a crate that it imports with the group of that."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]
    groups = {package["name"]: Path(package["manifest_path"]).parts[-3] for package in packages}
    for package in packages:
        for name in [dependency["name"] for dependency in package["dependencies"] if dependency["kind"] is None]:
            if name in groups:
                yield package["name"], groups[package["name"]], name, groups[name]


def named_by_scripts() -> Iterator[tuple[str, str, str, str]]:
    """Likewise a script with the group of its crate, and a crate that it names."""
    crates = [path.parts[1:] for path in Path("crates").glob("*/*/")]
    name = re.compile(rf"\b(?:{'|'.join(map('/'.join, crates))})\b(?!/tests)")
    files = subprocess.run(["git", "ls-files", *SCRIPTS], check=True, capture_output=True, text=True).stdout.splitlines()
    for path in map(Path, files):
        if path.parts[0] == "crates" and "tests" not in path.parts:
            for found in sorted(set(name.findall(path.read_text()))):
                yield str(path), path.parts[1], found, found.split("/")[0]


def main() -> None:
    wrong = [
        f"{user} ({group}) uses {used} ({other}); {group} may use: {', '.join(sorted(ALLOWED[group]))}"
        for user, group, used, other in [*imports(), *named_by_scripts()]
        if other not in ALLOWED[group]
    ]
    for it in wrong:
        print(f"error: {it}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
