"""Proofs of truth: pytest -m proof tests/proof_statistics.py -s

Each prints what it measured. The fast suite has a smaller version of each in test_truth.py.
"""

import numpy as np
import pytest

from populations import NAMES, Population, covers, rejects, repeat
from sequences import always_valid_errors, verdict_errors
from switchbacks import cover_total
from uncork.experiment.laboratory import toy
from worlds import coverage

pytestmark = pytest.mark.proof

EXPERIMENTS = 2_000


def show(title: str, shares: dict[str, float]) -> None:
    print(f"\n{title}: " + ", ".join(f"{name} {share * 100:.1f} %" for name, share in shares.items()))


MOST = {"p10", "p50", "p90", "mean", "stutters"}
"""Measures for which 400 users per arm are enough."""


@pytest.mark.parametrize("tail", [False, True])
def test_a_a_tests_find_something_in_5_percent(tail: bool) -> None:
    shares = repeat(Population(units=3_000, tail=tail), EXPERIMENTS, np.random.default_rng(1), rejects)
    show(f"A/A false positives, tail {tail}", shares)
    assert shares.keys() == set(NAMES)
    assert all(0.035 <= share <= 0.065 for share in shares.values()), shares


@pytest.mark.parametrize(
    ("population", "names"),
    [
        (Population(units=3_000, shift=0.1, spreads=(0.9, 0.7), stutter_ratio=0.9), set(NAMES)),
        (Population(units=3_000, shift=0.095, tail=True, stutter_ratio=0.9), set(NAMES)),
        (Population(units=400, shift=0.1, stutter_ratio=0.9), MOST),
    ],
    ids=["slow users gain more", "Pareto tail", "400 users"],
)
def test_intervals_cover_the_truth_in_95_percent(population: Population, names: set[str]) -> None:
    shares = repeat(population, EXPERIMENTS, np.random.default_rng(2), covers)
    show(f"coverage of {population}", shares)
    assert shares.keys() >= names
    assert all(0.935 <= share <= 0.965 for share in shares.values()), shares


def test_switchback_totals_cover_the_truth_in_95_percent() -> None:
    share = cover_total(EXPERIMENTS, np.random.default_rng(3))
    show("coverage of switchback totals", {"total": share})
    assert 0.935 <= share <= 0.965


def test_thirty_daily_looks_keep_false_positives_at_5_percent() -> None:
    shares = verdict_errors(EXPERIMENTS, np.random.default_rng(4))
    show("false positives of 30 daily looks", shares)
    assert shares["mean"] <= 0.05
    assert shares["p50"] <= 0.05
    assert shares["mean, looked at without correction"] > 0.1


def test_a_bound_looked_at_all_the_time_errs_in_5_percent_at_most() -> None:
    share = always_valid_errors(1_000, np.random.default_rng(5))
    show("false alarms of the always-valid bound, 60 looks", {"mean": share})
    assert share <= 0.05


@pytest.mark.parametrize("world", [toy.FULL_LINK, toy.MIXED, toy.NO_SHARING], ids=lambda world: world.name)
def test_designs_against_interference_cover_the_truth(world: toy.World) -> None:
    # Where 95 % are covered, 200 repetitions show less than 93 % in one run of twelve, 1,000 in one of 400.
    shares = coverage(world, 1_000, np.random.default_rng(6))
    show(world.name, shares)
    assert shares["switchback"] >= 0.93
    assert shares["paired links"] >= 0.93
    assert (shares["A/B at share 50 %"] <= 0.05) == (world.full > 0)
