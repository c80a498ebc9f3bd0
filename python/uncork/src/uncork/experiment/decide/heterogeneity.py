"""Do cells differ by more than chance?

Two tests share a small error rate. Cochran's Q (1954) sees many small differences, the largest leave-one-out
deviation sees one cell among many. Both take normal scores of Student's t, so that few degrees of freedom do
not count as differences. Overlapping cells are positively dependent: their differences vary less than the
tests assume, so the error rate is smaller, never larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from uncork.experiment.decide.case import Estimate

Floats = NDArray[np.float64]

ALPHA = 0.01
"""Error rate of both tests together: cells decide by themselves only where they clearly differ."""
MIN_SIBLINGS = 5
"""With fewer cells it is not clear which of them is the outlier."""
MAX_OUTLIERS = 0.2
"""Share of the cells. Beyond it, cells are of several kinds and none is an outlier."""
MAX_SCORE = 30.0
"""Of normal scores: further tails underflow."""


@dataclass(frozen=True)
class Heterogeneity:
    """Which cells differ. Indices are places in the list of estimates."""

    found: bool
    outliers: frozenset[int]
    rest_differs: bool
    """Whether cells without the outliers still differ."""
    rest: Estimate | None
    """Common effect of the cells that are not outliers."""


def heterogeneity(estimates: Sequence[Estimate | None], overlap: float = 1.0) -> Heterogeneity:
    """`overlap`: how many cells a unit is in, on average."""
    active = [n for n, one in enumerate(estimates) if one is not None]
    known = {n: one for n, one in enumerate(estimates) if one is not None}
    if len(active) < 2:
        return Heterogeneity(False, frozenset(), False, None)
    cells = len(active)
    outliers: list[int] = []
    max_outliers = int(MAX_OUTLIERS * cells) if cells >= MIN_SIBLINGS else 0
    first, differs = True, False
    while True:
        some = [known[n] for n in active]
        place, p_outlier = _furthest(some)
        is_outlier = p_outlier * cells < ALPHA / 2
        differs = _p_of_q(some) < ALPHA / 2
        found = (is_outlier or differs) if first else True
        if not (is_outlier and len(outliers) < max_outliers):
            rest_differs = differs or is_outlier
            break
        outliers.append(active.pop(place))
        first = False
    return Heterogeneity(
        found,
        frozenset(outliers),
        rest_differs,
        _pooled([known[n] for n in active], overlap) if outliers else None,
    )


def _pooled(some: Sequence[Estimate], overlap: float) -> Estimate:
    """Precision-weighted mean. A unit in several cells counts once."""
    weight = np.array([1 / one.normal_error**2 for one in some])
    gain = np.array([one.gain for one in some])
    return Estimate(float(weight @ gain / weight.sum()), math.sqrt(max(overlap, 1.0) / float(weight.sum())))


def _p_of_q(some: Sequence[Estimate]) -> float:
    """p-value of Cochran's Q of normal scores."""
    if len(some) < 2:
        return 1.0
    centre = _pooled(some, 1.0).gain
    q = sum(score((one.gain - centre) / one.error, one.df) ** 2 for one in some)
    return float(special.chdtrc(len(some) - 1, q))


def _furthest(some: Sequence[Estimate]) -> tuple[int, float]:
    """The cell furthest from all others, and the two-sided p-value of its deviation alone."""
    if len(some) < 2:
        return 0, 1.0
    weight = np.array([1 / one.normal_error**2 for one in some])
    gain = np.array([one.gain for one in some])
    rest = weight.sum() - weight
    deviation = gain - (weight @ gain - weight * gain) / rest
    z = [
        score(d / math.hypot(one.error, 1 / math.sqrt(r)), one.df)
        for d, one, r in zip(deviation, some, rest, strict=True)
    ]
    place = int(np.argmax(np.abs(z)))
    return place, float(2 * special.ndtr(-abs(z[place])))


def score(t: float, df: float) -> float:
    """The normal deviate as improbable as `t`."""
    if math.isinf(df):
        return max(min(t, MAX_SCORE), -MAX_SCORE)
    p = float(special.stdtr(df, -abs(t)))
    return math.copysign(min(float(-special.ndtri(p)), MAX_SCORE) if p > 0 else MAX_SCORE, t)
