"""Checks which groups of crates import which: the folders of `crates/` are layers.

    python3 .ci/layers.py    # prints each import that is not allowed; exits with 1 if there is one

Tests may import any crate.
"""

import json
import subprocess
import sys
from pathlib import Path

ALLOWED = {
    "core": {"core"},
    "transport": {"core", "transport"},
    "lab": {"core", "transport", "lab"},
    "production": {"core", "transport", "production"},
    "tools": {"core", "transport", "lab", "production", "tools"},
}


def main() -> None:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]
    groups = {package["name"]: Path(package["manifest_path"]).parts[-3] for package in packages}
    wrong = [
        f"{package['name']} ({group}) imports {name} ({groups[name]}); {group} may import: {', '.join(sorted(ALLOWED[group]))}"
        for package in packages
        for group in [groups[package["name"]]]
        for name in [dependency["name"] for dependency in package["dependencies"] if dependency["kind"] is None]
        if name in groups and groups[name] not in ALLOWED[group]
    ]
    for it in wrong:
        print(f"error: {it}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
