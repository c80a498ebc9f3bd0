"""Records per unit: do the clients of one arm come more often?

A faster controller lets clients download more; a log that loses records of one arm has fewer. Both
move every statistic over records. Distributions count each unit once and are adjusted for it. Ratios over all
records, and records without units, are not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats.effect import Outcome
from uncork.measure.stats.jackknife import ratio_effect

Sums = NDArray[np.int64] | NDArray[np.float64]


def records_per_unit(records: Sums, units: Sums, *, level: float = 0.999) -> Outcome:
    """Effect on the records of a unit. Both arrays have shape (2 arms, K buckets), control first.

    The level is high because this is a check of every analysis: one fair experiment in 1,000 fails it.
    """
    sums = (np.asarray(part, dtype=np.float64) for part in (records[0], units[0], records[1], units[1]))
    control_num, control_den, treated_num, treated_den = sums
    return ratio_effect(
        control_num, control_den, treated_num, treated_den, level=level, estimand="records per unit"
    )
