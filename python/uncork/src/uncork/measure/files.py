"""Files that are whole or not there, and what reading a damaged one says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.measure.errors import InputError, OutputError


def write(path: Path, text: str) -> None:
    """The whole file or nothing, also if the machine stops."""
    part = part_of(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_text(text, encoding="utf-8", errors="backslashreplace")
            put_in_place(part, path)
        except OSError:
            part.unlink(missing_ok=True)
            raise


def part_of(path: Path) -> Path:
    """The name of a file of this process until it is whole. Readers of directories leave such names out."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def put_in_place(part: Path, path: Path) -> None:
    """Gives a whole file its name, also if the machine stops."""
    to_disk(part)
    part.replace(path)
    to_disk(path.parent)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What cannot be written below ``path`` is an ``OutputError``."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{error.filename or path}: {error.strerror or error}") from error


def to_disk(path: Path) -> None:
    """Waits until the file, or the names in the directory, would survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Table:
    """A Parquet file that is written in parts. It gets its name when it is whole; until then, and after an
    error, there is none.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._part = part_of(path)
        with writing(path):
            try:
                self._writer = pq.ParquetWriter(self._part, schema, compression="zstd")
            except OSError:
                self._part.unlink(missing_ok=True)
                raise

    def write(self, table: pa.Table) -> None:
        with writing(self._path):
            self._writer.write_table(table)

    def __enter__(self) -> Table:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with writing(self._path):
                self._writer.close()
                if kind is None:
                    put_in_place(self._part, self._path)
        finally:
            self._part.unlink(missing_ok=True)


def write_table(path: Path, of: pa.Table) -> Path:
    """A Parquet file, whole or not at all."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with Table(path, of.schema) as file:
        file.write(of)
    return path


def read_json(path: Path, remedy: str = "") -> object:
    """A document. ``InputError`` if the file cannot be read or is not JSON."""
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), remedy) from None
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), f"not JSON ({error})", remedy) from None
    return document


@contextmanager
def understood(path: Path, remedy: str = "") -> Iterator[None]:
    """What lacks a key, or has a value of another type, is an ``InputError``."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(str(path), f"damaged: {what}", remedy) from error
