"""Decisions as columns: a million entries fit in memory, and a row is made when somebody asks for it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

Texts = NDArray[np.object_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ABSENT = -1
"""Of an index: there is none."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An entry of one section, and all that a person needs to check it."""

    section: str
    level: str
    key: str
    arm: str
    since: int
    """Day since 1970."""
    reason: str
    share: float
    """Of all bytes of clients, by networks."""
    control: int
    """Records of the control arm that the evidence has."""
    treated: int
    raw: float | None
    """Lift by its own evidence alone; None: too little."""
    raw_error: float | None
    prior: float
    """Lift by its parent and siblings alone."""
    prior_sd: float
    lift: float
    """Of both."""
    sd: float
    p_gain: float
    """Probability that there is any lift."""
    p_safe: float
    """Probability that the lift is not so far below zero that it would be harm."""
    by: str
    """The level with the weightiest evidence."""
    parent: str
    """The next wider entry."""
    limit: str
    """The guardrail that is most likely to break; empty without evidence of any."""
    harm: float
    """What of it the treated arm makes worse: in points of a share, or as the logarithm of a ratio."""
    harm_sd: float
    p_kept: float
    """Probability that the limit is kept."""
    about: str
    """The treated arm that the figures are of, where there are several; empty: the only one."""


@dataclass(frozen=True)
class Decisions:
    """The columns of `Decision`, each of shape (entries,). NaN stands for None."""

    section: Texts
    level: Texts
    key: Texts
    arm: Texts
    since: Ints
    reason: Texts
    share: Floats
    control: Ints
    treated: Ints
    raw: Floats
    raw_error: Floats
    prior: Floats
    prior_sd: Floats
    lift: Floats
    sd: Floats
    p_gain: Floats
    p_safe: Floats
    by: Texts
    parent: Texts
    limit: Texts
    harm: Floats
    harm_sd: Floats
    p_kept: Floats
    about: Texts

    def __len__(self) -> int:
        return len(self.key)

    def __iter__(self) -> Iterator[Decision]:
        return (self[at] for at in range(len(self)))

    def __getitem__(self, at: int) -> Decision:
        values = {name: getattr(self, name)[at] for name in NAMES}
        for name, kind in KINDS.items():
            if kind != pa.string():
                values[name] = values[name].item()
        for name in ("raw", "raw_error"):
            values[name] = None if values[name] != values[name] else values[name]
        return Decision(**values)

    def where(self, rows: Bools | Ints) -> Decisions:
        """Some of the entries."""
        return Decisions(*(getattr(self, name)[rows] for name in NAMES))

    @property
    def networks(self) -> Decisions:
        """The entries of networks."""
        return self.where(self.level == "network")

    @property
    def sections(self) -> list[str]:
        """Their names, in order."""
        return sorted(set(self.section.tolist()))

    @staticmethod
    def concat(parts: Sequence[Decisions]) -> Decisions:
        """All entries of the parts; of no parts, none."""
        if not parts:
            return Decisions.from_table(_empty())
        return Decisions(*(np.concatenate([getattr(part, name) for part in parts]) for name in NAMES))

    def table(self) -> pa.Table:
        """As kept: text as dictionaries, numbers in single precision, which every machine computes alike.
        Without `about` where there is one treated arm, as before there could be more.
        """
        kinds = dict(KINDS)
        if not self.about.astype(np.bool_).any():
            del kinds["about"]
        return pa.table({name: _encode(getattr(self, name), kind) for name, kind in kinds.items()})

    @staticmethod
    def from_table(table: pa.Table) -> Decisions:
        """The decisions that `table` made."""
        columns: list[Any] = [_decode(table, name) for name in NAMES]
        return Decisions(*columns)

    @staticmethod
    def columns(file: Path, *names: str) -> list[Any]:
        """Some columns of a file that `to_bytes` wrote."""
        table = pq.read_table(file, columns=list(names))
        return [_decode(table, name) for name in names]

    def to_bytes(self) -> bytes:
        """As a Parquet file."""
        out = io.BytesIO()
        pq.write_table(self.table(), out, compression="zstd")
        return out.getvalue()

    @staticmethod
    def from_bytes(file: bytes) -> Decisions:
        """The decisions that `to_bytes` wrote."""
        return Decisions.from_table(pq.read_table(pa.BufferReader(file)))


NAMES = tuple(field.name for field in fields(Decision))
_KIND = {"str": pa.string(), "int": pa.int64(), "float": pa.float32(), "float | None": pa.float32()}
KINDS = {field.name: _KIND[str(field.type)] for field in fields(Decision)}


def _empty() -> pa.Table:
    return pa.table({name: pa.array([], kind) for name, kind in KINDS.items()})


def _decode(table: pa.Table, name: str) -> NDArray[np.generic]:
    kind = KINDS[name]
    if name == "about" and name not in table.column_names:
        return np.full(table.num_rows, "", dtype=np.object_)
    column = table[name].combine_chunks() if table.num_rows else pa.array([], kind)
    if kind == pa.string():
        return texts(column)
    return np.asarray(column, dtype=np.int64 if kind == pa.int64() else np.float64)


def _encode(values: NDArray[np.generic], kind: pa.DataType) -> pa.Array:
    if kind != pa.string():
        return pa.array(values.astype(kind.to_pandas_dtype()))
    return pa.array(values, kind).dictionary_encode()


def texts(column: pa.Array) -> Texts:
    """An array of text, in which equal values are one object."""
    found = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = np.array([*found.dictionary.to_pylist(), None], dtype=np.object_)
    return words[np.asarray(pc.fill_null(found.indices, len(words) - 1), dtype=np.int64)]


def coded(values: Texts) -> tuple[Ints, Texts]:
    """A number for each value, and the values by number, in order."""
    found = pa.array(values, pa.string()).dictionary_encode()
    words = np.array(found.dictionary.to_pylist(), dtype=np.object_)
    order = np.argsort(words)
    rank = np.empty(len(words), dtype=np.int64)
    rank[order] = np.arange(len(words))
    return rank[np.asarray(found.indices, dtype=np.int64)], words[order]


def places(of: Texts, among: Texts) -> Ints:
    """Where each value is among others, which differ from each other; `ABSENT` if nowhere."""
    found = pc.index_in(pa.array(of, pa.string()), value_set=pa.array(among, pa.string()))
    return np.asarray(pc.fill_null(found, ABSENT), dtype=np.int64)
