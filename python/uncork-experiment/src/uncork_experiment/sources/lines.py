"""Lines of a log to rows of fields. A line that cannot be read is its own error, never that of the file."""

import csv
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

Row = dict[str, object]


class RowError(ValueError):
    """Why a line or row is rejected. The message has no values in it, so that reasons can be counted."""


Read = tuple[int, str, Row | RowError]
"""Number of the line from 1, the line, and its fields."""


def open_text(path: Path) -> IO[str]:
    """Opens a log; ``.gz`` is decompressed. Bytes that are no UTF-8 survive as escapes."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="surrogateescape", newline="\n")
    return path.open("rt", encoding="utf-8", errors="surrogateescape", newline="\n")


def json_rows(lines: Iterable[str]) -> Iterator[Read]:
    """An object in each line."""
    for number, line in _filled(lines):
        try:
            row = json.loads(line)
        except ValueError:
            yield number, line, RowError("the line is no JSON")
            continue
        yield number, line, row if isinstance(row, dict) else RowError("the line is no JSON object")


def csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[Read]:
    """Fields by the names in the first line."""
    reader = csv.reader(lines, delimiter=delimiter)
    header = next(reader, [])
    for fields in reader:
        if not fields:
            continue
        row: Row | RowError = dict(zip(header, fields, strict=False))
        if len(fields) != len(header):
            row = RowError("the row has not as many fields as the header")
        yield reader.line_num, delimiter.join(fields), row


def w3c_rows(lines: Iterable[str]) -> Iterator[Read]:
    """W3C extended log format: ``#Fields:`` names the fields, also in the middle of a file."""
    names: list[str] | None = None
    for number, line in _filled(lines):
        if line.startswith("#"):
            names = line.split()[1:] if line.lower().startswith("#fields:") else names
            continue
        fields = line.split("\t") if "\t" in line else line.split(" ")
        if names is None:
            yield number, line, RowError("no #Fields: before the line")
        elif len(fields) != len(names):
            yield number, line, RowError("the line has not as many fields as #Fields:")
        else:
            yield number, line, dict(zip(names, fields, strict=True))


def pattern_rows(lines: Iterable[str], pattern: re.Pattern[str]) -> Iterator[Read]:
    """Fields by the names of a regular expression's groups."""
    for number, line in _filled(lines):
        match = pattern.search(line)
        yield number, line, match.groupdict() if match else RowError("the line does not match the pattern")


def text_rows(lines: Iterable[str]) -> Iterator[Read]:
    """One field, ``line``."""
    for number, line in _filled(lines):
        yield number, line, {"line": line}


def _filled(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        if stripped := line.rstrip("\r\n"):
            yield number, stripped
