"""What a version changes, in the terms by which a person decides."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from uncork_experiment import words
from uncork_experiment.learn.confirm import Trial, Trials
from uncork_experiment.learn.decide import Before
from uncork_experiment.learn.decisions import Decisions, Floats
from uncork_experiment.learn.settings import Settings
from uncork_experiment.learn.tablefile import date

SHOWN = 5
NORMAL = 1.959963984540054


def told(version: int, decisions: Decisions, before: Before, settings: Settings, trials: Trials) -> str:
    """The difference to the version in force."""
    is_new = decisions.arm != before.arms(decisions, settings)
    is_network, is_on = decisions.level == "network", decisions.arm == settings.treated
    on, off, has = (decisions.where(is_network & rows) for rows in (is_new & is_on, is_new & ~is_on, is_on))
    lines = [
        f"Version {version}: records before {date(settings.as_of)}, expires "
        f"{date(settings.as_of + settings.ttl)}.",
        f"{settings.treated} for {words.counted(len(has), 'network')}, {_share(has)} of the bytes; "
        f"{_lift(has)}.",
        f"Switched on: {words.counted(len(on), 'network')}, {_share(on)} of the bytes; {_lift(on)}.",
        f"Switched off: {words.counted(len(off), 'network')}, {_share(off)} of the bytes; {_lift(off)}.",
    ]
    wide = [f"{one.key} ({one.section}) {one.arm}" for one in decisions.where(~is_network & is_new)]
    if wide:
        more = f" and {len(wide) - 2 * SHOWN} more" if len(wide) > 2 * SHOWN else ""
        lines.append(f"For networks not seen yet: {', '.join(wide[: 2 * SHOWN])}{more}.")
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
        lines += ["", "Who may lose most (lower end of the 95 % interval, times bytes):", *_losers(has)]
    return "\n".join(lines) + "\n"


def _verdict(trial: Trial) -> str:
    """With the total effect, if it is known."""
    told = f"{trial.verdict}, since {date(trial.since)}"
    if trial.ratio is None or trial.low is None or trial.high is None:
        return told
    return f"{told}; total effect {words.change(trial.ratio)} ({words.interval(trial.low, trial.high)})"


def mean_lift(some: Decisions, total: float) -> tuple[float, float]:
    """Mean log lift by bytes, and how far its 95 % interval reaches. Errors of networks of one AS go
    together: their sum is the widest that it can be.
    """
    if total <= 0:
        return 0.0, 0.0
    return _sum(some.share * some.lift) / total, NORMAL * _sum(some.share * some.sd) / total


def _sum(values: Floats) -> float:
    """Exact, so that every machine finds the same."""
    return math.fsum(values.tolist())


def _share(some: Decisions) -> str:
    return words.quantity(_sum(some.share), "share")


def _lift(some: Decisions) -> str:
    total = _sum(some.share)
    if total <= 0:
        return "no lift to expect"
    mean, reach = mean_lift(some, total)
    low, high = math.exp(mean - reach), math.exp(mean + reach)
    return f"expected lift {words.change(math.exp(mean))} ({words.interval(low, high)})"


def _losers(has: Decisions) -> list[str]:
    low = has.lift - NORMAL * has.sd
    worst = np.lexsort((has.key, has.section, np.minimum(low, 0.0) * has.share))[:SHOWN]
    return [
        f"  {one.key} ({one.section}, {one.parent}): {words.change(math.exp(one.lift))}, "
        f"at worst {words.change(math.exp(one.lift - NORMAL * one.sd))}, "
        f"{words.quantity(one.share, 'share')} of the bytes"
        for one in has.where(worst)
        if one.lift < NORMAL * one.sd
    ] or ["  nobody: all intervals are above zero"]
