"""Guardrails of networks, ASes, countries and all clients, by bounds that allow looks at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from uncork.experiment import guard
from uncork.experiment.decide import guardrail_state
from uncork.experiment.result import Guarded, Limit, Measure
from uncork.experiment.rows import Settings as Judged
from uncork.learn.decisions import Texts
from uncork.learn.evidence import Counts, Section
from uncork.learn.lift import (
    SCALE,
    Hierarchy,
    by_propensity,
    distribution,
    ratio,
    recent,
    with_enough_buckets,
)
from uncork.learn.settings import PRIMARY, Settings
from uncork.learn.trim import trimmed, with_enough_networks
from uncork.measure.cubes import Cube
from uncork.measure.metrics import METRICS

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Watched:
    """A guardrail in one group of networks, in the last days."""

    measure: str
    limit: str
    state: str
    """By the interval alone, as `uncork experiment` decides before its last look: `holds`, `open`,
    `likely broken` or `broken`.
    """
    harm: float
    """How much worse, in the limit's unit; negative: better."""
    low: float
    high: float
    days: int
    """Of the window."""


WatchedByName = dict[str, tuple[Watched, ...]]
"""By entry: network, AS, country, `*`."""


@dataclass(frozen=True)
class Guardrails:
    """Guardrails of the entries themselves, and of networks with too few records of their own."""

    entries: WatchedByName
    """Of a wide entry, by all of its networks: for networks that were not seen yet."""
    others: WatchedByName
    """Of wide entries, without networks that break it by themselves: for the networks in them."""

    def of(self, name: str) -> tuple[Watched, ...]:
        """All of an entry."""
        return self.entries.get(name, ())


def of_section(section: Section, settings: Settings, tree: Hierarchy) -> Guardrails:
    """The guardrails of the entries that have data in enough buckets. One that is broken in any window is
    broken; otherwise the first window counts.

    A network that breaks a guardrail by itself is off. It no longer counts for networks of other ASes, nor in
    an AS that is too small to detect outliers. An AS that breaks a guardrail no longer counts for its country
    and for all clients, nor does such a country. So the harm of some does not hold back the others, and an
    attack on one network affects that network alone.
    """
    limits = (Limit(PRIMARY[section.of_class], relative=settings.harm), *settings.limits())
    windows = [_Window(days, Judged(guardrails=limits), section, settings) for days in settings.recent]
    networks = np.arange(len(tree.networks), dtype=np.int64)
    levels = (
        (tree.system, tree.systems),
        (tree.country[tree.system], tree.countries),
        (np.zeros(len(networks), dtype=np.int64), ("*",)),
    )
    watched = [window.watch_networks(networks, tree.networks) for window in windows]
    _leave_out(windows, networks, tree.networks, watched, settings)
    # From narrow to wide: who is off by a narrower entry counts no more.
    for group, names in levels:
        watched = [window.watch(group, names, is_system=group is tree.system) for window in windows]
        _leave_out(windows, group, names, watched, settings)
    return Guardrails(
        _worst([window.entries for window in windows]), _worst([window.others for window in windows])
    )


def _leave_out(
    windows: Sequence[_Window],
    group: Ints,
    names: Sequence[str] | Texts,
    watched: Sequence[WatchedByName],
    settings: Settings,
) -> None:
    """Who breaks a guardrail in one window counts no more in any."""
    for window, own in zip(windows, watched, strict=True):
        window.leave_out(group, names, watched if settings.off_in_all else (own,))


def _worst(windows: Sequence[WatchedByName]) -> WatchedByName:
    found: WatchedByName = {}
    for key in sorted({key for window in windows for key in window}):
        by_measure: dict[str, Watched] = {}
        for window in windows:
            for one in window.get(key, ()):
                if by_measure.setdefault(one.measure, one).state != "broken" and one.state == "broken":
                    by_measure[one.measure] = one
        found[key] = tuple(by_measure.values())
    return found


class _Window:
    """The last days: what is found in them, level by level."""

    def __init__(self, days: int, judged: Judged, section: Section, settings: Settings) -> None:
        self.days = days
        self.judged = judged
        self.measures = {limit.measure.metric: limit.measure for limit in judged.guardrails}
        counts = {name: section.metrics.get(name) for name in self.measures}
        some = {name: recent(of, settings, days) for name, of in counts.items() if of is not None}
        self.rows = {name: _as_dealt(of) for name, of in some.items()} if settings.as_dealt else some
        self.counts_still = {name: np.ones(len(of.n), dtype=np.bool_) for name, of in self.rows.items()}
        """Which rows are of networks that no entry is off for."""
        self.entries: WatchedByName = {}
        self.others: WatchedByName = {}

    def watch_networks(self, group: Ints, names: Sequence[str] | Texts) -> WatchedByName:
        """Each network by itself."""
        self.entries = self._watched(group, names, self.rows)
        return self.entries

    def watch(self, group: Ints, names: Sequence[str] | Texts, *, is_system: bool) -> WatchedByName:
        """Wide entries by all of their networks, and without the networks that are off."""
        all_of, without = {}, {}
        for name, rows in self.rows.items():
            measure, is_in = self.measures[name], self.counts_still[name]
            if is_system:
                is_in = is_in | with_enough_networks(group[rows.network], rows.network)
            all_of[name] = _without_ends(rows, group, measure)
            without[name] = _without_ends(rows.where(is_in), group, measure)
        self.entries |= self._watched(group, names, all_of)
        watched = self._watched(group, names, without)
        self.others |= watched
        return watched

    def leave_out(self, group: Ints, names: Sequence[str] | Texts, watched: Sequence[WatchedByName]) -> None:
        """The networks of entries that break a guardrail: they count no more for wider ones."""
        known = {name for found in watched for name in found}
        places = {name: at for at, name in enumerate(names) if name in known}
        for name, rows in self.rows.items():
            broken = [_broken(self.measures[name], found, places) for found in watched]
            self.counts_still[name] &= ~np.isin(group[rows.network], np.concatenate(broken))

    def _watched(self, group: Ints, names: Sequence[str] | Texts, of: dict[str, Counts]) -> WatchedByName:
        found: WatchedByName = {}
        for at, cubes in _cubes(of, group).items():
            states = guard.states(cubes, self.judged, "A/B")
            own = tuple(one for state in states if (one := self._judge(state)) is not None)
            if own and names[at] and not names[at].startswith("?"):
                found[names[at]] = own
        return found

    def _judge(self, one: Guarded) -> Watched | None:
        if one.harm is None or one.harm_low is None or one.harm_high is None:
            return None
        state = guardrail_state(guard.guardrail(one), None, is_final=False, level=self.judged.level, tests=1)
        return Watched(
            str(one.row.measure), one.limit, state, one.harm, one.harm_low, one.harm_high, self.days
        )


def _as_dealt(rows: Counts) -> Counts:
    """By inverse propensity, if that changed: a bad day must not be that of the arm that grew on it."""
    if all(len(np.unique(rows.propensity[rows.arm == arm])) < 2 for arm in (0, 1)):
        return rows
    factor = by_propensity(rows, np.ones(len(rows.arm), dtype=np.int64))
    weighted = {
        name: np.asarray(np.rint(getattr(rows, name) * factor * SCALE), dtype=np.int64)
        for name in ("n", "numerator", "denominator")
    }
    return replace(rows, **weighted)


def _broken(measure: Measure, known: WatchedByName, index: Mapping[str, int]) -> Ints:
    """The entries that break this."""
    broken = [
        index[name]
        for name, watched in known.items()
        if any(one.measure == str(measure) and one.state == "broken" for one in watched)
    ]
    return np.array(broken, dtype=np.int64)


def _without_ends(rows: Counts, group: Ints, measure: Measure) -> Counts:
    return rows.where(trimmed(rows, group[rows.network], measure, rows.amount))


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
