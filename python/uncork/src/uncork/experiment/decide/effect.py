"""What an interval shows: the states that all reports use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from uncork.experiment.decide.case import Estimate
from uncork.measure.stats.fdr import benjamini_hochberg

EffectState = Literal["better", "worse", "equivalent", "inconclusive", "no interval"]


def effect_state(estimate: Estimate | None, p: float | None, alpha: float, worth: float) -> EffectState:
    """`p`: the p-value, adjusted if this is one of a family."""
    if estimate is None or p is None:
        return "no interval"
    if p < alpha:
        return "better" if estimate.gain > 0 else "worse"
    low, high = estimate.interval(alpha)
    return "equivalent" if max(abs(math.expm1(low)), abs(math.expm1(high))) < worth else "inconclusive"


def q_values(estimates: Sequence[Estimate | None]) -> list[float | None]:
    """p-values adjusted for the family of all that have an estimate."""
    adjusted = iter(benjamini_hochberg([one.p_value for one in estimates if one is not None]))
    return [None if one is None else float(next(adjusted)) for one in estimates]
