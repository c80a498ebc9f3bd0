import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.measure import bins
from uncork.measure.cubes import DistributionCube


@given(st.floats(1e-9, 1e15))
def test_a_value_lies_in_its_bin(value: float) -> None:
    number = bins.bin_of(value)
    assert bins.upper_edge(number - 1) * (1 - 1e-12) <= value <= bins.upper_edge(number) * (1 + 1e-12)
    assert abs(bins.middle(number) / value - 1) < (bins.GAMMA - 1) / (bins.GAMMA + 1) + 1e-9


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_other_values_have_no_bin(value: float) -> None:
    with pytest.raises(ValueError, match="positive, finite"):
        bins.bin_of([1.0, value])


def test_the_mean_of_a_distribution_is_within_a_percent() -> None:
    values = np.random.default_rng(1).lognormal(3, 1, 5000)
    numbers = bins.bin_of(values)
    counts = np.zeros((1, 1, np.ptp(numbers) + 1), dtype=np.int64)
    np.add.at(counts[0, 0], numbers - numbers.min(), 1)
    mean = DistributionCube(counts, int(numbers.min()), bins.GAMMA).mean()
    assert mean.denominator[0, 0] == 5000
    assert mean.numerator[0, 0] / 5000 == pytest.approx(values.mean(), rel=0.01)
