"""Checks the program without the feature `full`, which the tests do not see: they build the full program.

    python3 .ci/default_build.py    # builds it, and exits with 1 if something is wrong

What it leaves out is listed in the help and refused, and the crates that made its build long stay out.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = [
    "emu",
    "policy",
    "serve",
    "records",
    "play",
    "host",
    "kernel",
    "steer",
    "agent",
    "fleet",
    "status",
    "lab from-records",
    "lab internet",
]
ENGINES = ["quic-sim", "netns", "bpf"]
# Their builds take longest, with what they depend on.
COSTLY = {"aya-obj", "netlink-packet-route", "noq-proto", "ring", "rustls", "tokio"}
# Those with other features than in the build of the tests, so that they are built for this check alone: by its least effort.
OPTIMISED = {
    "parquet": 0,
    "uncork-apps": 0,
    "uncork-ecn": 0,
    "uncork-flow": 0,
    "uncork-lab": 0,
    "uncork-path": 1,
    "uncork-sim": 1,
}
REMEDY = "help: cargo build --release --features full"


def uncork(program: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *line.split()], cwd=ROOT, capture_output=True, text=True)


def listed(program: Path) -> Iterator[str]:
    """The commands that the help says to be left out."""
    for parent in ["", "lab "]:
        # With its lines joined, a command's begins with two spaces.
        text = re.sub(r"\n {5,}", " ", uncork(program, f"{parent}--help").stdout)
        yield from (parent + name for name in re.findall(r"^  (\S+) .*\[not in this build\]$", text, re.MULTILINE))


def refusal_problems(program: Path) -> Iterator[str]:
    cases = {f"{command} {rest}": f"uncork {command}" for command in LEFT_OUT for rest in ["", "--help", "a --b c -- d"]}
    cases |= {f"man {command}": f"uncork {command}" for command in LEFT_OUT}
    cases |= {f"lab {verb} wired-lte-wifi --on {on}": f"--on {on}" for verb in ["run", "agree"] for on in ENGINES}
    for line, name in cases.items():
        ended = uncork(program, line)
        if ended.returncode != 3 or f"`{name}` is not in this build" not in ended.stderr or REMEDY not in ended.stderr:
            yield f"uncork {line}: status {ended.returncode}, {ended.stderr or ended.stdout[:200]}"


def problems(program: Path) -> Iterator[str]:
    tree = ["cargo", "tree", "--locked", "-p", "uncork", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]
    crates = subprocess.run(tree, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    for crate in COSTLY & {line.split()[0] for line in crates if line}:
        yield f"the default build has {crate}"
    if sorted(listed(program)) != sorted(LEFT_OUT):
        yield f"the help lists {', '.join(listed(program))} as left out"
    yield from refusal_problems(program)
    readme = (ROOT / "README.md").read_text()
    if uncork(program, "compare").stdout not in readme:
        yield "README.md has another table than `uncork compare`"


def main() -> None:
    # By the profile of tests, most crates are shared with their build.
    build = ["cargo", "build", "--quiet", "--locked", "--profile", "test", "-p", "uncork"]
    levels = [f"--config=profile.test.package.{crate}.opt-level={level}" for crate, level in OPTIMISED.items()]
    subprocess.run([*build, *levels], cwd=ROOT, check=True)
    program = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug/uncork"
    wrong = list(problems(program))
    for it in wrong:
        print(f"error: {it}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
