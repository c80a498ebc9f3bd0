"""All that a terminal gets. Control characters of names that come from files are shown as escapes.

A reader that leaves early (``uncork experiment … | head -1``) is not an error: the rest of the output is
dropped, files are written nevertheless, and the exit status is what it would have been.

A name in a record or policy may hold escape sequences, which a terminal obeys (ECMA-48), or bidirectional
controls, which reorder what is seen (UAX #9). conformance/terminal.json holds this module and the Rust crate
uncork-config to the same characters.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Final, TextIO

from uncork.measure.errors import OutputError

_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""C0 but tab and newline, DEL, C1, bidirectional controls; and surrogates, which Python has for bytes of file
names that are not UTF-8.
"""

_CLEARED_LINE: Final = "\r\x1b[K"


def visible(text: str) -> str:
    r"""The text with control characters as escapes such as ``\u001b``, which JSON and TOML read back."""
    return _CONTROLS.sub(lambda it: f"\\u{ord(it[0]):04x}", text)


def in_line(text: str) -> str:
    """The text as part of one line: tabs and newlines are escapes, too."""
    return visible(text).replace("\t", "\\t").replace("\n", "\\n")


def text(of: str) -> bool:
    """Text for people on stdout; ends with a newline of its own. False: no one reads any more."""
    return _out(visible(of))


def line(of: object = "") -> bool:
    """A line for people on stdout. False: no one reads any more."""
    return text(f"{of}\n")


def data(of: str) -> bool:
    """JSON, TOML or SQL on stdout: as it is for files and other programs, visible on a terminal.

    False: no one reads any more.
    """
    return _out(visible(of) if _is_terminal(sys.stdout) else of)


def note(of: object) -> None:
    """A line on stderr, in place of the changing one."""
    _err(f"{_CLEARED_LINE if is_live() else ''}{visible(str(of))}\n")


def is_live() -> bool:
    """Whether stderr can show a changing line."""
    return _is_terminal(sys.stderr)


def live(of: str) -> None:
    """The changing line on stderr; empty: none."""
    _err(_CLEARED_LINE + visible(of))


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _out(of: str) -> bool:
    try:
        _write(sys.stdout, of)
        return True
    except BrokenPipeError:
        _drop_further(sys.stdout)
        return False
    except OSError as error:
        _drop_further(sys.stdout)
        raise OutputError(f"standard output: {error.strerror or error}") from error


def _err(of: str) -> None:
    """A reader of stderr that has gone does not fail the command."""
    try:
        _write(sys.stderr, of)
    except OSError:
        _drop_further(sys.stderr)


def _write(stream: TextIO | None, of: str) -> None:
    """Python has no stream where the descriptor was closed before it started."""
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    stream.write(of.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _drop_further(stream: TextIO) -> None:
    """What the stream still holds must not fail once more when Python ends, with a status of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
