"""A/A tests that grow: users who return from day to day, looked at every day."""

from __future__ import annotations

import math

import numpy as np

from populations import BINS, FIRST_BIN, GAMMA
from uncork.measure.stats.effect import Effect
from uncork.measure.stats.jackknife import quantile_effect, ratio_effect
from uncork.measure.stats.sequential import always_valid, crosses, obrien_fleming

DAYS = 30


def verdict_errors(experiments: int, rng: np.random.Generator, users: int = 400) -> dict[str, float]:
    """Share of A/A tests of 30 days that O'Brien-Fleming looks end with a verdict, and that plain looks
    would."""
    boundaries = obrien_fleming(DAYS)
    errors = {"mean": 0, "p50": 0, "mean, looked at without correction": 0}
    for _ in range(experiments):
        crossed = dict.fromkeys(errors, False)
        sums, counts = np.zeros((4, 100)), np.zeros((2, 100, BINS), dtype=np.int64)
        level = rng.normal(0, 0.6, (2, users))
        bucket = rng.integers(0, 100, (2, users))
        for day in range(DAYS):
            for arm in (0, 1):
                requests = rng.poisson(0.8, users)
                user = np.repeat(np.arange(users), requests)
                logs = level[arm, user] + rng.normal(0, 0.8, len(user))
                place = bucket[arm, user]
                sums[2 * arm] += np.bincount(place, np.exp(logs), 100)
                sums[2 * arm + 1] += np.bincount(place, minlength=100)
                bins = np.ceil(logs / math.log(GAMMA)).astype(np.int64) - FIRST_BIN
                np.add.at(counts[arm], (place, bins), 1)
            mean = ratio_effect(*sums)
            assert isinstance(mean, Effect)
            crossed["mean"] |= crosses(mean, boundaries[day])
            crossed["mean, looked at without correction"] |= mean.p_value < 0.05
            # A look at the median costs more: every third day and the last.
            if day % 3 == 2:
                median = quantile_effect(counts[0], counts[1], 0.5, first_bin=FIRST_BIN, gamma=GAMMA)
                assert isinstance(median, Effect)
                crossed["p50"] |= crosses(median, boundaries[day])
        for name, hit in crossed.items():
            errors[name] += hit
    return {name: count / experiments for name, count in errors.items()}


def always_valid_errors(experiments: int, rng: np.random.Generator, looks: int = 60) -> float:
    """Share of A/A tests in which the always-valid interval ever leaves out the truth. New users come at each
    look."""
    errors = 0
    for _ in range(experiments):
        sums = np.zeros((4, 100))
        for _ in range(looks):
            for arm in (0, 1):
                bucket = rng.integers(0, 100, 100)
                sums[2 * arm] += np.bincount(bucket, rng.lognormal(0, 0.8, 100), 100)
                sums[2 * arm + 1] += np.bincount(bucket, minlength=100)
            effect = ratio_effect(*sums)
            assert isinstance(effect, Effect)
            low, high = always_valid(effect)
            if not low <= 1 <= high:
                errors += 1
                break
    return errors / experiments
