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
from uncork_experiment.learn.trim import trimmed, with_enough_networks
from uncork_experiment.metrics import METRICS
from uncork_experiment.result import Guarded, Limit, Measure
from uncork_experiment.rows import Settings as Judged

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


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


@dataclass(frozen=True)
class Guardrails:
    """What holds for the entries themselves, and for networks that cannot tell by themselves."""

    entries: Found
    """Of a wide entry, by all of its networks: for networks that were not seen yet."""
    others: Found
    """Of wide entries, without networks that break it by themselves: for the networks in them."""

    def of(self, name: str) -> tuple[Watched, ...]:
        """All of an entry."""
        return self.entries.get(name, ())


def of_section(section: Section, settings: Settings, tree: Hierarchy) -> Guardrails:
    """The guardrails of the entries that have data in enough buckets. One that is broken in any window is
    broken; otherwise the first window counts.

    A network that breaks a guardrail by itself is off, and counts no more for networks of other ASes, nor for
    those of an AS too small to tell who is far from the others. An AS that breaks it counts no more for its
    country and for everybody, nor does such a country. So the harm of some holds nobody back who is without,
    and whoever makes a network look bad makes it look bad alone.
    """
    windows = [_of_days(section, settings, tree, days) for days in settings.recent]
    return Guardrails(
        _worst([window.entries for window in windows]), _worst([window.others for window in windows])
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
    unbroken = {name: _unbroken(rows, measures[name], entries, index) for name, rows in some.items()}
    others: Found = {}
    # From narrow to wide: who is off by a narrower entry counts no more.
    for group, names in levels:
        is_system = group is tree.system
        all_of, without = {}, {}
        for name, rows in some.items():
            measure, is_in = measures[name], unbroken[name]
            if is_system:
                is_in = is_in | with_enough_networks(group[rows.network], rows.network)
            all_of[name] = _without_ends(rows, group, measure)
            without[name] = _without_ends(rows.where(is_in), group, measure)
        entries |= watched(group, names, all_of)
        told = watched(group, names, without)
        others |= told
        places = {name: at for at, name in enumerate(names) if name in told}
        for name, rows in some.items():
            off = np.isin(group[rows.network], _broken(measures[name], told, places))
            unbroken[name] = unbroken[name] & ~off
    return Guardrails(entries, others)


def _unbroken(rows: Counts, measure: Measure, known: Found, index: Mapping[str, int]) -> Bools:
    """Which rows are of networks that do not break this by themselves."""
    return np.asarray(~np.isin(rows.network, _broken(measure, known, index)), dtype=np.bool_)


def _broken(measure: Measure, known: Found, index: Mapping[str, int]) -> Ints:
    """The entries that break this."""
    broken = [
        index[name]
        for name, watched in known.items()
        if any(one.measure == str(measure) and one.state == "broken" for one in watched)
    ]
    return np.array(broken, dtype=np.int64)


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
