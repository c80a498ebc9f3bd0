"""Interference: does the control arm move when more of the other traffic is treated?

If it does, an A/B difference is not what a rollout brings. A stable A/B difference shows nothing: on a full
link it is the same at every share, while the total effect is zero (Spang et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats.effect import SPILL_OVER, Effect, NoInterval, Outcome
from uncork.measure.stats.randomisation import DRAWS, effect_of_logs, linear

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interference:
    """The control arm's level against the share of treated traffic."""

    spill_over: Outcome
    """Ratio of the control level with all other traffic treated to that with none."""
    contested: bool
    """Whether the level moves: at 95 % certainty, unless another level was asked for."""
    sentence: str


def control_level(
    places: Sequence[str],
    shares: Floats,
    levels: Floats,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Interference:
    """Slope of log(control level) over the share of treated traffic, within places.

    `places`, `shares` (0 to 1) and `levels` (above zero) have one entry for each place and step. The test
    permutes the steps of each place, so the order of the steps must have been drawn: a plain ramp upwards
    would mistake a trend in time for interference.
    """
    names = np.unique(np.asarray(places), return_inverse=True)[1]
    known = np.isfinite(levels) & (levels > 0)
    names, shares, logs = names[known], np.asarray(shares)[known], np.log(np.asarray(levels)[known])
    if len(logs) == 0 or np.ptp(shares) == 0:
        return _open("the share of treated traffic does not vary")
    middle = float(logs.mean()), float(shares.mean())
    shares = _centred(names, shares)
    weight = float(shares @ shares)
    if weight == 0:
        return _open("the share of treated traffic does not vary within any place")
    permuted = np.stack([shares, *(_shuffled(names, shares, rng) for _ in range(draws))])
    tested = linear(permuted @ logs / weight, permuted @ shares / weight, level=level)
    base = math.exp(middle[0] - (tested.estimate * middle[1] if tested else 0.0))
    found = effect_of_logs(
        tested, base, pairs=len(logs), level=level, estimand=SPILL_OVER, unit="steps of the share"
    )
    if not isinstance(found, Effect):
        return _open(found.reason)
    moves = found.p_value <= 1 - level
    center, low, high = (f"{(x - 1) * 100:+.0f}" for x in (found.ratio, found.ratio_low, found.ratio_high))
    change = f"{center} % ({low} to {high} %)"
    sentence = (
        f"The control arm moves by {change} as the treated share goes from 0 to 100 %: "
        "the arms share bottlenecks, and the A/B difference is not the effect of a rollout."
        if moves
        else f"The control arm is not seen to move with the treated share: {change} from 0 to 100 %."
    )
    return Interference(found, moves, sentence)


def _open(reason: str) -> Interference:
    remedy = "Plan steps of the share, or a switchback."
    sentence = f"Whether the arms share bottlenecks is not known: {reason}. {remedy}"
    return Interference(NoInterval(reason, estimand=SPILL_OVER), False, sentence)


def _centred(names: NDArray[np.intp], values: Floats) -> Floats:
    means = np.bincount(names, values) / np.bincount(names)
    return np.asarray(values - means[names], dtype=np.float64)


def _shuffled(names: NDArray[np.intp], values: Floats, rng: np.random.Generator) -> Floats:
    """`values` permuted within each name."""
    shuffled = np.empty_like(values)
    by_name = np.argsort(names, kind="stable")
    shuffled[by_name] = values[np.lexsort((rng.random(len(values)), names))]
    return shuffled
