"""Records per unit: do the clients of one arm come more often than those of the other?

Means and quantiles count each unit once, so they are adjusted for it. Shares of all bytes are not: they
follow the clients who come more often. So guardrails count each unit once where this differs (Simpson 1951).
"""

from __future__ import annotations

from typing import Final

from uncork.experiment import words
from uncork.experiment.result import Finding
from uncork.measure.cubes import PER_CLIENT, Key, Reduced
from uncork.measure.stats.balance import Sums, records_per_unit
from uncork.measure.stats.effect import Effect

NAME: Final = "records per unit"
UNKNOWN: Final = Finding(NAME, "not run", "The records have no units.")
ADJUSTED: Final = (
    "Means, quantiles and guardrails count each unit once; other shares follow units with more records."
)

UNITS: Final = "Name the unit of each record (--unit-columns), so that each counts once."


def check_balance(whole: Reduced, arms: tuple[str, str]) -> Finding:
    """`whole`: the records of the decision in one cell of everything."""
    if () not in whole.records or () not in whole.units:
        return UNKNOWN
    return judged(whole.records[()], whole.units[()], arms, is_adjusted=whole.weighting == PER_CLIENT)


def judged(records: Sums, units: Sums, arms: tuple[str, str], *, is_adjusted: bool) -> Finding:
    """By arm and bucket. `is_adjusted`: whether means and quantiles count each unit once."""
    effect = records_per_unit(records, units)
    if not isinstance(effect, Effect):
        if effect.control is not None and effect.control == effect.treated:
            return Finding(NAME, "ok", f"{effect.control:.3g} records per unit of both arms.")
        return Finding(NAME, "not run", f"There are too few units: {effect.reason}.")
    numbers = {"ratio": effect.ratio, "low": effect.ratio_low, "high": effect.ratio_high}
    counts = f"{effect.control:.3g} records per unit of {arms[0]} and {effect.treated:.3g} of {arms[1]}"
    if not is_beyond_chance(effect):
        return Finding(NAME, "ok", f"{counts}: no difference beyond chance.", numbers=numbers)
    reach = words.interval(effect.ratio_low, effect.ratio_high)
    return Finding(
        NAME,
        "warning" if is_adjusted else "blocks",
        f"Records per unit differ between the arms: {counts} ({reach}).",
        ADJUSTED if is_adjusted else UNITS,
        numbers,
    )


def uneven_cells(reduced: Reduced, limit: int) -> list[Key]:
    """The cells with different numbers of records per unit, among the `limit` largest."""
    return [key for key in reduced.largest(limit) if _is_uneven(reduced, key)]


def _is_uneven(reduced: Reduced, key: Key) -> bool:
    if key not in reduced.records:
        return False
    effect = records_per_unit(reduced.records[key], reduced.units[key])
    return isinstance(effect, Effect) and is_beyond_chance(effect)


def is_beyond_chance(effect: Effect) -> bool:
    return not effect.ratio_low <= 1 <= effect.ratio_high
