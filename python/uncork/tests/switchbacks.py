"""Switchbacks of known truth: totals of blocks with a daily rhythm, drift, and an effect that varies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats.effect import Effect
from uncork.measure.stats.switchback import DAY, Schedule, paired_schedule, total_effect

BLOCK = 4 * 3600


def schedule(rng: np.random.Generator, weeks: int = 4) -> Schedule:
    """Blocks of four hours, paired by hour of the week."""
    return paired_schedule(1_790_000_000, block=BLOCK, periods=weeks, rng=rng)


def outcomes(
    times: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each block would total untreated, and treated: 8 % more in the mean, more at night."""
    drift = np.zeros(len(times))
    shocks = rng.standard_t(4, len(times)) * 0.1
    for at in range(1, len(times)):
        drift[at] = 0.8 * drift[at - 1] + shocks[at]
    night = np.cos(times / DAY * 2 * np.pi)
    untreated = 1e9 * np.exp(drift - 0.5 * night)
    return untreated, untreated * (1.08 + 0.04 * night + rng.normal(0, 0.03, len(times)))


def cover_total(experiments: int, rng: np.random.Generator, draws: int = 399) -> float:
    """Share of experiments with an interval that covers the ratio of totals: all blocks treated over none."""
    hits = 0
    for _ in range(experiments):
        plan = schedule(rng)
        untreated, treated = outcomes(plan.start, rng)
        effect = total_effect(plan, np.where(plan.treated, treated, untreated), None, rng, draws=draws)
        assert isinstance(effect, Effect)
        hits += effect.ratio_low <= treated.sum() / untreated.sum() <= effect.ratio_high
    return hits / experiments
