"""Beliefs about networks in ASes of several kinds, compared with worlds of known truth."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from drawn_worlds import FIRST_DAY, REVIEW, Records, draw

from learn_worlds import SETTINGS, world
from uncork.learn import mixture
from uncork.learn.lift import Estimate, Lifts, lifts, shrink
from uncork.learn.mixture import beliefs

LIMITS = (0.0, math.log(0.98))


def of_kinds(far: float, seed: int) -> tuple[np.ndarray, Lifts]:
    """6,000 networks in 100 ASes, a share of them four times as far from its AS; a quarter have estimates."""
    rng = np.random.default_rng(seed)
    one = world(networks=6_000, systems=100, seed=seed, of_networks=0.0)
    lift = one.lift + rng.normal(0, 1, 6_000) * np.where(rng.random(6_000) < far, 0.16, 0.04)
    raw = {at: Estimate(float(lift[at] + rng.normal(0, 0.03)), 0.03) for at in range(0, 6_000, 4)}
    return lift, shrink(one.tree, raw, ({}, {}, None))


def test_few_at_a_time_are_believed_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _, known = of_kinds(0.1, 1)
    at_once = beliefs(known, LIMITS).network
    monkeypatch.setattr(mixture, "CHUNK", 999)
    again = beliefs(known, LIMITS).network
    for one, other in zip((at_once.mean, *at_once.above), (again.mean, *again.above), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_harm_is_as_likely_as_it_is_said_to_be() -> None:
    """Of networks that follow an AS which gains."""
    said, true = 0.0, 0
    for seed in range(4):
        lift, known = of_kinds(0.1, seed)
        found = beliefs(known, LIMITS).network
        follows = (np.arange(len(lift)) % 4 != 0) & (found.mean > 0.1) & (found.above[1] > 0.95)
        said += float((1 - found.above[1])[follows].sum())
        true += int((lift < LIMITS[1])[follows].sum())
    print(f"harmed: {true}, said {said:.0f}")
    assert true > 15
    assert said == pytest.approx(true, rel=0.4)


def test_thin_evidence_of_several_kinds_is_calibrated() -> None:
    """2,000 networks in 125 ASes, 25,000 random records a day, four days: sd of z was 1.19."""
    still = replace(REVIEW, turned=0, drift=0)
    for seed in (1, 2):
        drawn = draw(still, seed)
        records = Records(drawn, 25_000, seed)
        for day in range(4):
            records.day(day)
        known = lifts(records.section(), replace(SETTINGS, as_of=FIRST_DAY + 4))
        assert known is not None
        found = beliefs(known, LIMITS).network
        truth = drawn.lift_on(3)
        spread = float(np.std((truth - found.mean) / found.sd))
        sure = found.above[1] >= 0.95
        right = float((truth[sure] > LIMITS[1]).mean())
        print(f"seed {seed}: sd of z {spread:.2f}; P >= .95 of {sure.sum()} networks, {right:.3f} right")
        assert 0.85 < spread < 1.15
        assert right > 0.93


def test_beliefs__no_network_has_enough_evidence__are_those_before_any() -> None:
    one = world(networks=2, systems=1, seed=1)
    found = beliefs(shrink(one.tree, {}, ({}, {}, None)), LIMITS)
    assert found.network.mean == pytest.approx([0, 0], abs=1e-9)
    assert np.all(found.network.sd > 0.1)
    assert np.all(found.network.above[1] < 0.95)
