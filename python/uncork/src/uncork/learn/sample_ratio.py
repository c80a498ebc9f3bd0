"""Sample-ratio mismatch: has each arm as many clients as were dealt to it?

If records of one arm are lost (a server that fails, a pipeline that drops what takes long, downloads that
never end), the lift is of other clients than were dealt, and does not show it. Units are counted, each once a
day: a better controller causes more downloads, and that must not count as a mismatch. Old days count less, as
in the evidence of lifts, and units by inverse propensity: so both arms should have the same sum, even where
shares changed.

Units are cookies that a client makes up: one network can have many of one arm. So networks, and then ASes,
that are far from the others are left out, at most a tenth at either end (trim.py), and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncork.experiment import words
from uncork.learn.decisions import Texts
from uncork.learn.digits import rounded
from uncork.learn.settings import Settings
from uncork.learn.trim import far_from_others
from uncork.learn.units import Rows, client_days
from uncork.measure.stats.srm import WatchedRatio, watched_ratio

Floats = NDArray[np.float64]

KEY = "sample_ratio"
"""Of a section's ratio among its guardrails."""
TOGETHER = "all sections"
MAX_NAMED = 5
NOTHING = "Nothing is switched on."
LOST = "Find out which records are lost, and leave their days out (--where)."


@dataclass(frozen=True)
class Ratio:
    """Of one section, or of all that are no mismatch by themselves."""

    of: str
    control: int
    """Units of each day, added up over the days: a client of three days counts three times."""
    treated: int
    ratio: float
    """Units of the treated arm over those of control, as a part of what was dealt: 0.9 if one of ten is
    missing. `low` and `high` hold at every look.
    """
    low: float
    high: float
    is_mismatch: bool
    left_out: tuple[str, ...] = ()
    """Networks and ASes that are far from the others, by name: at most `MAX_NAMED`."""

    def mismatch(self, settings: Settings) -> str:
        """What is wrong."""
        return f"Sample-ratio mismatch in {self.of}: {self.away(settings)}."

    def warning(self, settings: Settings) -> str:
        """What is wrong, what follows, and what to do."""
        return f"{self.mismatch(settings)} {NOTHING} {LOST}"

    def away(self, settings: Settings) -> str:
        """How far the arms are from what was dealt."""
        return (
            f"{self.control:,} client-days of {settings.control} and {self.treated:,} of {settings.treated}, "
            f"{words.change(self.ratio)} ({words.interval(self.low, self.high)}) off what was dealt"
            + (f"; left out, far from the others: {words.listed(self.left_out)}" if self.left_out else "")
        )


@dataclass(frozen=True)
class _Units:
    """Sums by arm and bucket: shape (2, buckets)."""

    weighted: Floats
    plain: Floats
    left_out: tuple[str, ...] = ()

    def __add__(self, other: _Units) -> _Units:
        left_out = tuple(dict.fromkeys((*self.left_out, *other.left_out)))
        return _Units(self.weighted + other.weighted, self.plain + other.plain, left_out)

    def ratio(self, of: str, tests: int) -> Ratio | None:
        found = watched_ratio(*self.weighted, tests=tests)
        if found is None:
            return None
        return _ratio(of, found, self.plain.sum(axis=1).tolist(), self.left_out[:MAX_NAMED])


def ratios(evidence: pa.Table, settings: Settings, sections: Iterable[str]) -> dict[str, Ratio]:
    """By section, of those with units in enough buckets. Sections without a mismatch of their own are judged
    together, too: a fault that is too small to be seen in each is seen in all.
    """
    rows = client_days(evidence, settings)
    some = {name: _units(rows[name]) for name in sections if name in rows}
    tests = len(some) + 1
    found = {name: one for name, units in some.items() if (one := units.ratio(name, tests))}
    rest = [units for name, units in some.items() if name not in found or not found[name].is_mismatch]
    whole = sum(rest[1:], rest[0]).ratio(TOGETHER, tests) if len(rest) > 1 else None
    if whole is not None and whole.is_mismatch:
        found |= {name: whole for name in some if name not in found or not found[name].is_mismatch}
    return found


def document(ratio: Ratio) -> dict[str, object]:
    """For JSON."""
    values = {name: rounded(value) for name, value in vars(ratio).items()}
    return values | {"left_out": list(ratio.left_out)}


def load_ratios(sections: Mapping[str, Mapping[str, object]]) -> dict[str, Ratio]:
    """What guardrails.json has of each section. Earlier versions have none."""
    found = {name: Ratio(**of[KEY]) for name, of in sections.items() if KEY in of}  # type: ignore[arg-type]
    return {name: replace(one, left_out=tuple(one.left_out)) for name, one in found.items()}


def _ratio(of: str, found: WatchedRatio, units: list[float], left_out: tuple[str, ...]) -> Ratio:
    control, treated = (int(one) for one in units)
    return Ratio(of, control, treated, found.ratio, found.low, found.high, found.is_mismatch, left_out)


def _without_outliers(rows: Rows, names: Texts) -> tuple[Rows, tuple[str, ...]]:
    """Without the groups that are far from the others, and their names. Rows without a name stay."""
    is_named = names != None  # noqa: E711 (elementwise)
    groups, at = np.unique(names[is_named].astype(str), return_inverse=True)
    if not len(groups):
        return rows, ()
    weighted, squares = (rows.weight * rows.n)[is_named], (rows.weight**2 * rows.n)[is_named]
    sign = np.where(rows.arm[is_named] == 1, 1.0, -1.0)
    parts = (np.bincount(at, of, len(groups)) for of in (sign * weighted, weighted, squares))
    difference, total, variance = (np.asarray(part, dtype=np.float64) for part in parts)
    is_out = far_from_others(difference, total, variance)
    kept = np.ones(len(names), dtype=np.bool_)
    kept[is_named] = ~is_out[at]
    return rows.where(kept), tuple(groups[is_out].tolist())


def _units(rows: Rows) -> _Units:
    some, networks = _without_outliers(rows, rows.network)
    some, systems = _without_outliers(some, some.system)
    return _Units(some.sums(some.weight * some.n), some.sums(some.n), (*networks, *systems))
