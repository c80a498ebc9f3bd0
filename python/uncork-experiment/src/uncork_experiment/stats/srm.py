"""Sample-ratio mismatch: are there as many units in each arm as were to be assigned? (Fabijan et al. 2019)

Count units (clients), never requests: a better controller causes more requests.

- `sample_ratio` is for one look, at units of which each counts once: a chi-square test.
- `watched_ratio` is for any number of looks, at units of which some count more often, such as units of each
  day: a jackknife over buckets, and the always-valid bound of guardrails (sequential.py). That such a check
  has to hold at all looks: Lindon and Malek 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from uncork_experiment.stats import jackknife, sequential
from uncork_experiment.stats.effect import Effect

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
    """Chi-square test of the units of each arm against the arms' propensities, whatever their sum.

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
    return SampleRatio(*known, float(stats.chisquare(observed, expected).pvalue))


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
