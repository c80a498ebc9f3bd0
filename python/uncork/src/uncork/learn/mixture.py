"""Beliefs about lifts: a hierarchical mixture. Its distributions come from the estimates themselves.

Half of the ASes may gain nothing while others gain a lot; networks of one AS may be alike, or of two sorts;
in any AS a few networks are unlike all others. A normal distribution for each level (tree.py) takes such
networks for all but impossible, and so is too sure while evidence is thin. The model here:

- An AS has a mean lift and a class: how far its networks usually deviate from it (`SPREADS`).
- Mean and class together have any distribution over a grid (nonparametric maximum likelihood: Kiefer and
  Wolfowitz 1956; Laird 1978), smoothed in each step (Silverman et al. 1990), with a few ASes' worth of a
  broad prior (`BASE`). ASes of a country shrink towards this distribution as a Dirichlet process would
  (Ferguson 1973), as far as they predict each other better by that.
- A small part of the networks deviates by `FAR`, in any AS: a contaminated normal (Tukey 1960).

What is expected of an AS comes from the other ASes alone, so that it is never its own prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.special import ndtr, ndtri

from uncork.learn.lift import Lifts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEP, STEPS = 0.0667, 46
LIFTS: Floats = 0.3 * np.sinh(STEP * np.arange(-STEPS, STEPS + 1))
"""Mean lifts of ASes: 2 % apart around zero, up to a factor of 20 in either direction."""
WIDTHS: Floats = np.cosh(STEP * np.arange(-STEPS, STEPS + 1))
"""How far apart they are, but for a constant."""
SPREADS: Floats = np.array([0.01, 0.025, 0.05, 0.1, 0.25])
"""Standard deviations of the networks of an AS, by class."""
EXPECTED: Floats = np.array([1.0, 1.5, 2.0, 3.0, 4.0]) / 11.5
"""How likely each class is before any evidence: siblings are not taken for alike before they show it."""
FAR = 0.3
"""Standard deviation of the networks that are unlike all others."""
FAR_PART, FAR_COUNT = 0.02, 20
"""Part of such networks before any evidence, and as how many networks that counts."""
BASE = ((0.3, 0.03), (0.4, 0.15), (0.3, 0.5))
"""Lifts of ASes before any evidence: parts and standard deviations of normal distributions around zero."""
BASE_COUNT = 4.0
"""As how many ASes that counts."""
SMOOTH = 1.5
"""Standard deviation of the smoothing, in steps of the grid."""
COUNTRY_COUNTS = (3.0, 10.0, 30.0, 1e6)
"""Weight of the distribution of all ASes in a country, in ASes of its own: the weight that predicts best."""
ROUNDS, OUTER = 40, 2
CHUNK = 256
"""Networks at a time."""
MIN_P = 1e-12
"""Of a probability that is widened."""


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

    def widened(self, factor: float) -> Belief:
        """With standard deviations that are larger by this factor; the mean stays."""
        if factor == 1:
            return self
        above = (ndtr(ndtri(np.clip(each, MIN_P, 1 - MIN_P)) / factor) for each in self.above)
        return Belief(self.mean, self.sd * factor, tuple(above))

    def of(self, nodes: NDArray[np.bool_] | slice | Ints) -> Belief:
        """Of these nodes alone."""
        return Belief(self.mean[nodes], self.sd[nodes], tuple(each[nodes] for each in self.above))


@dataclass(frozen=True)
class Beliefs:
    """Of a network without evidence of its own, by level, and of each network."""

    all_clients: Belief
    country: Belief
    system: Belief
    network: Belief
    prior_mean: Floats
    """Of each network, without its own evidence."""
    prior_variance: Floats


@dataclass(frozen=True)
class _Evidence:
    """Estimates of networks, and of several networks of an AS together, by the node that they are of."""

    node: Ints
    mean: Floats
    variance: Floats
    extra: Floats
    """Part of a spread's variance that the estimate has: 1 for one network."""
    country: Ints
    """Of each node; nodes after the ASes are the rests of countries, and of all."""
    countries: int

    @staticmethod
    def of(lifts: Lifts) -> _Evidence:
        tree = lifts.hierarchy
        at = np.fromiter(lifts.raw, dtype=np.int64, count=len(lifts.raw))
        by_system, by_country, of_all = lifts.rests
        country = [*tree.country.tolist(), *sorted(by_country), *([len(tree.countries)] if of_all else [])]
        nodes = [*sorted(by_system), *range(len(tree.systems), len(country))]
        rests = [by_system[one] for one in sorted(by_system)] + [
            by_country[one] for one in sorted(by_country)
        ]
        rests += [of_all] if of_all else []
        own, other = list(lifts.raw.values()), [rest.estimate for rest in rests]
        return _Evidence(
            np.append(tree.system[at], np.array(nodes, dtype=np.int64)),
            np.array([one.lift for one in [*own, *other]]),
            np.array([one.error**2 for one in [*own, *other]]),
            np.append(np.ones(len(own)), [rest.extra for rest in rests]),
            np.array(country, dtype=np.int64),
            len(tree.countries) + 1,
        )

    def chunks(self) -> Iterator[slice]:
        return (slice(start, start + CHUNK) for start in range(0, len(self.node), CHUNK))

    def densities(self, rows: slice) -> tuple[Floats, Floats]:
        """Of each estimate by mean lift and class, if it is like its AS and if it is unlike all: shape
        (rows, lifts, classes)."""
        away = (self.mean[rows, None] - LIFTS)[:, :, None] ** 2
        extra, own = self.extra[rows, None, None], self.variance[rows, None, None]
        near = own + extra * SPREADS**2
        return _density(away, near), _density(away, near + extra * FAR**2)


def _density(square: Floats, variance: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * square / variance) / np.sqrt(2 * math.pi * variance)) + 1e-280


def beliefs(lifts: Lifts, limits: Sequence[float]) -> Beliefs:
    """By the evidence of all. `limits`: each belief says how likely it is above these lifts."""
    evidence = _Evidence.of(lifts)
    twin = _of_twin(lifts)
    far = FAR_PART
    for _ in range(OUTER):
        fits, odds = _fits(evidence, far)
        found = _Priors.of(evidence, fits, twin)
        posterior = _normed(found.system * fits)
        far = _far_part(evidence, posterior, odds)
    return _all(lifts, evidence, found, posterior, far, limits)


def _fits(evidence: _Evidence, far: float) -> tuple[Floats, list[Floats]]:
    """Likelihood of each node's mean lift and class, its maximum 1: shape (nodes, lifts, classes). And of
    each chunk of the estimates, how likely it is unlike all, given these.
    """
    log, odds = np.zeros((len(evidence.country), len(LIFTS), len(SPREADS))), []
    for rows in evidence.chunks():
        near, unlike = evidence.densities(rows)
        both = (1 - far) * near + far * unlike
        np.add.at(log, evidence.node[rows], np.log(both))
        odds.append(far * unlike / both)
    return np.asarray(np.exp(log - log.max(axis=(1, 2), keepdims=True))), odds


def _far_part(evidence: _Evidence, posterior: Floats, odds: list[Floats]) -> float:
    """Part of the networks that are unlike all others: one step of expectation maximisation."""
    single = evidence.extra == 1
    each = zip(evidence.chunks(), odds, strict=True)
    unlike = [(posterior[evidence.node[rows]] * of).sum(axis=(1, 2)) for rows, of in each]
    count = float(np.concatenate([*unlike, np.zeros(0)])[single].sum())
    return (count + FAR_COUNT * FAR_PART) / (int(single.sum()) + FAR_COUNT)


@dataclass(frozen=True)
class _Priors:
    """Distributions over mean lift and class: the last two axes have the shape (lifts, classes)."""

    all_clients: Floats
    country: Floats
    system: Floats
    """Of each node, by the others."""

    @staticmethod
    def of(evidence: _Evidence, fits: Floats, twin: Mapping[int, Floats]) -> _Priors:
        known = np.zeros(len(fits), dtype=np.bool_)
        known[evidence.node] = True
        known[list(twin)] = False
        likely, country = fits[known], evidence.country[known]
        base = _base()
        all_clients = base
        flat = likely.reshape(len(likely), base.size)
        for _ in range(ROUNDS):
            # The sum of what each node is likely to be, as two products of matrices.
            shares = all_clients.reshape(-1)
            sums = (shares * ((1 / (flat @ shares)) @ flat)).reshape(base.shape)
            all_clients = _shrunk(base, BASE_COUNT, _smoothed(sums[None])[0], len(likely))
        says = _smoothed(_normed(all_clients * likely))
        # Without the node's own say, which all others have shaped.
        others = _shrunk(base, BASE_COUNT, says.sum(axis=0) - says, len(likely) - 1)
        sums = np.zeros((evidence.countries, *base.shape))
        np.add.at(sums, country, says)
        count = np.bincount(country, minlength=evidence.countries).astype(np.float64)[:, None, None]
        by_count = [
            (_shrunk(others, weight, sums[country] - says, count[country] - 1), weight)
            for weight in COUNTRY_COUNTS
        ]
        best, weight = max(by_count, key=lambda one: _log_score(one[0], likely))
        of_country = _shrunk(all_clients, weight, sums, count)
        system = of_country[evidence.country]
        system[known] = best
        for node, prior in twin.items():
            system[node] = prior * all_clients.sum(axis=0)
        return _Priors(all_clients, of_country, system)


def _shrunk(prior: Floats, weight: float, says: Floats, count: Floats | float) -> Floats:
    """The mean of a Dirichlet distribution after `count` observations, with the sum `says`."""
    return np.asarray((weight * prior + says) / (weight + count))


def _log_score(prior: Floats, fits: Floats) -> float:
    return float(np.log((prior * fits).sum(axis=(1, 2)) + 1e-280).sum())


def _base() -> Floats:
    """What is expected of an AS before any evidence: shape (lifts, classes)."""
    each = [part * _density(LIFTS**2, np.array(sd**2)) * WIDTHS for part, sd in BASE]
    lift = np.sum(each, axis=0)
    return np.asarray((lift / lift.sum())[:, None] * EXPECTED)


def _smoothed(says: Floats) -> Floats:
    """Along the lifts."""
    return np.asarray(gaussian_filter1d(says, SMOOTH, axis=1, mode="nearest"))


def _of_twin(lifts: Lifts) -> dict[int, Floats]:
    """What a calibrated twin expects of ASes: shape (lifts, 1)."""
    found, system = {}, lifts.system
    for at in np.flatnonzero(system.is_expected).tolist():
        away = (LIFTS - system.prior_mean[at]) ** 2
        fits = _density(away, system.prior_variance[at]) * WIDTHS
        found[at] = (fits / fits.sum())[:, None]
    return found


def _normed(weight: Floats) -> Floats:
    """So that each node's sum is 1."""
    return np.asarray(weight / weight.sum(axis=(1, 2), keepdims=True))


def _all(
    lifts: Lifts, evidence: _Evidence, priors: _Priors, posterior: Floats, far: float, limits: Sequence[float]
) -> Beliefs:
    tree, own = lifts.hierarchy, len(lifts.raw)
    unknown = _Kernel.of(None, far, limits)
    system = unknown.belief(posterior[: len(tree.systems)])
    network = system.of(tree.system)
    prior_mean, prior_variance = network.mean.copy(), network.sd**2
    at = np.fromiter(lifts.raw, dtype=np.int64, count=own)
    for start in range(0, own, CHUNK):
        rows = slice(start, min(start + CHUNK, own))
        near, unlike = evidence.densities(rows)
        both = (1 - far) * near + far * unlike
        of_system = posterior[evidence.node[rows]]
        before = unknown.belief(_normed(of_system / both))
        prior_mean[at[rows]], prior_variance[at[rows]] = before.mean, before.sd**2
        one = _Kernel.of((evidence.mean[rows], evidence.variance[rows]), far * unlike / both, limits)
        found = one.belief(of_system)
        network.mean[at[rows]], network.sd[at[rows]] = found.mean, found.sd
        for mine, its in zip(network.above, found.above, strict=True):
            mine[at[rows]] = its
    return Beliefs(
        unknown.belief(priors.all_clients[None]),
        unknown.belief(priors.country[: len(tree.countries)]),
        system,
        network,
        prior_mean,
        prior_variance,
    )


@dataclass(frozen=True)
class _Kernel:
    """A network's lift given its AS's mean lift and class: moments and tails over (networks, lifts, classes),
    or (1, lifts, classes) where nothing is known of the network.
    """

    first: Floats
    second: Floats
    above: tuple[Floats, ...]

    @staticmethod
    def of(measured: tuple[Floats, Floats] | None, far: Floats | float, limits: Sequence[float]) -> _Kernel:
        """`measured`: estimates and their variances, shape (networks,)."""
        parts = []
        for spread, weight in ((SPREADS**2, 1 - far), (SPREADS**2 + FAR**2, far)):
            mean, variance = np.broadcast_to(LIFTS[None, :, None], (1, len(LIFTS), len(SPREADS))), spread
            if measured is not None:
                own, error = measured[0][:, None, None], measured[1][:, None, None]
                variance = 1 / (1 / spread + 1 / error)
                mean = variance * (mean / spread + own / error)
            sd = np.sqrt(variance)
            above = [weight * ndtr((mean - limit) / sd) for limit in limits]
            parts.append((weight * mean, weight * (mean**2 + variance), *above))
        first, second, *above = (one + other for one, other in zip(*parts, strict=True))
        return _Kernel(first, second, tuple(above))

    def belief(self, weight: Floats) -> Belief:
        """By how likely each mean lift and class is: shape (nodes, lifts, classes)."""

        def mean(values: Floats) -> Floats:
            # One kernel for all nodes is a product of matrices.
            if len(values) == 1:
                return np.asarray(weight.reshape(len(weight), -1) @ values.reshape(-1))
            return np.asarray((weight * values).sum(axis=(1, 2)))

        first = mean(self.first)
        sd = np.sqrt(np.maximum(mean(self.second) - first**2, 1e-12))
        return Belief(first, sd, tuple(np.clip(mean(one), 0.0, 1.0) for one in self.above))
