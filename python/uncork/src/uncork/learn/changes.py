"""What a version changes, in the terms by which a person decides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from uncork.experiment import words
from uncork.learn.budget import Choice, choices
from uncork.learn.confirm import Trial, Trials
from uncork.learn.decide import BETTER
from uncork.learn.decisions import Decisions, Floats, Ints
from uncork.learn.entries import PreviousArms
from uncork.learn.lift import NORMAL
from uncork.learn.settings import Settings
from uncork.learn.tablefile import date

SHOWN = 5


def summary(
    version: int,
    decisions: Decisions,
    before: PreviousArms,
    settings: Settings,
    trials: Trials,
    warnings: Sequence[str],
    other_places: int,
) -> str:
    """The difference to the active version. `warnings`: of the records; `other_places`: how many places
    have no section.
    """
    is_new = decisions.arm != before.arms(decisions, settings)
    is_network, is_on = decisions.level == "network", decisions.arm != settings.control
    is_moved = decisions.reason == BETTER
    on, off, has, moved = (
        np.flatnonzero(is_network & rows)
        for rows in (is_new & is_on & ~is_moved, is_new & ~is_on, is_on, is_new & is_moved)
    )
    lines = [
        f"Version {version}: records before {date(settings.as_of)}, expires "
        f"{date(settings.as_of + settings.ttl)}.",
        *(
            f"{arm} for {_traffic(decisions, np.flatnonzero(is_network & (decisions.arm == arm)))}."
            for arm in settings.candidates
        ),
        f"Switched on: {_traffic(decisions, on)}.",
        *([f"Switched to a better arm: {_traffic(decisions, moved)}."] if settings.others else []),
        f"Switched off: {_traffic(decisions, off)}.",
    ]
    lines += dict.fromkeys(warnings)
    if other_places:
        lines.append(
            f"{words.counted(other_places, f'more {settings.place}')} without a table: only the "
            f"{settings.places} with most bytes have one (--places)."
        )
    wide = [f"{one.key} ({one.section}) {one.arm}" for one in decisions.where(~is_network & is_new)]
    if wide:
        lines.append(f"For networks not seen yet: {words.some(wide, 2 * SHOWN)}.")
    lines += [
        f"Switchback of {name} ({section}): {_verdict(one)}." for (section, name), one in trials.items()
    ]
    why = Counter(decisions.reason[is_network].tolist())
    lines += [
        f"{words.counted(count, 'network')}: {reason}."
        for reason, count in sorted(why.items())
        if not reason.startswith("switched")
    ]
    if len(has):
        lines += [
            "",
            "Who may lose most (lower end of the 95 % interval, times bytes):",
            *_losers(decisions, has),
        ]
    lines += _by_bound(choices(decisions, settings), settings)
    return "\n".join(lines) + "\n"


def _verdict(trial: Trial) -> str:
    """With the total effect, if it is known."""
    text = f"{trial.verdict}, since {date(trial.since)}"
    if trial.ratio is None or trial.low is None or trial.high is None:
        return text
    return f"{text}; total effect {words.change(trial.ratio)} ({words.interval(trial.low, trial.high)})"


def mean_lift(share: Floats, lift: Floats, sd: Floats, total: float) -> tuple[float, float]:
    """Mean log lift by bytes, and how far its 95 % interval reaches. Errors of networks of one AS go
    together: their sum is the widest that it can be.
    """
    if total <= 0:
        return 0.0, 0.0
    return _sum(share * lift) / total, NORMAL * _sum(share * sd) / total


def _sum(values: Floats) -> float:
    """Exact, so that every machine finds the same."""
    return math.fsum(values.tolist())


def _traffic(decisions: Decisions, rows: Ints) -> str:
    """How many networks these are, how much they have, and what is expected of them."""
    share = decisions.share[rows]
    total = _sum(share)
    text = f"{words.counted(len(rows), 'network')}, {words.quantity(total, 'share')} of the bytes"
    if total <= 0:
        return f"{text}; no lift to expect"
    mean, reach = mean_lift(share, decisions.lift[rows], decisions.sd[rows], total)
    low, high = math.exp(mean - reach), math.exp(mean + reach)
    return f"{text}; expected lift {words.change(math.exp(mean))} ({words.interval(low, high)})"


def _by_bound(found: Sequence[Choice], settings: Settings) -> list[str]:
    """What each budget of harm would bring; nothing where all bring nothing."""
    if not any(one.networks for one in found):
        return []
    return [
        "",
        "Gain by budget of harm (--harmed), if all changes came at once:",
        *(
            f"  {words.quantity(one.harmed, 'share'):>7}: {words.counted(one.networks, 'network')}, "
            f"{words.quantity(one.share, 'share')} of the bytes; expected lift over all traffic "
            f"{words.change(math.exp(one.gain))}{' (now)' if one.harmed == settings.harmed else ''}"
            for one in found
        ),
    ]


def _losers(decisions: Decisions, has: Ints) -> list[str]:
    low = decisions.lift[has] - NORMAL * decisions.sd[has]
    lost = np.minimum(low, 0.0) * decisions.share[has]
    worst = has[np.lexsort((decisions.key[has], decisions.section[has], lost))[:SHOWN]]
    return [
        f"  {one.key} ({one.section}, {one.parent}): {words.change(math.exp(one.lift))}, "
        f"at worst {words.change(math.exp(one.lift - NORMAL * one.sd))}, "
        f"{words.quantity(one.share, 'share')} of the bytes"
        for one in decisions.where(worst)
        if one.lift < NORMAL * one.sd
    ] or ["  none: all intervals are above zero"]
