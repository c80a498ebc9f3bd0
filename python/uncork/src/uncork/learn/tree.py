"""Shrinkage: estimates of networks towards their AS, of ASes towards their country, of countries towards all.

The model: a network's lift is its AS's plus a deviation with variance tau^2, and so on up (normal-normal
hierarchy; Efron and Morris 1973). Given the variances, posteriors follow exactly from one pass of messages
up the tree and one down. The variances come from the estimates themselves (empirical Bayes).

tau is taken from the differences of pairs of siblings, not from deviations from their centre: where one
sibling has most of the evidence the centre follows it, and deviations from it say nothing. Siblings with the
smallest errors say most of tau; others would drown it in their errors.

Two departures make it hard to steer from a few networks: tau follows from a weighted median, and a child that
is further from its siblings' median than OUTLIER standard deviations has no say about them, nor they about
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OUTLIER = 4.0
MIN_TAU = 0.02
"""Siblings are never taken for equal."""
PRIOR_TAU, PRIOR_SIBLINGS = 0.1, 5
"""Few siblings cannot estimate tau: this value weighs as much as `PRIOR_SIBLINGS` of them."""
ROOT = (0.0, 0.2**2)
"""Mean and variance of the lift before any evidence: log scale."""
MEDIAN_OF_CHI2 = 0.45493642311957305
"""Of one degree of freedom."""
FEW = 5
"""With fewer siblings none is an outlier."""
NEXT = (1, 2, 3)
"""Each sibling is compared with those at these distances in the order of errors."""


@dataclass(frozen=True)
class Level:
    """Nodes of one depth. Depth 0 is the root alone."""

    parent: Ints
    """Index of each node's parent in the level above."""
    mean: Floats
    """Own estimate; NaN: none."""
    variance: Floats
    extra: Floats
    """Factor of tau^2 for a node: 1, or less if it stands for several networks together."""
    expected: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """Mean and variance before the node's own evidence, where something else than parent and siblings gives
    them. They do not change the parent.
    """


@dataclass(frozen=True)
class Posterior:
    """The posterior of each node of a level."""

    mean: Floats
    variance: Floats
    prior_mean: Floats
    """Before the node's own evidence: from its parent and siblings."""
    prior_variance: Floats
    tau2: float
    is_outlier: NDArray[np.bool_]
    own_mean: Floats
    """By the node's own evidence and that of all below it, without anything from above."""
    own_variance: Floats
    """Infinite: no evidence."""
    is_expected: NDArray[np.bool_]
    """Whether something else than parent and siblings says what to expect."""

    def lean(self) -> Posterior:
        """Without what led to mean and variance."""
        nothing = self.mean[:0]
        no = nothing > 0
        return Posterior(self.mean, self.variance, nothing, nothing, self.tau2, no, nothing, nothing, no)


def posteriors(levels: list[Level]) -> list[Posterior]:
    """Posteriors of all levels, from the root to the leaves."""
    up = _upwards(levels)
    mean, variance = _combine(*ROOT, up[0].mean, up[0].variance)
    no = np.zeros(len(mean), dtype=np.bool_)
    start = (np.full(len(mean), ROOT[0]), np.full(len(mean), ROOT[1]))
    found = [Posterior(mean, variance, *start, 0.0, no, up[0].mean, up[0].variance, no)]
    for level, info in zip(levels[1:], up[1:], strict=True):
        found.append(_down(level, info, found[-1]))
    return found


@dataclass(frozen=True)
class _Info:
    """What a node and all below it say of it, and what of it its parent hears."""

    mean: Floats
    variance: Floats
    """Infinite: nothing."""
    said: Floats
    """Precision of the message to the parent; 0 for those without a say."""
    tau2: float
    is_outlier: NDArray[np.bool_]


def _upwards(levels: list[Level]) -> list[_Info]:
    infos: list[_Info] = []
    below: tuple[Floats, Floats] | None = None
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        precision = np.where(np.isnan(level.mean), 0.0, 1 / np.where(level.variance > 0, level.variance, 1.0))
        weighted = precision * np.nan_to_num(level.mean)
        if below is not None:
            precision, weighted = precision + below[0], weighted + below[1]
        variance = np.where(precision > 0, 1 / np.where(precision > 0, precision, 1.0), np.inf)
        mean = np.where(precision > 0, weighted / np.where(precision > 0, precision, 1.0), 0.0)
        if depth == 0:
            nothing = np.zeros(len(mean))
            infos.append(_Info(mean, variance, nothing, 0.0, nothing > 0))
            break
        tau2 = _tau2(level, mean, variance)
        is_outlier = _outliers(level, mean, variance, tau2)
        said = np.where(is_outlier, 0.0, 1 / (variance + tau2 * level.extra))
        count = len(levels[depth - 1].parent)
        sums = np.zeros((2, count))
        np.add.at(sums[0], level.parent, said)
        np.add.at(sums[1], level.parent, said * mean)
        below = sums[0], sums[1]
        infos.append(_Info(mean, variance, said, tau2, is_outlier))
    return infos[::-1]


def _down(level: Level, info: _Info, above: Posterior) -> Posterior:
    """Each node's prior is its parent's posterior without the node's own message."""
    parent_precision = 1 / above.variance[level.parent] - info.said
    parent_weighted = above.mean[level.parent] / above.variance[level.parent] - info.said * info.mean
    # An outlier's only child: what its parent knows it knows from the child itself.
    is_alone = parent_precision < 1e-9 / above.variance[level.parent]
    parent_weighted = np.where(is_alone, ROOT[0] / ROOT[1], parent_weighted)
    parent_precision = np.where(is_alone, 1 / ROOT[1], parent_precision)
    prior_mean = parent_weighted / parent_precision
    prior_variance = 1 / parent_precision + info.tau2 * level.extra
    is_expected = np.zeros(len(prior_mean), dtype=np.bool_)
    for at, (expected, spread) in level.expected.items():
        prior_mean[at], prior_variance[at], is_expected[at] = expected, spread, True
    mean, variance = _combine(prior_mean, prior_variance, info.mean, info.variance)
    # An outlier is not like its siblings: only its own evidence counts.
    mean = np.where(info.is_outlier, info.mean, mean)
    variance = np.where(info.is_outlier, info.variance, variance)
    return Posterior(
        mean=mean,
        variance=variance,
        prior_mean=prior_mean,
        prior_variance=prior_variance,
        tau2=info.tau2,
        is_outlier=info.is_outlier,
        own_mean=info.mean,
        own_variance=info.variance,
        is_expected=is_expected,
    )


def _combine(
    prior_mean: Floats | float, prior_variance: Floats | float, mean: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    precision = 1 / np.asarray(prior_variance) + 1 / variance
    return (np.asarray(prior_mean) / prior_variance + mean / variance) / precision, 1 / precision


def _tau2(level: Level, mean: Floats, variance: Floats) -> float:
    """Variance of a node's deviation from its parent."""
    pairs = _Pairs.of(level, mean, variance)
    count = pairs.siblings
    own = pairs.tau2() if count else 0.0
    return (count * own + PRIOR_SIBLINGS * PRIOR_TAU**2) / (count + PRIOR_SIBLINGS)


@dataclass(frozen=True)
class _Pairs:
    """Siblings that are known equally well, two at a time."""

    siblings: int
    """How many nodes there are in pairs."""
    square: Floats
    """Squared difference."""
    variance: Floats
    """Of the difference, if siblings were equal."""
    extra: Floats
    """How many tau^2 come to it."""

    @staticmethod
    def of(level: Level, mean: Floats, variance: Floats) -> _Pairs:
        known = np.flatnonzero(np.isfinite(variance))
        known = known[np.lexsort((variance[known], level.parent[known]))]
        first = np.concatenate([known[:-apart] for apart in NEXT])
        second = np.concatenate([known[apart:] for apart in NEXT])
        are_siblings = level.parent[first] == level.parent[second]
        first, second = first[are_siblings], second[are_siblings]
        return _Pairs(
            len(np.unique(np.concatenate([first, second]))),
            (mean[first] - mean[second]) ** 2,
            variance[first] + variance[second],
            level.extra[first] + level.extra[second],
        )

    def tau2(self) -> float:
        """What makes the median of the standardised squares that of chi^2."""
        low, high = MIN_TAU**2, 4.0
        if self._middle(low) <= MEDIAN_OF_CHI2:
            return low
        for _ in range(40):
            between = float(np.sqrt(low * high))
            low, high = (between, high) if self._middle(between) > MEDIAN_OF_CHI2 else (low, between)
        return high

    def _middle(self, tau2: float) -> float:
        spread = self.variance + tau2 * self.extra
        return _median(self.square / spread, self.extra / spread)


def _outliers(level: Level, mean: Floats, variance: Floats, tau2: float) -> NDArray[np.bool_]:
    """Nodes far from the weighted median of their siblings, where these are not few."""
    found = np.zeros(len(mean), dtype=np.bool_)
    known = np.flatnonzero(np.isfinite(variance))
    known = known[np.lexsort((mean[known], level.parent[known]))]
    if not len(known):
        return found
    parent = level.parent[known]
    spread = variance[known] + tau2 * level.extra[known]
    start = np.flatnonzero(np.diff(parent, prepend=-1))
    siblings = np.diff(start, append=len(known))
    sums = np.cumsum(1 / spread)
    before = sums[start] - 1 / spread[start]
    middle = np.searchsorted(sums, before + (sums[start + siblings - 1] - before) / 2)
    centre = np.repeat(mean[known][np.minimum(middle, start + siblings - 1)], siblings)
    is_far = np.abs(mean[known] - centre) > OUTLIER * np.sqrt(spread)
    found[known[is_far & (np.repeat(siblings, siblings) >= FEW)]] = True
    return found


def _median(values: Floats, weights: Floats) -> float:
    """The weighted median."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2)])
