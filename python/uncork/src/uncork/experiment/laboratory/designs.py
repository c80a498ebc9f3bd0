"""Three designs, each carried out once on runs of the laboratory that no other repetition sees.

The experiment's own estimators analyse them: the jackknife over users of a plain A/B test, and the inversion
of the coins' test of a switchback and of paired links.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork.experiment.laboratory.worlds import CELLS, Cell, treated_users
from uncork.measure.stats import paired, switchback
from uncork.measure.stats.effect import Outcome, ab_at_share
from uncork.measure.stats.jackknife import ratio_effect

Floats = NDArray[np.float64]

DAYS = 12
"""Length of a switchback and of paired links; an A/B test takes half of it."""
RUNS = DAYS // 2
"""Runs of each cell and share that a repetition uses up."""
LOW, MIDDLE, HIGH = 0.05, 0.5, 0.95
SHARES = (0.0, LOW, MIDDLE, HIGH, 1.0)
BUCKETS = 100

Runs = Mapping[tuple[float, Cell], Floats]
"""Throughput of users by share and cell, each of shape (RUNS, users)."""


@dataclass(frozen=True)
class Repetition:
    """What each design says of one place."""

    ab: Outcome
    ab_low: Outcome
    ab_high: Outcome
    switchback: Outcome
    links: Outcome
    across: Outcome
    spill_over: Outcome


def repetition(runs: Runs, rng: np.random.Generator) -> Repetition:
    """All designs. `runs` has each of `SHARES` and `CELLS`."""
    links = paired_links(runs, rng)
    return Repetition(
        ab=ab_test(runs, rng),
        ab_low=paired.ab_effect(links, rng, higher=False),
        ab_high=paired.ab_effect(links, rng, higher=True),
        switchback=switchback_test(runs, rng),
        links=paired.total_effect(links, rng),
        across=paired.across(links, rng),
        spill_over=paired.spill_over(links, rng),
    )


def ab_test(runs: Runs, rng: np.random.Generator) -> Outcome:
    """Half of the users of both links treated, for `DAYS` / 2 days: the jackknife over users."""
    treated = treated_users(MIDDLE)
    values = np.concatenate([runs[MIDDLE, cell] for cell in CELLS])
    bucket = rng.integers(0, BUCKETS, values.shape)
    sums: list[Floats] = []
    for arm in (slice(treated, None), slice(0, treated)):
        chosen, at = values[:, arm].ravel(), bucket[:, arm].ravel()
        for weights in (chosen, np.ones(len(chosen))):
            sums.append(np.asarray(np.bincount(at, weights, BUCKETS), dtype=np.float64))
    return ratio_effect(*sums, estimand=ab_at_share(MIDDLE))


def switchback_test(runs: Runs, rng: np.random.Generator) -> Outcome:
    """Both links change together, in blocks of half a day, paired by half of the day."""
    schedule = switchback.paired_schedule(
        0, block=switchback.DAY // 2, period=switchback.DAY, periods=DAYS, rng=rng
    )
    half = np.arange(len(schedule.start)) % 2
    sums, users = np.zeros(len(half)), np.zeros(len(half))
    for cell in CELLS:
        for treated in (False, True):
            blocks = (half == cell.half) & (schedule.treated == treated)
            values = runs[float(treated), cell]
            sums[blocks] += values.sum(axis=1)
            users[blocks] += values.shape[1]
    return switchback.total_effect(schedule, sums, users, rng)


def paired_links(runs: Runs, rng: np.random.Generator) -> paired.PairedLinks:
    """One link with 95 % treated, the other with 5 %; coins say which of two days has them swapped."""
    first = rng.integers(0, 2, DAYS // 2)
    high = np.stack([first, 1 - first], axis=1).ravel()
    levels = np.zeros((DAYS, 2, 2))
    for link in (0, 1):
        for share in (LOW, HIGH):
            days = (high == link) == (share == HIGH)
            values = [runs[share, cell] for cell in CELLS if cell.link == link]
            users, treated = np.concatenate(values, axis=1), treated_users(share)
            in_treated = np.arange(users.shape[1]) % values[0].shape[1] < treated
            levels[days, link, 0] = users[:, ~in_treated].mean(axis=1)
            levels[days, link, 1] = users[:, in_treated].mean(axis=1)
    return paired.PairedLinks(levels, high, (LOW, HIGH))
