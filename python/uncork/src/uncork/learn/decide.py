"""From lifts to arms: which entries are switched on or off, and why the others stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from uncork.learn import choice, monotone
from uncork.learn.budget import AT_RISK, TOO_RISKY, WAITS, come_in, exceeds
from uncork.learn.choice import Known
from uncork.learn.confirm import Blocks, Gate, Key, Systems, Trial, Trials, gates
from uncork.learn.decisions import ABSENT, NAMES, Bools, Decisions, Floats, Ints, Texts
from uncork.learn.entries import (
    Entries,
    MarginColumns,
    PreviousArms,
    View,
    entries_of,
    known_today,
    margin_columns,
    titled,
)
from uncork.learn.guardrails import Guardrails, WatchedByName
from uncork.learn.proof import log_evidence_of_gain
from uncork.learn.settings import PRIMARY, Overrides, Settings

ROUNDING = 1e-9
"""Of a sum of shares: all of them may be a little more than 1."""
SEVERAL_ARMS = "clients in several arms: nothing is switched on"
BETTER = "switched to a better arm"
MISMATCH = "sample-ratio mismatch: nothing is switched on"
UNLIKE = "sample-ratio mismatch of it or of its AS: not switched on"


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
    may_stay: Bools
    """What it would not switch off if it were on."""
    each: tuple[Decisions, ...]
    """Of several treated arms the figures of each; otherwise none."""


def decide(
    views: Sequence[View], settings: Settings, overrides: Overrides, before: PreviousArms, allowance: float
) -> Decisions:
    """All entries of all sections. `allowance` is the share of the traffic that may change. With several
    treated arms a section has a view of each.
    """
    return decide_with_trials(views, settings, overrides, before, allowance, {}, {}).decisions


@dataclass(frozen=True)
class Outcome:
    """What is decided."""

    decisions: Decisions
    """Of each entry, with the figures of the arm that it gets or is nearest to."""
    trials: Trials
    """Of ASes, from now on."""
    figures: Decisions
    """Of several treated arms the figures of each; otherwise nothing."""


def decide_with_trials(
    views: Sequence[View],
    settings: Settings,
    overrides: Overrides,
    before: PreviousArms,
    allowance: float,
    trials: Trials,
    blocks: Mapping[Key, Blocks],
) -> Outcome:
    """All entries, and the trials of ASes from now on."""
    groups = _by_section(views, settings)
    total = sum(int(of[0].section.bytes.sum()) for of in groups) or 1
    needed = math.log(len(views) / (1 - settings.sure)) if views else 0.0
    kept: dict[Key, Trial] = {}

    def wish(of_arms: Sequence[View]) -> _Wishes:
        view = of_arms[0]
        entries = entries_of(view, overrides, inside=settings.inside)
        margins = _margins(of_arms, entries, settings)
        known = [
            _known(one, entries, known_today(one, entries, settings, before, total, its), needed)
            for one, its in zip(of_arms, margins, strict=True)
        ]
        found = _wish(known, entries, of_arms, settings, overrides)
        now = found.now
        if settings.tried_stay:
            tried = entries.at(list(before.tried.get(view.section.name, ())))
            found.wants[tried] |= found.may_stay[tried]
        tree = view.lifts.hierarchy
        low, high = entries.bounds[3:5]
        systems = Systems(
            view.section.name,
            tree.systems,
            tree.system,
            now.share[low:high],
            now.arm[low:high] != settings.control,
            found.wants[low:high],
            np.abs(now.lift[low:high]) * now.share[low:high],
        )
        for gate in gates(systems, trials, blocks, settings):
            _pass(gate, found, entries, str(tree.systems[gate.system]), settings)
            if gate.trial is not None:
                kept[view.section.name, str(tree.systems[gate.system])] = gate.trial
        return found

    wishes = [wish(of_arms) for of_arms in groups]
    figures = [Decisions.concat(of_arm) for of_arm in zip(*(one.each for one in wishes), strict=True)]
    decided = _limited(wishes, settings, allowance)
    if figures:
        decided = choice.of_arms(decided, figures, settings)
    return Outcome(decided, kept, Decisions.concat(figures))


def _by_section(views: Sequence[View], settings: Settings) -> list[list[View]]:
    """The views of each section, in the order of the treated arms."""
    found: dict[str, list[View]] = {}
    for view in views:
        found.setdefault(view.section.name, []).append(view)
    for of_arms in found.values():
        assert len(of_arms) == len(settings.candidates)
    return list(found.values())


def _margins(of_arms: Sequence[View], entries: Entries, settings: Settings) -> list[Sequence[MarginColumns]]:
    """The margins of each treated arm. Where a larger window can only do more harm, none does less."""
    each = {view.arm: margin_columns(view, entries, settings) for view in of_arms}
    for arms, below in monotone.chains(settings) if len(of_arms) > 1 else ():
        for measure in monotone.MEASURES:
            at = [[n for n, one in enumerate(each[arm]) if one.measure == measure] for arm in arms]
            if not all(at):
                continue
            known = [each[arm][n[0]] for arm, n in zip(arms, at, strict=True)]
            means = monotone.pooled([one.mean for one in known], [one.variance for one in known], below)
            for arm, n, mean in zip(arms, at, means, strict=True):
                each[arm][n[0]] = replace(each[arm][n[0]], mean=mean)
    return list(each.values())


def _known(view: View, entries: Entries, now: Decisions, needed: float) -> Known:
    """The evidence of one treated arm. `needed`: evidence from which a gain is beyond chance."""
    # How likely the measure itself gets worse is known better from its lift.
    primary = str(PRIMARY[view.section.of_class])
    is_beyond_chance = log_evidence_of_gain(view.lifts) >= needed
    return Known(
        now,
        _why(entries, view.guardrails, "broken"),
        _why(entries, view.guardrails, "likely broken", but=primary),
        np.full(len(now), is_beyond_chance, dtype=np.bool_),
    )


def _pass(gate: Gate, wish: _Wishes, entries: Entries, name: str, settings: Settings) -> None:
    """Lets through what a switchback has confirmed, or what it needs. What a guardrail or a person forces
    stays.
    """
    if gate.arm_on is None:
        return
    control = settings.control
    rows = entries.bounds[3] + gate.members
    rows, arm_on = rows[~wish.is_forced[rows]], gate.arm_on[~wish.is_forced[rows]]
    changes = wish.wants[rows] | (wish.now.arm[rows] != control)
    held = rows[changes & ~arm_on]
    wish.arm[held], wish.reason[held] = control, gate.reason
    if gate.trial is not None:
        on = rows[arm_on]
        wish.arm[on], wish.reason[on] = settings.treated, gate.reason
        wish.is_forced[rows] = True
    # Networks of it that were not seen yet wait for the verdict.
    entry = entries.at([name])
    entry = entry[~wish.is_forced[entry] & (wish.arm[entry] != control)]
    wish.arm[entry], wish.reason[entry] = control, gate.reason


def _of_state(found: WatchedByName, state: str, but: str = "") -> dict[str, str]:
    """The first guardrail of each entry in this state. `but`: a measure that does not count."""
    some: dict[str, str] = {}
    for name, watched in found.items():
        for one in watched:
            if one.state == state and one.measure != but:
                some.setdefault(name, f"guardrail {state}: {one.measure} of {titled(name)}: {one.limit}")
    return some


def _why(entries: Entries, guardrails: Guardrails, state: str, but: str = "") -> Texts:
    """Of each entry the guardrail in this state, or None: its own, by all of its networks, or that of a wider
    entry, by those of its networks that are not off anyhow.
    """
    own, others = (_of_state(found, state, but) for found in (guardrails.entries, guardrails.others))
    above = entries.marked(list(others))[entries.above]
    above[0] = ABSENT  # Nothing is wider than all clients.
    why = _texts_at(entries, above, others)
    at = entries.at(list(own))
    why[at] = [own[key] for key in entries.key[at]]
    return why


def _wish(
    each: Sequence[Known],
    entries: Entries,
    of_arms: Sequence[View],
    settings: Settings,
    overrides: Overrides,
) -> _Wishes:
    """By a list of rules. The first rule that holds decides."""
    pinned_at = entries.marked(list(overrides.pins), inside=settings.inside)
    is_pinned = pinned_at != ABSENT
    is_frozen = entries.marked(overrides.frozen, inside=settings.inside) != ABSENT
    pin = _texts_at(entries, pinned_at, overrides.pins)
    known = choice.picked(each, choice.asked(each, settings, pin, is_frozen))
    now, why_likely, is_likely = known.now, known.why_likely, known.is_likely(settings)
    why_broken, is_broken = known.why_broken, known.is_broken()
    why_held = _why_held(of_arms, entries, settings)
    is_held = why_held.astype(np.bool_)
    # Without several treated arms, the figures do not say which one they are of.
    treated = np.where(now.about == "", settings.treated, now.about)
    why_not = _words("likely breaks its limit: ", now.limit)
    why_off = _words("switched off, likely breaks its limit: ", now.limit)
    why_not[is_likely] = why_likely[is_likely]
    why_off[is_likely] = [f"switched off, {why}" for why in why_likely[is_likely].tolist()]
    pins = {name: f"pinned with {name}" for name in overrides.pins}
    why_pinned = np.where(pinned_at == np.arange(len(now)), "pinned", _texts_at(entries, pinned_at, pins))
    is_on = now.arm == treated
    is_worth, is_kept = known.is_worth(settings), known.is_kept(settings)
    is_free = ~is_pinned & ~is_broken & ~is_frozen
    bound = settings.harmed * float(now.share.sum())
    may_stay = (now.p_gain >= settings.doubt) & ~exceeds(now.share, now.p_safe, bound, settings.sure)
    # Lifts of a mismatch say nothing: who has it keeps it, unless a limit speaks against it.
    is_good = is_kept & np.where(is_on, may_stay | is_held, is_worth & ~is_held)
    may_be_on = is_free & is_good
    is_spared = _spared(now, is_on, may_be_on, bound, settings.sure, _moving(each, now, treated, settings))
    is_spared &= _as_seen(entries, now.share * may_be_on, now.share * (may_be_on & is_spared))
    wants_off = is_on & ~is_good
    wants_on = ~is_on & is_good & is_spared & known.is_beyond_chance
    wants = wants_on | wants_off
    is_new = settings.as_of - now.since < settings.dwell
    control = settings.control
    rules: list[tuple[Bools, Texts | str, Texts | str]] = [
        (is_pinned, pin, why_pinned),
        (is_broken & (now.arm != control), control, why_broken),
        (is_frozen, now.arm, "frozen"),
        (is_broken, now.arm, why_broken),
        (~wants & is_on, now.arm, "stays on"),
        (~wants & is_worth & is_held, now.arm, why_held),
        (~wants & is_worth & ~is_kept, now.arm, why_not),
        (~wants & is_worth & ~is_spared, now.arm, AT_RISK),
        (~wants & is_worth, now.arm, "no significant gain yet"),
        (~wants, now.arm, "not sure enough"),
        (is_new, now.arm, "changed too recently"),
        (wants_on & (now.arm != control), treated, BETTER),
        (wants_on, treated, "switched on"),
        (wants_off & is_kept & (now.p_gain >= settings.doubt), control, TOO_RISKY),
        (wants_off & is_kept, control, "switched off"),
        (wants_off, control, why_off),
    ]
    conditions = [holds for holds, _, _ in rules]
    arm = _first(conditions, [one for _, one, _ in rules])
    reason = _first(conditions, [one for _, _, one in rules])
    is_forced = is_pinned | (is_broken & (now.arm != control)) | (is_frozen & settings.tried_stay)
    is_wanted = is_free & ((is_on & ~wants_off) | wants_on)
    figures = tuple(one.now for one in each) if len(each) > 1 else ()
    return _Wishes(now, arm, reason, is_forced, is_wanted, is_free & is_kept & may_stay, figures)


def _why_held(of_arms: Sequence[View], entries: Entries, settings: Settings) -> Texts:
    """Of each entry why its lift does not count, or None."""
    found = np.full(len(entries.key), None, dtype=np.object_)
    unlike = {name for view in of_arms for name in view.unlike}
    found[entries.marked(sorted(unlike)) != ABSENT] = UNLIKE
    if any(view.is_mismatch for view in of_arms):
        found[:] = MISMATCH
    elif settings.checked and any(one.severity == "blocks" for view in of_arms for one in view.findings):
        found[:] = SEVERAL_ARMS
    return found


def _moving(each: Sequence[Known], now: Decisions, treated: Texts, settings: Settings) -> Decisions | None:
    """Entries that are to go from one treated arm to another, with the figures of the arm that they have."""
    rows = np.flatnonzero((now.arm != settings.control) & (now.arm != treated))
    if not len(rows):
        return None
    had = choice.index_of(now.arm[rows], settings)
    return choice.figures([one.now.where(rows) for one in each], had)


def _spared(
    now: Decisions, is_on: Bools, may_be_on: Bools, bound: float, sure: float, moving: Decisions | None = None
) -> Bools:
    """All entries but those of `may_be_on` that would come in beyond the budget of harm: first comes the
    entry that is expected to gain most for the risk. One that is on leaves by its own evidence alone, so its
    risk counts before all others. So does that of the arm that a moving entry has: it may have to stay.
    """
    stays, may = is_on & may_be_on, may_be_on & ~is_on
    share, lift, p_safe = now.share, now.lift, now.p_safe
    if moving is not None:
        more = np.ones(len(moving), dtype=np.bool_)
        stays, may = np.append(stays, more), np.append(may, ~more)
        share, lift = np.append(share, moving.share), np.append(lift, moving.lift)
        p_safe = np.append(p_safe, moving.p_safe)
    comes = come_in(share, lift, p_safe, stays, may, bound, sure)[: len(now)]
    return np.asarray(comes | ~may_be_on | is_on)


def _as_seen(entries: Entries, candidates: Floats, accepted: Floats) -> Bools:
    """Of each entry, whether the budget of harm accepts most of the traffic of its networks that the evidence
    wants on: a network that was not seen yet does not get what the seen networks around it do not get. True
    of networks. Shapes: (entries,).
    """
    found = np.ones(len(candidates), dtype=np.bool_)
    sums = np.stack([candidates, accepted])
    for level in range(len(entries.bounds) - 2, 0, -1):
        rows = slice(entries.bounds[level], entries.bounds[level + 1])
        for one in sums:
            np.add.at(one, entries.above[rows], one[rows].copy())
    wide = slice(0, entries.bounds[3])
    found[wide] = sums[1, wide] >= 0.5 * sums[0, wide] - ROUNDING
    return found


def _texts_at(entries: Entries, at: Ints, words: Mapping[str, str]) -> Texts:
    """The words about the entry at each place; None where there is none."""
    # One more, for entries without a place.
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
    """The wishes, as far as the traffic may change: first what is switched off, then what brings most.
    Consumes `wishes`: copies of a million networks do not fit into memory.
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
    free = free[np.lexsort((-worth, arm[free] != settings.control))]
    waits = free[_beyond(now.share[free], allowance)]
    arm[waits] = now.arm[waits]
    reason[waits] = WAITS
    since = np.where(arm == now.arm, now.since, settings.as_of)
    return replace(now, arm=arm, reason=reason, since=since)


def _beyond(shares: Floats, allowance: float) -> list[int]:
    """Those for which nothing is left when it is their turn. The first may be larger than all that is left:
    it changes alone, as otherwise it never would. Without an allowance (the same day again, or a clock that
    went back) nothing changes, also no entry without traffic.
    """
    if allowance <= 0:
        return list(range(len(shares)))
    left, found = allowance, []
    for at, share in enumerate(shares.tolist()):
        is_alone = at == 0
        if share > left + ROUNDING and not is_alone:
            found.append(at)
        else:
            left = max(left - share, 0.0)
    return found
