"""The measured gain: the clients that the table decides for, compared with the holdback.

The holdback is drawn by the hash of the unit. Clients without it, such as a first visit without a cookie, are
in neither group. So the difference is what the table did to these clients: total effect and all, but for what
the two groups do to each other on shared bottlenecks.

Records of the holdback have the bucket of their unit, so their error is a jackknife's. Other records have
none: their error follows from the holdback's, as both are drawn from the same users, by their number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncork.experiment import measures
from uncork.learn.evidence import OF_HOLDBACK, places
from uncork.learn.lift import MIN_TAIL
from uncork.learn.settings import PRIMARY, Settings
from uncork.measure.bins import GAMMA
from uncork.measure.cubes import BUCKETS
from uncork.measure.metrics import METRICS
from uncork.measure.stats.effect import NoInterval
from uncork.measure.stats.jackknife import log_quantile, quantile_level
from uncork.measure.stats.tails import student_quantile

Ints = NDArray[np.int64]

DAYS = 7
"""Days of each gain: a week has all its days."""


@dataclass(frozen=True)
class Gain:
    """The lift of all that the table decided for over the holdback, in the days up to this one."""

    day: int
    """The last one, since 1970."""
    lift: float
    """Logarithm; positive is better."""
    low: float
    high: float
    """95 % interval."""
    holdback: int
    """Records."""
    table: int


Gains = Mapping[str, Sequence[Gain]]
"""By section, in the order of days."""


def gains(evidence: pa.Table, settings: Settings) -> Gains:
    """The gain of each day with enough records of the holdback in its week."""
    held = evidence.filter(pc.equal(evidence["metric"].cast(pa.string()), OF_HOLDBACK))
    held = held.filter(pc.is_valid(held["bin"]))
    keys = list(zip(*(held[name].cast(pa.string()).to_pylist() for name in ("place", "class")), strict=True))
    is_table = np.asarray(pc.equal(held["arm"].cast(pa.string()), settings.treated))
    found: dict[str, list[Gain]] = {}
    known, _ = places(evidence, settings)
    for place, of_class in sorted(key for key in set(keys) if (key[0] or "") in known):
        some = np.array([key == (place, of_class) for key in keys])
        groups = [_Group.of(held.filter(pa.array(some & which))) for which in (~is_table, is_table)]
        days = np.unique(groups[1].day).tolist()
        weeks = (_gain(of_class, day, *(group.week(day) for group in groups)) for day in days)
        if measured := [one for one in weeks if one is not None]:
            found[f"{place}/{of_class}" if place else of_class] = measured
    return found


@dataclass(frozen=True)
class _Group:
    """Counts of the holdback or of the table's clients. A bucket of -1: there is none."""

    day: Ints
    bucket: Ints
    bin: Ints
    n: Ints

    @staticmethod
    def of(rows: pa.Table) -> _Group:
        return _Group(*(np.asarray(pc.fill_null(rows[name], -1)) for name in ("day", "bucket", "bin", "n")))

    def week(self, day: int) -> _Group:
        """The days up to this one."""
        some = (self.day > day - DAYS) & (self.day <= day)
        return _Group(self.day[some], self.bucket[some], self.bin[some], self.n[some])

    def cube(self, first: int, bins: int) -> Ints:
        """Counts by bucket and bin; all in one bucket where there is none."""
        counts = np.zeros((BUCKETS, bins), dtype=np.int64)
        np.add.at(counts, (np.maximum(self.bucket, 0), self.bin - first), self.n)
        return counts


def _gain(of_class: str, day: int, holdback: _Group, table: _Group) -> Gain | None:
    measure = PRIMARY[of_class]
    q = measures.quantile(measure.statistic)
    assert q is not None
    bins = np.concatenate([holdback.bin, table.bin])
    first = int(bins.min())
    cubes = [group.cube(first, int(bins.max()) - first + 1) for group in (holdback, table)]
    held = quantile_level(cubes[0], q, first_bin=first, gamma=GAMMA, min_tail=MIN_TAIL)
    if isinstance(held, NoInterval):
        return None
    records = [int(cube.sum()) for cube in cubes]
    sign = 1 if METRICS[measure.metric].better == "higher" else -1
    lift = sign * (log_quantile(cubes[1].sum(axis=0), q, first_bin=first, gamma=GAMMA) - held.log)
    error = held.error * math.sqrt(1 + records[0] / records[1])
    reach = student_quantile(0.975, held.freedom) * error
    return Gain(day, lift, lift - reach, lift + reach, *records)
