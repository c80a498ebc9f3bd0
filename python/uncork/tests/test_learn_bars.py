"""`learn` compared with the true prior, and its probabilities with the truth: part of bench/learn_bars.py."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from drawn_worlds import REVIEW
from learn_bars import NO_GAIN, play

from uncork.learn.calibration import MAX_WIDENING, _factor


def test_most_of_the_gain_that_the_true_prior_would_have_at_no_more_harm_than_claimed() -> None:
    """Held to fewer days and one world; the whole table is docs/evidence/learn.md."""
    *_, last = play(REVIEW, 25_000, 11, (2, 3))
    assert last.gain >= 0.85 * last.reference > 0.2
    assert 0.8 < last.z < 1.15
    assert last.left == 0
    said, true = last.deciles[1:].sum(axis=1)
    assert true < 1.2 * said


def test_nothing_is_switched_on_where_arms_are_equal() -> None:
    assert [one.on for one in play(NO_GAIN, 10_000, 11, (2, 5))] == [0, 0]


def test_errors_are_widened_until_they_cover_the_days_held_out() -> None:
    rng, variance, error = np.random.default_rng(1), np.full(2_000, 0.01), np.full(2_000, 0.005)
    fits = _factor(rng.normal(0, np.sqrt(0.015), 2_000) ** 2, variance, error)
    drifts = _factor(rng.normal(0, np.sqrt(0.045), 2_000) ** 2, variance, error)
    assert fits == 1
    assert 3 < drifts < 4
    assert _factor(np.zeros(0), np.zeros(0), np.zeros(0)) == 1
    assert _factor(np.full(9, 100.0), np.full(9, 1e-4), np.full(9, 1e-4)) <= MAX_WIDENING**2 * 1.01
