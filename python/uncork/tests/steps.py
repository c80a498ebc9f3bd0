"""A process that dies, stops, or meets a full disk at one of its changes of files."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq

KILLED, BUG = 9, 99
CHANGES = ("os.mkdir", "os.rename", "os.symlink")
"""Events of Python's audit hooks (PEP 578); opening for writing is another."""
Act = Callable[[], None]


def die() -> NoReturn:
    os._exit(KILLED)


def stop() -> None:
    """Until the parent has looked."""
    os.kill(os.getpid(), signal.SIGSTOP)


def full() -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_only() -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def status_at(
    step: int, root: Path, work: Callable[[], int], act: Act, look: Callable[[], object] = lambda: None
) -> tuple[int, bool]:
    """The status of ``work`` in a process that does ``act`` just before its change number ``step`` of a file
    below ``root``, and whether there was such a change. ``look`` is called while the process is stopped.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _child(step, root, work, act, writer)
    os.close(writer)
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        look()
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, 0)
    with open(reader, "rb") as pipe:
        return os.waitstatus_to_exitcode(status), pipe.read() == b"reached"


def _child(step: int, root: Path, work: Callable[[], int], act: Act, writer: int) -> NoReturn:
    left = step

    def reach(path: object) -> None:
        nonlocal left
        if str(root) in str(path):
            left -= 1
            if left == 0:
                os.write(writer, b"reached")
                act()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and str(arguments[1]) not in ("r", "rb")):
            reach(arguments[0])

    sys.addaudithook(hook)
    _watch_tables(reach)
    try:
        os._exit(work())
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
        os._exit(BUG)


def _watch_tables(reach: Callable[[object], None]) -> None:
    """Arrow writes outside of Python."""

    class Writer(pq.ParquetWriter):  # type: ignore[misc]
        def __init__(self, where: object, *arguments: object, **options: object) -> None:
            self._path = where
            reach(where)
            super().__init__(where, *arguments, **options)

        def write_table(self, *arguments: object, **options: object) -> None:
            reach(self._path)
            super().write_table(*arguments, **options)

        def close(self) -> None:
            if self.is_open:
                reach(self._path)
            super().close()

    pq.ParquetWriter = Writer
