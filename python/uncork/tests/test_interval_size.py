"""A/A tests of hard populations: 5 % at the 5 % level, and 0.1 % at the 0.1 % level, where cells are judged.

bench/intervals.py has more of them.
"""

import numpy as np
import pytest

from hard_populations import FIRST_BIN, GAMMA, heavy, lossy, rejected
from uncork.measure.stats.jackknife import quantile_effect, ratio_effect


@pytest.mark.parametrize("units", [60, 250])
def test_a_ratio_of_few_lossy_users_rejects_as_it_says(units: int) -> None:
    rng = np.random.default_rng(11)
    found = [ratio_effect(*lossy(rng, units), *lossy(rng, units)) for _ in range(700)]
    assert rejected(found, 0.05) <= 0.075
    assert rejected(found, 0.001) <= 0.006


def test_a_median_of_few_heavy_users_rejects_as_it_says() -> None:
    rng = np.random.default_rng(12)
    found = [
        quantile_effect(heavy(rng, 50), heavy(rng, 50), 0.5, first_bin=FIRST_BIN, gamma=GAMMA)
        for _ in range(150)
    ]
    assert rejected(found, 0.05) <= 0.1
    assert rejected(found, 0.001) <= 0.01
