"""Lines of a log to rows of fields. A line that cannot be read is its own error, never that of the file."""

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

import pyarrow as pa

from uncork.measure.errors import InputError

Row = dict[str, object]


class RowError(ValueError):
    """Why a line or row is rejected. The message has no values in it, so that reasons can be counted."""


Read = tuple[int, str, Row | RowError]
"""Number of the line from 1, the line, and its fields."""

DELIMITERS: Final = (",", ";", "\t", "|")
"""Between which a CSV file's own is found, if the mapping names none."""

TOO_DEEP: Final = "the line is nested too deeply"

_HEAD: Final = 256
"""Bytes that show the encoding."""


def open_text(path: Path) -> IO[str]:
    """Opens a log, which may be compressed. UTF-8 with or without a byte-order mark, and UTF-16, as Windows
    writes them. Other bytes survive as escapes.
    """
    with _opened(path) as file, whole(path):
        encoding = encoding_of(file.read(_HEAD))
    errors = "replace" if encoding.startswith("utf-16") else "surrogateescape"
    return io.TextIOWrapper(_opened(path), encoding=encoding, errors=errors, newline="\n")


_COMPRESSED: Final = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd"}
"""First bytes of compressed files: log rotation does not always name them."""


def compression_of(path: Path) -> str:
    """How a file is compressed; empty: it is not."""
    with path.open("rb") as file:
        head = file.read(6)
    return next((name for name, magic in _COMPRESSED.items() if head.startswith(magic)), "")


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """A compressed file that ends too early or is damaged is an error with its name."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        remedy = "copy the file again, or leave it out"
        raise InputError(str(path), f"cannot be read to its end: {error}", remedy) from error


def _opened(path: Path) -> BinaryIO:
    kind = compression_of(path)
    if kind == "zstd":
        return cast(BinaryIO, io.BufferedReader(pa.CompressedInputStream(str(path), kind)))
    if kind == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if kind == "bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    return cast(BinaryIO, lzma.open(path, "rb")) if kind == "xz" else path.open("rb")


def encoding_of(head: bytes) -> str:
    """By the mark, or by the zero bytes of ASCII characters in UTF-16."""
    has_mark = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    body = head[2:] if has_mark else head
    half = max(1, len(body) // 2)
    for zeros, encoding in ((body[1::2], "utf-16-le"), (body[0::2], "utf-16-be")):
        if zeros.count(0) > half / 2:
            return "utf-16" if has_mark else encoding
    return "utf-8-sig"


def json_rows(lines: Iterable[str]) -> Iterator[Read]:
    """An object in each line."""
    for number, line in _filled(lines):
        try:
            row = json.loads(line)
        except ValueError:
            yield number, line, RowError("the line is not JSON")
            continue
        except RecursionError:
            yield number, line, RowError(TOO_DEEP)
            continue
        yield number, line, row if isinstance(row, dict) else RowError("the line is not a JSON object")


def csv_rows(lines: Iterable[str], delimiter: str | None, names: Sequence[str] = ()) -> Iterator[Read]:
    """Fields by the names in the first line, or by ``names`` in a file without such a line."""
    numbered = iter(lines)
    if names:
        header, delimiter = list(names), delimiter or ","
    else:
        first = next(numbered, "")
        delimiter = delimiter or delimiter_of(first)
        header = next(csv.reader([first], delimiter=delimiter), [])
    reader = csv.reader(numbered, delimiter=delimiter)
    for fields in reader:
        if not fields:
            continue
        row: Row | RowError = dict(zip(header, fields, strict=False))
        if len(fields) != len(header):
            row = RowError("the row has not as many fields as the header")
        yield reader.line_num + (not names), delimiter.join(fields), row


def delimiter_of(header: str) -> str:
    """The delimiter that makes most fields of the first line."""
    return max(DELIMITERS, key=lambda it: len(next(csv.reader([header], delimiter=it), [])))


def w3c_rows(lines: Iterable[str]) -> Iterator[Read]:
    """W3C extended log format: ``#Fields:`` names the fields, also in the middle of a file."""
    names: list[str] | None = None
    for number, line in _filled(lines):
        if line.startswith("#"):
            names = line.split()[1:] if line.lower().startswith("#fields:") else names
            continue
        if names is None:
            yield number, line, RowError("no #Fields: before the line")
            continue
        fields = w3c_fields(line, len(names))
        if len(fields) != len(names):
            yield number, line, RowError("the line has not as many fields as #Fields:")
        else:
            yield number, line, dict(zip(names, fields, strict=True))


_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"(?= |$)|(\S+)')


def w3c_fields(line: str, count: int) -> list[str]:
    """The fields of a line; strings in quotation marks may have spaces (IIS Advanced Logging)."""
    fields = line.split("\t") if "\t" in line else line.split(" ")
    if len(fields) == count or '"' not in line:
        return fields
    return [match[2] or match[1].replace('""', '"') for match in _QUOTED.finditer(line)]


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
