"""Checks that all files name the version of the workspace, and that only crates for others can be published.

python3 .ci/versions.py          # prints each file that differs; exits with 1 if there is one
python3 .ci/versions.py print    # prints the version
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

# A file, and where it names the version. Cargo.toml's other crates and the wheel take theirs from the workspace.
NAMED = {
    "CITATION.cff": r"^version: (.+)$",
    "Cargo.toml": r'^uncork-units = \{ version = "([^"]+)"',
    "CHANGELOG.md": r"^## \[(\d[^\]]*)\]",
    "crates/transport/kernel/bpf/Cargo.toml": r'^version = "(.+)"$',
    "deploy/kubernetes/daemonset.yaml": r"^ *image: uncork:(\S+)",
    "docs/start/install.md": r"^uncork (\d\S*) \(build",
    "python/uncork/src/uncork/__init__.py": r'^__version__ = "(.+)"$',
}
PUBLISHED = {"uncork-cc", "uncork-units"}


def named_versions(version: str) -> list[str]:
    """Problems of files that name a version."""
    problems = []
    for file, pattern in NAMED.items():
        found = re.search(pattern, Path(file).read_text(), re.MULTILINE)
        if not found:
            problems.append(f"{file}: names no version (expected {pattern})")
        elif found[1] != version:
            problems.append(f"{file}: version {found[1]}, but Cargo.toml's workspace has {version}")
    return problems


def crate_problems(version: str) -> list[str]:
    """Problems of crates: their version, and whether they can be published."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]
    problems = [
        f"{it['name']}: version {it['version']}, expected version.workspace = true"
        for it in packages
        if it["version"] != version
    ]
    # An empty list of registries is `publish = false`.
    publishable = {it["name"] for it in packages if it["publish"] != []}
    for name in sorted(publishable ^ PUBLISHED):
        can = "can" if name in publishable else "cannot"
        problems.append(f"{name}: {can} be published, unlike PUBLISHED in .ci/versions.py")
    return problems


def main() -> None:
    version = tomllib.loads(Path("Cargo.toml").read_text())["workspace"]["package"]["version"]
    if sys.argv[1:] == ["print"]:
        print(version)
        return
    problems = named_versions(version) + crate_problems(version)
    for it in problems:
        print(f"error: {it}", file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
