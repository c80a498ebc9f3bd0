"""CUPED: use what the same units did before the experiment to make its intervals narrower (Deng et al. 2013).

Before the experiment the arms differ by chance only. What that chance explains of the buckets' later
differences is subtracted: adjusted = later - theta x earlier, theta by least squares over the jackknife's
replicates. This works for every statistic that has replicates, quantiles included. Where the past explains
nothing, it changes nothing but costs one degree of freedom. Compute the earlier replicates from the *same*
units in their later arms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats.effect import NoInterval, Outcome, student_effect
from uncork.measure.stats.jackknife import (
    effective_freedom,
    quantiles_with_replicates,
    ratio_with_replicates,
)

Floats = NDArray[np.float64]


def adjust(
    control: Floats,
    treated: Floats,
    control_before: Floats,
    treated_before: Floats,
    *,
    level: float = 0.95,
    estimand: str = "A/B",
) -> Outcome:
    """Effect, adjusted by the past. Each array: the value (element 0) and its K delete-one replicates, all
    positive.

    `control` and `treated` of the result are as measured; its differences and ratios are adjusted.
    """
    arrays = control, treated, control_before, treated_before
    if len({len(array) for array in arrays}) != 1:
        raise ValueError("the past has other buckets than the experiment")
    if any(not np.all(np.isfinite(array)) or np.any(array <= 0) for array in arrays):
        return NoInterval("a value, or one of the past, is not above zero", estimand=estimand)
    difference = _without_the_past(treated - control, treated_before - control_before)
    logs = _without_the_past(np.log(treated / control), np.log(treated_before / control_before))
    return student_effect(
        (float(control[0]), float(treated[0])),
        difference[:2],
        logs[:2],
        freedom=logs[2],
        level=level,
        estimand=estimand,
    )


def ratio_effect(
    later: Sequence[Floats],
    earlier: Sequence[Floats],
    *,
    level: float = 0.95,
    estimand: str = "A/B",
) -> Outcome:
    """Adjusted effect on a ratio. `later`, `earlier`: numerator and denominator of control, then of treated,
    (K,)."""
    used = np.any([part != 0 for part in (later[1], later[3])], axis=0)
    parts = [np.asarray(part, dtype=np.float64)[used] for part in (*later, *earlier)]
    if np.count_nonzero(used) < 2 or any(np.count_nonzero(part) < 2 for part in parts):
        return NoInterval("an arm has too few buckets, now or in the past", estimand=estimand)
    sides = [ratio_with_replicates(parts[at], parts[at + 1]) for at in (0, 2, 4, 6)]
    return adjust(sides[0], sides[1], sides[2], sides[3], level=level, estimand=estimand)


def quantile_effect(
    later: Sequence[NDArray[np.int64]],
    earlier: Sequence[NDArray[np.int64]],
    q: float,
    *,
    first_bins: tuple[int, int],
    gamma: float,
    level: float = 0.95,
    estimand: str = "A/B",
) -> Outcome:
    """Adjusted effect on the quantile `q`. `later`, `earlier`: counts of control and treated, each (K,
    bins)."""
    arms = [
        (counts, first) for pair, first in zip((later, earlier), first_bins, strict=True) for counts in pair
    ]
    if any(np.count_nonzero(counts.sum(axis=1)) < 2 for counts, _ in arms):
        return NoInterval("an arm has too few buckets, now or in the past", estimand=estimand)
    wanted = np.array([q])
    sides = [
        quantiles_with_replicates(counts, wanted, first_bin=first, gamma=gamma)[:, 0]
        for counts, first in arms
    ]
    return adjust(sides[0], sides[1], sides[2], sides[3], level=level, estimand=estimand)


def _without_the_past(later: Floats, earlier: Floats) -> tuple[float, float, float]:
    """The estimate without what the past explains, its standard error, and the degrees of freedom of that."""
    spread, past = later[1:] - later[1:].mean(), earlier[1:] - earlier[1:].mean()
    weight = float(past @ past)
    theta = float(spread @ past) / weight if weight > 0 else 0.0
    rest, count = spread - theta * past, len(spread)
    error = math.sqrt(float(rest @ rest) * (count - 1) / count * (count - 1) / (count - 2))
    return float(later[0] - theta * earlier[0]), error, effective_freedom(rest, lost=2)
