"""Effect: what one treatment does to one metric, with its interval. All estimators return it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from uncork.measure.stats.tails import student_quantile, student_tail

SPILL_OVER = "spill-over"
"""Level of the control arm next to treated traffic, minus its level without any (Spang et al. 2021)."""

TOTAL_EFFECT = "total effect"
"""All units treated against none treated (Spang et al. 2021)."""


def ab_at_share(share: float) -> str:
    """Estimand of a plain A/B test in which `share` (0 to 1) of the traffic is treated."""
    return f"A/B at share {share * 100:g} %"


@dataclass(frozen=True)
class Effect:
    """An effect and its intervals at `level`, in the metric's own unit.

    `difference` is treated minus control, `ratio` is treated over control. `p_value` tests that the ratio is
    1.
    """

    control: float
    treated: float
    difference: float
    difference_low: float
    difference_high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float
    degrees_of_freedom: float
    level: float
    estimand: str


@dataclass(frozen=True)
class NoInterval:
    """No effect can be stated, and why. The arms' values are given where they are known."""

    reason: str
    control: float | None = None
    treated: float | None = None
    estimand: str = ""


Outcome: TypeAlias = Effect | NoInterval
"""What an estimator returns."""


def student_effect(
    arms: tuple[float, float],
    difference: tuple[float, float],
    logs: tuple[float, float],
    *,
    freedom: float,
    level: float,
    estimand: str,
) -> Outcome:
    """Effect with intervals by Student's t.

    `arms`: control and treated. `difference` and `logs`, the logarithm of the ratio: the estimate and its
    standard error.
    """
    if logs[1] == 0:
        return NoInterval("the buckets do not vary", *arms, estimand)
    reach = student_quantile(0.5 + level / 2, freedom)
    return Effect(
        control=arms[0],
        treated=arms[1],
        difference=difference[0],
        difference_low=difference[0] - reach * difference[1],
        difference_high=difference[0] + reach * difference[1],
        ratio=math.exp(logs[0]),
        ratio_low=math.exp(logs[0] - reach * logs[1]),
        ratio_high=math.exp(logs[0] + reach * logs[1]),
        p_value=2 * student_tail(abs(logs[0]) / logs[1], freedom),
        degrees_of_freedom=freedom,
        level=level,
        estimand=estimand,
    )
