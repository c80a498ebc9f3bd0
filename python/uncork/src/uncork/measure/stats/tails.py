"""Quantiles and upper tails of the normal distribution and of Student's t.

The values are those of `scipy.stats`. Its import takes longer than most commands of this package.
"""

import math
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]


@overload
def normal_tail(z: float) -> float: ...
@overload
def normal_tail(z: Floats) -> Floats: ...
def normal_tail(z: Any) -> Any:
    """Probability that a standard normal value exceeds `z`."""
    return special.ndtr(-z)


def normal_quantile(p: float) -> float:
    """The value below which a standard normal value is with probability `p`."""
    return float(special.ndtri(p))


def normal_density(z: Floats) -> Floats:
    """The density of the standard normal distribution."""
    density: Floats = np.exp(-(z**2) / 2.0) / np.sqrt(2 * np.pi)
    return density


def student_tail(t: float, freedom: float) -> float:
    """Probability that Student's t with `freedom` degrees of freedom (infinite: normal) exceeds `t`."""
    return float(normal_tail(t) if math.isinf(freedom) else special.stdtr(freedom, -t))


def student_quantile(p: float, freedom: float) -> float:
    """The value below which Student's t (infinite `freedom`: a normal value) is with probability `p`."""
    return normal_quantile(p) if math.isinf(freedom) else float(special.stdtrit(freedom, p))
