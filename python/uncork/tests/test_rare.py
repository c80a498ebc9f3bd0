"""Differences of shares: exact where the field has exact answers, and right where an arm has few events or
none."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from uncork.measure.stats.effect import NoInterval
from uncork.measure.stats.rare import ShareDifference, effective_units, share_difference

Floats = NDArray[np.float64]
LIMIT = 0.005


def arm(
    rng: np.random.Generator, units: int, share: float, *, within: str = "one by one", heavy: bool = False
) -> tuple[Floats, Floats]:
    """Events and requests by bucket, of users with about 10 requests each; `within` a user events come one by
    one, or all at once."""
    many = (rng.pareto(1.5, units) + 1) * 4
    requests = np.minimum(np.ceil(many), 2_000).astype(int) if heavy else rng.poisson(10, units) + 1
    events = (
        rng.binomial(requests, share) if within == "one by one" else requests * (rng.random(units) < share)
    )
    bucket = rng.integers(0, 100, units)
    return np.bincount(bucket, events, 100), np.bincount(bucket, requests, 100)


def known(outcome: ShareDifference | NoInterval) -> ShareDifference:
    assert isinstance(outcome, ShareDifference), outcome
    return outcome


def test_single_events_have_the_interval_of_clopper_and_pearson() -> None:
    """100 buckets with one request each: an event more is as heavy as each of them."""
    num = (np.arange(100) < 7).astype(float)
    found = known(share_difference(num, np.ones(100), num[::-1], np.ones(100), units=(100, 100)))
    low, high = found.arms[0].limits(0.025)
    exact = stats.binomtest(7, 100).proportion_ci(0.95, "exact")
    assert (low, high) == pytest.approx((exact.low, exact.high), rel=0.03)


def test_without_events_the_upper_limit_is_the_rule_of_three_by_unit() -> None:
    den = np.full(100, 150.0)  # 1,500 units with 10 requests each
    found = known(share_difference(np.zeros(100), den, np.zeros(100), den, units=(1_500, 1_500)))
    assert found.arms[0].limits(0.025) == pytest.approx((0.0, 3.69 / 1_500), rel=0.01)
    assert found.low == pytest.approx(-found.high)
    assert found.difference == 0
    assert found.high < LIMIT


def test_harm_from_zero_is_broken() -> None:
    """Control 0 of 27,000, treated 10.2 %: 1,500 users an arm, limit +0.5 points."""
    rng = np.random.default_rng(1)
    control, treated = arm(rng, 1_500, 0.0), arm(rng, 1_500, 0.102)
    found = known(share_difference(*control, *treated, units=(1_500, 1_500)))
    assert found.always_valid(0.05)[0] > 0.08
    assert found.p_above(LIMIT) < 1e-9
    assert found.p_below(LIMIT) == 1.0
    assert found.always_valid_ratio(0.05)[0] > 5
    assert math.isinf(found.ratio_interval(0.95)[1])


@pytest.mark.parametrize("heavy", [False, True])
def test_harm_in_a_cell_of_279_units_is_broken(heavy: bool) -> None:
    rng = np.random.default_rng(2)
    lows = []
    for _ in range(20):
        control, treated = arm(rng, 140, 0.0047, heavy=heavy), arm(rng, 139, 0.0765, heavy=heavy)
        lows.append(known(share_difference(*control, *treated, units=(140, 139))).always_valid(0.05)[0])
    assert np.mean(np.array(lows) > LIMIT) >= (0.4 if heavy else 0.95), lows


@pytest.mark.parametrize("within", ["one by one", "all at once"])
@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("units", [20, 300])
@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.001, 0.001), (0.0, 0.03), (0.05, 0.05)])
def test_intervals_have_the_truth(within: str, heavy: bool, units: int, shares: tuple[float, float]) -> None:
    """A hundred experiments of each kind."""
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(100):
        both = [arm(rng, units, share, within=within, heavy=heavy) for share in shares]
        found = known(share_difference(*both[0], *both[1], units=(units, units)))
        missed += not found.low <= shares[1] - shares[0] <= found.high
    assert missed <= stats.binom.ppf(1 - 1e-4, 100, 0.05)


@pytest.mark.parametrize("within", ["one by one", "all at once"])
def test_looking_every_day_breaks_no_limit_that_is_kept(within: str) -> None:
    """Sixty looks at a difference that is exactly the limit, from the first day's few users on."""
    rng = np.random.default_rng(4)
    alarms = 0
    for _ in range(60):
        sums = np.zeros((4, 100))
        low = -math.inf
        for day in range(1, 61):
            sums += [*arm(rng, 20, 0.0, within=within), *arm(rng, 20, LIMIT, within=within)]
            if day % 5 == 1:
                found = known(share_difference(*sums, units=(20.0 * day, 20.0 * day)))
                low = max(low, found.always_valid(0.05)[0])
        alarms += low > LIMIT
    assert alarms <= stats.binom.ppf(1 - 1e-3, 60, 0.05)


def test_arms_that_share_their_buckets_ups_and_downs_are_compared_within_them() -> None:
    rng = np.random.default_rng(5)
    den, shock = np.full(100, 1e6), rng.lognormal(0, 0.5, 100)
    num = 0.02 * den * shock
    apart = known(share_difference(num, den, rng.permutation(num), den))
    joint = known(share_difference(num, den, num * rng.lognormal(0, 0.05, 100), den))
    assert joint.high - joint.low < (apart.high - apart.low) / 2


def bursts(rng: np.random.Generator, units: int, share: float) -> tuple[Floats, Floats]:
    """Bytes sent again and all bytes by bucket: each unit has a share of its own, mostly a small one."""
    requests = np.ceil((rng.pareto(1.8, units) + 1) * 2)
    again = np.minimum(share * rng.gamma(0.5, 2.0, units), 0.9) * requests
    bucket = rng.integers(0, 100, units)
    return np.bincount(bucket, again, 100), np.bincount(bucket, requests, 100)


def test_the_heavy_units_of_one_arm_do_not_hide_its_harm() -> None:
    """Control 0.6 %, treated 6 % of the bytes of 90 clients each: no client of control is as heavy."""
    rng = np.random.default_rng(8)
    p = [
        known(share_difference(*bursts(rng, 90, 0.006), *bursts(rng, 90, 0.06))).p_above(0.02)
        for _ in range(40)
    ]
    assert np.median(p) < 1e-3, p
    missed = 0
    for _ in range(200):
        found = known(share_difference(*bursts(rng, 90, 0.01), *bursts(rng, 90, 0.03)))
        missed += found.low > 0.02
    assert missed <= stats.binom.ppf(1 - 1e-4, 200, 0.025)


def test_effective_units_are_those_of_equal_size() -> None:
    rng = np.random.default_rng(6)
    sizes = rng.pareto(2.5, 4_000) + 1
    found = effective_units(np.bincount(rng.integers(0, 100, 4_000), sizes, 100), 4_000)
    assert found == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum(), rel=0.4)
    assert effective_units(np.ones(100), 100) == 100
    assert effective_units(np.eye(1, 100)[0]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        ((0, 0, 1, 2), "control arm has no data"),
        ((1, 2, 0, 0), "treated arm has no data"),
        ((3, 2, 1, 2), "control arm has a share above 1: 1.5"),
        ((-1, 2, 1, 2), "negative"),
        ((math.nan, 2, 1, 2), "not a number"),
    ],
)
def test_no_interval_has_a_reason(sums: tuple[float, ...], reason: str) -> None:
    outcome = share_difference(*(np.full(30, value, dtype=float) for value in sums))
    assert isinstance(outcome, NoInterval)
    assert reason in outcome.reason


@pytest.mark.parametrize("buckets", [1, 2, 30])
@pytest.mark.parametrize("sent", [16_000_948.0, 30_522_754.0, 218_519_110.0])
def test_buckets_that_do_not_differ_have_an_interval(buckets: int, sent: float) -> None:
    """The rounding error of a share is not its variance."""
    num, den = np.zeros(100), np.zeros(100)
    den[:buckets] = sent
    num[:buckets] = 522_754.0
    found = known(share_difference(num, den, num, den))
    ends = *found.interval(0.95), *found.always_valid()
    assert np.isfinite(ends).all()
    assert found.low < 0 < found.high
    assert 0 < found.p_above(LIMIT) <= 1


def test_rates_may_exceed_one() -> None:
    rng = np.random.default_rng(7)
    songs = np.full(100, 20.0)
    found = known(
        share_difference(np.zeros(100), songs, rng.poisson(80, 100), songs, units=(900, 900), is_rate=True)
    )
    assert found.treated == pytest.approx(4, rel=0.1)
    assert found.always_valid(0.05)[0] > 3.5
    assert found.always_valid_ratio(0.05)[0] > 50


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 100), st.integers(0, 40), st.booleans(), st.integers(0, 2**32))
def test_every_number_is_finite(buckets: int, most: int, is_rate: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    den0, den1 = (rng.integers(0, most + 1, buckets) * rng.integers(0, 2, buckets) for _ in range(2))
    num0, num1 = (rng.binomial(den, rng.choice([0, 0.01, 0.5, 1])) for den in (den0, den1))
    found = share_difference(num0, den0, num1, den1, is_rate=is_rate)
    if isinstance(found, NoInterval):
        assert found.reason
        return
    for low, high in (found.interval(0.95), found.interval(0.9999), found.always_valid(0.05)):
        assert math.isfinite(low)
        assert math.isfinite(high)
        assert low - 1e-9 <= found.difference <= high + 1e-9
    assert found.ratio_interval(0.95)[0] >= 0
    assert 0 < found.p_above(0.0) <= 1


def test_equal_shares_in_all_buckets_are_known_exactly() -> None:
    """Every record resends the same share, so every bucket does: no unit has all bytes resent, or none."""
    sizes = np.full(100, 4e7)
    found = known(share_difference(0.0099 * sizes, sizes, 0.0566 * sizes, sizes, units=(400, 400)))
    assert found.always_valid(0.05)[0] > LIMIT
    assert found.low < found.difference < found.high
    few = known(share_difference(0.0099 * sizes[:5], sizes[:5], 0.0566 * sizes[:5], sizes[:5], units=(5, 5)))
    assert few.low < 0


def test_large_harm_in_a_small_cell_is_seen_at_every_look_by_a_narrow_limit() -> None:
    """157 units without an event and 152 with one in 19 %, in one of 40 cells; the limit is half a point."""
    rng = np.random.default_rng(13)
    found = known(share_difference(*arm(rng, 157, 0.0), *arm(rng, 152, 0.19), units=(157, 152)))
    assert found.always_valid(0.05 / 40, expected=0.01)[0] > 0.005
