"""Looks: boundaries against the published table and simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from ville._boundaries import normal_mixture

from uncork.measure.stats.effect import Effect
from uncork.measure.stats.jackknife import ratio_effect
from uncork.measure.stats.power import log_error
from uncork.measure.stats.sequential import (
    always_valid,
    crosses,
    log_evidence,
    obrien_fleming,
    repeated_interval,
    spent,
)


def an_effect(scale: float = 1.0) -> Effect:
    rng = np.random.default_rng(1)
    den = np.full(100, 50.0)
    num, num_t = den * rng.lognormal(0, 0.2, 100), scale * den * rng.lognormal(0, 0.2, 100)
    effect = ratio_effect(num, den, num_t, den)
    assert isinstance(effect, Effect)
    return effect


def test_boundaries_are_the_published_ones() -> None:
    """Five equal looks, two-sided 5 %: the values of Lan and DeMets' program, as in Jennison and Turnbull
    2000."""
    assert obrien_fleming(5) == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4)
    assert obrien_fleming(1) == pytest.approx([stats.norm.isf(0.025)])
    assert obrien_fleming(1, 0.01) == pytest.approx([stats.norm.isf(0.005)])


@pytest.mark.parametrize("fractions", [np.arange(1, 31) / 30, np.array([0.1, 0.11, 0.5, 0.97, 1.0])])
def test_all_looks_together_err_in_5_percent(fractions: np.ndarray) -> None:
    boundaries = obrien_fleming(fractions.tolist())
    rng = np.random.default_rng(2)
    steps = rng.normal(size=(60_000, len(fractions))) * np.sqrt(np.diff(fractions, prepend=0))
    crossed = np.abs(np.cumsum(steps, axis=1) / np.sqrt(fractions)) >= boundaries
    # The Monte-Carlo error is 0.09 %.
    assert np.mean(crossed.any(axis=1)) == pytest.approx(0.05, abs=0.004)
    for look in range(len(fractions)):
        assert np.mean(crossed[:, : look + 1].any(axis=1)) == pytest.approx(spent(fractions[look]), abs=0.004)


@pytest.mark.parametrize("looks", [[], [0.5, 0.4], [0.0, 1.0], [0.5, 1.2]])
def test_shares_that_do_not_rise_are_refused(looks: list[float]) -> None:
    with pytest.raises(ValueError, match="rising"):
        obrien_fleming(looks)


def test_a_look_crosses_where_the_repeated_interval_leaves_1_out() -> None:
    for scale in (1.0, 1.05, 1.1, 1.2):
        effect = an_effect(scale)
        for boundary in (1.5, 2.5, 4.0):
            low, high = repeated_interval(effect, boundary)
            assert crosses(effect, boundary) == (not low <= 1 <= high)


def test_the_always_valid_interval_is_wider_than_one_look_and_narrowest_as_expected() -> None:
    effect = an_effect()
    low, high = always_valid(effect)
    assert low < effect.ratio_low < effect.ratio_high < high
    widths = [math.log(np.divide(*always_valid(effect, expected=size)[::-1])) for size in (0.001, 0.08, 50.0)]
    assert widths[1] == min(widths)


def test_the_always_valid_interval_is_villes() -> None:
    effect = an_effect(1.1)
    many = replace(effect, degrees_of_freedom=1e9)
    information = 1 / log_error(many) ** 2
    boundary = float(normal_mixture(information, 0.05, 1 / math.log1p(0.05) ** 2)) / information
    low, high = always_valid(many)
    assert math.log(high / low) / 2 == pytest.approx(boundary, rel=1e-6)


def test_a_wild_effect_has_an_interval_without_end() -> None:
    """A bound of few degrees of freedom and a large error would overflow."""
    wild = replace(an_effect(), ratio_low=1e-9, ratio_high=1e9, degrees_of_freedom=3.0)
    low, high = always_valid(wild)
    assert 0 < low < 1e-15
    assert 1e15 < high < math.inf


def test_evidence_of_a_gain_seldom_lies_and_detects_real_gains() -> None:
    """400 daily looks at growing means of 2,000 groups; without a gain 20 is reached in at most 1 of 20."""
    rng = np.random.default_rng(4)
    steps, groups, noise = 400, 2000, 0.3
    for truth, low, high in ((0.0, 0.0, 0.05), (-0.02, 0.0, 0.05), (0.08, 0.95, 1.0)):
        sums, ever = np.zeros(groups), np.zeros(groups, dtype=np.bool_)
        for step in range(1, steps + 1):
            sums += rng.normal(truth, noise, groups)
            evidence = log_evidence(sums / step, np.full(groups, noise**2 / step))
            ever |= evidence >= np.log(20)
        assert low <= float(ever.mean()) <= high, truth
