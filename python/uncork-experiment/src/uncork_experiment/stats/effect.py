"""Effect: what one treatment does to one metric, with its interval. All estimators return it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

SPILL_OVER = "spill-over"
"""Level of the control arm beside treated traffic, minus its level without any (Spang et al. 2021)."""

TOTAL_EFFECT = "total effect"
"""Everyone treated against nobody treated (Spang et al. 2021)."""


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
