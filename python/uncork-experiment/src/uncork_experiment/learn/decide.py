"""From lifts to arms: which entries are switched on or off, and why the others stay.

An entry is a network, an AS, a country or everybody (`*`); the narrowest one of a client counts. ASes and
wider ones are for networks of which nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtr

from uncork_experiment.learn.evidence import Section
from uncork_experiment.learn.guardrails import Watched
from uncork_experiment.learn.lift import Estimate, Lifts
from uncork_experiment.learn.proof import log_evidence_of_gain
from uncork_experiment.learn.settings import Overrides, Settings
from uncork_experiment.learn.tree import Posterior

EVERYBODY = "*"
LEVELS = ("network", "AS", "country", "everybody")
ROUNDING = 1e-9
"""Of a sum of shares: all of them may be a little more than 1."""


@dataclass(frozen=True)
class State:
    """What an entry has, and since which day it did not change."""

    arm: str
    since: int


@dataclass(frozen=True, slots=True)
class Decision:
    """An entry of one section, and all that a person needs to check it."""

    section: str
    level: str
    key: str
    arm: str
    since: int
    """Day since 1970."""
    reason: str
    share: float
    """Of all bytes of clients, by networks."""
    control: int
    """Records of the control arm that the evidence has."""
    treated: int
    raw: float | None
    """Lift by its own evidence alone; None: too little."""
    raw_error: float | None
    prior: float
    """Lift by its parent and siblings alone."""
    prior_sd: float
    lift: float
    """Of both."""
    sd: float
    p_gain: float
    """Probability that there is any lift."""
    p_safe: float
    """Probability that the lift is not so far below zero that it would be harm."""
    by: str
    """The level whose evidence weighs most."""
    parent: str
    """The next wider entry."""


@dataclass(frozen=True)
class View:
    """One section with its lifts."""

    section: Section
    lifts: Lifts
    guardrails: Mapping[str, tuple[Watched, ...]]


Before = Mapping[tuple[str, str], State]
"""Of the version in force, by section and key."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """An entry, what it has, and what it is to have."""

    now: Decision
    arm: str
    reason: str
    is_forced: bool
    """At once: by a guardrail or a person."""


def decide(
    views: Sequence[View], settings: Settings, overrides: Overrides, before: Before, allowance: float
) -> list[Decision]:
    """All entries of all sections. `allowance` is the share of the traffic that may change."""
    total = sum(int(view.section.bytes.sum()) for view in views) or 1
    needed = math.log(len(views) / (1 - settings.sure)) if views else 0.0
    wishes: list[_Wish] = []
    for view in views:
        is_beyond_chance = log_evidence_of_gain(view.lifts) >= needed
        entries = _with_pins(_entries(view, settings, before, total), overrides)
        wishes += [_wish(now, view, settings, overrides, is_beyond_chance) for now in entries]
    return _limited(wishes, settings, allowance)


def _entries(view: View, settings: Settings, before: Before, total: int) -> list[Decision]:
    """Each entry as it is in force, with what is known of it today."""
    section, lifts = view.section, view.lifts
    tree, tau2 = lifts.hierarchy, lifts.network.tau2
    above = {"*": ""} | {country: EVERYBODY for country in tree.countries if country}
    above |= {name: country or EVERYBODY for name, country in tree.country_of.items()}
    rows: list[Decision] = []

    def add(
        level: str,
        key: str,
        parent: str,
        lift: tuple[float, float, float, float],
        by: str,
        share: float = 0.0,
        arms: tuple[int, int] = (0, 0),
        raw: Estimate | None = None,
    ) -> None:
        state = _in_force(section.name, key, parent, above, before, settings)
        mean, variance, prior, prior_variance = lift
        sd = math.sqrt(variance)
        rows.append(
            Decision(
                section=section.name,
                level=level,
                key=key,
                arm=state.arm,
                since=state.since,
                reason="",
                share=share,
                control=arms[0],
                treated=arms[1],
                raw=raw.lift if raw else None,
                raw_error=raw.error if raw else None,
                prior=prior,
                prior_sd=math.sqrt(prior_variance),
                lift=mean,
                sd=sd,
                p_gain=float(ndtr(mean / sd)),
                p_safe=float(ndtr((mean - math.log1p(-settings.tolerated)) / sd)),
                by=by,
                parent=parent,
            )
        )

    def wide(of: Posterior, at: int, extra: float) -> tuple[float, float, float, float]:
        """Of a network of which nothing else is known."""
        mean, variance = float(of.mean[at]), float(of.variance[at]) + extra
        return mean, variance, mean, variance

    of_system = tau2 + lifts.system.tau2
    add("everybody", EVERYBODY, "", wide(lifts.everybody, 0, of_system + lifts.country.tau2), "everybody")
    for at, country in enumerate(tree.countries):
        if country:
            add("country", country, EVERYBODY, wide(lifts.country, at, of_system), "country")
    for at, name in enumerate(tree.systems):
        if not name.startswith("?"):
            add("AS", name, above[name], wide(lifts.system, at, tau2), "AS")
    for at, name in enumerate(tree.networks):
        of = lifts.network
        system = tree.systems[int(tree.system[at])]
        parent = above[system] if system.startswith("?") else system
        by = _weightiest(lifts, at)
        posterior = float(of.mean[at]), float(of.variance[at])
        prior = float(of.prior_mean[at]), float(of.prior_variance[at])
        share = int(section.bytes[at]) / total
        arms = section.arms.get(name, (0, 0))
        add("network", name, parent, (*posterior, *prior), by, share, arms, lifts.raw.get(at))
    return rows


def _with_pins(rows: list[Decision], overrides: Overrides) -> list[Decision]:
    """The entries, and those that a person pinned and that had no traffic."""
    everybody = rows[0]
    there = {row.key for row in rows}
    return rows + [
        replace(everybody, level=level_of(key), key=key, parent=EVERYBODY)
        for key in sorted(overrides.pins)
        if key not in there
    ]


def level_of(key: str) -> str:
    """The level of an entry, by how it is written."""
    if key == EVERYBODY:
        return "everybody"
    if "." in key or ":" in key:
        return "network"
    return "AS" if key[:2] == "AS" and key[2:].isdigit() else "country"


def _weightiest(lifts: Lifts, at: int) -> str:
    """Whether a network's own evidence weighs more than what it inherits."""
    raw = lifts.raw.get(at)
    if raw is not None and (lifts.network.is_outlier[at] or raw.error**2 < lifts.network.prior_variance[at]):
        return "network"
    system = int(lifts.hierarchy.system[at])
    if lifts.system.variance[system] < 0.5 * lifts.system.prior_variance[system]:
        return "AS"
    country = int(lifts.hierarchy.country[system])
    if lifts.country.variance[country] < 0.5 * lifts.country.prior_variance[country]:
        return "country"
    return "everybody"


def _in_force(
    section: str, key: str, parent: str, above: Mapping[str, str], before: Before, settings: Settings
) -> State:
    """What a client of this entry gets by the version in force: by the entry, or the next wider one."""
    while key:
        if state := before.get((section, key)):
            return state
        key, parent = parent, above.get(parent, "")
    # So long ago that no dwell holds.
    return State(settings.control, settings.as_of - 10_000)


def _chain(now: Decision, view: View) -> tuple[str, ...]:
    """The entry and all wider ones."""
    chain = [now.key]
    if now.level == "network":
        chain.append(now.parent)
    chain.append(view.lifts.hierarchy.country_of.get(chain[-1], ""))
    return tuple(dict.fromkeys([*filter(None, chain), EVERYBODY]))


def _guard(chain: tuple[str, ...], view: View) -> str:
    """The broken guardrail of the entry, or of a wider one; empty if none is."""
    for name in chain:
        for one in view.guardrails.get(name, ()):
            if one.state == "broken":
                return f"{one.measure} of {'everybody' if name == EVERYBODY else name}: {one.limit}"
    return ""


def _wish(
    now: Decision, view: View, settings: Settings, overrides: Overrides, is_beyond_chance: bool
) -> _Wish:
    chain = _chain(now, view)
    broken = _guard(chain, view)
    for name in chain:
        if pinned := overrides.pins.get(name):
            return _Wish(now, pinned, "pinned" if name == now.key else f"pinned with {name}", True)
    if broken and now.arm != settings.control:
        return _Wish(now, settings.control, f"guardrail broken: {broken}", True)
    if any(name in overrides.frozen for name in chain):
        return _Wish(now, now.arm, "frozen", False)
    if broken:
        return _Wish(now, now.arm, f"guardrail broken: {broken}", False)
    is_on = now.arm == settings.treated
    wants_off = is_on and now.p_gain < settings.doubt
    is_worth = now.lift >= math.log1p(settings.worth) and now.p_safe >= settings.sure
    wants_on = not is_on and is_worth and is_beyond_chance
    if not wants_on and not wants_off:
        stays = "nobody is known to gain yet" if is_worth else "not sure enough"
        return _Wish(now, now.arm, "stays on" if is_on else stays, False)
    if settings.as_of - now.since < settings.dwell:
        return _Wish(now, now.arm, "changed too recently", False)
    arm = settings.treated if wants_on else settings.control
    return _Wish(now, arm, "switched on" if wants_on else "switched off", False)


def _limited(wishes: Sequence[_Wish], settings: Settings, allowance: float) -> list[Decision]:
    """The wishes, as far as the traffic may change: first what is switched off, then what brings most."""
    decided: list[Decision] = [replace(wish.now, reason=wish.reason) for wish in wishes]
    for at, wish in enumerate(wishes):
        if wish.is_forced:
            decided[at] = _changed(wish, settings)
    free = [at for at, wish in enumerate(wishes) if not wish.is_forced and wish.arm != wish.now.arm]

    def order(at: int) -> tuple[bool, float, str, str]:
        wish = wishes[at]
        return (
            wish.arm == settings.treated,
            -abs(wish.now.lift) * wish.now.share,
            wish.now.section,
            wish.now.key,
        )

    left = allowance
    for at in sorted(free, key=order):
        share = wishes[at].now.share
        if share > left + ROUNDING:
            decided[at] = replace(decided[at], reason="waits: enough traffic changes today")
            continue
        left -= share
        decided[at] = _changed(wishes[at], settings)
    return decided


def _changed(wish: _Wish, settings: Settings) -> Decision:
    since = wish.now.since if wish.arm == wish.now.arm else settings.as_of
    return replace(wish.now, arm=wish.arm, since=since, reason=wish.reason)
