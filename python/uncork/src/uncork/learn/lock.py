"""One process at a time changes a directory.

flock(2) needs no permission to write: a lock that others can read is a lock that others can hold. The file is
of its owner alone, and names its holder.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from uncork.measure import console
from uncork.measure.errors import OutputError
from uncork.measure.files import writing

MAX_WAIT: Final = 60.0
"""Seconds until a command gives up."""
_STEP: Final = 0.05
_QUIET: Final = 1.0
"""Seconds of waiting without a word."""


@contextmanager
def alone(root: Path, max_wait: float = MAX_WAIT) -> Iterator[None]:
    """Makes the directory if there is none, and locks it. The lock of a process that dies ends with it."""
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        lock = _opened(root)
    try:
        with writing(root):
            _wait(lock, root, max_wait)
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)


def _opened(root: Path) -> int:
    """The descriptor of a regular file with mode 0600, of this user or of the owner of the directory."""
    path = root / ".lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        found, owner = os.fstat(lock), root.stat().st_uid
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.geteuid(), owner):
            raise OutputError(f"{path}: not a file of its directory's owner; remove it")
        if os.geteuid() == 0 and found.st_uid != owner:
            os.fchown(lock, owner, -1)
        if stat.S_IMODE(found.st_mode) != 0o600:
            os.fchmod(lock, 0o600)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _wait(lock: int, root: Path, max_wait: float) -> None:
    began, is_noted = time.monotonic(), False
    while not _is_locked(lock):
        waited = time.monotonic() - began
        if waited >= max_wait:
            raise OutputError(f"{root}: {_holder(lock)} changes it; waited {max_wait:g} s; try again")
        if waited >= _QUIET and not is_noted:
            console.note(f"note: {_holder(lock)} changes {root}; waiting up to {max_wait:g} s")
            is_noted = True
        time.sleep(_STEP)


def _is_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(lock: int) -> str:
    pid = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
    return f"process {pid}" if pid.isdigit() else "another process"
