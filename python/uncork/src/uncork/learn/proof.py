"""Whether any network gains at all, beyond chance, at any number of looks.

A probability by empirical Bayes is as good as its prior. Where the arms do not differ, a prior that expects
some spread takes noise for gains: with thousands of networks and a look each day some of it will look like
one. So nothing is switched on before the records say that somebody gains, by evidence that needs no prior: an
e-value. The mean of e-values is an e-value too, even if they depend on each other. If no network gains, it
ever reaches 1 / alpha with probability alpha at most.

One network that gains a lot shows in the mean over networks. Many that gain a little show in a product:
networks have separate records, and the product of independent e-values is an e-value. A factor is 1 - p + p
times the network's e-value, as if the part p of the networks gained (Vovk and Wang 2021).

The bound holds for looks at evidence that grows. Old evidence fades, so it holds for about the lifetime of
evidence, and again after that.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from uncork.learn.lift import Lifts
from uncork.measure.stats.sequential import log_evidence

Floats = NDArray[np.float64]

EXPECTED = (0.05, 0.2, 1.0)
"""Gains for which evidence grows fastest. With small ones alone a large gain, known badly, would never be
beyond chance; the mean over several is an e-value, too.
"""
PARTS = (0.1, 0.5)
"""Parts of the nodes that gain, for which a product grows fastest; the mean is for smaller ones."""


def log_evidence_of_gain(lifts: Lifts) -> float:
    """Of all levels alike, whether all clients gain or a single network."""
    levels = (lifts.network, lifts.system, lifts.country, lifts.all_clients)
    found = []
    for level in levels:
        known = np.isfinite(level.own_variance)
        if known.any():
            mean, variance = level.own_mean[known], level.own_variance[known]
            each = np.stack([log_evidence(mean, variance, expected=gain) for gain in EXPECTED])
            products = [np.logaddexp(math.log1p(-part), math.log(part) + each).sum(axis=1) for part in PARTS]
            found += [_mean(each), _mean(np.stack(products))]
    return float(logsumexp(found)) - math.log(2 * len(levels)) if found else -math.inf


def _mean(logs: Floats) -> float:
    """The logarithm of the mean."""
    return float(logsumexp(logs)) - math.log(logs.size)
