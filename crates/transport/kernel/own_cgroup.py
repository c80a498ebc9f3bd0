"""A cgroup of the script's own."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def group() -> Iterator[Path]:
    """Of version 2. It goes with the script."""
    script = Path(sys.argv[0])
    roots = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line]
    if not roots:
        sys.exit(f"{script.name}: no cgroup2 file system is mounted")
    path = Path(roots[0]) / f"uncork-{script.stem}-{os.getpid()}"
    path.mkdir()
    try:
        yield path
    finally:
        # A process that has just ended may still be in it.
        for _ in range(100):
            with contextlib.suppress(OSError):
                path.rmdir()
                break
            time.sleep(0.05)
