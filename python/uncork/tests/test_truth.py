"""The statistics are true: a smaller proof_statistics.py. Chance breaks a bound once in 5,000 runs."""

import numpy as np
import pytest

from populations import Population, covers, rejects, repeat, within
from sequences import always_valid_errors, verdict_errors
from switchbacks import cover_total
from uncork.experiment.laboratory import toy
from worlds import coverage

EXPERIMENTS = 200


def test_a_a_tests_find_something_in_5_percent() -> None:
    shares = repeat(Population(units=400, tail=True), EXPERIMENTS, np.random.default_rng(1), rejects)
    assert all(within(share, EXPERIMENTS, 0.035, 0.065) for share in shares.values()), shares


def test_intervals_cover_the_truth() -> None:
    population = Population(units=400, shift=0.1, spreads=(0.9, 0.7), stutter_ratio=0.9)
    shares = repeat(population, EXPERIMENTS, np.random.default_rng(2), covers)
    assert all(within(share, EXPERIMENTS, 0.935, 0.965) for share in shares.values()), shares


def test_switchback_totals_cover_the_truth() -> None:
    share = cover_total(EXPERIMENTS, np.random.default_rng(3))
    assert within(share, EXPERIMENTS, 0.935, 0.965), share


def test_daily_looks_keep_false_positives_low() -> None:
    shares = verdict_errors(60, np.random.default_rng(4), users=200)
    assert within(shares["mean"], 60, 0.0, 0.05), shares
    assert within(shares["p50"], 60, 0.0, 0.05), shares
    assert shares["mean, looked at without correction"] > shares["mean"]


def test_a_bound_looked_at_all_the_time_seldom_errs() -> None:
    assert within(always_valid_errors(60, np.random.default_rng(5), looks=60), 60, 0.0, 0.05)


@pytest.mark.parametrize("world", [toy.FULL_LINK, toy.MIXED], ids=lambda world: world.name)
def test_designs_against_interference_cover_the_truth(world: toy.World) -> None:
    shares = coverage(world, 25, np.random.default_rng(6))
    assert within(shares["switchback"], 25, 0.93, 1.0), shares
    assert within(shares["paired links"], 25, 0.93, 1.0), shares
    assert shares["A/B at share 50 %"] == 0.0
