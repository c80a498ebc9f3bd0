"""Breaks in time: a span in which the level of the arms is not what it was before, such as an overloaded
link.

All spans are scanned for the largest shift of both arms together (the epidemic alternative of Levin and Kline
1985). The p-value comes from noise that is simulated with the series' own scatter, correlation from step to
step, and correlation between the arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_STEPS = 7
"""Steps that a series must have."""

AT_ONCE = 200_000
"""Scores of noise that are computed at once: more take memory, fewer take time."""

MARGIN = 2
"""Steps before a break, to know what was before."""


@dataclass(frozen=True)
class Break:
    """A span of steps [start, end) with levels that differ from the rest; `end` is the series' length if it
    lasts."""

    start: int
    end: int
    control_change: float
    """Level of the control arm inside over outside."""
    treated_change: float
    p_value: float


def find(
    control: Floats,
    treated: Floats,
    rng: np.random.Generator,
    *,
    alpha: float = 0.01,
    least: float = 0.1,
    most: int = 3,
    draws: int = 399,
) -> tuple[Break, ...]:
    """Breaks of two series of levels, one per step of time (day), shape (steps,), above zero; in order of
    time.

    A break is reported if noise would show one as large with probability `alpha` at most, and if it changes
    an arm by `least` (0.1 is 10 %) or more. At most `most` are sought, the largest first. Under `MIN_STEPS`
    none is found.
    """
    levels = np.stack([np.asarray(control, dtype=np.float64), np.asarray(treated, dtype=np.float64)])
    if np.any(~np.isfinite(levels)) or np.any(levels <= 0):
        raise ValueError("a level is missing or not above zero: leave its step out")
    steps = levels.shape[1]
    if steps < MIN_STEPS:
        return ()
    rest = np.log(levels)
    found: list[Break] = []
    spans = _spans(steps)
    for _ in range(most):
        scores, shifts = _scan(rest[None], spans)
        at = int(np.argmax(scores[0]))
        start, end = (int(edge) for edge in spans[at])
        shift = shifts[0, :, at]
        cleared = rest.copy()
        cleared[:, start:end] -= shift[:, None]
        noise = _noise(cleared, rng, draws)
        parts = np.array_split(noise, math.ceil(len(noise) * len(spans) / AT_ONCE))
        largest = np.concatenate([_scan(part, spans)[0].max(axis=1) for part in parts])
        p_value = (1 + int(np.count_nonzero(largest >= scores[0, at]))) / (draws + 1)
        overlaps = any(start < other.end and other.start < end for other in found)
        if p_value > alpha or np.abs(shift).max() < math.log1p(least) or overlaps:
            break
        change = np.exp(shift)
        found.append(Break(start, end, float(change[0]), float(change[1]), p_value))
        rest = cleared
    return tuple(sorted(found, key=lambda one: one.start))


def _spans(steps: int) -> NDArray[np.int64]:
    """Starts and ends of the spans to scan, shape (spans, 2): all short lengths, and a twentieth more each
    time."""
    lengths, length = [], 1
    while length <= steps - 2 * MARGIN or length == 1:
        lengths.append(length)
        length += max(1, length // 20)
    spans = [(start, start + size) for size in lengths for start in range(MARGIN, steps - size + 1)]
    # A shift that lasts to the end may have any length.
    spans += [(start, steps) for start in range(MARGIN, steps) if steps - start not in lengths]
    return np.array(spans, dtype=np.int64)


def _scan(series: Floats, spans: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Score (draws, spans) and shift (draws, arms, spans) of each span; `series` has shape (draws, arms,
    steps)."""
    steps = series.shape[2]
    sums = np.concatenate([np.zeros((*series.shape[:2], 1)), np.cumsum(series, axis=2)], axis=2)
    inside = sums[:, :, spans[:, 1]] - sums[:, :, spans[:, 0]]
    length = spans[:, 1] - spans[:, 0]
    shift = inside / length - (sums[:, :, -1:] - inside) / (steps - length)
    # Scatter from step to step: a shift moves only two of these differences.
    jumps = np.abs(np.diff(series, axis=2))
    scatter = np.maximum(1.4826 * np.median(jumps, axis=2) / math.sqrt(2), 1e-12)[:, :, None]
    scores = (shift / scatter) ** 2 / (1 / length + 1 / (steps - length))
    return np.asarray(scores.sum(axis=1)), np.asarray(shift)


def _noise(cleared: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Noise of two arms like `cleared`, shape (draws, 2, steps), but of deviation 1: scores do not depend on
    it."""
    steps = cleared.shape[1]
    spread = cleared - np.median(cleared, axis=1, keepdims=True)
    weight = float(np.sum(spread**2))
    after = float(np.sum(spread[:, 1:] * spread[:, :-1])) / weight if weight > 0 else 0.0
    # Estimates of short series are too low by about (1 + 3 x) / steps (Kendall 1954).
    persistence = min(max(after + (1 + 3 * after) / steps, 0.0), 0.9)
    scale = math.sqrt(float(np.sum(spread[0] ** 2) * np.sum(spread[1] ** 2)))
    together = float(np.sum(spread[0] * spread[1])) / scale if scale > 0 else 0.0
    drawn = rng.standard_normal((draws, 2, steps))
    drawn[:, 1] = together * drawn[:, 0] + math.sqrt(max(1 - together**2, 0.0)) * drawn[:, 1]
    for step in range(1, steps):
        fresh = math.sqrt(1 - persistence**2) * drawn[:, :, step]
        drawn[:, :, step] = persistence * drawn[:, :, step - 1] + fresh
    return drawn
