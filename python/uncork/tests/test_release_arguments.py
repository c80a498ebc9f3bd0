"""The scripts of a release refuse wrong arguments before they install or build anything."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

REFUSED: dict[str, tuple[list[str], dict[str, str], str, str]] = {
    "unknown option": (["release.sh", "--verfy"], {}, "unknown option '--verfy'", "release.sh --help"),
    "option after targets": (
        ["release.sh", "x86_64-unknown-linux-musl", "--verify"],
        {},
        "unknown option '--verify'",
        "release.sh --help",
    ),
    "target with glibc": (
        ["release.sh", "x86_64-unknown-linux-gnu"],
        {},
        "unknown target 'x86_64-unknown-linux-gnu'",
        "use one of x86_64-unknown-linux-musl",
    ),
    "empty target": (["release.sh", "--verify", ""], {}, "unknown target ''", "use one of"),
    "target with a path": (["release.sh", "../../etc"], {}, "unknown target '../../etc'", "use one of"),
    "target twice": (
        ["release.sh", "x86_64-unknown-linux-musl", "x86_64-unknown-linux-musl"],
        {},
        "given twice",
        "name it once",
    ),
    "profile": (
        ["release.sh"],
        {"PROFILE": "debug"},
        "unknown profile 'debug' (PROFILE)",
        "use dist or release",
    ),
    "empty profile": (["release.sh"], {"PROFILE": ""}, "unknown profile '' (PROFILE)", "use dist or release"),
    "no wheels, spelled no": (
        ["release.sh"],
        {"WHEELS": "no"},
        "unknown value 'no' (WHEELS)",
        "write WHEELS=",
    ),
    "other directory": (
        ["release.sh"],
        {"CARGO_TARGET_DIR": "/tmp/x"},
        "CARGO_TARGET_DIR is set",
        "unset CARGO_TARGET_DIR",
    ),
    "other flags": (
        ["release.sh"],
        {"RUSTFLAGS": "-Ctarget-cpu=native"},
        "RUSTFLAGS is set",
        "unset RUSTFLAGS",
    ),
    "wheel for Windows": (
        ["wheels.sh", "x86_64-pc-windows-msvc"],
        {},
        "unknown target 'x86_64-pc-windows-msvc'",
        "use one of x86_64-unknown-linux-gnu",
    ),
    "wheels of a profile": (
        ["wheels.sh"],
        {"PROFILE": "wheel"},
        "unknown profile 'wheel'",
        "use dist or release",
    ),
}


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    own = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = [str(ROOT / "deploy" / script), *arguments]
    return subprocess.run(
        command, env=own | variables, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("case", REFUSED)
def test_release_script__wrong_argument_or_variable__is_named_with_a_remedy(case: str) -> None:
    (script, *arguments), variables, problem, remedy = REFUSED[case]
    done = run(script, *arguments, **variables)
    error, help_, *more = done.stderr.splitlines()
    assert (done.returncode, done.stdout, more) == (2, "", [])
    assert error.startswith("error: ")
    assert problem in error
    assert help_.startswith("help: ")
    assert remedy in help_


@pytest.mark.parametrize("script", ["release.sh", "wheels.sh"])
def test_release_script__help__prints_its_options(script: str) -> None:
    done = run(script, "--help")
    assert done.returncode == 0
    assert f"deploy/{script}" in done.stdout
    assert "#" not in done.stdout
