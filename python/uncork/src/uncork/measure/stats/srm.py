"""Sample-ratio mismatch: are there as many units in each arm as were to be assigned? (Fabijan et al. 2019)

Count units (clients), never requests: a better controller causes more requests.

- `sample_ratio` is for one look, at units that each count once: of two arms an exact binomial test, of
  more a chi-square test.
- `weighted_ratio` is the same where the propensities differ between units: sums of inverse propensities.
- `watched_ratio` is for any number of looks, at units that may count more often, such as units of each
  day: a jackknife over buckets, and the always-valid bound of guardrails (sequential.py). Why such a check
  must hold at all looks: Lindon and Malek 2022.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from uncork.measure.stats import jackknife, sequential
from uncork.measure.stats.effect import Effect
from uncork.measure.stats.tails import student_tail

Floats = NDArray[np.float64]

BLOCKS_BELOW = 0.001
"""A p-value below this blocks the verdict."""

EVER = 0.01
"""Probability that any of the ratios that are watched is ever a mismatch by chance."""

MIN_EXPECTED = 5.0
"""Expected units per arm below which the chi-square distribution does not hold (Cochran 1954)."""


@dataclass(frozen=True)
class SampleRatio:
    """Outcome of the test. `p_value` is None where there are too few units, with the `reason`."""

    units: tuple[int, ...]
    expected: tuple[float, ...]
    p_value: float | None
    reason: str = ""

    @property
    def blocks(self) -> bool:
        """Whether the mismatch is so unlikely by chance that no verdict may be given."""
        return self.p_value is not None and self.p_value < BLOCKS_BELOW


def sample_ratio(units: Sequence[int] | NDArray[np.int64], propensities: Sequence[float]) -> SampleRatio:
    """Test of the units of each arm against the arms' propensities, for any sum of them.

    Only units that were assigned are counted, so the propensities are scaled to sum to 1.
    Raises ValueError if the two differ in length, or a propensity is not above 0.
    """
    observed, weights = np.asarray(units, dtype=np.int64), np.asarray(propensities, dtype=np.float64)
    if observed.shape != weights.shape or observed.ndim != 1:
        raise ValueError(f"{observed.size} arms have units, and {weights.size} have a propensity")
    if not np.all(weights > 0) or not np.all(np.isfinite(weights)):
        raise ValueError("an arm's propensity is not above 0")
    expected = weights / weights.sum() * observed.sum()
    known = tuple(observed.tolist()), tuple(expected.tolist())
    if len(observed) < 2:
        return SampleRatio(*known, None, "there is one arm")
    if expected.min() < MIN_EXPECTED:
        return SampleRatio(
            *known, None, f"an arm is to have {expected.min():.1f} units, and {MIN_EXPECTED:g} are needed"
        )
    if len(observed) == 2:
        share = float(weights[1] / weights.sum())
        # The exact binomial test: twice the smaller tail.
        tails = (
            special.bdtr(observed[1], observed.sum(), share),
            special.bdtrc(observed[1] - 1, observed.sum(), share),
        )
        return SampleRatio(*known, min(1.0, 2 * float(min(tails))))
    squares = float(((observed - expected) ** 2 / expected).sum())
    return SampleRatio(*known, float(special.chdtrc(len(observed) - 1, squares)))


MIN_EFFECTIVE = 30.0
"""Units of equal weight in each arm below which the normal distribution of `weighted_ratio` does not hold."""


def weighted_ratio(control: Mapping[float, int], treated: Mapping[float, int]) -> SampleRatio:
    """Units by the propensity of their own arm. Weighted by one over it, both arms are to have the same sum
    (Horvitz and Thompson 1952); the sum of squared weights estimates the variance of the difference.

    `expected`: each arm's units, scaled to the mean of both sums.
    """
    sums, squares, units = [], [], []
    for arm in (control, treated):
        weights, counts = (
            1 / np.array(list(arm), dtype=np.float64),
            np.array(list(arm.values()), dtype=np.float64),
        )
        sums.append(float(weights @ counts))
        squares.append(float(weights**2 @ counts))
        units.append(int(counts.sum()))
    if not all(units):
        return SampleRatio(tuple(units), (), None, "an arm has no units")
    middle = sum(sums) / 2
    expected = tuple(count * middle / of for count, of in zip(units, sums, strict=True))
    effective = min(of**2 / square for of, square in zip(sums, squares, strict=True))
    if effective < MIN_EFFECTIVE:
        reason = f"an arm has units of the weight of {effective:.0f}, and {MIN_EFFECTIVE:g} are needed"
        return SampleRatio(tuple(units), expected, None, reason)
    z = abs(sums[1] - sums[0]) / float(np.sqrt(sum(squares)))
    return SampleRatio(tuple(units), expected, 2 * student_tail(z, effective))


@dataclass(frozen=True)
class WatchedRatio:
    """Units of the treated arm over those of the control arm, as a part of what was to be: 0.9 if one of ten
    is missing. `low` and `high` hold at all looks together.
    """

    ratio: float
    low: float
    high: float

    @property
    def is_mismatch(self) -> bool:
        """Whether this is so unlikely by chance that the arms may not be compared."""
        return not self.low <= 1 <= self.high


def watched_ratio(control: Floats, treated: Floats, *, tests: int = 1) -> WatchedRatio | None:
    """The ratio of the arms' units, each weighted by one over its propensity; shape (buckets,).

    Of `tests` such ratios any is ever a mismatch by chance with probability `EVER` at most. None: too few
    buckets have units.
    """
    whole = np.ones(len(control))
    effect = jackknife.ratio_effect(control, whole, treated, whole)
    if not isinstance(effect, Effect):
        return None
    return WatchedRatio(effect.ratio, *sequential.always_valid(effect, alpha=EVER / tests))
