#!/usr/bin/env python3
"""Boots other kernels under qemu, and loads, uses and unloads the controllers and a policy in each.

    crates/transport/kernel/kernels.py --uncork target/release/uncork
    crates/transport/kernel/kernels.py --uncork target/release/uncork debian-6.1 ubuntu-6.8
    crates/transport/kernel/kernels.py --uncork target/release/uncork --killed debian-6.1

The kernels are packages of Debian and Ubuntu, as they are, from their own archives by apt, with its check of
their signatures; they stay in target/kernels. A guest has them in memory, with busybox, iperf3, Python and uncork,
and no network but the paths of `uncork emu`. qemu emulates the processor (TCG), so neither /dev/kvm nor root is
needed, and times in the table say nothing about speed.

"window": connections with `initial_window = "40p"` begin with 40 packets, and others with ten, as the kernel reports.
"l4s": packets of uncork_prague with AccECN leave as ECT(1), and no others (ect1.py); else why it is refused.

"verified" and "of steer" are the most instructions that the verifier looked at for one program: of all
controllers, and of a policy. Its limit is a million; more than 600,000 are not as expected.

--killed does another thing there: it kills `uncork kernel load`, `upgrade` and `unload` at each of their steps
that others can see, by strace. Each time connections must work, and the next `unload` must leave nothing.

Needs qemu-system-x86_64, apt, dpkg-deb, xz, zstd, iperf3 and ldd (--killed: strace). Exit status 1 if a kernel did
other than expected.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import qemu

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "target" / "kernels"
HERE = Path(__file__).parent
# What `uncork kernel` is killed by on a machine, too (crates/tools/cli/tests/kernel.rs).
CLI_TESTS = ROOT / "crates" / "tools" / "cli" / "tests"
# Of one boot, one with commands that are killed, and one download.
BOOT_S, KILLED_S, DOWNLOAD_S = 900, 1800, 600
# What the verifier may look at for one program: far below its limit, because the next kernel's may follow more paths.
MAX_VERIFIED = 600_000
# Debian's modules that the guest needs, each with what it depends on.
MODULES = ["tun", "tcp_diag", "tcp_bbr", "af_packet"]


@dataclasses.dataclass(frozen=True)
class Archive:
    """Where packages come from."""

    url: str
    suite: str
    keyring: str

    def source(self) -> str:
        return f"deb [arch=amd64 signed-by={self.keyring}] {self.url} {self.suite} main\n"


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A package, and what comes of loading the controllers there."""

    archive: Archive
    # The name of the package, or the beginning of it: the newest counts.
    package: str
    # What the guest says: "yes" or "refused".
    loads: str = "yes"
    # The same of an initial window of 40 packets: "yes" or "no".
    window: str = "yes"
    # Whether uncork_prague sends ECT(1) with AccECN: "L4S", or "refused".
    l4s: str = "refused"


DEBIAN = "http://deb.debian.org/debian"
DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
UBUNTU_KEYS = KEPT / "ubuntu.gpg"
BULLSEYE = Archive(DEBIAN, "bullseye", DEBIAN_KEYS)
BOOKWORM = Archive(DEBIAN, "bookworm", DEBIAN_KEYS)
TRIXIE = Archive(DEBIAN, "trixie", DEBIAN_KEYS)
SID = Archive(DEBIAN, "sid", DEBIAN_KEYS)
JAMMY = Archive(UBUNTU, "jammy-updates", str(UBUNTU_KEYS))
NOBLE = Archive(UBUNTU, "noble", str(UBUNTU_KEYS))
NOBLE_UPDATES = Archive(UBUNTU, "noble-updates", str(UBUNTU_KEYS))
RESOLUTE = Archive(UBUNTU, "resolute", str(UBUNTU_KEYS))

KERNELS = {
    "debian-5.10": Kernel(BULLSEYE, r"linux-image-5\.10\.\d+-\d+-cloud-amd64", loads="refused", window="no"),
    "ubuntu-5.15": Kernel(JAMMY, r"linux-image-5\.15\.0-\d+-generic", loads="refused", window="no"),
    "ubuntu-5.19": Kernel(JAMMY, r"linux-image-5\.19\.0-\d+-generic", loads="refused", window="no"),
    "debian-6.1": Kernel(BOOKWORM, r"linux-image-6\.1\.0-\d+-cloud-amd64"),
    "ubuntu-6.2": Kernel(JAMMY, r"linux-image-6\.2\.0-\d+-generic", loads="refused"),
    "ubuntu-6.5": Kernel(JAMMY, r"linux-image-6\.5\.0-\d+-generic"),
    "ubuntu-6.8": Kernel(NOBLE, r"linux-image-6\.8\.0-\d+-generic"),
    "ubuntu-6.11": Kernel(NOBLE_UPDATES, r"linux-image-6\.11\.0-\d+-generic"),
    "debian-6.12": Kernel(TRIXIE, r"linux-image-6\.12\.\d+\+deb13-cloud-amd64"),
    "ubuntu-6.14": Kernel(NOBLE_UPDATES, r"linux-image-6\.14\.0-\d+-generic"),
    "ubuntu-7.0": Kernel(RESOLUTE, r"linux-image-7\.0\.0-\d+-generic", l4s="L4S"),
    "debian-newest": Kernel(SID, r"linux-image-[7-9]\.\d+\.\d+\S*-cloud-amd64", l4s="L4S"),
}


def run(*command: str | Path, cwd: Path | None = None, limit: int = DOWNLOAD_S) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, cwd=cwd)
    if done.returncode != 0:
        sys.exit(f"kernels.py: {' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def apt(archive: Archive, program: str, *arguments: str, cwd: Path | None = None) -> str:
    """Runs a program of apt that knows this archive only, and leaves the machine's own lists alone."""
    state = KEPT / "apt" / archive.suite
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text(archive.source())
    options = {
        "Dir::Etc::SourceList": state / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": state / "lists",
        "Dir::State::Status": "/dev/null",
        "Dir::Cache": state,
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
    }
    flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return run(program, *flags, *arguments, cwd=cwd)


def number(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]


def fetch(archive: Archive, pattern: str) -> Path:
    """The newest package with a name that matches `pattern`, unpacked."""
    if not list((KEPT / "apt" / archive.suite / "lists").glob("*Packages*")):
        apt(archive, "apt-get", "update")
    names = [name for name in apt(archive, "apt-cache", "pkgnames").split() if re.fullmatch(pattern, name)]
    if not names:
        sys.exit(f"kernels.py: {archive.suite} of {archive.url} has no package {pattern}")
    name = max(names, key=number)
    unpacked = KEPT / "unpacked" / archive.suite / name
    if not unpacked.exists():
        downloads = KEPT / "packages"
        downloads.mkdir(parents=True, exist_ok=True)
        apt(archive, "apt-get", "download", name, cwd=downloads)
        package = max(downloads.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)
        partial = unpacked.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.parent.mkdir(parents=True, exist_ok=True)
        run("dpkg-deb", "-x", package, partial)
        package.unlink()
        partial.rename(unpacked)
    return unpacked


def ubuntu_keys() -> None:
    """Ubuntu's keys, as Debian signs and ships them."""
    if not UBUNTU_KEYS.exists():
        unpacked = fetch(TRIXIE, "ubuntu-keyring")
        shutil.copy(next(unpacked.rglob("ubuntu-archive-keyring.gpg")), UBUNTU_KEYS)


def module(path: Path) -> bytes:
    unpack = {".xz": ["xz", "-dc"], ".zst": ["zstd", "-dcq"]}.get(path.suffix)
    if unpack is None:
        return path.read_bytes()
    return subprocess.run([*unpack, path], capture_output=True, check=True).stdout


def modules(unpacked: list[Path], wanted: list[str]) -> list[tuple[str, bytes]]:
    """The wanted modules, each after the modules that it needs; without those built in."""
    files = {}
    for directory in unpacked:
        for path in directory.rglob("*.ko*"):
            files[path.name.split(".ko")[0].replace("-", "_")] = path
    chosen: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in chosen or name not in files:
            return
        content = module(files[name])
        needs = re.search(rb"\0depends=([^\0]*)\0", content)
        for need in (needs[1].decode() if needs else "").split(","):
            add(need.replace("-", "_"))
        chosen[name] = content

    for name in wanted:
        add(name)
    return list(chosen.items())


@dataclasses.dataclass
class Result:
    """What a guest said, line by line: a word and a text."""

    name: str
    seconds: float
    said: dict[str, str]
    log: Path

    def verified(self, program: str) -> int | None:
        """How many instructions the verifier looked at, if the guest said it."""
        said = self.said.get(program, "")
        return int(said) if said.isdigit() else None


def packages(name: str) -> list[Path]:
    """What a kernel of the table consists of, unpacked."""
    kernel = KERNELS[name]
    KEPT.mkdir(parents=True, exist_ok=True)
    if kernel.archive.url == UBUNTU:
        ubuntu_keys()
    image = fetch(kernel.archive, kernel.package)
    depends = apt(kernel.archive, "apt-cache", "depends", image.name)
    needs = re.findall(r"^  Depends: (linux-(?:binary|modules)-\S+)", depends, re.MULTILINE)
    return [image, *(fetch(kernel.archive, re.escape(need)) for need in needs)]


def guest(parts: list[Path], uncork: Path, more_modules: Sequence[str] = ()) -> qemu.Initramfs:
    """A guest of this kernel, with its modules."""
    busybox = fetch(BOOKWORM, "busybox-static")
    files = qemu.guest(next(busybox.glob("**/bin/busybox")), uncork)
    for index, (one, content) in enumerate(modules(parts, [*MODULES, *more_modules])):
        files.file(f"modules/{index:02}-{one}.ko", content)
    return files


def image(parts: list[Path]) -> Path:
    return next(path for part in parts for path in part.rglob("vmlinuz*"))


def boot(name: str, uncork: Path, *, killed: bool = False) -> Result:
    """Boots a kernel, in which `guest.sh` tries everything, or `guest_killed.sh` kills commands."""
    parts = packages(name)
    files = guest(parts, uncork)
    files.program("bin/iperf3", qemu.installed("iperf3"))
    files.script("ect1.py", HERE / "ect1.py")
    if killed:
        files.program("bin/strace", qemu.installed("strace"))
        files.file("functions.sh", (CLI_TESTS / "common" / "killed.sh").read_bytes())
        files.file("killed.sh", (CLI_TESTS / "kernel" / "killed.sh").read_bytes())
    files.file("init", (HERE / ("guest_killed.sh" if killed else "guest.sh")).read_bytes())
    initramfs = KEPT / f"{name}.initramfs"
    initramfs.write_bytes(files.compressed())
    log = KEPT / f"{name}.log"
    limit = KILLED_S if killed else BOOT_S
    began = time.monotonic()
    with log.open("wb") as out:
        try:
            command = qemu.command(image(parts), initramfs)
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            out.write(f"\nkernels.py: ended after {limit} s\n".encode())
    initramfs.unlink()
    said = re.findall(r"^UNCORK (\S+) (.*?)\r?$", log.read_text(errors="replace"), re.MULTILINE)
    return Result(name, time.monotonic() - began, dict(said), log)


STEPS = ["load", "0 %", "1 %", "state", "steer", "window", "upgrade", "unload"]
COLUMNS = [*STEPS, "l4s"]
# What the guest calls the numbers of instructions, and the table.
VERIFIED = {"verified": "verified", "steer-verified": "of steer"}


def killed_table(results: list[Result]) -> str:
    """How many steps each command was killed at, by kernel."""
    rows = [["kernel", "version", "killed", "s"]]
    for result in results:
        said = result.said.get
        rows.append([result.name, said("kernel", "did not boot"), said("killed", "–"), f"{result.seconds:.0f}"])
    return markdown(rows)


def table(results: list[Result]) -> str:
    rows = [["kernel", "version", *COLUMNS, *VERIFIED.values(), "s"]]
    for result in results:
        cells = [result.said.get(step.replace(" ", ""), "–") for step in COLUMNS]
        cells += [f"{count:,}" if count else "–" for count in map(result.verified, VERIFIED)]
        rows.append([result.name, result.said.get("kernel", "did not boot"), *cells, f"{result.seconds:.0f}"])
    return markdown(rows)


def markdown(rows: list[list[str]]) -> str:
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def as_expected(kernel: Kernel, result: Result, *, killed: bool) -> bool:
    said = result.said.get
    if killed:
        return said("killed", "").startswith("yes")
    expected = {"load": kernel.loads, "window": kernel.window, "l4s": kernel.l4s}
    if not all(said(step, "").startswith(word) for step, word in expected.items()):
        return False
    if kernel.loads != "yes":
        return True
    counts = [result.verified(program) for program in VERIFIED]
    is_verified = all(count is not None and count <= MAX_VERIFIED for count in counts)
    return is_verified and all(said(step.replace(" ", "")) == "yes" for step in STEPS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uncork", type=Path, required=True, metavar="PROGRAM", help="the program to run")
    parser.add_argument("--killed", action="store_true", help="kill commands at each of their steps (minutes)")
    parser.add_argument("names", nargs="*", metavar="KERNEL", help=f"default: all of {', '.join(KERNELS)}")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in KERNELS]
    if unknown:
        parser.error(f"unknown kernel {unknown[0]}; there are {', '.join(KERNELS)}")
    if not arguments.uncork.is_file():
        parser.error(f"{arguments.uncork} is not there; build it: cargo build --release --features full")
    results = []
    for name in arguments.names or KERNELS:
        print(f"{name} …", file=sys.stderr, flush=True)
        results.append(boot(name, arguments.uncork, killed=arguments.killed))
    print((killed_table if arguments.killed else table)(results))
    failed = [one for one in results if not as_expected(KERNELS[one.name], one, killed=arguments.killed)]
    for result in failed:
        print(f"kernels.py: {result.name} is not as expected; see {result.log}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
