"""What a version changes, in the terms by which a person decides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from uncork_experiment import words
from uncork_experiment.learn.decide import Decision
from uncork_experiment.learn.settings import Settings
from uncork_experiment.learn.tablefile import date

SHOWN = 5
NORMAL = 1.959963984540054


def told(version: int, decisions: Sequence[Decision], before: Sequence[Decision], settings: Settings) -> str:
    """The difference to the version in force."""
    had = {(one.section, one.key): one.arm for one in before}
    networks = [one for one in decisions if one.level == "network"]
    changed = [one for one in networks if one.arm != had.get((one.section, one.key), settings.control)]
    on = [one for one in changed if one.arm == settings.treated]
    off = [one for one in changed if one.arm != settings.treated]
    has = [one for one in networks if one.arm == settings.treated]
    lines = [
        f"Version {version}: records before {date(settings.as_of)}, expires "
        f"{date(settings.as_of + settings.ttl)}.",
        f"{settings.treated} for {words.counted(len(has), 'network')}, {_share(has)} of the bytes; "
        f"{_lift(has)}.",
        f"Switched on: {words.counted(len(on), 'network')}, {_share(on)} of the bytes; {_lift(on)}.",
        f"Switched off: {words.counted(len(off), 'network')}, {_share(off)} of the bytes; {_lift(off)}.",
    ]
    wide = [
        f"{one.key} ({one.section}) {one.arm}"
        for one in decisions
        if one.level != "network" and one.arm != had.get((one.section, one.key), settings.control)
    ]
    if wide:
        more = f" and {len(wide) - 2 * SHOWN} more" if len(wide) > 2 * SHOWN else ""
        lines.append(f"For networks not seen yet: {', '.join(wide[: 2 * SHOWN])}{more}.")
    why = Counter(one.reason for one in networks if not one.reason.startswith("switched"))
    lines += [f"{words.counted(count, 'network')}: {reason}." for reason, count in sorted(why.items())]
    if has:
        lines += ["", "Who may lose most (lower end of the 95 % interval, times bytes):", *_losers(has)]
    return "\n".join(lines) + "\n"


def _share(some: Sequence[Decision]) -> str:
    return words.quantity(sum(one.share for one in some), "share")


def _lift(some: Sequence[Decision]) -> str:
    """The mean by bytes. Errors of networks of one AS go together: their sum is the widest it can be."""
    total = sum(one.share for one in some)
    if total <= 0:
        return "no lift to expect"
    mean = sum(one.share * one.lift for one in some) / total
    reach = NORMAL * sum(one.share * one.sd for one in some) / total
    low, high = math.exp(mean - reach), math.exp(mean + reach)
    return f"expected lift {words.change(math.exp(mean))} ({words.interval(low, high)})"


def _losers(has: Sequence[Decision]) -> list[str]:
    def low(one: Decision) -> float:
        return one.lift - NORMAL * one.sd

    some = sorted(has, key=lambda one: (min(low(one), 0.0) * one.share, one.section, one.key))[:SHOWN]
    return [
        f"  {one.key} ({one.section}, {one.parent}): {words.change(math.exp(one.lift))}, "
        f"at worst {words.change(math.exp(low(one)))}, {words.quantity(one.share, 'share')} of the bytes"
        for one in some
        if low(one) < 0
    ] or ["  nobody: all intervals are above zero"]
