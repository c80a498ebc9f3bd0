"""Where the text of a command goes."""

from __future__ import annotations

from pathlib import Path

from uncork.measure import console
from uncork.measure.errors import OutputError
from uncork.measure.files import write


def deliver(text: str, output: Path | None, what: str) -> None:
    """Into a file, or to stdout without one. A text that cannot be written is printed, so it is not lost."""
    if output is None:
        console.data(text)
        return
    try:
        write(output, text)
    except OutputError:
        console.data(text)
        raise
    console.note(f"{what}: {output}")
