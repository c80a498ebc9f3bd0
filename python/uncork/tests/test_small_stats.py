"""Sample ratio, false discoveries, power and CUPED, against other libraries."""

import math

import numpy as np
import pyarrow as pa
import pytest
import tea_tasting as tt
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower

from populations import FIRST_BIN, GAMMA, Population, draw, within
from uncork.measure.stats import cuped, power
from uncork.measure.stats.effect import Effect, NoInterval
from uncork.measure.stats.fdr import benjamini_hochberg
from uncork.measure.stats.jackknife import ratio_effect
from uncork.measure.stats.srm import sample_ratio


def test_sample_ratio_agrees_with_tea_tasting() -> None:
    units = pa.table({"variant": np.repeat([0, 1], [5_210, 4_790])})
    other = tt.Experiment(ratio=tt.SampleRatio(method="norm", correction=False)).analyze(units)["ratio"]
    found = sample_ratio([5_210, 4_790], [0.05, 0.05])
    assert found.p_value == pytest.approx(other.pvalue, rel=0.05), "it is exact, the other one normal"
    assert found.blocks
    assert found.expected == (5_000, 5_000)


def test_half_a_percent_too_many_of_a_million_blocks() -> None:
    assert sample_ratio([505_000, 495_000], [0.5, 0.5]).blocks
    assert not sample_ratio([500_600, 499_400], [0.5, 0.5]).blocks
    assert not sample_ratio([900_300, 99_700], [0.9, 0.1]).blocks


def test_sample_ratio_errs_in_5_percent() -> None:
    rng = np.random.default_rng(1)
    units = rng.multinomial(10_000, [0.6, 0.3, 0.1], 400)
    hits = [sample_ratio(row, [0.6, 0.3, 0.1]).p_value < 0.05 for row in units]
    assert within(float(np.mean(hits)), 400, 0.045, 0.055)


def test_sample_ratio_needs_units_and_arms() -> None:
    few = sample_ratio([3, 4], [0.5, 0.5])
    assert few.p_value is None
    assert "3.5 units" in few.reason
    assert sample_ratio([3], [0.5]).p_value is None
    with pytest.raises(ValueError, match="2 arms have units, and 1 have a propensity"):
        sample_ratio([1, 2], [1.0])
    with pytest.raises(ValueError, match="above 0"):
        sample_ratio([1, 2], [1.0, 0.0])


def test_false_discoveries_agree_with_statsmodels() -> None:
    values = np.random.default_rng(2).beta(0.5, 3, 500)
    assert benjamini_hochberg(values) == pytest.approx(multipletests(values, method="fdr_bh")[1])
    assert benjamini_hochberg([]).shape == (0,)
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg([0.1, math.nan])


def test_power_agrees_with_statsmodels() -> None:
    units = power.units_needed(0.8, 0.05)
    other = NormalIndPower().solve_power(effect_size=math.log(1.05) / 0.8, alpha=0.05, power=0.8)
    assert units == pytest.approx(other, rel=1e-3)
    with pytest.raises(ValueError, match="cannot be looked for"):
        power.units_needed(0.8, 0)


def mean(shift: float, rng: np.random.Generator, units: int = 1_000) -> Effect:
    one, other = (draw(Population(units=units, shift=shift), arm, rng) for arm in (0, 1))
    effect = ratio_effect(one.total, one.requests, other.total, other.requests)
    assert isinstance(effect, Effect)
    return effect


def test_the_minimum_detectable_effect_is_found_in_four_of_five_experiments() -> None:
    rng = np.random.default_rng(3)
    least = float(np.median([power.mde(mean(0, rng)) for _ in range(40)]))
    found = np.mean([mean(math.log1p(least), rng).p_value < 0.05 for _ in range(200)])
    assert within(float(found), 200, 0.77, 0.83)


def test_days_needed() -> None:
    effect = mean(0, np.random.default_rng(4))
    least = power.mde(effect)
    assert power.days_needed(effect, 7, least) == pytest.approx(0, abs=1e-9)
    assert power.days_needed(effect, 7, math.expm1(math.log1p(least) / 2)) == pytest.approx(21)
    assert power.days_needed(effect, 7, least * 3) == 0


def past_and_present(rng: np.random.Generator, shift: float, users: int = 1_500) -> list[np.ndarray]:
    """Sums of two arms before and in the experiment; the users have the same levels in both."""
    parts = []
    for arm in (0, 1):
        level, bucket = rng.normal(0, 1.0, users), rng.integers(0, 100, users)
        for gain in (0.0, shift * arm):
            requests = rng.poisson(4, users) + 1
            user = np.repeat(np.arange(users), requests)
            logs = level[user] + rng.normal(gain, 0.5, len(user))
            bins = np.ceil(logs / math.log(GAMMA)).astype(int) - FIRST_BIN
            counts = np.zeros((100, 1_500), dtype=np.int64)
            np.add.at(counts, (bucket[user], bins), 1)
            parts += [np.bincount(bucket[user], np.exp(logs), 100), counts.sum(axis=1).astype(float), counts]
    return parts


def test_the_past_narrows_intervals_that_still_cover() -> None:
    rng = np.random.default_rng(5)
    narrower, covered = [], []
    for _ in range(80):
        before_c, n_bc, counts_bc, num_c, n_c, counts_c, before_t, n_bt, counts_bt, num_t, n_t, counts_t = (
            past_and_present(rng, 0.1)
        )
        plain = ratio_effect(num_c, n_c, num_t, n_t)
        adjusted = cuped.ratio_effect((num_c, n_c, num_t, n_t), (before_c, n_bc, before_t, n_bt))
        median = cuped.quantile_effect(
            (counts_c, counts_t), (counts_bc, counts_bt), 0.5, first_bins=(FIRST_BIN, FIRST_BIN), gamma=GAMMA
        )
        assert isinstance(plain, Effect)
        assert isinstance(adjusted, Effect)
        assert isinstance(median, Effect)
        narrower.append(
            math.log(adjusted.ratio_high / adjusted.ratio_low) / math.log(plain.ratio_high / plain.ratio_low)
        )
        covered.append([one.ratio_low <= math.exp(0.1) <= one.ratio_high for one in (adjusted, median)])
    assert np.mean(narrower) < 0.6
    assert all(within(share, 80, 0.935, 0.965) for share in np.mean(covered, axis=0)), np.mean(
        covered, axis=0
    )


def test_a_past_that_explains_nothing_changes_little() -> None:
    rng = np.random.default_rng(6)
    parts = [rng.lognormal(0, 0.2, 100) for _ in range(4)]
    den = np.full(100, 20.0)
    plain = ratio_effect(parts[0] * den, den, parts[1] * den, den)
    adjusted = cuped.ratio_effect(
        (parts[0] * den, den, parts[1] * den, den), (parts[2] * den, den, parts[3] * den, den)
    )
    assert isinstance(plain, Effect)
    assert isinstance(adjusted, Effect)
    width, before = (math.log(one.ratio_high / one.ratio_low) for one in (adjusted, plain))
    assert 0.9 < width / before < 1.02
    assert adjusted.degrees_of_freedom == pytest.approx(plain.degrees_of_freedom - 1, rel=0.03)


def test_cuped_without_data_gives_a_reason() -> None:
    empty = np.zeros(100)
    outcome = cuped.ratio_effect((empty,) * 4, (empty,) * 4)
    assert isinstance(outcome, NoInterval)
    with pytest.raises(ValueError, match="other buckets"):
        cuped.adjust(np.ones(5), np.ones(5), np.ones(4), np.ones(4))
