"""The entries of a section: the arm of each by the active version, and today's evidence.

An entry is a network, an AS, a country or all clients (`*`); the narrowest one of a client counts. ASes and
wider entries are for networks without evidence.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from uncork.experiment.result import Finding
from uncork.learn import networks
from uncork.learn.confirm import are_tried
from uncork.learn.decisions import ABSENT, Bools, Decisions, Floats, Ints, Texts, places
from uncork.learn.evidence import Section
from uncork.learn.guardrails import Guardrails
from uncork.learn.harm import AT_LIMIT, Margins
from uncork.learn.lift import Lifts
from uncork.learn.mixture import Belief, Beliefs, beliefs
from uncork.learn.sample_ratio import Ratio
from uncork.learn.settings import Overrides, Settings

ALL_CLIENTS = "*"
LEVELS = ("network", "AS", "country", "all clients")
REGION = "region"
"""In place of an AS: a name that the operator gave (`plan --networks`)."""
TWIN = "twin"
"""In place of a level: what a calibrated twin expects of the AS (`plan --prior`)."""
LONG_AGO = 10_000
"""Days: no dwell holds so long."""


@dataclass(frozen=True)
class State:
    """What an entry has, and since which day it did not change."""

    arm: str
    since: int


@dataclass(frozen=True)
class View:
    """One section with its lifts."""

    section: Section
    lifts: Lifts
    guardrails: Guardrails
    margins: tuple[Margins, ...] = ()
    ratio: Ratio | None = None
    findings: tuple[Finding, ...] = ()
    """Of the records (checks.py)."""
    unlike: tuple[str, ...] = ()
    """Networks and ASes with clients that are not as dealt."""
    arm: str = ""
    """The treated arm; empty: the only one."""

    @property
    def is_mismatch(self) -> bool:
        """Whether an arm has lost clients, so that its lifts may be those of others than were dealt."""
        return self.ratio is not None and self.ratio.is_mismatch


@dataclass(frozen=True)
class PreviousArms:
    """The active version: the arm of each entry of each section."""

    entries: Mapping[str, tuple[Texts, Texts, Ints]]
    """Keys, arms and days of the last change, by section."""
    tried: Mapping[str, Texts] = field(default_factory=dict)
    """Keys of the entries that a switchback tries, by section."""

    @staticmethod
    def from_decisions(decisions: Decisions) -> PreviousArms:
        """What a version decided."""
        return PreviousArms.columns(
            decisions.section, decisions.key, decisions.arm, decisions.since, decisions.reason
        )

    @staticmethod
    def load(file: Path) -> PreviousArms:
        """What the decisions in this file were."""
        return PreviousArms.columns(*Decisions.columns(file, "section", "key", "arm", "since", "reason"))

    @staticmethod
    def columns(section: Texts, key: Texts, arm: Texts, since: Ints, reason: Texts) -> PreviousArms:
        found, tried = {}, {}
        is_tried = are_tried(reason)
        for name in sorted(set(section.tolist())):
            rows = section == name
            found[name] = key[rows], arm[rows], since[rows]
            tried[name] = key[rows & is_tried]
        return PreviousArms(found, tried)

    def arms(self, decisions: Decisions, settings: Settings) -> Texts:
        """What each entry had; the control arm if it was not there."""
        found = np.full(len(decisions), settings.control, dtype=np.object_)
        for section, (keys, arms, _) in self.entries.items():
            rows = np.flatnonzero(decisions.section == section)
            found[rows] = np.append(arms, settings.control)[places(decisions.key[rows], keys)]
        return found

    @staticmethod
    def states(states: Mapping[tuple[str, str], State]) -> PreviousArms:
        """These, by section and key."""
        found = {}
        for name in {section for section, _ in states}:
            own = {key: state for (section, key), state in states.items() if section == name}
            found[name] = (
                np.array(list(own), dtype=np.object_),
                np.array([state.arm for state in own.values()], dtype=np.object_),
                np.array([state.since for state in own.values()], dtype=np.int64),
            )
        return PreviousArms(found)


@dataclass(frozen=True)
class Entries:
    """The entries of one section, from the widest to the narrowest."""

    key: Texts
    level: Texts
    above: Ints
    """Where the next wider entry is."""
    bounds: tuple[int, ...]
    """Where each level begins, and the end: all clients, countries, ASes, networks, other pinned ones."""

    def nearest(self, own: Ints) -> Ints:
        """Of each entry its own value, or that of the next wider one that has any: `ABSENT` is none."""
        found = own.copy()
        for low, high in zip(self.bounds[1:-1], self.bounds[2:], strict=True):
            inherited = found[self.above[low:high]]
            found[low:high] = np.where(own[low:high] == ABSENT, inherited, own[low:high])
        return found

    def at(self, keys: Sequence[str]) -> Ints:
        """Indices of these entries. Absent entries are left out."""
        found = places(_keys(keys), self.key)
        return np.asarray(found[found != ABSENT])

    def marked(self, keys: Sequence[str], *, inside: bool = False) -> Ints:
        """Of each entry, where the nearest of these is. `inside`: also the narrowest network around it."""
        own = np.full(len(self.key), ABSENT, dtype=np.int64)
        at = self.at(keys)
        if inside:
            self._mark_inside(own, at)
        own[at] = at
        return self.nearest(own)

    def _mark_inside(self, own: Ints, at: Ints) -> None:
        """Of each network, the narrowest of these networks that it lies in."""
        around = [(networks.parse(self.key[one]), one) for one in at if level_of(self.key[one]) == "network"]
        if not around:
            return
        low = self.bounds[3]
        columns = networks.parse_all(pa.array(self.key[low:], pa.string()))
        for network, one in sorted(around, key=lambda of: of[0].prefixlen):
            own[low:][columns.within(network)] = one


def entries_of(view: View, overrides: Overrides, *, inside: bool = True) -> Entries:
    """The entries of a section, the pinned ones, and frozen networks (`Settings.inside`)."""
    frozen = [name for name in overrides.frozen if inside and level_of(name) == "network"]
    tree = view.lifts.hierarchy
    countries = np.array([name for name in tree.countries if name], dtype=np.object_)
    systems = np.array([name for name in tree.systems if not name.startswith("?")], dtype=np.object_)
    # Where the entry of each country and AS is; of unknown ones the next wider.
    is_country = np.array([bool(name) for name in tree.countries], dtype=np.bool_)
    country_at = np.where(is_country, np.cumsum(is_country), 0)
    is_system = _known(tree.systems)
    above_system = country_at[tree.country]
    system_at = np.where(is_system, len(countries) + np.cumsum(is_system), above_system)
    key = np.concatenate([[ALL_CLIENTS], countries, systems, np.asarray(tree.networks, dtype=np.object_)])
    named = sorted({*overrides.pins, *frozen})
    others = sorted(set(named) - set(key[places(_keys(named), key)]))
    sizes = (1, len(countries), len(systems), len(tree.networks), len(others))
    level = np.repeat(np.array([*LEVELS[::-1], ""], dtype=np.object_), sizes)
    level[1 + len(countries) : 1 + len(countries) + len(systems)] = [level_of(name) for name in systems]
    above = np.concatenate(
        [np.zeros(1 + len(countries)), above_system[is_system], system_at[tree.system], np.zeros(len(others))]
    )
    if others:
        level[-len(others) :] = [level_of(name) for name in others]
    return Entries(
        np.concatenate([key, _keys(others)]), level, above.astype(np.int64), (0, *np.cumsum(sizes).tolist())
    )


def _keys(names: Sequence[str] | Mapping[str, str]) -> Texts:
    return np.array(list(names), dtype=np.object_)


@dataclass(frozen=True)
class MarginColumns:
    """The margins of one limit: arrays have the shape (entries,)."""

    measure: str
    scale: float
    mean: Floats
    variance: Floats


def margin_columns(view: View, entries: Entries, settings: Settings) -> list[MarginColumns]:
    """Of each limit that the evidence has a measure of."""
    others = entries.bounds[-1] - entries.bounds[-2]

    def columns(lifts: Lifts) -> tuple[Floats, Floats]:
        if not settings.kinds_of_harm:
            return _columns(lifts, others)
        belief = _every(beliefs(lifts, ()), lifts, others)
        return belief.mean, belief.sd**2

    return [MarginColumns(str(one.limit.measure), one.scale, *columns(one.lifts)) for one in view.margins]


def known_today(
    view: View,
    entries: Entries,
    settings: Settings,
    before: PreviousArms,
    total: int,
    margins: Sequence[MarginColumns],
) -> Decisions:
    """Each entry with its active arm and today's evidence."""
    section, lifts = view.section, view.lifts
    others = entries.bounds[-1] - entries.bounds[-2]
    belief, prior, prior_variance = _beliefs(lifts, others, settings)
    mean = belief.mean
    low, high = entries.bounds[3:5]
    raw, raw_error = np.full((2, len(mean)), np.nan)
    at = np.fromiter(lifts.raw, dtype=np.int64, count=len(lifts.raw))
    raw[low + at] = [one.lift for one in lifts.raw.values()]
    raw_error[low + at] = [one.error for one in lifts.raw.values()]
    share = np.zeros(len(mean))
    share[low:high] = section.bytes / total
    arms = np.zeros((len(mean), 2), dtype=np.int64)
    arms[low:high] = section.arms
    by = np.concatenate(
        [
            entries.level[:low],
            _weightiest(lifts, raw_error[low:high], settings.prior_of(section.of_class)),
            np.repeat(LEVELS[3:], others),
        ]
    )
    limit, harm, harm_sd, p_kept = _weakest(margins, len(mean))
    arm, since = _active_arms(section.name, entries, before, settings)
    parent = entries.key[entries.above]
    parent[0] = ""
    return Decisions(
        section=np.full(len(mean), section.name, dtype=np.object_),
        level=entries.level,
        key=entries.key,
        arm=arm,
        since=since,
        reason=np.full(len(mean), "", dtype=np.object_),
        share=share,
        control=arms[:, 0],
        treated=arms[:, 1],
        raw=raw,
        raw_error=raw_error,
        prior=prior,
        prior_sd=np.sqrt(prior_variance),
        lift=mean,
        sd=belief.sd,
        p_gain=belief.above[0],
        p_safe=belief.above[1],
        by=by.astype(np.object_),
        parent=parent,
        limit=limit,
        harm=harm,
        harm_sd=harm_sd,
        p_kept=p_kept,
        about=np.full(len(mean), view.arm, dtype=np.object_),
    )


def _beliefs(lifts: Lifts, others: int, settings: Settings) -> tuple[Belief, Floats, Floats]:
    """Of all entries what is believed, with the probabilities of any gain and of no harm; and mean and
    variance before their own evidence.
    """
    limits = 0.0, math.log1p(-settings.tolerated)
    mean, variance = _columns(lifts, others)
    high = len(mean) - others
    networks = slice(high - len(lifts.network.mean), high)
    prior, prior_variance = mean.copy(), variance.copy()
    if not settings.kinds:
        prior[networks], prior_variance[networks] = lifts.network.prior_mean, lifts.network.prior_variance
        return Belief.normal(mean, variance, limits), prior, prior_variance
    found = beliefs(lifts, limits)
    prior[networks], prior_variance[networks] = found.prior_mean, found.prior_variance
    return _every(found, lifts, others).widened(lifts.widening), prior, prior_variance


def _every(found: Beliefs, lifts: Lifts, others: int) -> Belief:
    """Of all entries. Those pinned without traffic are like a network without other evidence."""
    country = found.country.of(np.array([bool(name) for name in lifts.hierarchy.countries], dtype=np.bool_))
    system = found.system.of(_known(lifts.hierarchy.systems))
    rest = found.all_clients.of(np.zeros(others, dtype=np.int64))
    return Belief.concat([found.all_clients, country, system, found.network, rest])


def _columns(lifts: Lifts, others: int) -> tuple[Floats, Floats]:
    """Means and variances of all entries. A wide entry has those of a network without other evidence."""
    tree, tau2 = lifts.hierarchy, lifts.network.tau2
    known_country = np.array([bool(name) for name in tree.countries], dtype=np.bool_)
    known_system = _known(tree.systems)
    of_system = tau2 + lifts.system.tau2
    of_country = of_system + lifts.country.tau2

    def column(all_clients: Floats, country: Floats, system: Floats, network: Floats) -> Floats:
        """Entries pinned without traffic have the values of all clients."""
        wide = [all_clients, country[known_country], system[known_system]]
        return np.concatenate([*wide, network, np.repeat(all_clients, others)])

    levels = (lifts.all_clients, lifts.country, lifts.system, lifts.network)
    wider = (of_country, of_system, tau2, 0.0)
    mean = column(*(level.mean for level in levels))
    return mean, column(*(level.variance + more for level, more in zip(levels, wider, strict=True)))


def _known(systems: Sequence[str]) -> Bools:
    """Which of these are known ASes, and not the unknown AS of a country."""
    return np.array([not name.startswith("?") for name in systems], dtype=np.bool_)


def _weakest(margins: Sequence[MarginColumns], count: int) -> tuple[Texts, Floats, Floats, Floats]:
    """Of each entry the limit that is least likely to be kept, the harm, its deviation, and how likely."""
    limit = np.full(count, "", dtype=np.object_)
    harm, sd, kept = np.zeros(count), np.zeros(count), np.ones(count)
    for one in margins:
        mean, variance = one.mean, one.variance
        p = ndtr((mean - AT_LIMIT) / np.sqrt(variance))
        less = (p < kept) | (limit == "")
        limit[less], kept[less] = one.measure, p[less]
        harm[less], sd[less] = mean[less] / one.scale, np.sqrt(variance[less]) / -one.scale
    return limit, harm, sd, kept


def titled(key: str) -> str:
    """An entry in a sentence."""
    return "all clients" if key == ALL_CLIENTS else key


def level_of(key: str) -> str:
    """The level of an entry, by how it is written."""
    if key == ALL_CLIENTS:
        return "all clients"
    if "." in key or ":" in key:
        return "network"
    if key[:2] == "AS" and key[2:].isdigit():
        return "AS"
    return "country" if len(key) == 2 and key.isascii() and key.isupper() else REGION


def _weightiest(lifts: Lifts, error: Floats, prior: Collection[str]) -> Texts:
    """For each network, the level that outweighs what it inherits. `error`: of the network's own estimate;
    `prior`: ASes that a twin knows.
    """
    tree, network = lifts.hierarchy, lifts.network
    knows = ~np.isnan(error) & (network.is_outlier | (error**2 < network.prior_variance))
    system = (lifts.system.variance < 0.5 * lifts.system.prior_variance)[tree.system]
    country = (lifts.country.variance < 0.5 * lifts.country.prior_variance)[tree.country][tree.system]
    of_twin = np.array([name in prior for name in tree.systems], dtype=np.bool_)[tree.system]
    chosen = np.select([knows, system, of_twin, country], [0, 1, 4, 2], 3)
    of_system = _keys([level_of(name) for name in tree.systems])[tree.system]
    return np.where((chosen == 1) & (of_system == REGION), REGION, _keys([*LEVELS, TWIN])[chosen])


def _active_arms(
    section: str, entries: Entries, before: PreviousArms, settings: Settings
) -> tuple[Texts, Ints]:
    """What clients of each entry get by the active version: by the entry, or the next wider one."""
    none = _keys([]), _keys([]), np.zeros(0, dtype=np.int64)
    keys, arms, since = before.entries.get(section, none)
    at = entries.nearest(places(entries.key, keys))
    # The last one is for entries that have nothing.
    arm = np.append(arms, settings.control)[at]
    # An arm that the settings no longer have is none.
    arm[~np.isin(arm, [settings.control, *settings.candidates])] = settings.control
    return arm, np.append(since, settings.as_of - LONG_AGO)[at]
