"""From lifts to arms: which entries are switched on or off, and why the others stay.

An entry is a network, an AS, a country or everybody (`*`); the narrowest one of a client counts. ASes and
wider ones are for networks of which nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri

from uncork_experiment.learn.confirm import Blocks, Gate, Key, Systems, Trial, Trials, gates
from uncork_experiment.learn.decisions import (
    ABSENT,
    NAMES,
    Bools,
    Decisions,
    Floats,
    Ints,
    Texts,
    places,
)
from uncork_experiment.learn.evidence import Section
from uncork_experiment.learn.guardrails import Found, Guardrails
from uncork_experiment.learn.harm import LEAST, Margins
from uncork_experiment.learn.lift import Lifts
from uncork_experiment.learn.mixture import Belief, beliefs
from uncork_experiment.learn.proof import log_evidence_of_gain
from uncork_experiment.learn.settings import Overrides, Settings

EVERYBODY = "*"
LEVELS = ("network", "AS", "country", "everybody")
TWIN = "twin"
"""In place of a level: what a calibrated twin expects of the AS (`plan --prior`)."""
ROUNDING = 1e-9
"""Of a sum of shares: all of them may be a little more than 1."""
LEAST_GAIN = 1e-6
"""For those that are on and expected to gain nothing."""
AT_RISK = "too much traffic may be harmed"
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


@dataclass(frozen=True)
class Before:
    """Of the version in force: what each entry of each section has."""

    entries: Mapping[str, tuple[Texts, Texts, Ints]]
    """Keys, arms and days of the last change, by section."""

    @staticmethod
    def of(decisions: Decisions) -> Before:
        """What a version decided."""
        return Before.columns(decisions.section, decisions.key, decisions.arm, decisions.since)

    @staticmethod
    def read(file: Path) -> Before:
        """What the decisions in this file were."""
        return Before.columns(*Decisions.columns(file, "section", "key", "arm", "since"))

    @staticmethod
    def columns(section: Texts, key: Texts, arm: Texts, since: Ints) -> Before:
        found = {}
        for name in sorted(set(section.tolist())):
            rows = section == name
            found[name] = key[rows], arm[rows], since[rows]
        return Before(found)

    def arms(self, decisions: Decisions, settings: Settings) -> Texts:
        """What each entry had; the control arm if it was not there."""
        found = np.full(len(decisions), settings.control, dtype=np.object_)
        for section, (keys, arms, _) in self.entries.items():
            rows = np.flatnonzero(decisions.section == section)
            found[rows] = np.append(arms, settings.control)[places(decisions.key[rows], keys)]
        return found

    @staticmethod
    def states(states: Mapping[tuple[str, str], State]) -> Before:
        """These, by section and key."""
        found = {}
        for name in {section for section, _ in states}:
            own = {key: state for (section, key), state in states.items() if section == name}
            found[name] = (
                np.array(list(own), dtype=np.object_),
                np.array([state.arm for state in own.values()], dtype=np.object_),
                np.array([state.since for state in own.values()], dtype=np.int64),
            )
        return Before(found)


@dataclass(frozen=True)
class _Entries:
    """The entries of one section, from the widest to the narrowest."""

    key: Texts
    level: Texts
    above: Ints
    """Where the next wider entry is."""
    bounds: tuple[int, ...]
    """Where each level begins, and the end: everybody, countries, ASes, networks, others that are pinned."""

    def nearest(self, own: Ints) -> Ints:
        """Of each entry its own value, or that of the next wider one that has any: `ABSENT` is none."""
        found = own.copy()
        for low, high in zip(self.bounds[1:-1], self.bounds[2:], strict=True):
            inherited = found[self.above[low:high]]
            found[low:high] = np.where(own[low:high] == ABSENT, inherited, own[low:high])
        return found

    def at(self, keys: Sequence[str]) -> Ints:
        """Where these entries are; those that are nowhere are left out."""
        found = places(_keys(keys), self.key)
        return np.asarray(found[found != ABSENT])

    def marked(self, keys: Sequence[str]) -> Ints:
        """Of each entry, where the nearest of these is."""
        own = np.full(len(self.key), ABSENT, dtype=np.int64)
        at = self.at(keys)
        own[at] = at
        return self.nearest(own)


@dataclass(frozen=True)
class _Wishes:
    """Entries, what they have, and what they are to have: all arrays have the shape (entries,)."""

    now: Decisions
    arm: Texts
    reason: Texts
    is_forced: Bools
    """At once: by a guardrail, a person or a switchback."""
    wants: Bools
    """What the evidence wants to have the treated arm, whenever it may change."""


def decide(
    views: Sequence[View], settings: Settings, overrides: Overrides, before: Before, allowance: float
) -> Decisions:
    """All entries of all sections. `allowance` is the share of the traffic that may change."""
    return decide_with_trials(views, settings, overrides, before, allowance, {}, {})[0]


def decide_with_trials(
    views: Sequence[View],
    settings: Settings,
    overrides: Overrides,
    before: Before,
    allowance: float,
    trials: Trials,
    blocks: Mapping[Key, Blocks],
) -> tuple[Decisions, Trials]:
    """All entries, and the trials of ASes from now on."""
    total = sum(int(view.section.bytes.sum()) for view in views) or 1
    needed = math.log(len(views) / (1 - settings.sure)) if views else 0.0
    kept: dict[Key, Trial] = {}

    def wish(view: View) -> _Wishes:
        is_beyond_chance = log_evidence_of_gain(view.lifts) >= needed
        entries = _entries(view, overrides)
        now = _now(view, entries, settings, before, total)
        found = _wish(now, entries, view, settings, overrides, is_beyond_chance)
        tree = view.lifts.hierarchy
        low, high = entries.bounds[3:5]
        systems = Systems(
            view.section.name,
            tree.systems,
            tree.system,
            now.share[low:high],
            now.arm[low:high] == settings.treated,
            found.wants[low:high],
            np.abs(now.lift[low:high]) * now.share[low:high],
        )
        for gate in gates(systems, trials, blocks, settings):
            _pass(gate, found, entries, str(tree.systems[gate.system]), settings)
            if gate.trial is not None:
                kept[view.section.name, str(tree.systems[gate.system])] = gate.trial
        return found

    return _limited([wish(view) for view in views], settings, allowance), kept


def _pass(gate: Gate, wish: _Wishes, entries: _Entries, name: str, settings: Settings) -> None:
    """Lets through what a switchback has confirmed, or what it needs. What a guardrail or a person forces
    stays.
    """
    if gate.arm_on is None:
        return
    control, treated = settings.control, settings.treated
    rows = entries.bounds[3] + gate.members
    rows, arm_on = rows[~wish.is_forced[rows]], gate.arm_on[~wish.is_forced[rows]]
    changes = wish.wants[rows] | (wish.now.arm[rows] == treated)
    held = rows[changes & ~arm_on]
    wish.arm[held], wish.reason[held] = control, gate.reason
    if gate.trial is not None:
        on = rows[arm_on]
        wish.arm[on], wish.reason[on] = treated, gate.reason
        wish.is_forced[rows] = True
    # Networks of it that were not seen yet wait for the verdict.
    entry = entries.at([name])
    entry = entry[~wish.is_forced[entry] & (wish.arm[entry] == treated)]
    wish.arm[entry], wish.reason[entry] = control, gate.reason


def _entries(view: View, overrides: Overrides) -> _Entries:
    tree = view.lifts.hierarchy
    countries = np.array([name for name in tree.countries if name], dtype=np.object_)
    systems = np.array([name for name in tree.systems if not name.startswith("?")], dtype=np.object_)
    # Where the entry of each country and AS is; of unknown ones the next wider.
    is_country = np.array([bool(name) for name in tree.countries], dtype=np.bool_)
    country_at = np.where(is_country, np.cumsum(is_country), 0)
    is_system = _known(tree.systems)
    above_system = country_at[tree.country]
    system_at = np.where(is_system, len(countries) + np.cumsum(is_system), above_system)
    key = np.concatenate([[EVERYBODY], countries, systems, np.asarray(tree.networks, dtype=np.object_)])
    others = sorted(set(overrides.pins) - set(key[places(_keys(overrides.pins), key)]))
    sizes = (1, len(countries), len(systems), len(tree.networks), len(others))
    level = np.repeat(np.array([*LEVELS[::-1], ""], dtype=np.object_), sizes)
    above = np.concatenate(
        [np.zeros(1 + len(countries)), above_system[is_system], system_at[tree.system], np.zeros(len(others))]
    )
    if others:
        level[-len(others) :] = [level_of(name) for name in others]
    return _Entries(
        np.concatenate([key, _keys(others)]), level, above.astype(np.int64), (0, *np.cumsum(sizes).tolist())
    )


def _keys(names: Sequence[str] | Mapping[str, str]) -> Texts:
    return np.array(list(names), dtype=np.object_)


def _now(view: View, entries: _Entries, settings: Settings, before: Before, total: int) -> Decisions:
    """Each entry as it is in force, with what is known of it today."""
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
    limit, harm, harm_sd, p_kept = _least_kept(view.margins, len(mean), others)
    arm, since = _in_force(section.name, entries, before, settings)
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
    prior[networks], prior_variance[networks] = lifts.network.prior_mean, lifts.network.prior_variance
    found = Belief.normal(mean, variance, limits)
    if settings.kinds:
        unknown, network = beliefs(lifts, limits)
        system = unknown.of(_known(lifts.hierarchy.systems))
        wide, rest = slice(networks.start - len(system.mean)), slice(networks.stop, None)
        found = Belief.concat([found.of(wide), system, network, found.of(rest)])
    return found, prior, prior_variance


def _columns(lifts: Lifts, others: int) -> tuple[Floats, Floats]:
    """Means and variances of all entries. Of a wide one: of a network of which nothing else is known."""
    tree, tau2 = lifts.hierarchy, lifts.network.tau2
    known_country = np.array([bool(name) for name in tree.countries], dtype=np.bool_)
    known_system = _known(tree.systems)
    of_system = tau2 + lifts.system.tau2
    of_country = of_system + lifts.country.tau2

    def column(everybody: Floats, country: Floats, system: Floats, network: Floats) -> Floats:
        """Of those that are pinned without traffic no more is known than of everybody."""
        wide = [everybody, country[known_country], system[known_system]]
        return np.concatenate([*wide, network, np.repeat(everybody, others)])

    levels = (lifts.everybody, lifts.country, lifts.system, lifts.network)
    wider = (of_country, of_system, tau2, 0.0)
    mean = column(*(level.mean for level in levels))
    return mean, column(*(level.variance + more for level, more in zip(levels, wider, strict=True)))


def _known(systems: Sequence[str]) -> Bools:
    """Which of these are ASes, and not those of a country whose AS is not known."""
    return np.array([not name.startswith("?") for name in systems], dtype=np.bool_)


def _least_kept(margins: Sequence[Margins], count: int, others: int) -> tuple[Texts, Floats, Floats, Floats]:
    """Of each entry the limit that is least likely to be kept, the harm, its deviation, and how likely."""
    limit = np.full(count, "", dtype=np.object_)
    harm, sd, kept = np.zeros(count), np.zeros(count), np.ones(count)
    for one in margins:
        mean, variance = _columns(one.lifts, others)
        p = ndtr((mean - LEAST) / np.sqrt(variance))
        less = (p < kept) | (limit == "")
        limit[less], kept[less] = str(one.limit.measure), p[less]
        harm[less], sd[less] = mean[less] / one.scale, np.sqrt(variance[less]) / -one.scale
    return limit, harm, sd, kept


def level_of(key: str) -> str:
    """The level of an entry, by how it is written."""
    if key == EVERYBODY:
        return "everybody"
    if "." in key or ":" in key:
        return "network"
    return "AS" if key[:2] == "AS" and key[2:].isdigit() else "country"


def _weightiest(lifts: Lifts, error: Floats, prior: Collection[str]) -> Texts:
    """Of each network, the level whose evidence weighs more than what it inherits. `error`: of its own;
    `prior`: ASes that a twin knows.
    """
    tree, network = lifts.hierarchy, lifts.network
    knows = ~np.isnan(error) & (network.is_outlier | (error**2 < network.prior_variance))
    system = (lifts.system.variance < 0.5 * lifts.system.prior_variance)[tree.system]
    country = (lifts.country.variance < 0.5 * lifts.country.prior_variance)[tree.country][tree.system]
    of_twin = np.array([name in prior for name in tree.systems], dtype=np.bool_)[tree.system]
    chosen = np.select([knows, system, of_twin, country], [0, 1, 4, 2], 3)
    return np.asarray(_keys([*LEVELS, TWIN])[chosen])


def _in_force(section: str, entries: _Entries, before: Before, settings: Settings) -> tuple[Texts, Ints]:
    """What clients of each entry get by the version in force: by the entry, or the next wider one."""
    none = _keys([]), _keys([]), np.zeros(0, dtype=np.int64)
    keys, arms, since = before.entries.get(section, none)
    at = entries.nearest(places(entries.key, keys))
    # The last one is for entries that have nothing.
    arm = np.append(arms, settings.control)[at]
    # An arm that the settings no longer have is none.
    arm[(arm != settings.control) & (arm != settings.treated)] = settings.control
    return arm, np.append(since, settings.as_of - LONG_AGO)[at]


def _broken(found: Found) -> dict[str, str]:
    """The first broken guardrail of each entry."""
    broken: dict[str, str] = {}
    for name, watched in found.items():
        for one in watched:
            if one.state == "broken":
                whose = "everybody" if name == EVERYBODY else name
                broken.setdefault(name, f"guardrail broken: {one.measure} of {whose}: {one.limit}")
    return broken


def _why_broken(entries: _Entries, guardrails: Guardrails) -> Texts:
    """Of each entry the broken guardrail, or None: its own, by all of its networks, or that of a wider entry,
    by those of its networks that are not off anyhow.
    """
    own, others = _broken(guardrails.entries), _broken(guardrails.others)
    above = entries.marked(list(others))[entries.above]
    above[0] = ABSENT  # Nothing is wider than everybody.
    why = _told(entries, above, others)
    at = entries.at(list(own))
    why[at] = [own[key] for key in entries.key[at]]
    return why


def _wish(
    now: Decisions,
    entries: _Entries,
    view: View,
    settings: Settings,
    overrides: Overrides,
    is_beyond_chance: bool,
) -> _Wishes:
    """By rules of which the first one that holds counts."""
    why_broken = _why_broken(entries, view.guardrails)
    pinned_at = entries.marked(list(overrides.pins))
    is_broken, is_pinned = why_broken != None, pinned_at != ABSENT  # noqa: E711
    is_frozen = entries.marked(overrides.frozen) != ABSENT
    pins = {name: f"pinned with {name}" for name in overrides.pins}
    why_pinned = np.where(pinned_at == np.arange(len(now)), "pinned", _told(entries, pinned_at, pins))
    is_on = now.arm == settings.treated
    is_worth = (now.lift >= math.log1p(settings.worth)) & (now.p_safe >= settings.sure)
    is_kept = now.p_kept >= settings.doubt
    is_good = is_kept & np.where(is_on, now.p_gain >= settings.doubt, is_worth)
    is_free = ~is_pinned & ~is_broken & ~is_frozen
    is_spared = _spared(now, is_on, is_free & is_good, settings)
    wants_off = is_on & ~(is_good & is_spared)
    wants_on = ~is_on & is_good & is_spared & is_beyond_chance
    wants = wants_on | wants_off
    is_new = settings.as_of - now.since < settings.dwell
    control, treated = settings.control, settings.treated
    rules: list[tuple[Bools, Texts | str, Texts | str]] = [
        (is_pinned, _told(entries, pinned_at, overrides.pins), why_pinned),
        (is_broken & (now.arm != control), control, why_broken),
        (is_frozen, now.arm, "frozen"),
        (is_broken, now.arm, why_broken),
        (~wants & is_on, now.arm, "stays on"),
        (~wants & is_worth & ~is_kept, now.arm, _words("likely breaks its limit: ", now.limit)),
        (~wants & is_worth & ~is_spared, now.arm, AT_RISK),
        (~wants & is_worth, now.arm, "nobody is known to gain yet"),
        (~wants, now.arm, "not sure enough"),
        (is_new, now.arm, "changed too recently"),
        (wants_on, treated, "switched on"),
        (wants_off & ~is_spared & is_kept, control, f"switched off, {AT_RISK}"),
        (wants_off & is_kept, control, "switched off"),
        (wants_off, control, _words("switched off, likely breaks its limit: ", now.limit)),
    ]
    conditions = [holds for holds, _, _ in rules]
    arm = _first(conditions, [one for _, one, _ in rules])
    reason = _first(conditions, [one for _, _, one in rules])
    is_forced = is_pinned | (is_broken & (now.arm != control))
    return _Wishes(now, arm, reason, is_forced, is_free & ((is_on & ~wants_off) | wants_on))


def _spared(now: Decisions, is_on: Bools, may_be_on: Bools, settings: Settings) -> Bools:
    """All but those of `may_be_on` with which more traffic might be harmed than may be: first comes who is
    expected to gain most for the risk.
    """
    p_harm = 1 - now.p_safe
    risk = now.share * p_harm
    rows = np.flatnonzero(may_be_on & (risk > 0))
    gain = now.share[rows] * np.maximum(now.lift[rows], LEAST_GAIN)
    # Who has it keeps it, unless another is twice as good: one at the edge does not change to and fro.
    gain *= np.where(is_on[rows], 2, 1)
    rows = rows[np.argsort(risk[rows] / gain, kind="stable")]
    deviation = now.share[rows] ** 2 * p_harm[rows] * (1 - p_harm[rows])
    most, sigmas = settings.harmed * float(now.share.sum()), float(ndtri(settings.sure))
    expected, variance = 0.0, 0.0
    found = np.ones(len(now), dtype=np.bool_)
    for row, more, spread in zip(rows.tolist(), risk[rows].tolist(), deviation.tolist(), strict=True):
        if expected + more + sigmas * math.sqrt(variance + spread) > most:
            found[row] = False
        else:
            expected, variance = expected + more, variance + spread
    return found


def _told(entries: _Entries, at: Ints, words: Mapping[str, str]) -> Texts:
    """The words about the entry at each place; None where there is none."""
    # One more, for those that have no place.
    found = np.full(len(at) + 1, None, dtype=np.object_)
    for place in np.unique(at[at != ABSENT]).tolist():
        found[place] = words[entries.key[place]]
    return np.asarray(found[at])


def _words(before: str, names: Texts) -> Texts:
    """Words and each entry's name; those of equal names are one object."""
    found = np.full(len(names), None, dtype=np.object_)
    for name in sorted(set(names.tolist())):
        found[names == name] = f"{before}{name}"
    return found


def _first(conditions: Sequence[Bools], values: Sequence[Texts | str]) -> Texts:
    """Of each entry, the value of the first condition that holds."""
    found = np.full(len(conditions[0]), None, dtype=np.object_)
    for holds, value in reversed(list(zip(conditions, values, strict=True))):
        found[holds] = value if isinstance(value, str) else value[holds]
    return found


def _limited(wishes: list[_Wishes], settings: Settings, allowance: float) -> Decisions:
    """The wishes, as far as the traffic may change: first what is switched off, then what brings most. Takes
    them: of a million networks there is no room for copies.
    """
    if not wishes:
        return Decisions.concat([])
    arm = np.concatenate([one.arm for one in wishes])
    reason = np.concatenate([one.reason for one in wishes])
    is_forced = np.concatenate([one.is_forced for one in wishes])
    parts = [dict(vars(wishes.pop(0).now)) for _ in list(wishes)]
    now = Decisions(*(np.concatenate([part.pop(name) for part in parts]) for name in NAMES))
    free = np.flatnonzero(~is_forced & (arm != now.arm))
    worth = np.abs(now.lift[free]) * now.share[free]
    free = free[np.lexsort((-worth, arm[free] == settings.treated))]
    waits = free[_beyond(now.share[free], allowance)]
    arm[waits] = now.arm[waits]
    reason[waits] = "waits: enough traffic changes today"
    since = np.where(arm == now.arm, now.since, settings.as_of)
    return replace(now, arm=arm, reason=reason, since=since)


def _beyond(shares: Floats, allowance: float) -> list[int]:
    """Those for which nothing is left when it is their turn. The first may be larger than all that is left:
    it changes alone, as otherwise it never would.
    """
    left, found = allowance, []
    for at, share in enumerate(shares.tolist()):
        is_alone = at == 0 and allowance > 0
        if share > left + ROUNDING and not is_alone:
            found.append(at)
        else:
            left = max(left - share, 0.0)
    return found
