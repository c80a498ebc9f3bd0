"""Shrinkage: against the exact posterior of the model, and against those who would steer it."""

import numpy as np
import pytest

from uncork.learn import tree
from uncork.learn.tree import Level, posteriors

SYSTEM = np.array([0, 0, 0, 1, 1, 1])
COUNTRY = np.array([0, 1])


def levels(mean: np.ndarray, error: np.ndarray) -> list[Level]:
    def none(parent: list[int]) -> Level:
        count = len(parent)
        return Level(np.array(parent), np.full(count, np.nan), np.full(count, np.inf), np.ones(count))

    leaves = Level(SYSTEM, mean, error**2, np.ones(len(mean)))
    return [none([0]), none([0, 0]), none(COUNTRY.tolist()), leaves]


def test_messages_give_the_posterior_of_the_whole_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same by one multivariate normal of all nodes, conditioned on the estimates."""
    taus = {6: 0.05**2, 2: 0.1**2}
    monkeypatch.setattr(tree, "_tau2", lambda level, *_: taus[len(level.parent)])
    mean = np.array([0.1, 0.2, np.nan, -0.1, 0.0, 0.05])
    error = np.array([0.02, 0.1, np.inf, 0.03, 0.2, 0.01])
    found = np.concatenate([level.mean for level in posteriors(levels(mean, error))])
    spread = np.concatenate([level.variance for level in posteriors(levels(mean, error))])

    # Order: root, countries, ASes, networks. Each node is a sum of independent steps from the root.
    steps = np.zeros((11, 11))
    steps[:, 0] = 1
    for country in (0, 1):
        steps[1 + country, 1 + country] = 1
    for system in (0, 1):
        steps[3 + system] += steps[1 + COUNTRY[system]] * [0] + [
            0,
            *np.eye(2)[COUNTRY[system]],
            *np.eye(2)[system],
            *np.zeros(6),
        ]
    for network in range(6):
        own = np.zeros(11)
        own[5 + network] = 1
        steps[5 + network] = steps[3 + SYSTEM[network]] + own
    variances = [tree.ROOT[1], *[taus[2]] * 2, *[taus[2]] * 2, *[taus[6]] * 6]
    cov = steps @ np.diag(variances) @ steps.T
    seen = np.flatnonzero(~np.isnan(mean)) + 5
    inside = cov[np.ix_(seen, seen)] + np.diag(error[seen - 5] ** 2)
    gain = cov[:, seen] @ np.linalg.inv(inside)
    np.testing.assert_allclose(found, gain @ mean[seen - 5], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(spread, np.diag(cov - gain @ cov[seen]), rtol=1e-9)


def crowd(lift: np.ndarray, error: float, rng: np.random.Generator) -> list[Level]:
    """Networks of one AS with these true lifts."""
    count = len(lift)
    none = (np.full(1, np.nan), np.full(1, np.inf), np.ones(1))
    one = np.zeros(1, dtype=np.int64)
    leaves = Level(
        np.zeros(count, dtype=np.int64),
        lift + rng.normal(0, error, count),
        np.full(count, error**2),
        np.ones(count),
    )
    return [Level(one, *none), Level(one, *none), Level(one, *none), leaves]


@pytest.mark.parametrize("tau", [0.05, 0.15])
def test_the_spread_of_siblings_is_found(tau: float) -> None:
    rng = np.random.default_rng(1)
    found = posteriors(crowd(rng.normal(0.1, tau, 2000), 0.1, rng))[3]
    assert found.tau2**0.5 == pytest.approx(tau, rel=0.15)
    assert not found.is_outlier.any() or found.is_outlier.mean() < 0.01


def test_intervals_hold_the_truth() -> None:
    rng = np.random.default_rng(2)
    inside = []
    for _ in range(40):
        lift = rng.normal(rng.normal(0, 0.1), 0.05, 50)
        of = posteriors(crowd(lift, 0.08, rng))[3]
        inside.append(np.abs(lift - of.mean) < 1.96 * np.sqrt(of.variance))
    assert 0.93 < np.mean(inside) < 0.97


@pytest.mark.parametrize("fake", [-3.0, 3.0])
def test_networks_that_lie_hardly_move_others(fake: float) -> None:
    """A fifth of an AS's networks claim a gain that no other network has."""
    lift = np.random.default_rng(3).normal(0.1, 0.05, 50)
    honest = posteriors(crowd(lift, 0.05, np.random.default_rng(4)))[3]
    lying = lift.copy()
    lying[:10] = fake
    steered = posteriors(crowd(lying, 0.05, np.random.default_rng(4)))[3]
    assert steered.is_outlier[:10].all()
    assert not steered.is_outlier[10:].any()
    moved = np.abs(steered.mean[10:] - honest.mean[10:]) / np.sqrt(honest.variance[10:])
    assert moved.max() < 0.5, "standard deviations: tau grows a little"
    np.testing.assert_allclose(steered.mean[:10], fake, atol=0.3)
