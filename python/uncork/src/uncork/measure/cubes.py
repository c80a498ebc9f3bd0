"""Reduced records: for each cell and metric, a small array by arm and bucket.

All statistics run on these. Their size depends on the number of cells, never on the number of records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from uncork.measure.bins import middle

BUCKETS = 100
"""Parts of all units. The jackknife leaves out one part at a time."""

WEIGHT = 1_000_000_000
"""The weight of a unit in a cell, shared by its records. It is a whole number, so that sums are exact in any
order; they fit into 64 bits up to 9 billion units."""

PER_CLIENT = "per client: each counts once, however many records it has"
PER_RECORD = "per record: clients with more records count more"

Key = tuple[str, ...]
"""What identifies a cell: a value for each of ``Reduced.by``."""


@dataclass(frozen=True)
class DistributionCube:
    """How often a metric had which value in one cell."""

    counts: NDArray[np.int64]
    """By (arm, bucket, bin)."""
    first_bin: int
    """The bin of ``counts[..., 0]``."""
    gamma: float
    """Bin ``b`` holds values in ``(gamma**(b-1), gamma**b]``."""
    whole: int = 1
    """What counts as one in ``counts``: 1 where records count, ``WEIGHT`` where each unit counts once."""

    def values(self) -> NDArray[np.float64]:
        """The value that stands for each bin (bins)."""
        return middle(np.arange(self.first_bin, self.first_bin + self.counts.shape[2]), self.gamma)

    def mean(self) -> "RatioCube":
        """The mean as a ratio. Each value counts as its bin's middle: within 1 %, the same in all arms."""
        counts = self.counts.astype(np.float64)
        counts /= self.whole
        return RatioCube(numerator=counts @ self.values(), denominator=counts.sum(axis=2))


@dataclass(frozen=True)
class RatioCube:
    """``sum(numerator) / sum(denominator)`` by (arm, bucket); a mean has the count as its denominator."""

    numerator: NDArray[np.float64]
    denominator: NDArray[np.float64]


Cube = DistributionCube | RatioCube


@dataclass(frozen=True)
class Reduced:
    """All cells of some records."""

    arms: tuple[str, ...]
    """Control first."""
    by: tuple[str, ...]
    """Names of the cell keys, such as ``("region", "size_class")``; ``()`` for one cell of everything."""
    cells: Mapping[Key, Mapping[str, Cube]]
    """Cubes by the key's values and the metric's name. A metric without values in a cell is missing."""
    units: Mapping[Key, NDArray[np.int64]]
    """Distinct units by (arm, bucket)."""
    rows: int
    """Records that were read."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Records, or values of metrics, that were left out, by reason."""
    outside: int = 0
    """Records that are not of the experiment, or of arms that are not compared."""
    records: Mapping[Key, NDArray[np.int64]] = field(default_factory=dict)
    """Records by (arm, bucket), as ``units``."""
    weighting: str = PER_RECORD
    """Whom means and quantiles are about. Ratios are sums over all records: they are about all traffic."""

    def largest(self, limit: int) -> list[Key]:
        """The cells with the highest number of units, in descending order."""
        return sorted(self.cells, key=lambda key: -int(self.units[key].sum()))[:limit]
