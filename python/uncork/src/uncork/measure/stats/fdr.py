"""False discovery rate within a declared family of tests (Benjamini and Hochberg 1995)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def benjamini_hochberg(p_values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The q-value of each p-value, in the same order, shape (tests,).

    Rejecting where q <= 0.05 keeps the expected share of false ones among the rejected at or below 5 %, for
    independent and positively dependent tests. Raises ValueError for p-values outside 0 to 1.
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.size == 0:
        return values
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("a p-value is not between 0 and 1")
    order = np.argsort(values, kind="stable")
    ranks = np.arange(1, values.size + 1)
    # Not of scipy.stats: its import takes longer than most commands.
    steps = values[order] * (values.size / ranks)
    found = np.empty_like(values)
    found[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return found
