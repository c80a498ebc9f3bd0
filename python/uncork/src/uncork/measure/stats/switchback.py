"""Switchback: a whole place alternates between the arms in time, so that no traffic shares a link with the
other arm.

The blocks are paired by hour of the week (or of the day); a coin decides which block of a pair is treated.
Inference turns the same coins (Bojinov, Simchi-Levi and Zhao 2023; Spang et al. 2021). It estimates the total
effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats.effect import TOTAL_EFFECT, NoInterval, Outcome
from uncork.measure.stats.randomisation import DRAWS, coins, effect_of_logs, invert, sign_flips

Floats = NDArray[np.float64]

HOUR = 3_600
DAY = 24 * HOUR
WEEK = 7 * DAY


@dataclass(frozen=True)
class Schedule:
    """Blocks of time at one place, or at several that switch together. All arrays have shape (blocks,)."""

    start: NDArray[np.int64]
    """Start of each block in Unix seconds."""
    seconds: int
    """Length of each block."""
    pair: NDArray[np.int64]
    """Blocks of one pair have the same number."""
    treated: NDArray[np.bool_]
    """Whether the treated arm is active."""


def paired_schedule(
    first: int, *, block: int, period: int = WEEK, periods: int, rng: np.random.Generator
) -> Schedule:
    """A schedule from the Unix second `first`: a block of each pair lies in each of two successive periods.

    `block` and `period` are in seconds. A period of a week pairs by hour of the week, of a day by hour of the
    day. Raises ValueError if the blocks do not fill the period, or the number of periods is odd.
    """
    if block <= 0 or period % block != 0:
        raise ValueError(f"blocks of {block} s do not fill a period of {period} s: choose a divisor")
    if periods < 2 or periods % 2 != 0:
        raise ValueError(f"{periods} periods cannot be paired: choose an even number")
    slots = period // block
    number = np.arange(periods * slots)
    cycle, slot = number // slots, number % slots
    pair = cycle // 2 * slots + slot
    head = rng.integers(0, 2, periods // 2 * slots)
    treated = head[pair] == cycle % 2
    return Schedule(first + number * block, block, pair, np.asarray(treated, dtype=np.bool_))


def block_of(schedule: Schedule, times: Floats | NDArray[np.int64], burn_in: int = 0) -> NDArray[np.int64]:
    """The block in which each connection was *opened* (Unix seconds), or -1: outside, or in a block's first
    `burn_in` seconds, when connections of the other arm still share the links."""
    at = np.searchsorted(schedule.start, times, side="right") - 1
    within = np.asarray(times) - schedule.start[np.maximum(at, 0)]
    usable = (at >= 0) & (within >= burn_in) & (within < schedule.seconds)
    return np.where(usable, at, -1)


def level_effect(
    schedule: Schedule, levels: Floats, rng: np.random.Generator, *, level: float = 0.95, draws: int = DRAWS
) -> Outcome:
    """Total effect on a level of the blocks, such as a median: the geometric mean ratio over the pairs.

    `levels`: shape (blocks,), above zero; NaN where a block has no data: then its pair is left out.
    """
    known = np.isfinite(levels) & (levels > 0)
    treated, control = _by_pair(schedule, np.where(known, np.log(np.where(known, levels, 1.0)), np.nan))
    both = np.isfinite(treated) & np.isfinite(control)
    pairs = int(np.count_nonzero(both))
    if pairs == 0:
        return NoInterval("no pair of blocks has data in both arms", estimand=TOTAL_EFFECT)
    tested = sign_flips(treated[both] - control[both], rng, level=level, draws=draws)
    middle = math.exp(float(control[both].mean()))
    return effect_of_logs(tested, middle, pairs=pairs, level=level, estimand=TOTAL_EFFECT)


CARRY_OVER = "carry-over: effect in the second half of a window over that in its first half"


def carry_over(
    schedule: Schedule, halves: Floats, rng: np.random.Generator, *, level: float = 0.99, draws: int = DRAWS
) -> Outcome:
    """Whether the arm before still acts after the burn-in: the effect then grows within a window.

    `halves`: levels of both halves of each block, shape (blocks, 2), above zero; NaN without data. A ratio
    above 1 of a gain means that the total effect is too small: use a longer burn-in. Without carry-over, the
    coin of a pair turns its difference of differences as it turns its effect, so the same test holds.
    """
    known = np.isfinite(halves) & (halves > 0)
    logs = np.where(known, np.log(np.where(known, halves, 1.0)), np.nan)
    treated, control = _by_pair(schedule, logs[:, 1] - logs[:, 0])
    both = np.isfinite(treated) & np.isfinite(control)
    pairs = int(np.count_nonzero(both))
    if pairs == 0:
        return NoInterval("no pair of blocks has data in both halves", estimand=CARRY_OVER)
    tested = sign_flips(treated[both] - control[both], rng, level=level, draws=draws)
    return effect_of_logs(tested, 1.0, pairs=pairs, level=level, estimand=CARRY_OVER)


def total_effect(
    schedule: Schedule,
    numerator: Floats,
    denominator: Floats | None,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Outcome:
    """Total effect on sum(numerator) / sum(denominator) over all blocks; without denominator, on the total.

    Both have shape (blocks,) and are not negative. A pair is left out if a block of it has no denominator.
    The test's hypothesis: the treatment multiplies each block's numerator by the same ratio.
    """
    below = np.ones_like(numerator) if denominator is None else denominator
    usable = np.isfinite(numerator) & np.isfinite(below) & (below > 0)
    (n1, n0), (d1, d0) = (_by_pair(schedule, np.where(usable, part, np.nan)) for part in (numerator, below))
    both = np.isfinite(n1) & np.isfinite(n0)
    n1, n0, d1, d0 = n1[both], n0[both], d1[both], d0[both]
    pairs = int(np.count_nonzero(both))
    if pairs == 0 or n1.sum() <= 0 or n0.sum() <= 0:
        return NoInterval("no pair of blocks has data in both arms", estimand=TOTAL_EFFECT)
    stays = (coins(pairs, rng, draws) + 1) / 2
    turned = 1 - stays
    scale = np.log((stays @ d1 + turned @ d0) / (stays @ d0 + turned @ d1))
    tops = stays @ n1, turned @ n0, stays @ n0, turned @ n1

    def redrawn(log_ratio: float) -> Floats:
        """The log ratio of each redraw, with the treatment's effect `log_ratio` taken out of the treated
        blocks."""
        less = math.exp(min(max(-log_ratio, -300.0), 300.0))
        up, down = tops[0] * less + tops[1], tops[2] + tops[3] * less
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(up) - np.log(down) - scale)

    def p_value(log_ratio: float) -> float:
        values = np.abs(redrawn(log_ratio))
        return float(np.mean(values >= values[0] * (1 - 1e-12)))

    estimate = float(redrawn(0.0)[0])
    spread = redrawn(estimate)
    step = float(np.std(spread[np.isfinite(spread)]))
    tested = invert(p_value, estimate, step, level)
    control = float(n0.sum() / d0.sum())
    return effect_of_logs(tested, control, pairs=pairs, level=level, estimand=TOTAL_EFFECT)


def _by_pair(schedule: Schedule, values: Floats) -> tuple[Floats, Floats]:
    """The mean of the treated and of the control blocks of each pair; NaN where a block has no data."""
    sides = []
    for side in (schedule.treated, ~schedule.treated):
        size = int(schedule.pair.max()) + 1
        sums = np.bincount(schedule.pair[side], values[side], size)
        counts = np.bincount(schedule.pair[side], minlength=size)
        sides.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return sides[0], sides[1]
