"""Breaks in time: the incident is found where it is, and noise is not taken for one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from uncork.measure.stats.breaks import find

Floats = NDArray[np.float64]


def noise(steps: int, rng: np.random.Generator) -> list[Floats]:
    """Two arms that share some of their noise of 5 %."""
    shared = rng.normal(size=steps)
    return [100 * np.exp(0.05 * (0.7 * shared + 0.7 * rng.normal(size=steps))) for _ in range(2)]


@pytest.mark.parametrize("steps", [14, 30, 60])
def test_an_incident_is_found_in_both_arms(steps: int) -> None:
    rng = np.random.default_rng(1)
    control, treated = noise(steps, rng)
    control[6:9] *= 0.25
    treated[6:9] *= 0.7
    (found,) = find(control, treated, rng)
    assert (found.start, found.end) == (6, 9)
    assert found.control_change == pytest.approx(0.25, rel=0.1)
    assert found.treated_change == pytest.approx(0.7, rel=0.1)
    assert found.p_value <= 0.01


def test_a_change_that_lasts_and_two_incidents_are_found() -> None:
    rng = np.random.default_rng(2)
    control, treated = noise(40, rng)
    control[25:] *= 1.5
    (lasting,) = find(control, treated, rng)
    assert (lasting.start, lasting.end) == (25, 40)
    control, treated = noise(40, rng)
    control[5:8] *= 0.4
    treated[20:26] *= 0.5
    assert [(one.start, one.end) for one in find(control, treated, rng)] == [(5, 8), (20, 26)]


def test_noise_is_not_an_incident() -> None:
    rng = np.random.default_rng(3)
    found = [bool(find(*noise(20, rng), rng, least=0, draws=199)) for _ in range(60)]
    assert sum(found) <= 5, "of 60, at 1 %: 5 or less in 9,999 of 10,000 runs"


def test_small_changes_and_short_series_are_left_alone() -> None:
    rng = np.random.default_rng(4)
    control, treated = (part**0.1 for part in noise(30, rng))
    control[10:15] *= 1.05
    assert find(control, treated, rng) == ()
    assert len(find(control, treated, rng, least=0.03)) == 1
    assert find(np.array([1.0, 1, 9, 9]), np.ones(4), rng) == ()


def test_missing_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="leave its step out"):
        find(np.array([1, np.nan, 1.0]), np.ones(3), np.random.default_rng(1))
