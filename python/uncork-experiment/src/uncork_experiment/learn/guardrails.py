"""Guardrails of networks, ASes, countries and everybody, by bounds that allow looks at any time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork_experiment import guard
from uncork_experiment.cubes import Cube
from uncork_experiment.learn.evidence import Counts, Section
from uncork_experiment.learn.lift import Hierarchy, distribution, ratio, recent, with_enough_buckets
from uncork_experiment.learn.settings import PRIMARY, Settings
from uncork_experiment.metrics import METRICS
from uncork_experiment.result import Guarded, Limit
from uncork_experiment.rows import Settings as Judged

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Watched:
    """A guardrail in one group of networks, in the last days."""

    measure: str
    limit: str
    state: str
    """`holds`, `open` or `broken`."""
    harm: float
    """How much worse, in the limit's unit; negative: better."""
    low: float
    high: float
    days: int
    """Of the window."""


Found = dict[str, tuple[Watched, ...]]
"""By entry: network, AS, country, `*`."""


def of_section(section: Section, settings: Settings, tree: Hierarchy) -> Found:
    """The guardrails of the entries that have data in enough buckets. One that is broken in any window is
    broken; otherwise the first window counts.
    """
    windows = [_of_days(section, settings, tree, days) for days in settings.recent]
    found: Found = {}
    for key in sorted({key for window in windows for key in window}):
        by_measure: dict[str, Watched] = {}
        for window in windows:
            for one in window.get(key, ()):
                if by_measure.setdefault(one.measure, one).state != "broken" and one.state == "broken":
                    by_measure[one.measure] = one
        found[key] = tuple(by_measure.values())
    return found


def _of_days(section: Section, settings: Settings, tree: Hierarchy, days: int) -> Found:
    primary = PRIMARY[section.of_class]
    limits = (Limit(primary, relative=settings.harm), *settings.limits())
    judged = Judged(guardrails=limits)
    counts = {limit.measure.metric: section.metrics.get(limit.measure.metric) for limit in limits}
    some = {name: recent(of, settings, days) for name, of in counts.items() if of is not None}
    networks = len(tree.networks)
    levels = (
        (np.arange(networks, dtype=np.int64), tree.networks),
        (tree.system, tree.systems),
        (tree.country[tree.system], tree.countries),
        (np.zeros(networks, dtype=np.int64), ("*",)),
    )
    found: Found = {}
    for group, names in levels:
        for at, cubes in _cubes(some, group).items():
            states = guard.states(cubes, judged, "A/B")
            told = tuple(one for state in states if (one := _watched(state, days)) is not None)
            if told and names[at] and not names[at].startswith("?"):
                found[names[at]] = told
    return found


def _cubes(some: dict[str, Counts], group: Ints) -> dict[int, dict[str, Cube]]:
    """The cubes of each group that has data in enough buckets of both arms."""
    found: dict[int, dict[str, Cube]] = {}
    for name, counts in some.items():
        of = group[counts.network]
        enough = np.flatnonzero(np.isin(of, with_enough_buckets(of, counts.arm, counts.bucket)))
        order = enough[np.argsort(of[enough], kind="stable")]
        for part in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
            if not len(part):
                continue
            rows = counts.where(part)
            cube = distribution(rows) if METRICS[name].kind == "distribution" else ratio(rows)
            if cube is not None:
                found.setdefault(int(of[part[0]]), {})[name] = cube
    return dict(sorted(found.items()))


def _watched(state: Guarded, days: int) -> Watched | None:
    if state.harm is None or state.harm_low is None or state.harm_high is None:
        return None
    return Watched(
        str(state.row.measure), state.limit, state.state, state.harm, state.harm_low, state.harm_high, days
    )
