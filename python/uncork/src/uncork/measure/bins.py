"""Logarithmic bins: bin ``b`` holds the values in ``(GAMMA**(b-1), GAMMA**b]``.

A quantile read from them is within 1 % of the exact one, and counts of bins add up exactly on every
engine, which quantile functions of SQL do not (Masson, Rim and Lee: DDSketch, VLDB 2019).
"""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

GAMMA: Final = 1.02
IMPOSSIBLE: Final = -(2**30)
"""The bin of a value that cannot be, in roll-ups and prepared records. There, null is a missing value."""
LN_GAMMA: Final = math.log(GAMMA)


def bin_of(values: ArrayLike, gamma: float = GAMMA) -> NDArray[np.int64]:
    """The bin of each value, which must be positive and finite."""
    x = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(x) & (x > 0)):
        raise ValueError("only positive, finite values have a bin")
    return np.ceil(np.log(x) / math.log(gamma)).astype(np.int64)


def upper_edge(bins: ArrayLike, gamma: float = GAMMA) -> NDArray[np.float64]:
    """The greatest value of each bin."""
    return np.asarray(gamma ** np.asarray(bins, dtype=np.float64))


def middle(bins: ArrayLike, gamma: float = GAMMA) -> NDArray[np.float64]:
    """The value that stands for each bin: within ``(gamma-1)/(gamma+1)`` (1 %) of all values in it."""
    return np.asarray(2.0 / (1.0 + gamma) * upper_edge(bins, gamma))
