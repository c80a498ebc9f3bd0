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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

import pyarrow as pa

from uncork.measure.errors import InputError

Row = dict[str, object]


class RowError(ValueError):
    """Why a line or row is rejected. The message has no values in it, so that reasons can be counted."""


class NoRecordError(RowError):
    """Why a row is rightly no record: nothing is lost."""


Read = tuple[int, str, Row | RowError]
"""Number of the line from 1, the line, and its fields."""

DELIMITERS: Final = (",", ";", "\t", "|")
"""Between which a CSV file's own is found, if the mapping names none."""

TOO_DEEP: Final = "the line is nested too deeply"

MARK: Final = "\ufeff"
"""The byte-order mark. Files that were put together have one in the middle, too."""

CUT: Final = "the last line has no line end: its last field may be cut"

MAX_JOINED: Final = 100
"""Lines of a field in quotation marks that has line ends in it."""

_HEAD: Final = 65_536
"""Bytes that show the line ends; the first of them the encoding."""


def open_text(path: Path) -> IO[str]:
    """Opens a log, which may be compressed. UTF-8 with or without a byte-order mark, and UTF-16, as Windows
    writes them; lines that end in CR alone. Other bytes survive as escapes.
    """
    start = _start(path)
    with _opened(path, start) as file, whole(path):
        head = file.read(_HEAD)
    encoding = encoding_of(head[:256])
    errors = "replace" if encoding.startswith("utf-16") else "surrogateescape"
    text = head.decode(encoding, "replace")
    newline = "\r" if "\r" in text[:-1] and "\n" not in text else "\n"
    return io.TextIOWrapper(_opened(path, start), encoding=encoding, errors=errors, newline=newline)


def _start(path: Path) -> int:
    """Where the text begins: a log that was truncated while its writer went on has zeros in front."""
    if compression_of(path):
        return 0
    at = 0
    with path.open("rb") as file:
        while block := file.read(2**20):
            rest = block.lstrip(b"\0")
            at += len(block) - len(rest)
            if rest:
                break
    return at if at >= _ZEROS else 0


_ZEROS: Final = 4
"""Fewer zeros in front are of UTF-16."""


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


def _opened(path: Path, start: int = 0) -> BinaryIO:
    kind = compression_of(path)
    if kind == "zstd":
        return cast(BinaryIO, io.BufferedReader(pa.CompressedInputStream(str(path), kind)))
    if kind == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if kind == "bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if kind == "xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    file = path.open("rb")
    file.seek(start)
    return file


def encoding_of(head: bytes) -> str:
    """By the mark, or by the zero bytes of ASCII characters in UTF-16."""
    has_mark = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    body = head[2:] if has_mark else head
    half = max(1, len(body) // 2)
    odd, even = body[1::2], body[0::2]
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros.count(0) > half / 2 > others.count(0):
            return "utf-16" if has_mark else encoding
    return "utf-8-sig"


def json_rows(lines: Iterable[str]) -> Iterator[Read]:
    """An object in each line."""
    for number, line, _ in _filled(lines):
        try:
            row = json.loads(line)
        except ValueError:
            yield number, line, RowError("the line is not JSON")
            continue
        except RecursionError:
            yield number, line, RowError(TOO_DEEP)
            continue
        yield number, line, row if isinstance(row, dict) else RowError("the line is not a JSON object")


def csv_rows(
    lines: Iterable[str],
    delimiter: str | None,
    names: Sequence[str] = (),
    check: Callable[[list[str]], None] = lambda _: None,
) -> Iterator[Read]:
    """Fields by the names in the first line, or by ``names`` in a file without such a line. ``check`` is
    called with the names of the first line.
    """
    numbered = _whole_last(lines) if names else _filled(lines)
    header, is_padded = list(names), False
    if not names:
        first = next(numbered, (0, "", True))[1]
        delimiter = delimiter or delimiter_of(first)
        is_padded = any(it.startswith(" ") for it in _fields(first, delimiter)[1:])
        header = [it.strip() for it in _fields(first, delimiter, is_padded=is_padded)]
        check(header)
    rows = _CsvRows(numbered, delimiter or ",", len(header), is_padded, can_join=not names)
    for number, line, fields in rows:
        if isinstance(fields, RowError):
            yield number, line, fields
        elif not names and _is_header(fields, header):
            header = fields
            check(header)
            yield number, line, NoRecordError("the header again")
        else:
            yield number, line, dict(zip(header, fields, strict=True))


def _is_header(fields: list[str], header: list[str]) -> bool:
    """Whether most fields are names of columns: files were put together, perhaps with other columns."""
    return 2 * len(set(fields) & set(header)) > len(header)


class _CsvRows:
    """Lines to fields. Quotation marks are those of CSV only where they are closed: in logs, a field may
    begin with one that never is, which must not take the lines behind it. In logs with tabs or without a
    header, they must also make a row with as many fields as the header.
    """

    def __init__(
        self,
        lines: Iterator["_Line"],
        delimiter: str,
        count: int,
        is_padded: bool,
        *,
        can_join: bool,
    ) -> None:
        self._lines, self._delimiter, self._count = lines, delimiter, count
        self._is_padded = is_padded
        self._is_log = not can_join or delimiter == "\t"
        self._ahead: deque[_Line] = deque()

    def __iter__(self) -> Iterator[tuple[int, str, list[str] | RowError]]:
        while (line := self._next()) is not None:
            number, text, is_whole = line
            if not is_whole:
                yield number, text, NoRecordError(CUT)
                continue
            fields = self._plain(text) if '"' not in text else self._quoted(text)
            if fields is None and not self._is_log:
                text, fields = self._joined(text)
            if fields is None or (self._is_log and len(fields) != self._count):
                fields = self._plain(text)
            if len(fields) != self._count:
                yield number, text, RowError(_not_as_many(text))
            else:
                yield number, text, fields

    def _next(self) -> "_Line | None":
        return self._ahead.popleft() if self._ahead else next(self._lines, None)

    def _plain(self, text: str) -> list[str]:
        fields = text.split(self._delimiter)
        return [it.strip() for it in fields] if self._is_padded else fields

    def _quoted(self, text: str) -> list[str] | None:
        """``None`` if it is not a whole row of CSV."""
        lines = [f"{line}\n" for line in text.split("\n")]
        reader = csv.reader(lines, delimiter=self._delimiter, skipinitialspace=self._is_padded, strict=True)
        try:
            rows = list(reader)
        except csv.Error:
            return None
        return rows[0] if len(rows) == 1 else None

    def _is_row(self, text: str) -> bool:
        """Whether the line has as many fields as the header, if quotation marks are characters."""
        return len(self._plain(text)) == self._count

    def _joined(self, text: str) -> tuple[str, list[str] | None]:
        """The row that goes on until its quotation marks are pairs; the line alone if there is none, or if
        each of its lines is a row.
        """
        joined, quotes, are_rows = text, text.count('"'), self._is_row(text)
        for at in range(MAX_JOINED if quotes % 2 else 0):
            if at == len(self._ahead):
                line = next(self._lines, None)
                if line is None:
                    break
                self._ahead.append(line)
            more = self._ahead[at][1]
            joined, quotes = f"{joined}\n{more}", quotes + more.count('"')
            are_rows = are_rows and self._is_row(more)
            if quotes % 2 == 0:
                fields = None if are_rows else self._quoted(joined)
                if fields is None or len(fields) != self._count:
                    break
                for _ in range(at + 1):
                    self._ahead.popleft()
                return joined, fields
        return text, None


def _fields(text: str, delimiter: str, *, is_padded: bool = False) -> list[str]:
    """Of a line of CSV."""
    try:
        return next(csv.reader([text], delimiter=delimiter, skipinitialspace=is_padded), [])
    except csv.Error:
        return text.split(delimiter)


def _not_as_many(text: str) -> str:
    unclosed = " (a quotation mark is not closed)" if text.count('"') % 2 else ""
    return f"the row has not as many fields as the header{unclosed}"


def delimiter_of(header: str) -> str:
    """The delimiter that makes most fields of the first line."""
    return max(DELIMITERS, key=lambda it: len(_fields(header, it)))


def w3c_rows(lines: Iterable[str], check: Callable[[list[str]], None] = lambda _: None) -> Iterator[Read]:
    """W3C extended log format: ``#Fields:`` names the fields, also in the middle of a file. ``check`` is
    called with the names.
    """
    names: list[str] | None = None
    for number, line, is_whole in _whole_last(lines):
        if line.startswith("#"):
            if line.lower().startswith("#fields:"):
                names = line.split()[1:]
                check(names)
            continue
        if names is None:
            yield number, line, RowError("no #Fields: before the line")
            continue
        if not is_whole:
            yield number, line, NoRecordError(CUT)
            continue
        fields = w3c_fields(line, len(names))
        if len(fields) != len(names):
            fields = w3c_fields(line.rstrip(), len(names))
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
    for number, line, is_whole in _whole_last(lines):
        match = pattern.search(line)
        if not is_whole:
            yield number, line, NoRecordError(CUT)
        else:
            yield (
                number,
                line,
                match.groupdict() if match else RowError("the line does not match the pattern"),
            )


def text_rows(lines: Iterable[str]) -> Iterator[Read]:
    """One field, ``line``."""
    for number, line, _ in _filled(lines):
        yield number, line, {"line": line}


_Line = tuple[int, str, bool]
"""Number from 1, text without its end, and whether it is whole."""


def _filled(lines: Iterable[str]) -> Iterator[_Line]:
    """Lines that are not empty. All count as whole."""
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text and text[0] in "\0\ufeff":
            text = text.lstrip("\0").removeprefix(MARK)
        if text:
            yield number, text, True


def _whole_last(lines: Iterable[str]) -> Iterator[_Line]:
    """Lines that are not empty. A line without an end is not whole: a file is copied while it grows."""
    ended = True

    def seen() -> Iterator[str]:
        nonlocal ended
        for line in lines:
            ended = line.endswith(("\n", "\r"))
            yield line

    for number, text, _ in _filled(seen()):
        yield number, text, ended
