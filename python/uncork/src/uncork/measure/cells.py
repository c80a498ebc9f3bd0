"""Tables of counts, as an engine returns them, to cells with cubes.

The tables stay sparse; a cell's cubes are built when it is asked for. So thousands of cells need little
memory.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncork.measure.bins import GAMMA
from uncork.measure.cubes import (
    BUCKETS,
    PER_CLIENT,
    PER_RECORD,
    WEIGHT,
    Cube,
    DistributionCube,
    Key,
    RatioCube,
    Reduced,
)
from uncork.measure.keys import UNKNOWN
from uncork.measure.metrics import Metric

Ints = NDArray[np.int64]
Texts = Mapping[str, Callable[[object], str]]
"""For each key, how its values become text."""


@dataclass(frozen=True)
class Part:
    """The counts of one metric, by keys, arm and bucket."""

    metric: Metric
    table: pa.Table
    whole: int = 1
    """What counts as one."""


@dataclass(frozen=True)
class Tables:
    """All that an engine returns: counts of metrics, of units and records."""

    parts: list[Part]
    units: pa.Table


def assemble(tables: Tables, texts: Texts, arms: tuple[str, ...]) -> Reduced:
    """Cells of all tables, sorted by key."""
    grid = Grid.from_units(tables.units, texts, arms)
    sparse = [_Sparse.of(part, grid) for part in tables.parts]
    rows = _ints(tables.units["rows"])
    left_out, outside = _left_out(tables.units, arms)
    impossible = {f"{it.metric.name}: a value that cannot be": it.impossible for it in sparse}
    missing = {reason: int(rows[where].sum()) for reason, where in left_out.items()}
    return Reduced(
        arms=arms,
        by=tuple(texts),
        cells=_Cells(grid, sparse),
        units=_by_bucket(tables.units, "units", grid),
        rows=int(rows.sum()),
        rejected={reason: count for reason, count in (missing | impossible).items() if count},
        outside=int(rows[outside].sum()),
        records=_by_bucket(tables.units, "rows", grid),
        weighting=PER_CLIENT if any(part.whole % WEIGHT == 0 for part in tables.parts) else PER_RECORD,
    )


def _left_out(
    units: pa.Table, arms: tuple[str, ...]
) -> tuple[dict[str, NDArray[np.bool_]], NDArray[np.bool_]]:
    """Masks of the records that no metric counts, by reason; and of the records of other experiments."""
    no_arm = _bools(pc.is_null(units["arm"]))
    no_experiment = _bools(pc.is_null(units["experiment"]))
    bucket = _ints(units["bucket"])
    no_bucket = ~no_arm & ((bucket < 0) | (bucket >= BUCKETS))
    other = ~no_arm & ~_bools(pc.is_in(units["arm"], value_set=pa.array(arms)))
    in_experiments = bool((~no_experiment).any())
    outside = other | (no_arm & no_experiment & in_experiments)
    return {"no arm": no_arm & ~outside, "no bucket from 0 to 99": no_bucket & ~other}, outside


def _ints(column: pa.ChunkedArray) -> Ints:
    """The column's integers; a null is -1."""
    filled = pc.fill_null(column.cast(pa.int64()), -1)
    return np.asarray(filled.to_numpy(), dtype=np.int64)


def _bools(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.to_numpy(), dtype=np.bool_)


@dataclass(frozen=True)
class Grid:
    """Where a group of a table belongs: its cell and arm."""

    arms: tuple[str, ...]
    values: dict[str, pa.Array]
    """The values of each key."""
    codes: dict[str, Ints]
    """And the place of each value's text among all texts, in order."""
    texts: dict[str, list[str]]
    cells: Ints
    """The cells that occur, in order, each as one number."""

    @staticmethod
    def from_units(units: pa.Table, texts: Texts, arms: tuple[str, ...]) -> "Grid":
        """The grid of a table that has all groups of all others."""
        values = {name: units[name].unique() for name in texts}
        named = {name: [_text(it, texts[name]) for it in values[name].to_pylist()] for name in texts}
        unique = {name: sorted(set(of_key)) for name, of_key in named.items()}
        codes = {
            name: np.array([unique[name].index(text) for text in named[name]], dtype=np.int64)
            for name in texts
        }
        grid = Grid(arms, values, codes, unique, np.empty(0, dtype=np.int64))
        assigned = units.filter(pc.is_in(units["arm"], value_set=pa.array(arms)))
        return Grid(arms, values, codes, unique, np.unique(grid.numbers(assigned)))

    def numbers(self, table: pa.Table) -> Ints:
        """The cell of each row as one number."""
        number = np.zeros(table.num_rows, dtype=np.int64)
        for name, values in self.values.items():
            index = pc.index_in(table[name].cast(values.type), value_set=values)
            number = number * max(len(self.texts[name]), 1) + self.codes[name][_ints(index)]
        return number

    def cell(self, table: pa.Table) -> Ints:
        """The cell of each row as its place among the cells."""
        return np.searchsorted(self.cells, self.numbers(table)).astype(np.int64)

    def arm(self, table: pa.Table) -> Ints:
        """The arm of each row; -1 if it is none of them."""
        return _ints(pc.index_in(table["arm"], value_set=pa.array(self.arms)))

    def keys(self) -> list[Key]:
        """The text of each cell's keys."""
        texts: list[list[str]] = []
        rest = self.cells
        for name in reversed(self.values):
            count = max(len(self.texts[name]), 1)
            texts.append([self.texts[name][code] for code in rest % count])
            rest = rest // count
        return list(zip(*reversed(texts), strict=True)) if texts else [()] * len(self.cells)


def _text(value: object, text: Callable[[object], str]) -> str:
    return UNKNOWN if value is None else text(value)


def _by_bucket(units: pa.Table, column: str, grid: Grid) -> dict[Key, Ints]:
    """The column's sums by (arm, bucket)."""
    kept = units.filter(pa.array(_is_counted(grid.arm(units), _ints(units["bucket"]))))
    counts = np.zeros((len(grid.cells), len(grid.arms), BUCKETS), dtype=np.int64)
    np.add.at(counts, (grid.cell(kept), grid.arm(kept), _ints(kept["bucket"])), _ints(kept[column]))
    return dict(zip(grid.keys(), counts, strict=True))


def _is_counted(arm: Ints, bucket: Ints) -> NDArray[np.bool_]:
    return (arm >= 0) & (bucket >= 0) & (bucket < BUCKETS)


@dataclass(frozen=True)
class _Sparse:
    """The counts of one metric, sorted by cell."""

    metric: Metric
    start: Ints
    """Where each cell begins, and where the last one ends."""
    arm: NDArray[np.int16]
    bucket: NDArray[np.int8]
    bin: NDArray[np.int32]
    columns: tuple[Ints, ...]
    """``n``, or ``numerator`` and ``denominator``."""
    impossible: int
    whole: int

    @staticmethod
    def of(part: Part, grid: Grid) -> "_Sparse":
        table = part.table
        is_bins = part.metric.kind == "distribution"
        arm, bucket, n = grid.arm(table), _ints(table["bucket"]), _ints(table["n"])
        is_counted = _is_counted(arm, bucket)
        # A distribution counts values that cannot be in rows of their own, a ratio in each row.
        is_bad = _bools(pc.is_null(table["bin"])) if is_bins else np.zeros_like(is_counted)
        impossible = n[is_counted & is_bad] if is_bins else n[is_counted]
        rows = np.flatnonzero(is_counted & ~is_bad)
        cell = grid.cell(table)[rows].astype(np.min_scalar_type(len(grid.cells)))
        order = np.argsort(cell, kind="stable")
        cell, rows = cell[order], rows[order]
        names = ("n",) if is_bins else ("numerator", "denominator")
        return _Sparse(
            metric=part.metric,
            start=np.searchsorted(cell, np.arange(len(grid.cells) + 1)).astype(np.int64),
            arm=arm[rows].astype(np.int16),
            bucket=bucket[rows].astype(np.int8),
            bin=(_ints(table["bin"])[rows] if is_bins else cell).astype(np.int32),
            columns=tuple(_ints(table[name])[rows] for name in names),
            impossible=int(impossible.sum()),
            whole=part.whole,
        )

    def has(self, cell: int) -> bool:
        """Whether the metric has a value in the cell."""
        here = self._rows(cell)
        return bool(self.columns[1][here].any()) if self.metric.kind == "ratio" else here.start < here.stop

    def _rows(self, cell: int) -> slice:
        return slice(int(self.start[cell]), int(self.start[cell + 1]))

    def cube(self, cell: int, arms: int) -> Cube:
        """The cube of a cell that has a value."""
        here = self._rows(cell)
        at = (self.arm[here], self.bucket[here])
        if self.metric.kind == "ratio":
            sums = [_summed((arms, BUCKETS), at, column[here]) for column in self.columns]
            return RatioCube(*(of.astype(np.float64) / self.whole for of in sums))
        bins = self.bin[here]
        first = int(bins.min())
        shape = (arms, BUCKETS, int(bins.max()) - first + 1)
        counts = _summed(shape, (*at, bins - first), self.columns[0][here])
        return DistributionCube(counts, first, GAMMA, self.whole)


def _summed(shape: tuple[int, ...], at: tuple[NDArray[np.integer], ...], values: Ints) -> Ints:
    summed = np.zeros(math.prod(shape), dtype=np.int64)
    np.add.at(summed, np.ravel_multi_index(at, shape), values)
    return summed.reshape(shape)


class _Cells(Mapping[Key, Mapping[str, Cube]]):
    """Cells by key."""

    def __init__(self, grid: Grid, metrics: list[_Sparse]) -> None:
        self._arms = len(grid.arms)
        self._place = {key: place for place, key in enumerate(grid.keys())}
        self._metrics = {it.metric.name: it for it in metrics}

    def __getitem__(self, key: Key) -> Mapping[str, Cube]:
        return _Cell(self._place[key], self._arms, self._metrics)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)


class _Cell(Mapping[str, Cube]):
    """The cubes of a cell by metric, each built when it is asked for."""

    def __init__(self, place: int, arms: int, metrics: Mapping[str, _Sparse]) -> None:
        self._place, self._arms, self._metrics = place, arms, metrics
        self._built: dict[str, Cube] = {}

    def __getitem__(self, metric: str) -> Cube:
        if metric not in self:
            raise KeyError(metric)
        if metric not in self._built:
            self._built[metric] = self._metrics[metric].cube(self._place, self._arms)
        return self._built[metric]

    def __contains__(self, metric: object) -> bool:
        return metric in self._metrics and self._metrics[str(metric)].has(self._place)

    def __iter__(self) -> Iterator[str]:
        return (metric for metric in self._metrics if metric in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
