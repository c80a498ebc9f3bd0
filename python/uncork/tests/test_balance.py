"""The check of records per unit: quiet where arms are alike, and a ratio where one arm comes more often."""

import numpy as np
import pytest
from numpy.typing import NDArray

from uncork.measure.stats.balance import records_per_unit
from uncork.measure.stats.effect import Effect


def arm(rng: np.random.Generator, units: int, mean: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    bucket, many = rng.integers(0, 100, units), rng.poisson(mean, units) + 1
    return np.bincount(bucket, many, 100).astype(np.int64), np.bincount(bucket, minlength=100)


@pytest.mark.parametrize(("mean", "differs"), [(2.0, False), (3.5, True)])
def test_arms_differ_in_records_per_unit(mean: float, differs: bool) -> None:
    rng = np.random.default_rng(1)
    both = arm(rng, 300, 2.0), arm(rng, 300, mean)
    found = records_per_unit(np.array([both[0][0], both[1][0]]), np.array([both[0][1], both[1][1]]))
    assert isinstance(found, Effect)
    assert found.ratio == pytest.approx((mean + 1) / 3, rel=0.1)
    assert (found.ratio_low > 1) == differs
