"""An AS is confirmed by a switchback before more than part of it changes.

Where both arms share a bottleneck, a lift between them is not what a change of all clients brings: one arm
may gain what the other loses. So networks of an AS are switched on up to a share of its bytes. Before more,
the whole AS alternates: a day with all that is to change, a day with nothing of it, in an order that a coin
draws for each pair of days. What the AS as a whole gets on the days of one kind and the other is the total
effect (Spang et al. 2021), and its interval turns the same coins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork.learn.digits import rounded
from uncork.learn.settings import Settings
from uncork.measure.stats.effect import Effect
from uncork.measure.stats.switchback import DAY, Schedule, level_effect

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Texts = NDArray[np.object_]

LOOKS = (14, 28)
"""Days after which a trial is looked at; at the last one it ends."""
LEVEL = 1 - 0.05 / len(LOOKS)
"""Of the interval at each look, so that both together err in one of twenty."""
REMEMBERED = 90
"""Days that a verdict holds. Then the AS is tried again."""
MIN_CONTRAST = 0.2
"""How much more of an AS has to have the treated arm on one day of a pair than on the other."""
MAX_MIXED = 1 / 3
"""Of what the switchback changes, how much may have the other arm on a day that counts. A day runs on the
coin of the day before until its first plan. Such a mix has a level between those of the arms: it makes the
total effect smaller, and does not turn its sign.
"""

OPEN, CONFIRMED, REFUTED = "open", "confirmed", "refuted"


@dataclass(frozen=True)
class Trial:
    """Of one AS in one section."""

    since: int
    """Its first day."""
    verdict: str = OPEN
    decided: int = 0
    """The day of the verdict."""
    ratio: float | None = None
    """The total effect: what all clients of the AS get, over what they get without; above 1 is better."""
    low: float | None = None
    high: float | None = None


Key = tuple[str, str]
"""Section and AS."""
Trials = Mapping[Key, Trial]


@dataclass(frozen=True)
class Blocks:
    """What an AS had on each day; all arrays have the shape (days,)."""

    day: Ints
    share: Floats
    """Of the records, that with the treated arm."""
    level: Floats
    """The primary measure of all of them, higher if better."""


def is_on_today(trial: Trial, key: Key, settings: Settings, day: int) -> bool:
    """Whether this is a day with the treated arm: a coin that anybody with the settings can turn again."""
    pair, second = divmod(day - trial.since, 2)
    text = f"{settings.key} {key[0]} {key[1]} {trial.since} {pair}"
    return bool(hashlib.sha256(text.encode()).digest()[0] & 1) != bool(second)


def are_tried(reasons: Texts) -> Bools:
    """Which entries a switchback tries, or will from tomorrow, by the reasons that a version gives."""
    of_trials = ("switchback of ", "waits: the switchback of ")
    known = {reason: reason.startswith(of_trials) for reason in set(reasons.tolist())}
    return np.array([known[reason] for reason in reasons.tolist()], dtype=np.bool_)


def _is_due(trial: Trial, settings: Settings) -> bool:
    """Whether it is time for a look. One for which there was no plan on its day is made at the next plan."""
    days = settings.day - trial.since
    if not settings.whole_days:
        return days in LOOKS
    # The day of the last look; before the first one it is far below zero.
    looked = trial.decided - trial.since
    return any(looked < look <= days for look in LOOKS)


def judged(trial: Trial, key: Key, blocks: Blocks | None, settings: Settings) -> Trial:
    """The trial with what its days say, and its verdict if it is time for one."""
    if trial.verdict != OPEN or not _is_due(trial, settings):
        return trial
    is_last = settings.day - trial.since >= LOOKS[-1]
    effect = total_effect(trial, key, blocks, settings)
    if effect is None:
        return Trial(trial.since, REFUTED if is_last else OPEN, settings.day)
    is_safe = effect.ratio_low >= 1 - settings.tolerated and effect.ratio >= 1 + settings.worth
    is_over = effect.ratio_high < 1 + settings.worth or is_last
    verdict = CONFIRMED if is_safe else REFUTED if is_over else OPEN
    ends = (effect.ratio, effect.ratio_low, effect.ratio_high)
    return Trial(trial.since, verdict, settings.day, *ends)


def total_effect(trial: Trial, key: Key, blocks: Blocks | None, settings: Settings) -> Effect | None:
    """By the pairs of days that are over, and on which the servers did as the schedule said; None if they
    are too few.
    """
    if blocks is None:
        return None
    known = {day: at for at, day in enumerate(blocks.day.tolist())}
    within = blocks.share[(blocks.day >= trial.since) & (blocks.day < settings.day)]
    starts: list[int] = []
    treated: list[bool] = []
    pairs: list[int] = []
    levels: list[float] = []
    for pair in range((settings.day - trial.since) // 2):
        days = (trial.since + 2 * pair, trial.since + 2 * pair + 1)
        if not all(day in known for day in days):
            continue
        on, off = sorted(days, key=lambda day: not is_on_today(trial, key, settings, day))
        most, least = float(blocks.share[known[on]]), float(blocks.share[known[off]])
        if most - least < MIN_CONTRAST or (settings.whole_days and _is_mixed(most, least, within)):
            continue
        starts += [on, off]
        treated += [True, False]
        pairs += [len(pairs) // 2] * 2
        levels += [blocks.level[known[on]], blocks.level[known[off]]]
    if not pairs:
        return None
    schedule = Schedule(np.array(starts) * DAY, DAY, np.array(pairs), np.array(treated))
    rng = np.random.default_rng(trial.since)
    effect = level_effect(schedule, np.array(levels), rng, level=LEVEL)
    return effect if isinstance(effect, Effect) else None


def _is_mixed(on: float, off: float, within: Floats) -> bool:
    """Whether one of two days had both arms for long, by the treated arm's share on them and on all days."""
    low, high = float(within.min()), float(within.max())
    return max(high - on, off - low) > MAX_MIXED * (high - low)


@dataclass(frozen=True)
class Systems:
    """The networks of one section; arrays have the shape (networks,)."""

    section: str
    names: Sequence[str]
    """Of the ASes; unknown ones begin with a question mark, and are not confirmed."""
    system: Ints
    share: Floats
    """Of all bytes."""
    is_on: Bools
    wants: Bools
    """What is to have the treated arm, were there no trial."""
    worth: Floats


@dataclass(frozen=True)
class Gate:
    """What confirmation makes of the networks of one AS."""

    system: int
    members: Ints
    arm_on: Bools | None
    """Which of them have the treated arm; None: as they are to have without this."""
    reason: str
    trial: Trial | None


def gates(
    systems: Systems, trials: Trials, blocks: Mapping[Key, Blocks], settings: Settings
) -> Iterator[Gate]:
    """One gate for each AS that has a trial, or wants to change more than its part. The share of bytes in
    trials is limited like the share that may change in a day; one AS is always allowed.
    """
    if settings.confirm >= 1:
        return
    order = np.argsort(systems.system, kind="stable")
    bounds = np.searchsorted(systems.system[order], np.arange(len(systems.names) + 1))
    of_system = np.bincount(systems.system, systems.share, len(systems.names))
    on_trial = sum(
        float(of_system[at])
        for at, name in enumerate(systems.names)
        if (one := trials.get((systems.section, name))) is not None and one.verdict == OPEN
    )
    room = settings.changed * float(of_system.sum())
    for at, name in enumerate(systems.names):
        members = order[bounds[at] : bounds[at + 1]]
        own = systems.share[members]
        if name.startswith("?") or not len(members) or own.sum() <= 0:
            continue
        key = systems.section, name
        trial = trials.get(key)
        if trial is not None and trial.verdict != OPEN and settings.day - trial.decided >= REMEMBERED:
            trial = None
        wants = systems.wants[members]
        if trial is None and own[wants].sum() <= settings.confirm * own.sum():
            continue
        if trial is None and (on_trial == 0 or on_trial + own.sum() <= room):
            # Part of today has passed with the previous version.
            trial = Trial(settings.day + 1 if settings.whole_days else settings.day)
            on_trial += float(own.sum())
        if trial is None:
            waits = f"waits: a switchback has to confirm {name}"
            yield Gate(at, members, _part(members, systems, settings), waits, None)
            continue
        if settings.whole_days and settings.day < trial.since:
            stays = _part(members, systems, settings) & systems.is_on[members]
            yield Gate(at, members, stays, f"waits: the switchback of {name} begins tomorrow", trial)
            continue
        trial = judged(trial, key, blocks.get(key), settings)
        if trial.verdict == OPEN:
            is_on = is_on_today(trial, key, settings, settings.day)
            yield Gate(at, members, wants & is_on, f"switchback of {name}: {'on' if is_on else 'off'}", trial)
        elif trial.verdict == REFUTED:
            yield Gate(at, members, np.zeros(len(members), np.bool_), f"no total gain of {name}", trial)
        else:
            yield Gate(at, members, None, "", trial)


def _part(members: Ints, systems: Systems, settings: Settings) -> Bools:
    """Members that may be on without a switchback: first the active ones, then the highest gains."""
    wants, own = systems.wants[members], systems.share[members]
    order = np.lexsort((-systems.worth[members], ~systems.is_on[members]))
    order = order[wants[order]]
    fits = np.cumsum(own[order]) <= settings.confirm * own.sum()
    found = np.zeros(len(members), dtype=np.bool_)
    found[order[fits]] = True
    return found


def document(trials: Trials) -> list[dict[str, object]]:
    """For JSON."""
    return [
        {"section": section, "AS": name, **{key: rounded(value) for key, value in vars(trial).items()}}
        for (section, name), trial in sorted(trials.items())
    ]


def load_trials(rows: Sequence[Mapping[str, object]]) -> Trials:
    """What `document` wrote."""
    found = {}
    for row in rows:
        values = {name: value for name, value in row.items() if name not in ("section", "AS")}
        found[str(row["section"]), str(row["AS"])] = Trial(**values)  # type: ignore[arg-type]
    return found
