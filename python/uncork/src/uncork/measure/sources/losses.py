"""What an import lost: lines that could not be read. If one arm lost more, the arms cannot be compared."""

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

UNKNOWN = ""
"""The arm of a line that could not be read so far."""


@dataclass
class Losses:
    """Records, and lines that should be records and are not, by arm."""

    read: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    unseen: tuple[str, ...] = ()
    """Fields that a mapping of one's own reads, and that no line had."""

    def add(self, table: pa.Table) -> None:
        """Records of a batch."""
        for one in pc.value_counts(table["arm"]).to_pylist():
            self.read[one["values"] or UNKNOWN] += one["counts"]

    def share(self) -> float:
        """Of all lines that should be records."""
        lost = self.lost.total()
        return lost / max(1, lost + self.read.total())

    def share_of(self, arm: str) -> float:
        """Of the lines that are known to be of the arm."""
        return self.lost[arm] / max(1, self.lost[arm] + self.read[arm])
