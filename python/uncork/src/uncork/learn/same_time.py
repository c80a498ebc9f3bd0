"""Whether the arms ran at the same time. If not, days differ, and the lift is that of the days."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncork.experiment import words
from uncork.learn.evidence import UNITS, of_metric
from uncork.learn.settings import Settings
from uncork.measure.errors import InputError

MIN_OTHERS = 20
"""Clients of other arms that a day should have before their absence says anything."""
MAX_ALONE = 0.5
"""Part of the days on which one arm may be alone, as one that was stopped is."""
WHOLE = 10_000
"""Propensity of a client that always has its arm."""


def check(evidence: pa.Table, settings: Settings) -> None:
    """Refuses arms if one of them is alone on most days."""
    alone, days = _days_alone(evidence, settings)
    if alone > MAX_ALONE * days:
        raise InputError(
            f"experiment {settings.experiment}",
            f"its arms did not run at the same time: {alone} of {words.counted(days, 'day')} have one alone",
            "learn from clients that are dealt to the arms each day; analyse a switchback with "
            "uncork experiment analyze --calendar",
        )


def _days_alone(evidence: pa.Table, settings: Settings) -> tuple[int, int]:
    """Days on which one arm alone has clients, and all days with enough clients to see it."""
    rows = of_metric(evidence, UNITS)
    arms = pa.array([settings.control, *settings.candidates])
    rows = rows.filter(pc.is_in(rows["arm"].cast(pa.string()), arms))
    day, n = (np.asarray(rows[name]) for name in ("day", "n"))
    arm = np.array(rows["arm"].cast(pa.string()).to_pylist(), dtype=np.object_)
    propensity = np.asarray(pc.fill_null(rows["propensity"], WHOLE // 2)).clip(1, WHOLE)
    others = n * (WHOLE - propensity) / propensity
    alone = total = 0
    for one in np.unique(day).tolist():
        is_of_day = day == one
        if others[is_of_day].sum() >= MIN_OTHERS:
            total += 1
            alone += len(set(arm[is_of_day].tolist())) == 1
    return alone, total
