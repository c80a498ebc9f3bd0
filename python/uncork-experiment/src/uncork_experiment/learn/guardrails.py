"""Guardrails of networks, ASes, countries and everybody, by bounds that allow looks at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork_experiment import guard
from uncork_experiment.cubes import Cube
from uncork_experiment.learn.decisions import Texts
from uncork_experiment.learn.evidence import Counts, Section
from uncork_experiment.learn.lift import Hierarchy, distribution, ratio, recent, with_enough_buckets
from uncork_experiment.learn.settings import PRIMARY, Settings
from uncork_experiment.learn.trim import trimmed
from uncork_experiment.metrics import METRICS
from uncork_experiment.result import Guarded, Limit, Measure
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
DECIDED = ("holds", "broken")


@dataclass(frozen=True)
class Guardrails:
    """What holds for the entries themselves, and for networks that cannot tell by themselves."""

    entries: Found
    """Of a wide entry, by all of its networks: for networks that were not seen yet."""
    undecided: Found
    """Of wide entries, by those of its networks that have no verdict of their own: for these."""

    def of(self, name: str) -> tuple[Watched, ...]:
        """All of an entry."""
        return self.entries.get(name, ())


def of_section(section: Section, settings: Settings, tree: Hierarchy) -> Guardrails:
    """The guardrails of the entries that have data in enough buckets. One that is broken in any window is
    broken; otherwise the first window counts.

    Networks that are known to break or to hold a guardrail count no more for others: the harm of some holds
    nobody back who is known to be without, and whoever makes a network look bad makes it look bad alone.
    """
    windows = [_of_days(section, settings, tree, days) for days in settings.recent]
    return Guardrails(
        _worst([window.entries for window in windows]), _worst([window.undecided for window in windows])
    )


def _worst(windows: Sequence[Found]) -> Found:
    found: Found = {}
    for key in sorted({key for window in windows for key in window}):
        by_measure: dict[str, Watched] = {}
        for window in windows:
            for one in window.get(key, ()):
                if by_measure.setdefault(one.measure, one).state != "broken" and one.state == "broken":
                    by_measure[one.measure] = one
        found[key] = tuple(by_measure.values())
    return found


def _of_days(section: Section, settings: Settings, tree: Hierarchy, days: int) -> Guardrails:
    primary = PRIMARY[section.of_class]
    limits = (Limit(primary, relative=settings.harm), *settings.limits())
    judged = Judged(guardrails=limits)
    measures = {limit.measure.metric: limit.measure for limit in limits}
    counts = {name: section.metrics.get(name) for name in measures}
    some = {name: recent(of, settings, days) for name, of in counts.items() if of is not None}
    networks = np.arange(len(tree.networks), dtype=np.int64)
    levels = (
        (tree.system, tree.systems),
        (tree.country[tree.system], tree.countries),
        (np.zeros(len(networks), dtype=np.int64), ("*",)),
    )

    def watched(group: Ints, names: Sequence[str] | Texts, of: dict[str, Counts]) -> Found:
        found: Found = {}
        for at, cubes in _cubes(of, group).items():
            states = guard.states(cubes, judged, "A/B")
            told = tuple(one for state in states if (one := _watched(state, days)) is not None)
            if told and names[at] and not names[at].startswith("?"):
                found[names[at]] = told
        return found

    entries = watched(networks, tree.networks, some)
    index = {name: at for at, name in enumerate(tree.networks) if name in entries}
    open_ = {name: _undecided(rows, measures[name], entries, index) for name, rows in some.items()}
    undecided: Found = {}
    for group, names in levels:
        for of, into in ((some, entries), (open_, undecided)):
            kept = {name: _without_ends(rows, group, measures[name]) for name, rows in of.items()}
            into.update(watched(group, names, kept))
    return Guardrails(entries, undecided)


def _undecided(rows: Counts, measure: Measure, known: Found, index: Mapping[str, int]) -> Counts:
    """The rows of networks that have no verdict of their own about this measure."""
    decided = [
        index[name]
        for name, watched in known.items()
        if any(one.measure == str(measure) and one.state in DECIDED for one in watched)
    ]
    return rows.where(~np.isin(rows.network, np.array(decided, dtype=np.int64)))


def _without_ends(rows: Counts, group: Ints, measure: Measure) -> Counts:
    return rows.where(trimmed(rows, group[rows.network], measure, rows.n))


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
