"""Why an address gets what it gets: evidence, guardrails, changes, and what would change it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from uncork.experiment import words
from uncork.experiment.health import ratio
from uncork.experiment.result import Finding
from uncork.experiment.rows import limit_words
from uncork.learn import networks
from uncork.learn.amounts import Amounts, amounts
from uncork.learn.checks import BY_CELL
from uncork.learn.decisions import Decision, Decisions
from uncork.learn.entries import ALL_CLIENTS, titled
from uncork.learn.history import ACTIVATED
from uncork.learn.lift import NORMAL
from uncork.learn.regions import names_of
from uncork.learn.sample_ratio import Ratio
from uncork.learn.settings import PRIMARY, Settings
from uncork.learn.store import Store
from uncork.learn.tablefile import date
from uncork.learn.version import watched_name
from uncork.measure.errors import InputError

CHANGES = 5
PERSONS = ("pinned", "frozen")
"""How reasons begin that a person gave."""


def explain(store: Store, address: str, system: str | None, country: str | None) -> str:
    """All sections' entries of the address in the active version; if there is none, in the last planned. AS
    and country count if its network is not known.
    """
    if system is not None and not re.fullmatch(r"AS\d{1,10}", system):
        raise InputError(f"--asn {system}", "not an AS", "write AS64500")
    current, numbers = store.current(), store.numbers()
    number = store.need_current() if current is not None or not numbers else numbers[-1]
    state = "" if current is not None else " (not active: uncork learn apply)"
    names = networks.around(address)
    settings, decisions = store.settings(number), store.decisions_about(number, names)
    guardrails, ratios, findings = store.guardrails(number), store.ratios(number), store.findings(number)
    lines = [
        f"Version {number}{state}: records before {date(settings.as_of)}, expires "
        f"{date(settings.as_of + settings.ttl)}."
    ]
    wide = [name for name in (*names_of([address], settings.regions), system, country) if name]
    for section in decisions.sections:
        own = {one.key: one for one in decisions if one.section == section}
        entry = next(own[name] for name in (*names, *wide, ALL_CLIENTS) if name in own)
        found = amounts(store, number, entry, own)
        watched, two = watched_name(section, entry.about), settings.of(entry.about)
        checked = findings.get(watched, [])
        unlike = {name for one in checked if one.name == BY_CELL for name in one.numbers}
        about = _about(entry, own, guardrails.get(watched, {}), two, found, ratios.get(watched), unlike)
        arms = _arms(store.figures_about(number, entry.key), section, settings)
        lines += ["", *about, *_checks(checked), *arms, *_history(store, entry)]
    return "\n".join(lines) + "\n"


def _about(
    one: Decision,
    own: dict[str, Decision],
    guardrails: dict[str, dict[str, list[dict[str, object]]]],
    settings: Settings,
    found: Amounts,
    ratio: Ratio | None,
    unlike: Collection[str],
) -> Iterator[str]:
    of_class = one.section.rpartition("/")[2]
    measure = PRIMARY[of_class]
    yield f"{one.section} objects: {one.arm}, by the entry {titled(one.key)}, since {_since(one, settings)}."
    yield f"  why      {one.reason}"
    if one.about and one.arm != one.about:
        yield f"  figures  of {one.about}"
    yield f"  evidence {_evidence(one, found, settings)}"
    if ratio is not None:
        yield f"  ratio    {'sample-ratio mismatch: ' if ratio.is_mismatch else ''}{ratio.away(settings)}"
    if one.raw is not None and one.raw_error is not None:
        yield f"  alone    lift of {measure} {_lift(one.raw, one.raw_error)}"
    else:
        yield "  alone    too few records for an estimate of its own"
    if one.level == "network":
        yield f"  others   {titled(one.parent)} and its networks suggest {_lift(one.prior, one.prior_sd)}"
    prior = settings.prior_of(of_class)
    for system in [key for key in (one.key, one.parent) if key in prior]:
        expected = _lift(*prior[system])
        yield f"  twin     calibrated, expects {expected} of {system}, in place of its country"
    yield (
        f"  together {_lift(one.lift, one.sd)}; P(lift > 0) {one.p_gain:.3f}, "
        f"P(lift > −{100 * settings.tolerated:g} %) {one.p_safe:.3f}; most by the evidence of: {one.by}"
    )
    if one.limit:
        yield f"  harm     {_harm(one, settings)}"
    for name in _chain(one, own):
        which = "others" if name != one.key else "entries"
        for watched in guardrails.get(which, {}).get(name, ()):
            low, high = (float(str(watched[end])) for end in ("low", "high"))
            yield (
                f"  limit    {watched['measure']} of {titled(name)}: {watched['limit']}; {watched['state']} "
                f"in the last {words.counted(int(str(watched['days'])), 'day')} "
                f"({_bounds(str(watched['limit']), low, high)})"
            )
    is_mismatch = (ratio is not None and ratio.is_mismatch) or any(key in unlike for key in _chain(one, own))
    is_held = is_mismatch and not one.reason.startswith(PERSONS)
    until = "by a guardrail alone until the sample ratio is as dealt; then " if is_held else ""
    yield f"  changes  {until}{_would_change(one, settings)}"


def _checks(findings: Sequence[Finding]) -> Iterator[str]:
    """What a check of the section found, or why it did not run."""
    for one in findings:
        if one.severity != "ok" and (one.name, one.severity) != (ratio.NAME, "blocks"):
            state = " not run" if one.severity == "not run" else ""
            yield f"  check    {one.name}{state}: {one.sentence}"


def _arms(figures: Decisions, section: str, settings: Settings) -> Iterator[str]:
    """Each treated arm, if there are several."""
    for one in figures:
        if one.section == section:
            safe = f"P(lift > −{100 * settings.tolerated:g} %) {one.p_safe:.3f}"
            kept = f"; P({one.limit} kept) {one.p_kept:.3f}" if one.limit else ""
            yield f"  arm      {one.about}: {_lift(one.lift, one.sd)}; {safe}{kept}"


def _bounds(limit: str, low: float, high: float) -> str:
    """Of harm, in the unit of the limit: points of a share, or percent (harm is a ratio less 1)."""
    if "pp" in limit:
        return f"{words.points(low).rpartition(' ')[0]} to {words.points(high)}"
    return words.interval(1 + low, 1 + high)


def _evidence(one: Decision, found: Amounts, settings: Settings) -> str:
    """Records and bytes by arm; of a wide entry, of its networks."""
    sent = [words.quantity(one, "B") for one in found.sent]
    sizes = (f" ({sent[0]} sent)", f" ({sent[1]})") if any(found.sent) else ("", "")
    of = "" if one.level == "network" else f"of {words.counted(found.networks, 'network')}: "
    control = f"{found.records[0]:,} records{sizes[0]} of {settings.control}"
    treated = f"{found.records[1]:,}{sizes[1]} of {settings.treated}"
    share = words.quantity(found.share, "share")
    return f"{of}{control} and {treated} in {settings.window} days; {share} of the bytes"


def _harm(one: Decision, settings: Settings) -> str:
    """What is expected of the limit that is least sure to be kept."""
    limit = next(limit for limit in settings.limits() if str(limit.measure) == one.limit)
    ends = (one.harm + side * NORMAL * one.harm_sd for side in (0, -1, 1))
    if limit.points is not None:
        harm, low, high = (words.points(end) for end in ends)
    else:
        harm, low, high = (words.change(math.exp(end)) for end in ends)
    reach = f"{low.rpartition(' ')[0]} to {high}"
    return f"{one.limit} {harm} ({reach}); P({limit_words(limit)}) {one.p_kept:.3f}"


def _chain(one: Decision, own: dict[str, Decision]) -> list[str]:
    chain = [one.key]
    while (parent := own[chain[-1]].parent if chain[-1] in own else "") and parent not in chain:
        chain.append(parent)
    return chain


def _would_change(one: Decision, settings: Settings) -> str:
    """What the next versions need to decide otherwise."""
    if one.reason.startswith(PERSONS):
        return f"only if it is no longer {one.reason.split()[0]}"
    if one.arm != settings.control:
        return (
            f"off if P(lift > 0), or that a limit is kept, falls below {settings.doubt:g}, "
            "a guardrail breaks, its risk alone exceeds the budget of harm, or the table expires"
        )
    safe = math.log1p(-settings.tolerated) + _quantile(settings.sure) * one.sd
    needed = max(safe, math.log1p(settings.worth))
    return (
        f"on at a lift of about {words.change(math.exp(needed))} with the present error, if "
        f"P(lift > −{100 * settings.tolerated:g} %) is then {settings.sure:g}, P(limit kept) is "
        f"{settings.doubt:g}, at most {words.quantity(settings.harmed, 'share')} of the traffic may be "
        "harmed, and the gain of some networks is beyond chance"
    )


def _quantile(p: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(p))


def _history(store: Store, entry: Decision) -> Iterator[str]:
    """The last changes of the entry, by the day on which the version became active."""
    found = []
    arm: str | None = None
    for day, number in _activations(store):
        decisions = store.decisions_about(number, [entry.key])
        rows = np.flatnonzero((decisions.key == entry.key) & (decisions.section == entry.section))
        now = decisions[int(rows[0])] if len(rows) else None
        if now is not None and now.arm != arm:
            found.append(f"  {day}  version {number}: {now.arm}, {now.reason}")
            arm = now.arm
    yield from found[-CHANGES:]


def active_versions(store: Store) -> Sequence[int]:
    """The versions that were active, in this order."""
    return [number for _, number in _activations(store)]


def _activations(store: Store) -> Iterator[tuple[str, int]]:
    """Day (UTC) and version of each activation."""
    known = set(store.numbers())
    for line in store.log():
        number = line.get("version")
        if line["done"] in ACTIVATED and isinstance(number, int) and number in known:
            yield str(line["at"])[:10], number


def _since(one: Decision, settings: Settings) -> str:
    return "the beginning" if one.since < settings.as_of - 5_000 else date(one.since)


def _lift(mean: float, error: float) -> str:
    ends = words.interval(math.exp(mean - NORMAL * error), math.exp(mean + NORMAL * error))
    return f"{words.change(math.exp(mean))} ({ends})"
