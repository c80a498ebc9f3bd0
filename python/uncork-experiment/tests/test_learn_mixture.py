"""Siblings of several kinds: what is believed of networks whose AS is not like one normal distribution."""

import numpy as np
import pytest
from scipy.special import ndtr

from learn_worlds import World, world
from uncork_experiment.learn import mixture
from uncork_experiment.learn.lift import Estimate, Lifts, shrink
from uncork_experiment.learn.mixture import WIDE, Belief, beliefs

LIMITS = (0.0, -0.02)
ERROR = 0.03
KNOWN = 4
"""One of so many networks has an estimate of its own."""


def of_kinds(far: float, seed: int = 1) -> tuple[World, Lifts]:
    """6,000 networks in 100 ASes, of which a share is four times as far from its AS as the others."""
    rng = np.random.default_rng(seed)
    one = world(networks=6_000, systems=100, seed=seed, of_networks=0.0)
    spread = np.where(rng.random(6_000) < far, 0.16, 0.04)
    one.lift[:] += rng.normal(0, 1, 6_000) * spread
    raw = {at: Estimate(float(one.lift[at] + rng.normal(0, ERROR)), ERROR) for at in range(0, 6_000, KNOWN)}
    return one, shrink(one.tree, raw, ({}, {}, None))


def same(one: Belief, other: Belief) -> None:
    for mine, its in zip((one.mean, one.sd, *one.above), (other.mean, other.sd, *other.above), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-6, atol=1e-8)


def test_one_kind_alone_is_the_normal_model(monkeypatch: pytest.MonkeyPatch) -> None:
    _, lifts = of_kinds(0.1)
    monkeypatch.setattr(mixture, "_share", lambda _: 1e-12)
    unknown, networks = beliefs(lifts, LIMITS)
    spread = lifts.system.variance + lifts.network.tau2
    same(unknown, Belief.normal(lifts.system.mean, spread, LIMITS))
    like_others = ~lifts.network.is_outlier
    normal = Belief.normal(lifts.network.mean, lifts.network.variance, LIMITS)
    same(networks.of(like_others), normal.of(like_others))


def test_few_at_a_time_are_believed_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _, lifts = of_kinds(0.1)
    _, at_once = beliefs(lifts, LIMITS)
    monkeypatch.setattr(mixture, "CHUNK", 999)
    same(beliefs(lifts, LIMITS)[1], at_once)


def test_an_only_child_is_believed_by_all_four_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its AS and the network are each near or far: here all of them are written out."""
    monkeypatch.setattr(mixture, "_share", lambda _: 0.2)
    one = world(networks=40, systems=40, seed=3)
    alone = np.bincount(one.tree.system, minlength=len(one.tree.systems))[one.tree.system] == 1
    raw = {at: Estimate(float(one.lift[at]), 0.05) for at in range(40)}
    lifts = shrink(one.tree, raw, ({}, {}, None))
    _, found = beliefs(lifts, LIMITS)
    system, network = lifts.system, lifts.network
    for at in np.flatnonzero(alone & ~network.is_outlier & ~system.is_outlier[one.tree.system]):
        parent = one.tree.system[at]
        weights, means, variances = [], [], []
        for of_system, w1 in ((1.0, 0.8), (WIDE, 0.2)):
            for of_network, w2 in ((1.0, 0.8), (WIDE, 0.2)):
                prior = system.prior_variance[parent] + system.tau2 * (of_system - 1)
                prior += network.tau2 * of_network
                total = prior + 0.05**2
                deviation = raw[at].lift - system.prior_mean[parent]
                weights.append(w1 * w2 * np.exp(-(deviation**2) / (2 * total)) / np.sqrt(total))
                variances.append(1 / (1 / prior + 1 / 0.05**2))
                means.append(variances[-1] * (system.prior_mean[parent] / prior + raw[at].lift / 0.05**2))
        weight = np.array(weights) / sum(weights)
        assert found.mean[at] == pytest.approx(float(weight @ means), abs=1e-9)
        above = ndtr((np.array(means) + 0.02) / np.sqrt(variances))
        assert found.above[1][at] == pytest.approx(float(weight @ above), abs=1e-9)


def test_the_share_of_those_that_are_far_is_found() -> None:
    """Where all are alike it is nothing. The more are far, the more of them count in tau, too, which is what
    is usual: then the share is less than there are.
    """
    found = {}
    for far in (0.0, 0.05, 0.1):
        shares = [mixture._share(of_kinds(far, seed)[1].network) for seed in range(5)]
        found[far] = float(np.mean(shares))
    print(found)
    assert found[0.0] < 0.01
    assert 0.02 < found[0.05] < 0.05 < found[0.1] < 0.1


def test_harm_is_as_likely_as_it_is_said_to_be() -> None:
    """Of networks that follow an AS which gains: the normal model misses nearly all of those that lose."""
    said, normal, true = 0.0, 0.0, 0
    for seed in range(10):
        one, lifts = of_kinds(0.1, seed)
        _, found = beliefs(lifts, LIMITS)
        follows = np.arange(len(one.lift)) % KNOWN != 0
        follows &= (found.mean > 0.1) & (found.above[1] > 0.95)
        said += float((1 - found.above[1])[follows].sum())
        usual = Belief.normal(lifts.network.mean, lifts.network.variance, LIMITS)
        normal += float((1 - usual.above[1])[follows].sum())
        true += int((one.lift < LIMITS[1])[follows].sum())
    print(f"harmed: {true}, said {said:.0f}, by normal distributions {normal:.0f}")
    assert true > 50
    assert said == pytest.approx(true, rel=0.25)
    assert normal < 0.5 * true


def test_what_a_twin_expects_is_as_sure_as_it_says() -> None:
    """ASes of a country are of several kinds; the twin knows which one this is."""
    one, _ = of_kinds(0.1)
    tree = one.tree
    known = tree.system % 2 == 1
    raw = {
        at: Estimate(float(one.lift[at]) + float(tree.system[at] % 4), 0.03) for at in np.flatnonzero(known)
    }
    expected = dict.fromkeys(range(0, len(tree.systems), 2), (0.2, 0.05))
    lifts = shrink(tree, raw, ({}, {}, None), expected)
    unknown, _ = beliefs(lifts, LIMITS)
    sd = np.sqrt(0.05**2 + lifts.network.tau2 * (1 + mixture._share(lifts.network) * (WIDE - 1)))
    np.testing.assert_allclose(unknown.mean[::2], 0.2)
    np.testing.assert_allclose(unknown.sd[::2], sd)
    # Without it, an AS of that country may be far from the others.
    without, _ = beliefs(shrink(tree, raw, ({}, {}, None)), LIMITS)
    assert without.sd[0] > 3 * unknown.sd[0]
