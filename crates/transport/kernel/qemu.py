"""Guests of qemu that have everything in memory: their files, and how to boot them.

qemu emulates the processor (TCG), so neither /dev/kvm nor root is needed. In virtual time it counts
instructions (-icount): the guest's clock goes on by a nanosecond with each, and jumps when the guest
waits. So the guest measures as if it had a processor of 10^9 instructions per second, however slow or
busy this machine is.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

START = Path(__file__).with_name("guest_start.sh")


class Initramfs:
    """The guest's files, as the kernel unpacks them (cpio, "newc")."""

    def __init__(self) -> None:
        self.archive = bytearray()
        self.count = 0
        self.made: set[str] = set()

    def _entry(self, name: str, mode: int, content: bytes) -> None:
        self.count += 1
        encoded = name.encode() + b"\0"
        fields = [self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
        self.archive += b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self.archive += b"\0" * (-len(self.archive) % 4) + content
        self.archive += b"\0" * (-len(self.archive) % 4)

    def directory(self, name: str) -> None:
        parts = name.strip("/").split("/")
        for end in range(1, len(parts) + 1):
            path = "/".join(parts[:end])
            if path and path not in self.made:
                self.made.add(path)
                self._entry(path, 0o040755, b"")

    def file(self, name: str, content: bytes) -> None:
        self.directory(name.rpartition("/")[0])
        self._entry(name.strip("/"), 0o100755, content)

    def program(self, name: str, path: Path) -> None:
        """A program, with the libraries it needs."""
        self.file(name, path.read_bytes())
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            if library not in self.made:
                self.made.add(library)
                self.file(library, Path(library).resolve().read_bytes())

    def script(self, name: str, path: Path) -> None:
        """A script in Python, with Python and the modules that it imports."""
        interpreter = installed("python3")
        self.program("bin/python3", interpreter)
        self.file(name, path.read_bytes())
        # The imports come first; what they have imported is known without running the rest.
        imports = [line for line in path.read_text().splitlines() if re.match(r"(from|import) ", line)]
        modules = "import sys\nprint(*{getattr(module, '__file__', None) or '' for module in [*sys.modules.values()]})"
        code = "\n".join([*imports, modules])
        command = [str(interpreter), "-I", "-S", "-c", code]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        for module in found.stdout.split():
            if module.endswith(".so"):
                self.program(module, Path(module))
            else:
                self.file(module, Path(module).read_bytes())

    def compressed(self) -> bytes:
        self._entry("TRAILER!!!", 0, b"")
        return gzip.compress(bytes(self.archive), compresslevel=1)


def guest(busybox: Path, uncork: Path) -> Initramfs:
    """What each guest has. Its own `init` begins with `. /start.sh`."""
    files = Initramfs()
    for directory in ("proc", "sys", "dev", "tmp", "root", "run", "var", "modules"):
        files.directory(directory)
    files.file("bin/busybox", busybox.read_bytes())
    files.program("bin/uncork", uncork)
    files.file("start.sh", START.read_bytes())
    return files


def command(kernel: Path, initramfs: Path, *, in_virtual_time: bool = False) -> list[str]:
    """Boots it, with its console as standard output."""
    how = ["tcg,thread=single", "-icount", "shift=0,sleep=off"] if in_virtual_time else ["tcg"]
    # Haswell: some of qemu's processors do not get far with new kernels.
    machine = ["-cpu", "Haswell-noTSX", "-m", "1G", "-smp", "1", "-nographic", "-no-reboot", "-net", "none"]
    files = ["-kernel", str(kernel), "-initrd", str(initramfs)]
    arguments = "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on"
    # It ends with the script, however that ends.
    tied = ["setpriv", "--pdeathsig", "KILL"]
    return [*tied, "qemu-system-x86_64", "-accel", *how, *machine, *files, "-append", arguments]


def installed(program: str) -> Path:
    """Where a program of this machine is that a guest gets."""
    found = shutil.which(program)
    if found is None:
        sys.exit(f"{Path(sys.argv[0]).name}: {program} is not installed")
    return Path(found).resolve()


def play(kernel: Path, files: Initramfs, timeout: float) -> str:
    """What a guest says on its console in virtual time."""
    with tempfile.TemporaryDirectory() as scratch:
        initramfs, console = Path(scratch) / "initramfs", Path(scratch) / "console"
        initramfs.write_bytes(files.compressed())
        # A file: qemu drops what the reader of a pipe does not take in time.
        with console.open("wb") as file:
            subprocess.run(
                command(kernel, initramfs, in_virtual_time=True),
                stdin=subprocess.DEVNULL,
                stdout=file,
                timeout=timeout,
                check=False,
            )
        return console.read_bytes().decode(errors="replace").replace("\r", "")
