"""Looking at an experiment while it runs, without more false alarms.

- `obrien_fleming`: boundaries for the *verdict* at planned looks. The error rate is spent as Lan and DeMets
  (1983) do in the manner of O'Brien and Fleming (1979): almost nothing early, so the last look costs almost
  no power. Boundaries come from the recursive integration of Armitage, McPherson and Rowe (1969).
- `always_valid`: a bound for *guardrails*, which may be looked at any number of times: the normal-mixture
  confidence sequence of Robbins (1970), in the asymptotic form of Waudby-Smith et al. (2024). It is wider.
- `log_evidence`: the same mixture as evidence of a gain, for many groups at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from uncork.measure.stats.effect import Effect
from uncork.measure.stats.power import log_error
from uncork.measure.stats.tails import (
    normal_density,
    normal_quantile,
    normal_tail,
    student_quantile,
)

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-13
"""Error rate below which a boundary ignores the earlier looks: it is then too high by less than can be
computed."""

HALVINGS = 45
"""Of the span in which a boundary lies: it is then exact to 1e-12."""

MIN_TAIL = 1e-200
"""Of smaller tails scipy's quantile of Student's t is minus infinity (1e-300 with 3 degrees of freedom)."""

BEYOND_ALL = 50.0
"""Logarithm of a ratio that no measure reaches; the interval of a few wild buckets would overflow."""


def spent(fraction: float, alpha: float = 0.05) -> float:
    """The part of `alpha` (two-sided, half on each side) spent when `fraction` (0 to 1) of the information is
    in."""
    return float(4 * normal_tail(-normal_quantile(alpha / 4) / math.sqrt(min(fraction, 1.0))))


def obrien_fleming(looks: int | Sequence[float], alpha: float = 0.05) -> Floats:
    """Boundaries for |z| at each look, shape (looks,). Stop for a verdict where |z| is at or above.

    `looks` is their number (equally spaced), or the share of the information at each, rising to at most 1.
    Where units return from day to day, their later days add less: shares by calendar time are then on the
    safe side.
    """
    fractions = (
        np.arange(1, looks + 1) / looks if isinstance(looks, int) else np.asarray(looks, dtype=np.float64)
    )
    steps = np.diff(fractions, prepend=0.0)
    if fractions.size == 0 or np.any(steps <= 0) or fractions[-1] > 1 + 1e-12:
        raise ValueError("looks are shares of the information: above 0, rising, at most 1")
    if not 0 < alpha < 1:
        raise ValueError(f"an error rate of {alpha:g} is not between 0 and 1")
    budget = np.diff([spent(float(fraction), alpha) for fraction in fractions], prepend=0.0)
    # Positions of the Brownian motion that has not crossed yet, and their probability masses.
    places, masses = np.zeros(1), np.ones(1)
    bounds: list[float] = []
    for step, share in zip(steps, budget, strict=True):
        limit = _limit(
            places, masses, math.sqrt(step), share, math.sqrt(float(np.sum(steps[: len(bounds) + 1])))
        )
        places, masses = _onward(places, masses, math.sqrt(step), limit, steps)
        bounds.append(limit)
    return np.asarray(bounds / np.sqrt(fractions), dtype=np.float64)


def crosses(effect: Effect, boundary: float) -> bool:
    """Whether `effect` is at or beyond `boundary` (a |z|), with t for z as its degrees of freedom demand."""
    return effect.p_value <= 2 * float(normal_tail(boundary))


def repeated_interval(effect: Effect, boundary: float) -> tuple[float, float]:
    """Interval of the ratio that holds at all looks together (Jennison and Turnbull 1989)."""
    return _ratio_within(effect, boundary)


def always_valid(effect: Effect, *, alpha: float = 0.05, expected: float = 0.05) -> tuple[float, float]:
    """Interval of the ratio that holds at all times at once, however often one looks, with probability 1 -
    alpha.

    `expected` is the size of change (0.05 is 5 %) for which it is narrowest. It needs no plan. It is
    asymptotic: the first look should have the buckets that `Effect` demands anyway.
    """
    error = log_error(effect)
    spread = (math.log1p(expected) / error) ** 2
    z = math.sqrt((1 + 1 / spread) * math.log((1 + spread) / alpha**2))
    return _ratio_within(effect, z)


def log_evidence(mean: Floats, variance: Floats, *, expected: float = 0.05) -> Floats:
    """Logarithm of the evidence (an e-value) that means are above zero.

    It is the likelihood ratio of a half-normal mixture of means above zero, with the scale of `expected`, to
    zero. For a mean of zero or below it is at most 1 on average, whenever one stops looking: so it reaches
    1 / alpha ever with probability alpha at most (Ville 1939), and a mean of such values is one again.
    """
    scale = math.log1p(expected) ** 2
    z = mean * np.sqrt(scale / (variance * (scale + variance)))
    evidence = 0.5 * np.log(variance / (scale + variance)) + 0.5 * z**2
    return np.asarray(evidence + math.log(2) + special.log_ndtr(z), dtype=np.float64)


def _ratio_within(effect: Effect, z: float) -> tuple[float, float]:
    """The ratio's interval with the error rate of a normal |z|, by t."""
    tail = max(float(normal_tail(z)), MIN_TAIL)
    reach = min(-student_quantile(tail, effect.degrees_of_freedom) * log_error(effect), BEYOND_ALL)
    return effect.ratio * math.exp(-reach), effect.ratio * math.exp(reach)


def _limit(places: Floats, masses: Floats, spread: float, share: float, whole: float) -> float:
    """Where the motion crosses with probability `share` in this step; `whole` is its deviation if
    unstopped."""
    alone = -whole * normal_quantile(share / 2)
    if share < NEGLIGIBLE:
        return alone

    def excess(limit: float) -> float:
        tails = normal_tail((limit - places) / spread) + normal_tail((limit + places) / spread)
        return float(masses @ tails) - share

    # Halving: the import of scipy.optimize takes longer than all of these boundaries.
    low, high = 0.0, alone + spread
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2


@cache
def _nodes(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(nodes), np.asarray(weights)


def _onward(
    places: Floats, masses: Floats, spread: float, limit: float, steps: Floats
) -> tuple[Floats, Floats]:
    """Positions within the limit after a step, and their masses, at nodes."""
    least = math.sqrt(float(steps.min()))
    reach = min(limit, 9.0)
    nodes, weights = _nodes(min(2000, max(100, math.ceil(6 * reach / least))))
    density = normal_density((reach * nodes[:, None] - places[None, :]) / spread) / spread
    return np.asarray(reach * nodes), np.asarray(reach * weights * (density @ masses))
