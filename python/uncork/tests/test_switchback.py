"""Designs in time: schedules, their effects, paired links, and the control arm against the share."""

import math

import numpy as np
import pytest
from scipy import stats

from uncork.experiment.laboratory import toy
from uncork.measure.stats import paired
from uncork.measure.stats.effect import SPILL_OVER, TOTAL_EFFECT, Effect, NoInterval
from uncork.measure.stats.interference import control_level
from uncork.measure.stats.randomisation import coins, sign_flips
from uncork.measure.stats.switchback import (
    DAY,
    WEEK,
    block_of,
    level_effect,
    paired_schedule,
    total_effect,
)


def test_a_schedule_treats_one_block_of_each_pair_a_period_apart() -> None:
    plan = paired_schedule(1_790_000_000, block=3_600, periods=4, rng=np.random.default_rng(1))
    assert len(plan.start) == 4 * 168
    for pair in range(2 * 168):
        blocks = np.flatnonzero(plan.pair == pair)
        assert plan.treated[blocks].sum() == 1
        assert np.diff(plan.start[blocks]) == [WEEK]
    again = paired_schedule(1_790_000_000, block=3_600, periods=4, rng=np.random.default_rng(1))
    assert np.array_equal(plan.treated, again.treated)
    assert 0.4 < plan.treated[:336].mean() < 0.6


@pytest.mark.parametrize(("block", "periods"), [(3_601, 2), (0, 2), (3_600, 3), (3_600, 0)])
def test_schedules_that_cannot_be_paired_are_refused(block: int, periods: int) -> None:
    with pytest.raises(ValueError, match="choose"):
        paired_schedule(0, block=block, periods=periods, rng=np.random.default_rng(1))


def test_connections_belong_to_the_block_in_which_they_were_opened_after_the_burn_in() -> None:
    plan = paired_schedule(1_000, block=600, period=DAY, periods=2, rng=np.random.default_rng(1))
    times = np.array([999, 1_000, 1_059, 1_060, 1_599, 1_600, 1_660, 1_000 + 2 * DAY - 1, 1_000 + 2 * DAY])
    assert block_of(plan, times, burn_in=60).tolist() == [-1, -1, -1, 0, 0, -1, 1, 287, -1]


def test_coins_are_listed_or_drawn() -> None:
    listed = coins(4, np.random.default_rng(1))
    assert listed.shape == (16, 4)
    assert len(np.unique(listed, axis=0)) == 16
    assert np.all(listed[0] == 1)
    drawn = coins(40, np.random.default_rng(1), draws=500)
    assert drawn.shape == (501, 40)
    assert np.all(drawn[0] == 1)
    assert abs(drawn[1:].mean()) < 0.05


def test_sign_flips_are_exact_for_few_pairs() -> None:
    """Fisher's exact test of Darwin's maize (Fisher 1935): 15 pairs, p = 0.0526."""
    darwin = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], dtype=float)
    tested = sign_flips(darwin, np.random.default_rng(1), level=0.95, draws=40_000)
    assert tested is not None
    assert tested.p_value == pytest.approx(1726 / 32768, abs=0.004)
    six = sign_flips(np.array([1.0, 2, 3, 4, 5, 6.5]), np.random.default_rng(1), level=0.95)
    assert six is not None
    assert six.p_value == 2 / 64
    assert sign_flips(np.array([1.0, 2, 3, 4, 5]), np.random.default_rng(1), level=0.95) is None


def test_intervals_of_many_pairs_are_those_of_students_t() -> None:
    values = np.random.default_rng(2).normal(0.2, 1, 200)
    tested = sign_flips(values, np.random.default_rng(3), level=0.95, draws=20_000)
    assert tested is not None
    usual = stats.ttest_1samp(values, 0)
    assert (tested.low, tested.high) == pytest.approx(tuple(usual.confidence_interval()), abs=0.01)
    assert tested.p_value == pytest.approx(usual.pvalue, abs=0.01)


def test_levels_and_totals_find_the_same_ratio_and_missing_blocks_lose_their_pair() -> None:
    rng = np.random.default_rng(4)
    plan = paired_schedule(0, block=3_600, periods=2, rng=rng)
    rhythm = np.exp(np.sin(plan.start / DAY * 2 * np.pi) + rng.normal(0, 0.02, len(plan.start)))
    values = rhythm * np.where(plan.treated, 1.1, 1.0)
    level, total = level_effect(plan, values, rng), total_effect(plan, values, None, rng)
    missing = values.copy()
    missing[:20] = np.nan
    less = level_effect(plan, missing, rng)
    for effect in (level, total, less):
        assert isinstance(effect, Effect)
        assert effect.estimand == TOTAL_EFFECT
        assert effect.ratio == pytest.approx(1.1, abs=0.01)
        assert effect.ratio_low < 1.1 < effect.ratio_high
    assert isinstance(less, Effect)
    assert less.degrees_of_freedom == 168 - 20 - 1


def test_a_ratio_of_totals_is_that_of_its_sums() -> None:
    rng = np.random.default_rng(5)
    plan = paired_schedule(0, block=3_600, periods=2, rng=rng)
    songs = rng.poisson(50, len(plan.start)).astype(float)
    stutters = songs * 0.1 * np.where(plan.treated, 0.8, 1.0) * rng.lognormal(0, 0.1, len(songs))
    effect = total_effect(plan, stutters, songs, rng)
    assert isinstance(effect, Effect)
    treated, control = (stutters[side].sum() / songs[side].sum() for side in (plan.treated, ~plan.treated))
    assert effect.ratio == pytest.approx(treated / control)
    assert effect.control == pytest.approx(control)


def test_too_few_pairs_give_a_reason() -> None:
    plan = paired_schedule(0, block=DAY // 4, period=DAY, periods=2, rng=np.random.default_rng(1))
    values = np.random.default_rng(2).uniform(1, 2, 8)
    for outcome in (
        level_effect(plan, values, np.random.default_rng(1)),
        total_effect(plan, values, None, np.random.default_rng(1)),
    ):
        assert isinstance(outcome, NoInterval)
        assert outcome.reason == "4 pairs cannot show an effect at this level: plan at least 6"
    nothing = level_effect(plan, np.full(8, np.nan), np.random.default_rng(1))
    assert isinstance(nothing, NoInterval)
    assert "no pair" in nothing.reason


def links(spill: float, gain: float, periods: int = 24) -> paired.PairedLinks:
    """Two links, one faster. Control falls by `spill` per treated share; treated has `gain` times that."""
    rng = np.random.default_rng(6)
    high = np.stack([(first := rng.integers(0, 2, periods // 2)), 1 - first], axis=1).ravel()
    levels = np.empty((periods, 2, 2))
    for period in range(periods):
        for link in (0, 1):
            share = 0.95 if high[period] == link else 0.05
            control = (1.2 if link else 1.0) * math.exp(-spill * share) * rng.lognormal(0, 0.01)
            levels[period, link] = control, control * gain * rng.lognormal(0, 0.01)
    return paired.PairedLinks(levels, high)


def test_paired_links_separate_spill_over_from_the_total_effect() -> None:
    rng = np.random.default_rng(7)
    found = links(spill=0.3, gain=1.35)
    spill, total, across = (f(found, rng) for f in (paired.spill_over, paired.total_effect, paired.across))
    low, high = (paired.ab_effect(found, rng, higher=side) for side in (False, True))
    for effect, ratio, estimand in (
        (spill, math.exp(-0.3 * 0.9), SPILL_OVER),
        (total, 1.35 * math.exp(-0.3), TOTAL_EFFECT),
        (across, 1.35 * math.exp(-0.27), "treated at share 95 % against control at share 5 %"),
        (low, 1.35, "A/B at share 5 %"),
        (high, 1.35, "A/B at share 95 %"),
    ):
        assert isinstance(effect, Effect)
        assert effect.estimand == estimand
        assert effect.ratio == pytest.approx(ratio, rel=0.015)
    assert isinstance(spill, Effect)
    assert spill.ratio_high < 1


def test_bad_pairs_of_links_are_refused() -> None:
    good = links(0, 1)
    with pytest.raises(ValueError, match="do not swap"):
        paired.PairedLinks(good.levels, np.zeros_like(good.high))
    with pytest.raises(ValueError, match="even number of periods"):
        paired.PairedLinks(good.levels[:3], good.high[:3])
    with pytest.raises(ValueError, match="not rising"):
        paired.PairedLinks(good.levels, good.high, (0.9, 0.1))
    empty = good.levels.copy()
    empty[0] = 0
    assert isinstance(
        paired.total_effect(paired.PairedLinks(empty, good.high), np.random.default_rng(1)), NoInterval
    )


def test_a_moving_control_arm_is_interference() -> None:
    rng = np.random.default_rng(8)
    places = [f"place {number // 3}" for number in range(30)]
    shares = np.concatenate([rng.permutation([0.05, 0.5, 0.95]) for _ in range(10)])
    still = np.repeat(rng.lognormal(0, 1, 10), 3) * rng.lognormal(0, 0.05, 30)
    found = control_level(places, shares, still * np.exp(-0.4 * shares), rng)
    assert found.contested
    assert isinstance(found.spill_over, Effect)
    assert found.spill_over.ratio_low < math.exp(-0.4) < found.spill_over.ratio_high
    assert "not the effect of a rollout" in found.sentence
    assert not control_level(places, shares, still, rng).contested
    for constant in (np.full(30, 0.5), np.repeat(rng.uniform(0, 1, 10), 3)):
        unknown = control_level(places, constant, still, rng)
        assert not unknown.contested
        assert isinstance(unknown.spill_over, NoInterval)
        assert "not known" in unknown.sentence


def test_a_still_control_arm_is_taken_for_interference_in_5_percent() -> None:
    rng = np.random.default_rng(9)
    places = [str(number // 3) for number in range(18)]
    hits = 0
    for _ in range(150):
        shares = np.concatenate([rng.permutation([0.05, 0.5, 0.95]) for _ in range(6)])
        hits += control_level(places, shares, rng.lognormal(0, 0.1, 18), rng, draws=399).contested
    assert 1 <= hits <= 17, "0.01 and 99.99 % of a binomial of 150 and 5 %"


def test_worlds_show_why_a_b_tests_lie() -> None:
    shown = toy.show(toy.FULL_LINK, np.random.default_rng(10))
    assert shown.truth == pytest.approx(1.0)
    for _, outcome in shown.ab:
        assert isinstance(outcome, Effect)
        assert outcome.ratio == pytest.approx(2.0, rel=0.08), "the same lift at every share"
    assert shown.control.contested
    for outcome in (shown.switchback, shown.links.total_effect):
        assert isinstance(outcome, Effect)
        assert outcome.ratio == pytest.approx(1.0, abs=0.07)
