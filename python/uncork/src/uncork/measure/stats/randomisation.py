"""Randomisation inference: what would the estimate be, had the design's coins fallen otherwise? (Fisher 1935)

It holds for few blocks and for values that hang together in time, where a t interval does not. An interval
consists of all effects that the test does not reject (Ernst 2004).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats.effect import Effect, NoInterval, Outcome

Floats = NDArray[np.float64]

DRAWS = 4_999
"""Redraws of a design that has too many outcomes to list."""

LISTED = 12
"""Up to this number of coins, all outcomes are listed: 4,096."""


@dataclass(frozen=True)
class RandomisationTest:
    """Estimate, interval and p-value of a randomisation test."""

    estimate: float
    low: float
    high: float
    p_value: float


def coins(count: int, rng: np.random.Generator, draws: int = DRAWS) -> Floats:
    """Outcomes of `count` fair coins, -1 or 1, shape (draws, count). Row 0 is all 1: the design as it was.

    Few coins are listed, so that the test is exact; many are drawn.
    """
    if count <= LISTED:
        bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
    drawn = rng.integers(0, 2, (draws, count)) * 2.0 - 1.0
    return np.concatenate([np.ones((1, count)), drawn])


def sign_flips(
    differences: Floats, rng: np.random.Generator, *, level: float, draws: int = DRAWS
) -> RandomisationTest | None:
    """Mean of paired differences, treated minus control. A coin could have reversed each of them.

    None if there are too few to reject anything at this level (6 are enough for 95 %).
    """
    signs = coins(len(differences), rng, draws)
    return linear(signs @ differences / len(differences), signs.mean(axis=1), level=level)


def linear(redrawn: Floats, of_treatment: Floats, *, level: float) -> RandomisationTest | None:
    """Test of a linear statistic, shape (draws,) each, row 0 as observed.

    `redrawn`: the statistic of the outcomes under each redraw. `of_treatment`: the statistic of the treatment
    itself, 1 in row 0. If the effect is x, the statistic of the outcomes without treatment is `redrawn - x *
    of_treatment`.
    """
    estimate = float(redrawn[0])

    def p_value(effect: float) -> float:
        values = np.abs(redrawn - effect * of_treatment)
        return float(np.mean(values >= values[0] * (1 - 1e-12)))

    return invert(p_value, estimate, float(np.std(redrawn - estimate * of_treatment)), level)


def invert(
    p_value: Callable[[float], float], estimate: float, step: float, level: float
) -> RandomisationTest | None:
    """The effects that are not rejected: from `estimate` outwards, first by steps that double, then
    halving."""
    if step <= 0 or not math.isfinite(step):
        return None
    ends = []
    for side in (-1.0, 1.0):
        inside, reach = 0.0, step
        while p_value(estimate + side * reach) > 1 - level:
            inside, reach = reach, 2 * reach
            if reach > 1e6 * step:
                return None
        for _ in range(30):
            middle = (inside + reach) / 2
            if p_value(estimate + side * middle) > 1 - level:
                inside = middle
            else:
                reach = middle
        ends.append(estimate + side * reach)
    return RandomisationTest(estimate, ends[0], ends[1], p_value(0.0))


def effect_of_logs(
    tested: RandomisationTest | None,
    control: float,
    *,
    pairs: int,
    level: float,
    estimand: str,
    unit: str = "pairs",
) -> Outcome:
    """The effect of a test on logarithms. Differences follow from the ratio and the control level."""
    if tested is None:
        least = math.ceil(math.log2(2 / (1 - level)))
        reason = f"{pairs} {unit} cannot show an effect at this level: plan at least {least}"
        return NoInterval(reason, control=control, estimand=estimand)
    ratio, low, high = (math.exp(value) for value in (tested.estimate, tested.low, tested.high))
    return Effect(
        control=control,
        treated=control * ratio,
        difference=control * (ratio - 1),
        difference_low=control * (low - 1),
        difference_high=control * (high - 1),
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        p_value=tested.p_value,
        degrees_of_freedom=float(pairs - 1),
        level=level,
        estimand=estimand,
    )
