"""Networks of an AS, and ASes of a country, are of several kinds: their lifts are not spread normally.

An AS with mobile clients that gain much has some DSL lines that lose. A normal distribution around its mean,
as wide as most of its networks need, makes them all but impossible. So most siblings deviate from their
parent with variance tau^2 (tree.py), a share of them with WIDE times that: a contaminated normal (Tukey
1960). The estimates themselves tell the share (empirical Bayes, as in Stephens 2017, "False discovery rates:
a new deal", Biostatistics 18). Where siblings are spread normally it is nothing.

What children tell their parents stays as it is in tree.py. Here beliefs go down again, as mixtures of
normals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from uncork_experiment.learn.lift import Lifts
from uncork_experiment.learn.tree import Posterior

Floats = NDArray[np.float64]

WIDE = 16.0
"""Variance of the others: four times as far."""
USUAL = 10
"""With few siblings the share cannot be told: so many that deviate as most do are added."""
ROUNDS = 100
CHUNK = 65_536
"""Networks at a time: of a million there is no room for all distributions at once."""
LEAST = 1e-9
"""Of a share, and of a precision that is left without a child's own message."""


@dataclass(frozen=True)
class Belief:
    """What is believed of the lifts of some nodes: all arrays have the shape (nodes,)."""

    mean: Floats
    sd: Floats
    above: tuple[Floats, ...]
    """Of each limit, how likely the lift is above it."""

    @staticmethod
    def normal(mean: Floats, variance: Floats, limits: Sequence[float]) -> Belief:
        """Of normal distributions."""
        sd = np.sqrt(variance)
        return Belief(mean, sd, tuple(ndtr((mean - limit) / sd) for limit in limits))

    @staticmethod
    def concat(parts: Sequence[Belief]) -> Belief:
        """All of these, one after the other."""
        return Belief(
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.sd for part in parts]),
            tuple(np.concatenate(each) for each in zip(*(part.above for part in parts), strict=True)),
        )

    def of(self, nodes: NDArray[np.bool_] | slice) -> Belief:
        """Of these nodes alone."""
        return Belief(self.mean[nodes], self.sd[nodes], tuple(each[nodes] for each in self.above))


@dataclass(frozen=True)
class _Mixture:
    """Normal distributions of each node, and how likely each of them is: shape (nodes, distributions)."""

    weight: Floats
    mean: Floats
    variance: Floats

    def below(self, tau2: float, share: float) -> _Mixture:
        """Of a child of each node of which nothing else is known."""
        shares, spreads = np.array([1 - share, share]), tau2 * np.array([1.0, WIDE])
        shape = (len(self.weight), -1)
        return _Mixture(
            (self.weight[:, :, None] * shares).reshape(shape),
            np.repeat(self.mean, len(shares), axis=1),
            (self.variance[:, :, None] + spreads).reshape(shape),
        )

    def told(self, mean: Floats, variance: Floats) -> _Mixture:
        """With evidence of each node; none where its variance is infinite."""
        knows = np.isfinite(variance)[:, None]
        own, spread = mean[:, None], np.where(knows, variance[:, None], 1.0)
        fits = np.where(knows, _log_density(own - self.mean, spread + self.variance), 0.0)
        precision = np.where(knows, 1 / spread, 0.0)
        after = 1 / (1 / self.variance + precision)
        return _Mixture(
            _normed(self.weight, fits), after * (self.mean / self.variance + precision * own), after
        )

    def without(self, mean: Floats, precision: Floats) -> _Mixture:
        """Without this message, which is part of them. None is where its precision is 0."""
        said = precision[:, None]
        left = np.maximum(1 / self.variance - said, LEAST)
        before = (self.mean / self.variance - said * mean[:, None]) / left
        spread = 1 / left + 1 / np.where(said > 0, said, 1.0)
        fits = np.where(said > 0, _log_density(mean[:, None] - before, spread), 0.0)
        return _Mixture(_normed(self.weight, -fits), before, 1 / left)

    def belief(self, limits: Sequence[float]) -> Belief:
        mean = (self.weight * self.mean).sum(axis=1)
        variance = (self.weight * (self.variance + (self.mean - mean[:, None]) ** 2)).sum(axis=1)
        sd = np.sqrt(self.variance)
        above = ((self.weight * ndtr((self.mean - limit) / sd)).sum(axis=1) for limit in limits)
        # Rounding may take a sum of probabilities above 1.
        return Belief(mean, np.sqrt(variance), tuple(np.minimum(each, 1.0) for each in above))


def beliefs(lifts: Lifts, limits: Sequence[float]) -> tuple[Belief, Belief]:
    """Of a network of each AS of which nothing else is known, and of each network."""
    network, system = lifts.network, lifts.hierarchy.system
    share = _share(network)
    above = _systems(lifts.system)
    said = np.where(network.is_outlier, 0.0, 1 / (network.own_variance + network.tau2))
    found = []
    for start in range(0, max(len(system), 1), CHUNK):
        rows = slice(start, start + CHUNK)
        of = system[rows]
        parent = _Mixture(above.weight[of], above.mean[of], above.variance[of])
        own = network.own_mean[rows]
        before = parent.without(own, said[rows]).below(network.tau2, share)
        found.append(before.told(own, network.own_variance[rows]).belief(limits))
    return above.below(network.tau2, share).belief(limits), Belief.concat(found)


def _systems(system: Posterior) -> _Mixture:
    """Of each AS, by what its country lets expect, and by its own evidence. What a twin expects of one is as
    sure as its calibration says.
    """
    share = _share(system)
    more = np.where(system.is_expected, 0.0, system.tau2 * (WIDE - 1))
    variance = system.prior_variance[:, None] + more[:, None] * np.array([0.0, 1.0])
    before = _Mixture(
        np.repeat([[1 - share, share]], len(variance), axis=0),
        np.repeat(system.prior_mean[:, None], 2, axis=1),
        variance,
    )
    return before.told(system.own_mean, system.own_variance)


def _share(of: Posterior) -> float:
    """How many of these nodes deviate far, told by those that have evidence (expectation maximisation)."""
    known = np.isfinite(of.own_variance) & ~of.is_expected
    deviation = (of.own_mean - of.prior_mean)[known]
    variance = (of.own_variance + of.prior_variance)[known]
    near = _log_density(deviation, variance)
    far = _log_density(deviation, variance + of.tau2 * (WIDE - 1))
    share = 0.5
    for _ in range(ROUNDS):
        is_far = expit(far - near + logit(share))
        share = max(float(is_far.sum()) / (len(deviation) + USUAL), LEAST)
    return share


def _log_density(deviation: Floats, variance: Floats) -> Floats:
    """Of a normal distribution, but for a constant."""
    return np.asarray(-0.5 * (deviation**2 / variance + np.log(variance)))


def _normed(weight: Floats, fits: Floats) -> Floats:
    """Weights times what fits, as logarithms; each node's sum is 1."""
    found = weight * np.exp(fits - fits.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))
