"""The jackknife against brute force, other libraries, and the cases in which it must give no interval."""

import math
from dataclasses import astuple

import numpy as np
import pyarrow as pa
import pytest
import statsmodels.api as sm
import tea_tasting as tt
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from populations import BINS, FIRST_BIN, GAMMA, Population, draw, effects
from uncork.measure.stats.effect import Effect, NoInterval
from uncork.measure.stats.jackknife import (
    CdfBand,
    cdf_band,
    quantile_effect,
    quantiles_with_replicates,
    ratio_effect,
    treatment_curve,
)

Counts = NDArray[np.int64]
PLACE = {"first_bin": FIRST_BIN, "gamma": GAMMA}


def test_a_ratio_is_the_brute_force_jackknife() -> None:
    rng = np.random.default_rng(1)
    num, den, num_t, den_t = (rng.uniform(1, 9, 30) for _ in range(4))
    effect = ratio_effect(num, den, num_t, den_t)
    assert isinstance(effect, Effect)

    def log_ratio(keep: NDArray[np.bool_]) -> float:
        return math.log((num_t[keep].sum() / den_t[keep].sum()) / (num[keep].sum() / den[keep].sum()))

    without = np.array([log_ratio(np.arange(30) != bucket) for bucket in range(30)])
    error = math.sqrt(29 / 30 * np.sum((without - without.mean()) ** 2))
    fourth = np.sum((without - without.mean()) ** 4) / np.sum((without - without.mean()) ** 2) ** 2
    freedom = min(2 / (fourth - 1 / 30), 29)
    reach = stats.t.ppf(0.975, freedom) * error
    whole = log_ratio(np.ones(30, dtype=bool))
    assert effect.ratio == pytest.approx(math.exp(whole))
    assert effect.ratio_low == pytest.approx(math.exp(whole - reach))
    assert effect.ratio_high == pytest.approx(math.exp(whole + reach))
    assert effect.p_value == pytest.approx(2 * stats.t.sf(abs(whole) / error, freedom))
    assert effect.degrees_of_freedom == pytest.approx(freedom)
    assert effect.difference == pytest.approx(effect.treated - effect.control)


def test_a_quantile_is_that_of_the_values_within_a_bin() -> None:
    rng = np.random.default_rng(2)
    values = rng.lognormal(0, 1, 50_000)
    bins = np.ceil(np.log(values) / math.log(GAMMA)).astype(int) - FIRST_BIN
    counts = np.bincount(rng.integers(0, 100, len(values)) * BINS + bins, minlength=100 * BINS).reshape(
        100, BINS
    )
    for q in (0.01, 0.1, 0.5, 0.9, 0.99):
        effect = quantile_effect(counts, counts[::-1], q, **PLACE)
        assert effect.control == pytest.approx(np.quantile(values, q), rel=0.005)


def test_a_quantiles_error_is_that_of_its_share_in_its_own_unit() -> None:
    """By brute force: the share below the median without each bucket, and the slope two errors to each
    side."""
    counts = draw(Population(units=500), 0, np.random.default_rng(1)).counts
    replicates = np.log(quantiles_with_replicates(counts, np.array([0.5]), **PLACE)[:, 0])
    edges = (FIRST_BIN + np.arange(BINS)) * math.log(GAMMA)
    keeps = [np.arange(100) != bucket for bucket in range(100)]
    shares = [np.cumsum(counts[keep].sum(axis=0)) / counts[keep].sum() for keep in keeps]
    error = jackknife_error(np.array([np.interp(replicates[0], edges, share) for share in shares]))
    whole = np.cumsum(counts.sum(axis=0)) / counts.sum()
    low, high = np.interp([0.5 - 2 * error, 0.5 + 2 * error], whole, edges)
    assert jackknife_error(replicates[1:]) == pytest.approx((high - low) / 4, rel=0.01)


def jackknife_error(values: NDArray[np.float64]) -> float:
    return math.sqrt((len(values) - 1) / len(values) * np.sum((values - values.mean()) ** 2))


def test_errors_of_a_mean_are_those_of_a_regression_clustered_by_bucket() -> None:
    rng = np.random.default_rng(3)
    bucket, arm = rng.integers(0, 100, 5_000), rng.integers(0, 2, 5_000)
    shock = rng.normal(0, 0.5, 100)
    values = 10 + 0.3 * arm + shock[bucket] + rng.exponential(1, 5_000)
    sums = [
        np.bincount(bucket[arm == side], weights, 100)
        for side in (0, 1)
        for weights in (values[arm == side], None)
    ]
    effect = ratio_effect(*(np.asarray(part, dtype=np.float64) for part in sums))
    assert isinstance(effect, Effect)
    fit = sm.OLS(values, sm.add_constant(arm)).fit(
        cov_type="cluster", cov_kwds={"groups": bucket}, use_t=True
    )
    low, high = fit.conf_int()[1]
    assert effect.difference == pytest.approx(fit.params[1])
    assert effect.difference_high - effect.difference_low == pytest.approx(high - low, rel=0.03)


def test_ratios_agree_with_tea_tasting() -> None:
    rng = np.random.default_rng(4)
    users, arm = 8_000, rng.integers(0, 2, 8_000)
    requests = rng.poisson(5, users) + 1
    stutters = rng.poisson(0.2 * (1 - 0.1 * arm) * requests * rng.gamma(1, 1, users))
    bucket = rng.integers(0, 100, users)
    sums = [
        np.bincount(bucket[arm == side], part[arm == side], 100)
        for side in (0, 1)
        for part in (stutters, requests)
    ]
    effect = ratio_effect(*sums)
    assert isinstance(effect, Effect)
    table = pa.table({"variant": arm, "stutters": stutters, "requests": requests})
    other = tt.Experiment(rate=tt.RatioOfMeans("stutters", "requests")).analyze(table)["rate"]
    assert effect.ratio - 1 == pytest.approx(other.rel_effect_size)
    ours, theirs = (
        effect.ratio_high - effect.ratio_low,
        other.rel_effect_size_ci_upper - other.rel_effect_size_ci_lower,
    )
    # A standard error from 100 buckets is itself off by 7 % (one deviation).
    assert ours == pytest.approx(theirs, rel=0.25)


def test_both_arms_share_the_ups_and_downs_of_a_bucket() -> None:
    """Why buckets are left out of both arms at once: separate variances would be three times too wide
    here."""
    rng = np.random.default_rng(5)
    den = np.full(100, 50.0)
    shock = rng.lognormal(0, 0.3, 100)
    num, num_t = (den * shock * rng.lognormal(0, 0.05, 100) for _ in range(2))
    joint = ratio_effect(num, den, num_t, den)
    apart = ratio_effect(num, den, num_t[rng.permutation(100)], den)
    assert isinstance(joint, Effect)
    assert isinstance(apart, Effect)
    assert joint.ratio == pytest.approx(apart.ratio)
    assert apart.ratio_high - apart.ratio_low > 3 * (joint.ratio_high - joint.ratio_low)


def test_the_curve_shows_where_the_effect_is() -> None:
    population = Population(units=4_000, shift=0.1, spreads=(0.9, 0.6))
    rng = np.random.default_rng(6)
    curve = treatment_curve(draw(population, 0, rng).counts, draw(population, 1, rng).counts, **PLACE)
    assert [q for q, _ in curve] == pytest.approx(np.arange(1, 100) / 100)
    ratios = [effect.ratio for _, effect in curve if isinstance(effect, Effect)]
    assert len(ratios) == 99
    assert ratios[4] > 1.2 > 1.0 > ratios[94], "slow users gain, fast users lose"


def test_the_band_of_a_distribution_has_the_true_one() -> None:
    population = Population(units=3_000)
    truth = stats.norm(0, math.hypot(0.8, 0.7))
    inside = []
    for seed in range(12):
        band = cdf_band(draw(population, 0, np.random.default_rng(seed)).counts, **PLACE)
        assert isinstance(band, CdfBand)
        share = truth.cdf(np.log(band.values))
        usual = (share > 0.02) & (share < 0.98)
        inside.append(np.mean((band.low <= share) & (share <= band.high), where=usual))
        assert np.all((band.low > 0) & (band.low <= band.share) & (band.share <= band.high) & (band.high < 1))
    assert 0.85 < np.mean(inside) < 1.0


ONE_USERS_TAIL = np.zeros((100, 5))
ONE_USERS_TAIL[:30, 0], ONE_USERS_TAIL[0, 4] = 3, 15


@pytest.mark.parametrize(
    ("control", "treated", "reason"),
    [
        (np.zeros((100, 5)), np.ones((100, 5)), "control arm has data in 0 of the buckets"),
        (np.ones((100, 5)), np.zeros((100, 5)), "treated arm has data in 0 of the buckets"),
        (np.eye(100, 5), np.ones((100, 5)), "control arm has data in 5 of the buckets"),
        (
            np.ones((100, 5)),
            ONE_USERS_TAIL,
            "beyond p90 weighs as much as 1 independent users, and 16",
        ),
    ],
)
def test_too_little_data_gives_a_reason(control: Counts, treated: Counts, reason: str) -> None:
    outcome = quantile_effect(control.astype(np.int64), treated.astype(np.int64), 0.9, **PLACE)
    assert isinstance(outcome, NoInterval)
    assert reason in outcome.reason


@pytest.mark.parametrize("connections", [60, 120])
def test_a_thin_tail_has_an_error_that_covers(connections: int) -> None:
    """As `uncork learn` asks for it: a p10 of few users. Some come often and have slow lines."""
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(300):
        both = [_visits(rng, connections) for _ in range(2)]
        effect = quantile_effect(*both, 0.1, **PLACE, min_tail=4)
        if isinstance(effect, Effect):
            inside.append(effect.ratio_low <= 1 <= effect.ratio_high)
    assert len(inside) > 150
    assert np.mean(inside) > 0.92
    assert isinstance(quantile_effect(*both, 0.1, **PLACE), NoInterval)


def _visits(rng: np.random.Generator, count: int) -> Counts:
    """Throughputs of visits of users, by bucket."""
    often = rng.pareto(1.5, count) + 1
    user = rng.choice(count, size=count, p=often / often.sum())
    logs = rng.normal(0, 0.5, count)[user] - rng.exponential(0.6, count)
    bins = np.ceil(logs / math.log(GAMMA)).astype(int) - FIRST_BIN
    counts = np.zeros((100, BINS), dtype=np.int64)
    np.add.at(counts, (rng.integers(0, 100, count)[user], np.clip(bins, 0, BINS - 1)), 1)
    return counts


def test_rare_events_give_a_reason() -> None:
    den, few = np.full(100, 9.0), np.eye(1, 100)[0]
    outcome = ratio_effect(few, den, few, den)
    assert isinstance(outcome, NoInterval)
    assert "above zero in 1 of the buckets" in outcome.reason
    assert outcome.control == pytest.approx(1 / 900)
    negative = ratio_effect(-few, den, few, den)
    assert isinstance(negative, NoInterval)
    assert "negative" in negative.reason
    same = ratio_effect(den, den, den, den)
    assert isinstance(same, NoInterval)
    assert "do not vary" in same.reason


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 100),
    st.integers(1, 12),
    st.integers(0, 40),
    st.floats(0.001, 0.999),
    st.integers(0, 2**32),
)
def test_no_number_is_ever_missing(buckets: int, bins: int, most: int, q: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    control, treated = (
        rng.integers(0, most + 1, (buckets, bins)) * rng.integers(0, 2, (buckets, 1)) for _ in range(2)
    )
    sums = [rng.exponential(1, buckets) * rng.integers(0, 2, buckets) for _ in range(4)]
    for outcome in (quantile_effect(control, treated, q, **PLACE), ratio_effect(*sums)):
        if isinstance(outcome, Effect):
            assert all(math.isfinite(value) for value in astuple(outcome) if isinstance(value, float))
            assert outcome.ratio_low <= outcome.ratio <= outcome.ratio_high
            assert outcome.difference_low <= outcome.difference <= outcome.difference_high
        else:
            assert outcome.reason


def test_the_same_input_gives_the_same_bytes() -> None:
    def once() -> dict[str, object]:
        rng = np.random.default_rng(8)
        return dict(effects(draw(Population(units=300), 0, rng), draw(Population(units=300), 1, rng)))

    assert repr(once()) == repr(once())
