"""The policy in worlds with a known truth. Estimates are drawn (learn_worlds.py)."""

from dataclasses import replace

import numpy as np
import pytest

from faked import decided, faked, liars
from learn_worlds import SETTINGS, Evidence, gain, harmed, is_on, planned, world
from uncork.learn.decisions import Decisions
from uncork.learn.lift import shrink


def run(evidence: Evidence, days: int, seed: int = 2, every: int = 1) -> Decisions:
    rng, decisions = np.random.default_rng(seed), Decisions.concat([])
    for day in range(days):
        evidence.day(rng, evidence.world.lift)
        if day % every == every - 1 or day == days - 1:
            decisions = planned(evidence, day, decisions)
    return decisions


def test_most_of_the_gain_without_the_harm() -> None:
    """20,000 networks with Zipf traffic in 300 ASes; plans after 7 and 30 days (docs/reference/learn.md)."""
    one = world()
    all_clients = np.ones(len(one.share), dtype=np.bool_)
    for days, half_life in ((7, 14.0), (30, 14.0), (30, 7.0), (30, 28.0)):
        evidence = Evidence(one, half_life)
        on = is_on(run(evidence, days, every=days), one)
        raw, error = evidence.raw()
        choices = {
            "learned": on,
            "all BBR": all_clients,
            "all CUBIC": ~all_clients,
            "raw sign": raw > 0,
            "raw sign, z > 1.96": raw > 1.96 * error,
        }
        found = {name: (gain(of, one), harmed(of, one)) for name, of in choices.items()}
        for name, (got, lost) in found.items():
            print(f"{days} days, half-life {half_life:g}: {name}: gain {got:.1%}, worse {lost:.2%}")
        assert found["learned"][0] > (0.9 if days == 7 else 0.94)
        assert found["learned"][1] < 0.002
        assert found["raw sign"][1] > 3 * found["learned"][1]
        assert found["all BBR"][1] > 0.2
        assert found["all CUBIC"] == (0, 0)


@pytest.mark.parametrize(("networks", "systems", "daily"), [(300, 20, 1_000_000), (27, 6, 20_000)])
def test_a_a_changes_nothing(networks: int, systems: int, daily: int) -> None:
    """30 daily plans in which the arms are the same, in five worlds. No network is switched on."""
    for seed in range(5):
        one = world(networks=networks, systems=systems, seed=seed, daily=daily)
        one = replace(one, lift=np.zeros(networks))
        rng, evidence, decisions = np.random.default_rng(seed), Evidence(one), Decisions.concat([])
        for day in range(30):
            evidence.day(rng, one.lift)
            decisions = planned(evidence, day, decisions)
            assert all(it.arm == "control" for it in decisions), (seed, day)


def test_the_posterior_is_calibrated() -> None:
    """Truths lie around their posteriors as far as these say; the spread of networks is found."""
    one = world()
    evidence, rng = Evidence(one), np.random.default_rng(2)
    for _ in range(7):
        evidence.day(rng, one.lift)
    found = shrink(one.tree, *evidence.estimates())
    assert found.network.tau2**0.5 == pytest.approx(0.05, rel=0.15)
    assert found.system.tau2**0.5 == pytest.approx(0.10, rel=0.15)
    away = (found.network.mean - one.lift) / np.sqrt(found.network.variance)
    assert float(np.std(away)) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("fake", [-2.0, 2.0])
def test_an_adversary_moves_only_its_own_networks(fake: float) -> None:
    one = world(networks=3000, systems=60)
    big = np.argsort(-one.share)[:200]
    evil = np.random.default_rng(1).choice(big, 20, replace=False)
    lying = one.lift.copy()
    lying[evil] = fake
    honest, steered = Evidence(one), Evidence(one)
    for seed in range(7):
        honest.day(np.random.default_rng(seed), one.lift)
        steered.day(np.random.default_rng(seed), lying)
    calm, moved = (is_on(planned(it, 7, Decisions.concat([])), one) for it in (honest, steered))
    others = np.setdiff1d(np.arange(len(one.share)), evil)
    flipped = float(one.share[others][calm[others] != moved[others]].sum())
    assert flipped < 0.01, "one in a hundred bytes of the others"
    assert moved[evil].all() == (fake > 0)


@pytest.mark.parametrize("fake", [0.15, 0.3, 2.0])
@pytest.mark.parametrize("systems", [1, 10])
def test_faked_gains_in_ases_near_the_threshold_harm_no_other_as(systems: int, fake: float) -> None:
    """A fifth of the networks of an AS fake gains, or of each of ten: those ASes that gain next to nothing.
    If many do, more of the others are not sure enough any more; but hardly any is switched on.
    """
    one = world(networks=3000, systems=60)
    members = [np.flatnonzero(one.tree.system == at) for at in range(len(one.tree.systems))]
    means = [np.average(one.lift[of], weights=one.share[of]) for of in members]
    near = np.argsort(np.abs(means))[:10]
    if systems == 1:
        near = [max(near, key=lambda at: one.share[members[at]].sum())]
    rng = np.random.default_rng(1)
    evil = np.concatenate([rng.choice(members[at], len(members[at]) // 5, replace=False) for at in near])
    lying = one.lift.copy()
    lying[evil] = fake
    honest, steered = Evidence(one), Evidence(one)
    for seed in range(7):
        honest.day(np.random.default_rng(seed), one.lift)
        steered.day(np.random.default_rng(seed), lying)
    calm, moved = (is_on(planned(it, 7, Decisions.concat([])), one) for it in (honest, steered))
    others = np.ones(len(one.share), dtype=np.bool_)
    others[evil] = False
    total = one.share[others].sum()
    off, on = (float(one.share[others & of].sum() / total) for of in (calm & ~moved, moved & ~calm))
    worse = float(one.share[others & moved & (one.lift < -0.02)].sum() / total)
    print(f"{systems} of 60 ASes, {fake:+}: off {off:.2%}, on {on:.2%}; with BBR and worse {worse:.2%}")
    assert moved[evil].any()
    assert on < 0.01
    assert worse < 0.002
    assert off + on < (0.01 if systems == 1 else 0.02)


def test_a_tenth_of_all_networks_that_fakes_gains() -> None:
    """A known weakness (docs/evidence/learn.md), which must not become larger."""
    one = world(networks=3000, systems=60)
    evil = liars(one, "any", 1)
    found = faked(one, evil, 2.0, 1, decided(one, 1))
    assert found.own > 0.9
    assert found.on < 0.012
    assert found.off < 0.05
    assert found.worse < 0.003


def test_what_turns_over_is_left() -> None:
    """Without guardrails: old evidence fades. With them: test_learn_records.py."""
    one = world(networks=500, systems=10, mean=0.15, of_systems=0.02)
    turned = replace(one, lift=np.where(one.tree.system == 0, -0.15, one.lift))
    rng, evidence, decisions = np.random.default_rng(3), Evidence(one), Decisions.concat([])
    left = None
    mine = turned.tree.system == 0
    for day in range(24):
        evidence.day(rng, (one if day < 7 else turned).lift)
        decisions = planned(evidence, day, decisions, replace(SETTINGS, half_life=7))
        on = is_on(decisions, one)
        if day == 6:
            assert one.share[mine & on].sum() > 0.9 * one.share[mine].sum()
        if day >= 7 and left is None and one.share[mine & on].sum() < 0.1 * one.share[mine].sum():
            left = day - 7
    assert left is not None
    assert left <= 9, "days"
    assert one.share[~mine & on].sum() > 0.9 * one.share[~mine].sum(), "the others stay"
