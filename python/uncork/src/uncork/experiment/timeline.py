"""What happened in time: breaks with both arms before, during and after; the control arm against the
allocation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from uncork.experiment import estimate, measures
from uncork.experiment.estimate import Cubes
from uncork.experiment.result import (
    Allocation,
    Facts,
    Incident,
    Interference,
    Measure,
    Row,
    Series,
)
from uncork.experiment.rows import Settings, rows_of
from uncork.measure.cubes import Key, Reduced
from uncork.measure.stats.breaks import Break, find
from uncork.measure.stats.effect import Effect, ab_at_share
from uncork.measure.stats.interference import control_level

View = tuple[str, ...]
MIN_DAYS = 7
MAX_INCIDENTS = 6
CONTESTED = 0.10
"""The control arm lost at least this share of the measure while a break lasted."""
RAMP = (
    "The share of treated traffic only rose or fell from day to day. So these records cannot show whether "
    "the arms share bottlenecks: a trend in time looks the same. Steps of the share in a drawn order, or a "
    "switchback, can show it."
)
SHOWN = (
    Measure("throughput", "p10"),
    Measure("throughput", "p50"),
    Measure("bandwidth", "p10"),
    Measure("bandwidth", "p50"),
    Measure("stutters", "ratio"),
)


def incidents(
    daily: Mapping[View, Reduced], facts: Facts, keys: View, settings: Settings, estimand: str
) -> tuple[Incident, ...]:
    """Breaks of the primary measure, in every cell with enough days; where a smaller cell explains a
    larger one, that.
    """
    found: list[Incident] = []
    primary = settings.primary
    if primary is None:
        return ()
    for key in keys:
        reduced = daily.get((key, "day"))
        if reduced is None or key == "size_class":
            continue
        for value in sorted({cell[0] for cell in reduced.cells}):
            days = sorted(
                cell[1] for cell in reduced.cells if cell[0] == value and cell[1] >= facts.switch[:10]
            )
            cells = {day: reduced.cells[(value, day)] for day in days}
            found += _in_cell(key, value, cells, primary, settings, estimand)
    smallest = [one for one in found if not any(_within(other, one, keys) for other in found)]
    return tuple(sorted(smallest, key=lambda one: (one.first, one.value))[:MAX_INCIDENTS])


def _within(inner: Incident, outer: Incident, keys: View) -> bool:
    """Whether a cell by a later key had a break at the same time, which then explains the larger one."""
    same_time = inner.first <= outer.last and outer.first <= inner.last
    return same_time and keys.index(inner.key) > keys.index(outer.key)


def _in_cell(
    key: str, value: str, cells: Mapping[str, Cubes], primary: Measure, settings: Settings, estimand: str
) -> list[Incident]:
    days = [day for day, cubes in cells.items() if primary.metric in cubes]
    levels = [
        [estimate.level_of(cells[day][primary.metric], arm, primary, day) for day in days] for arm in (0, 1)
    ]
    usable = [n for n in range(len(days)) if levels[0][n].value and levels[1][n].value]
    if len(usable) < MIN_DAYS:
        return []
    days = [days[n] for n in usable]
    series = [np.array([arm[n].value for n in usable], dtype=np.float64) for arm in levels]
    breaks = find(series[0], series[1], np.random.default_rng(0))
    return [_incident(key, value, days, cells, one, settings, estimand) for one in breaks]


def _incident(
    key: str,
    value: str,
    days: Sequence[str],
    cells: Mapping[str, Cubes],
    found: Break,
    settings: Settings,
    estimand: str,
) -> Incident:
    first, after = found.start, found.end
    phases = (("before", days[:first]), ("during", days[first:after]), ("after", days[after:]))
    wanted = [(measure, "secondary") for measure in SHOWN]
    rows: list[tuple[str, tuple[Row, ...]]] = []
    for name, some in phases:
        cubes = estimate.pooled([cells[day] for day in some], [measure.metric for measure in SHOWN])
        rows.append((name, tuple(rows_of(cubes, wanted, settings, estimand))))
    metrics = dict.fromkeys(measure for measure in SHOWN if any(measure.metric in cells[day] for day in days))
    drawn = tuple(_series(cells, days, measure) for measure in list(metrics)[:3])
    return Incident(key, value, days[first], days[after - 1], _is_contested(rows), tuple(rows), drawn)


def _is_contested(phases: Sequence[tuple[str, tuple[Row, ...]]]) -> bool:
    """Whether the control arm itself got worse, as where both arms share a full link."""
    before, during = ({row.measure: row for row in rows} for _, rows in phases[:2])
    for measure, row in during.items():
        was = before[measure].control if measure in before else None
        if row.control and was and row.better == "higher" and row.control < (1 - CONTESTED) * was:
            return True
    return False


def series_of(cells: Mapping[Key, Cubes], keys: Sequence[tuple[str, Key]], measure: Measure) -> Series:
    """Both arms of a measure over time."""
    arms = [
        tuple(estimate.level_of(cells[key].get(measure.metric), arm, measure, at) for at, key in keys)
        for arm in (0, 1)
    ]
    return Series(measure, measures.title(measure.metric), measures.unit(measure.metric), arms[0], arms[1])


def _series(cells: Mapping[str, Cubes], days: Sequence[str], measure: Measure) -> Series:
    return series_of({(day,): cells[day] for day in days}, [(day, (day,)) for day in days], measure)


def interference(
    days: Reduced | None, shares: Mapping[str, float], facts: Facts, settings: Settings
) -> Interference | None:
    """The control arm's level at each share of treated traffic."""
    primary = settings.primary
    if days is None or primary is None:
        return None
    steps: dict[float, list[Cubes]] = {}
    for (day,), cubes in sorted(days.cells.items()):
        if primary.metric in cubes and day in shares:
            steps.setdefault(round(shares[day], 2), []).append(cubes)
    found = tuple(_step(share, steps[share], primary, settings) for share in sorted(steps))
    if not found:
        return None
    moved, sentence, spill_over = False, _constant(found[0], facts), None
    if len(found) > 1:
        moved, sentence, spill_over = _moved(days, shares, primary)
    return Interference(
        primary,
        measures.title(primary.metric),
        measures.unit(primary.metric),
        found,
        sentence,
        moved,
        spill_over,
    )


def _moved(days: Reduced, shares: Mapping[str, float], primary: Measure) -> tuple[bool, str, Effect | None]:
    """Whether the control arm moves with the share from day to day, and the sentence about it."""
    known = [
        (shares[day], estimate.level_of(cubes.get(primary.metric), 0, primary, day).value)
        for (day,), cubes in sorted(days.cells.items())
        if day in shares
    ]
    steps = [(share, value) for share, value in known if value]
    if _is_ramp([share for share, _ in steps]):
        return False, RAMP, None
    test = control_level(
        ["everywhere"] * len(steps),
        np.array([share for share, _ in steps]),
        np.array([value for _, value in steps]),
        np.random.default_rng(0),
    )
    return test.contested, test.sentence, test.spill_over if isinstance(test.spill_over, Effect) else None


def _is_ramp(shares: Sequence[float]) -> bool:
    """Whether the share only rises, or only falls, from day to day."""
    return any(all(a <= b for a, b in pairwise(of)) for of in (shares, shares[::-1]))


def _step(share: float, cubes: Sequence[Cubes], primary: Measure, settings: Settings) -> Allocation:
    name = ab_at_share(share)
    pool = estimate.pooled(cubes, [primary.metric])
    rows = rows_of(pool, [(primary, "primary")], settings, name) if share not in (0.0, 1.0) else []
    control = estimate.level_of(pool.get(primary.metric), 0, primary, f"{share:.2f}")
    return Allocation(share, len(cubes), control, rows[0].effect if rows else None)


def _constant(step: Allocation, facts: Facts) -> str:
    """What one share cannot show."""
    return (
        f"The share of treated traffic was {100 * step.share:g} % on every day. So these records cannot show "
        f"whether {facts.names[1]} takes bandwidth from {facts.names[0]}: every effect here is "
        "the difference between the arms at that share, not what a switch of all traffic would bring. Steps "
        "of the share, a switchback or paired links can show it."
    )
