"""Prints the licences of what is in the program for TARGET with FEATURES: crates, and files of others.

deploy/release/notices.py x86_64-unknown-linux-musl full,aws-lc,mimalloc > THIRD-PARTY.txt
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("LICEN[CS]E*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*")


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def texts(folder: Path) -> set[str]:
    """The licences in the folder of a crate."""
    files = {file for name in NAMES for file in folder.glob(name) if file.is_file()}
    return {file.read_text(errors="replace").strip() for file in files}


def main() -> None:
    target, features = sys.argv[1:]
    tree = ["tree", "--locked", "-p", "uncork", "--target", target, "--features", features]
    lines = output("cargo", *tree, "--edges", "normal", "--prefix", "none", "--format", "{p}").splitlines()
    used = {tuple(line.split()[:2]) for line in lines if line}
    known = output("cargo", "metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform", target)
    metadata = json.loads(known)
    own = set(metadata["workspace_members"])
    # Most crates have the same texts: each is printed once, after the crates that have it.
    crates_of: dict[str, list[str]] = {}
    for package in metadata["packages"]:
        if (package["name"], f"v{package['version']}") in used and package["id"] not in own:
            label = f"{package['name']} {package['version']} ({package['license']})"
            # Some crates have no file: then their Cargo.toml says all there is.
            without = f"No licence file. Authors: {', '.join(package['authors']) or 'not named'}. {package['repository'] or ''}"
            for text in texts(Path(package["manifest_path"]).parent) or {without.strip()}:
                crates_of.setdefault(text, []).append(label)
    for folder in Path("crates").glob("*/*/vendor/*/"):
        for text in texts(folder):
            crates_of.setdefault(text, []).append(f"{folder.name} ({folder})")
    for text, crates in sorted(crates_of.items(), key=lambda it: (sorted(it[1]), it[0])):
        print("\n".join([*sorted(crates), "", text, "", "-" * 80, ""]))


main()
