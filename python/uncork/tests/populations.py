"""Experiments of known effect: users with many requests each, heavy tails, and arms that differ by a known
ratio."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from uncork.measure.stats.effect import Effect, Outcome
from uncork.measure.stats.jackknife import quantile_effects, ratio_effect

GAMMA = 1.02
FIRST_BIN = -700
BINS = 1_500
QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
NAMES = ("p01", "p10", "p50", "p90", "p99", "mean", "stutters")


@dataclass(frozen=True)
class Population:
    """Requests of `units` users per arm. The logarithm of a value is the user's level plus the request's
    noise.

    The arms' levels have mean `shift` and 0 and deviation `spreads` (control, treated). With `tail`, one
    request in twenty is slower or faster by a Pareto factor of index 2.5, and busy users have other levels:
    then the arms must differ by `shift` alone, and so do all quantiles and the mean.
    """

    units: int = 1_000
    shift: float = 0.0
    spreads: tuple[float, float] = (0.8, 0.8)
    noise: float = 0.7
    tail: bool = False
    stutter_ratio: float = 1.0
    busy: float = field(default=1.0)
    """Deviation of the logarithm of a user's requests: at 1, a tenth of the users has half of the
    requests."""

    def truth(self, name: str) -> float:
        """The true ratio of treated to control."""
        if name == "stutters":
            return self.stutter_ratio
        deviations = [math.hypot(spread, self.noise) for spread in self.spreads]
        if name == "mean":
            return math.exp(self.shift + (deviations[1] ** 2 - deviations[0] ** 2) / 2)
        z = float(stats.norm.ppf(int(name[1:]) / 100))
        return math.exp(self.shift + z * (deviations[1] - deviations[0]))


@dataclass(frozen=True)
class Drawn:
    """One arm: counts (100, bins), and sums by bucket, each (100,)."""

    counts: NDArray[np.int64]
    total: NDArray[np.float64]
    requests: NDArray[np.float64]
    stutters: NDArray[np.float64]


def draw(population: Population, arm: int, rng: np.random.Generator) -> Drawn:
    """One arm's records, reduced."""
    level = rng.normal(0, population.spreads[arm], population.units)
    lean = 0.3 * level if population.tail else 0.0
    requests = rng.poisson(np.exp(rng.normal(1.6, population.busy, population.units) + lean)) + 1
    user = np.repeat(np.arange(population.units), requests)
    logs = level[user] + rng.normal(0, population.noise, len(user)) + population.shift * arm
    if population.tail:
        logs += (rng.random(len(user)) < 0.05) * rng.exponential(0.4, len(user))
    bucket = rng.integers(0, 100, population.units)
    bins = np.clip(np.ceil(logs / math.log(GAMMA)).astype(np.int64) - FIRST_BIN, 0, BINS - 1)
    counts = np.bincount(bucket[user] * BINS + bins, minlength=100 * BINS).reshape(100, BINS)
    # Few users stutter, and those often.
    rate = rng.gamma(0.2, 0.25, population.units) * (population.stutter_ratio if arm else 1.0)
    return Drawn(
        counts,
        np.bincount(bucket[user], np.exp(logs), 100),
        np.bincount(bucket[user], minlength=100).astype(np.float64),
        np.bincount(bucket, rng.poisson(rate * requests), 100),
    )


def effects(control: Drawn, treated: Drawn) -> dict[str, Outcome]:
    """All effects of one experiment, by the names of `NAMES`."""
    quantiles = quantile_effects(control.counts, treated.counts, QUANTILES, first_bin=FIRST_BIN, gamma=GAMMA)
    mean = ratio_effect(control.total, control.requests, treated.total, treated.requests)
    stutters = ratio_effect(control.stutters, control.requests, treated.stutters, treated.requests)
    return dict(zip(NAMES, [*quantiles, mean, stutters], strict=True))


def repeat(
    population: Population,
    experiments: int,
    rng: np.random.Generator,
    counts: Callable[[Effect, float], bool],
) -> dict[str, float]:
    """Share of the experiments with an interval for which `counts(effect, truth)` holds, by name.

    Names are left out that have no interval in more than a tenth of the experiments.
    """
    hits, given = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    for _ in range(experiments):
        for name, effect in effects(draw(population, 0, rng), draw(population, 1, rng)).items():
            if isinstance(effect, Effect):
                hits[name] += counts(effect, population.truth(name))
                given[name] += 1
    return {name: hits[name] / count for name, count in given.items() if count >= 0.9 * experiments}


def covers(effect: Effect, truth: float) -> bool:
    """Whether the interval of the ratio has the truth."""
    return effect.ratio_low <= truth <= effect.ratio_high


def rejects(effect: Effect, _: float) -> bool:
    """Whether the test finds an effect at 5 %."""
    return effect.p_value < 0.05


def within(share: float, experiments: int, low: float, high: float) -> bool:
    """Whether `share` of the experiments could come from a true share of `low` to `high`, but for one chance
    in 10,000 on either side."""
    least = stats.binom.ppf(1e-4, experiments, low) / experiments
    most = stats.binom.ppf(1 - 1e-4, experiments, high) / experiments
    return bool(least <= share <= most)
