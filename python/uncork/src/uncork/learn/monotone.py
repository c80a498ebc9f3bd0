"""What a larger initial window can only make worse.

Arms that differ in nothing but the initial window are in an order. A larger window sends more before the
first acknowledgement, so a smaller one never has more resent in the first round trips, nor a longer queue.
Estimates of neighbours that say otherwise are pooled (isotonic regression: Barlow et al. 1972), and a
guardrail that a window breaks, all larger ones break.

It does not hold for all that is resent: on a slow path slow start overflows the buffer later, with any window
(docs/evidence/start-windows.md). Nor for the gain, which falls where a window overflows the buffer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from uncork.learn.decisions import Floats
from uncork.learn.entries import View
from uncork.learn.guardrails import Guardrails, Watched, WatchedByName
from uncork.learn.settings import Settings

WINDOW = "initial_window"
RESUME = "resume"
MEASURES = ("early_resent:ratio", "start_resent:ratio", "queued:ratio")
SIZE = re.compile(r"([0-9]+)(p|B|kB)")

Chain = tuple[tuple[str, ...], int]
"""Arms from the smallest window to the largest, and how many of them are not larger than control's."""


def chains(settings: Settings) -> list[Chain]:
    """The treated arms by what they have but the window: those with a window, in its order."""
    found: dict[tuple[tuple[str, str], ...], list[tuple[int, str]]] = {}
    for arm in settings.candidates:
        key = _key(settings.arms.get(arm, {}))
        if key is not None:
            found.setdefault(key[0], []).append((key[1], arm))
    anchor = _key(settings.arms.get(settings.control, {}))
    chains_ = []
    for others, arms in found.items():
        arms.sort(key=lambda one: one[0])
        own = anchor[1] if anchor is not None and anchor[0] == others else None
        below = sum(own is not None and size <= own for size, _ in arms)
        # Without a window of control's, nothing is known of the arms relative to it.
        chains_.append((tuple(arm for _, arm in arms), below if own is not None else -1))
    return chains_


def _key(settings: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], int] | None:
    """What an arm has but the window, with the window's unit; and the window."""
    found = SIZE.fullmatch(settings.get(WINDOW, ""))
    if found is None:
        return None
    scale, unit = (1000, "B") if found[2] == "kB" else (1, found[2])
    others = {**settings, WINDOW: unit}
    return tuple(sorted(others.items())), int(found[1]) * scale


def pooled(margins: Sequence[Floats], variances: Sequence[Floats], below: int) -> list[Floats]:
    """Margins of windows in order, shape (entries,) each, so that none is safer than a smaller one: each
    violation becomes the mean of its neighbours by precision. `below`: how many windows are not larger than
    control's, which has a margin of 0; -1: control has no window.
    """
    mean = np.stack(margins)
    weight = 1 / np.stack(variances)
    sums = np.concatenate([np.zeros((1, mean.shape[1])), np.cumsum(mean * weight, axis=0)])
    weights = np.concatenate([np.zeros((1, mean.shape[1])), np.cumsum(weight, axis=0)])
    count = len(mean)

    def mean_of(first: int, last: int) -> Floats:
        return np.asarray((sums[last + 1] - sums[first]) / (weights[last + 1] - weights[first]))

    found = []
    for at in range(count):
        # The least of the greatest means of runs that contain it (min-max formula).
        runs = [
            np.max([mean_of(first, last) for last in range(at, count)], axis=0) for first in range(at + 1)
        ]
        one = np.min(runs, axis=0)
        if below >= 0:
            one = np.maximum(one, 0.0) if at < below else np.minimum(one, 0.0)
        found.append(one)
    return found


def with_smaller(of_arms: Sequence[View], settings: Settings) -> list[View]:
    """The views of a section: what a window breaks, or likely breaks, larger ones do, too."""
    found = {view.arm: view.guardrails for view in of_arms}
    for arms, _ in chains(settings):
        for smaller, arm in pairwise(arms):
            own, its = found[arm], found[smaller]
            found[arm] = Guardrails(
                _joined(own.entries, its.entries, smaller), _joined(own.others, its.others, smaller)
            )
    return [replace(view, guardrails=found[view.arm]) for view in of_arms]


def _joined(own: WatchedByName, its: WatchedByName, smaller: str) -> WatchedByName:
    joined = dict(own)
    for name, watched in its.items():
        bad = [one for one in watched if one.measure in MEASURES and one.state in ("broken", "likely broken")]
        for one in bad:
            if not _has(joined.get(name, ()), one):
                limit = one.limit if " with " in one.limit else f"{one.limit} with {smaller}"
                joined[name] = (*joined.get(name, ()), replace(one, limit=limit))
    return joined


def _has(watched: Sequence[Watched], bad: Watched) -> bool:
    """Whether the arm itself is known to do as badly."""
    return any(one.measure == bad.measure and one.state in ("broken", bad.state) for one in watched)
