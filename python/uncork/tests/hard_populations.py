"""Clients for which intervals are hard: few of them, of very different sizes, few of them lossy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats.effect import Effect, Outcome

GAMMA, FIRST_BIN, BINS = 1.02, -500, 1_000
Floats = NDArray[np.float64]


def lossy(rng: np.random.Generator, units: int) -> tuple[Floats, Floats]:
    """Bytes sent again and bytes sent, by bucket; 5 % of the users have a lossy line."""
    bucket, sent = rng.integers(0, 100, units), rng.lognormal(16, 1, units)
    rate = np.where(rng.random(units) < 0.05, rng.beta(2, 15, units), rng.beta(1, 300, units))
    return np.bincount(bucket, sent * rate, 100), np.bincount(bucket, sent, 100)


def heavy(rng: np.random.Generator, units: int, tail: float = 1.5) -> NDArray[np.int64]:
    """Counts (100, bins) of log-normal users with a Pareto number of requests each; each request counts."""
    requests = np.minimum(np.ceil((rng.pareto(tail, units) + 1) * 4).astype(int), 2_000)
    return _counts(rng, requests)


def equal(rng: np.random.Generator, units: int) -> NDArray[np.int64]:
    """The same with five requests each, as if each user counted once."""
    return _counts(rng, np.full(units, 5))


def _counts(rng: np.random.Generator, requests: NDArray[np.int64]) -> NDArray[np.int64]:
    user = np.repeat(np.arange(len(requests)), requests)
    logs = rng.normal(0, 0.6, len(requests))[user] + rng.normal(0, 0.5, len(user))
    bins = np.clip(np.ceil(logs / math.log(GAMMA)).astype(int) - FIRST_BIN, 0, BINS - 1)
    bucket = rng.integers(0, 100, len(requests))[user]
    return np.bincount(bucket * BINS + bins, minlength=100 * BINS).reshape(100, BINS)


def rejected(outcomes: list[Outcome], alpha: float) -> float:
    """Share of the intervals that find an effect at `alpha`."""
    known = [effect.p_value < alpha for effect in outcomes if isinstance(effect, Effect)]
    return float(np.mean(known)) if known else math.nan
