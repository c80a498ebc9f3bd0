"""Instructions per packet of the simulator and per call of a controller, compared with instructions.tsv.

They are counted, because times differ between machines and runs. Only instructions of the program itself count: libc chooses
its functions by the processor. Another compiler gives other counts, so the table names its compiler.

More than 3 % above the table is an error. If that is worth it, say so in the commit and write the table again:
`python3 .ci/instructions.py --write`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_suffix(".tsv")
MAX_RATIO = 1.03
CONTROLLERS = ["reno", "cubic", "bbr1", "bbr3"]
# The simulated paths of RUNS mark nothing, so only the calls of these are counted.
MARKED = ["prague"]
RUNS = ["1xcubic:1000:500", *(f"100x{cc}:1000:500" for cc in CONTROLLERS), "1000xbbr3:10000:100"]
PACKAGES = ["-p", "uncork-cost"]


def compiler() -> str:
    lines = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    found = dict(line.split(": ") for line in lines.splitlines() if ": " in line)
    return f"rustc {found['release']} {found['host']}"


def build() -> Path:
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", *PACKAGES], check=True, cwd=ROOT)
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"


def own_instructions(profile: Path, program: Path) -> int:
    """The instructions in the program's own code, of what callgrind collected."""
    total, names, own, is_call = 0, dict[str, str](), False, False
    for line in profile.read_text().splitlines():
        key, _, value = line.partition("=")
        if key in ("ob", "cob"):
            # A name is given once, with a number for later: `(1) /usr/lib/libc.so.6`, then `(1)`.
            number, _, name = value.partition(" ")
            names.setdefault(number, name)
            own = names[number] == str(program) if key == "ob" else own
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] in "0123456789+-*" and line:
            if own and not is_call:
                total += int(line.split()[1])
            is_call = False
    return total


def count(program: Path, arguments: list[str], function: str) -> tuple[int, list[str]]:
    """The instructions in calls of `function`, and the words that the program prints."""
    with tempfile.TemporaryDirectory() as scratch:
        profile = Path(scratch, "profile")
        options = [f"--toggle-collect={function}*", f"--callgrind-out-file={profile}"]
        command = ["valgrind", "--quiet", "--tool=callgrind", *options, str(program), *arguments]
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return own_instructions(profile, program), run.stdout.split()


def measure(programs: Path) -> dict[str, float]:
    counts = {}
    for case in RUNS:
        instructions, (_, packets, *_) = count(programs / "speed", ["--alone", case], "speed::simulate")
        counts[f"{case}, packet"] = instructions / int(packets)
    for cc in CONTROLLERS + MARKED:
        for index, (function, call) in enumerate([("send", "send"), ("acknowledge", "ACK")], start=1):
            instructions, printed = count(programs / "calls", [cc], f"calls::{function}")
            counts[f"{cc}, {call}"] = instructions / int(printed[index])
    return counts


def main() -> int:
    if not shutil.which("valgrind"):
        print("*** NOT CHECKED: instructions, because valgrind is not installed ***")
        return 0
    here = compiler()
    if sys.argv[1:] == ["--write"]:
        lines = [f"{case}\t{instructions:.1f}" for case, instructions in measure(build()).items()]
        TABLE.write_text("\n".join([here, *lines, ""]))
        return 0
    head, *lines = TABLE.read_text().splitlines()
    if head != here:
        print(f"*** NOT CHECKED: instructions, because the table is of {head} and this is {here} ***")
        return 0
    expected = {case: float(instructions) for case, instructions in (line.split("\t") for line in lines)}
    counts = measure(build())
    if counts.keys() != expected.keys():
        print(f"{TABLE.name} has other cases\nhelp: python3 .ci/{Path(__file__).name} --write")
        return 1
    failed = False
    for case, instructions in counts.items():
        ratio = instructions / expected[case]
        failed |= ratio > MAX_RATIO
        print(f"{case:30} {instructions:8.1f} {100 * (ratio - 1):+6.1f} %{'  too many' if ratio > MAX_RATIO else ''}")
    if failed:
        print(f"help: if it is worth it, say so in the commit and run python3 .ci/{Path(__file__).name} --write")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
