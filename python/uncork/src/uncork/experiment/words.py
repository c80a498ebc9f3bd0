"""Numbers, counts and lists in words: the same as in the laboratory's reports."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUS = "−"

_UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "bit/s": (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)),
    "s": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)),
    "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)),
}


def counted(n: int, noun: str) -> str:
    """`1 day`, `20 days`, `1,200 units`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def listed(items: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def some(items: Sequence[str], maximum: int) -> str:
    """`a, b and 3 more`: at most `maximum` of them."""
    more = f" and {len(items) - maximum} more" if len(items) > maximum else ""
    return f"{', '.join(items[:maximum])}{more}"


def three(value: float) -> str:
    """Three significant digits: `4.40`, `18.4`, `131`; larger numbers as integers."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    if abs(value) < 0.0005:
        return "< 0.001" if value > 0 else "> −0.001"
    magnitude = math.floor(math.log10(abs(float(f"{value:.2e}"))))
    return f"{value:.{min(max(2 - magnitude, 0), 6)}f}"


def unit_for(value: float, unit: str) -> tuple[str, float]:
    """The unit that suits `value`, and its size in base units."""
    ladder = _UNITS.get(unit, ((unit, 1.0),))
    return next((step for step in ladder if abs(value) >= step[1]), ladder[-1])


def is_share(unit: str) -> bool:
    """Whether the unit is a part of a whole, shown in percent."""
    return unit == "share"


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit: `12.3 Mbit/s`, `340 ms`, `0.53 %`."""
    if value is None or not math.isfinite(value):
        return "–"
    if is_share(unit):
        return f"{three(100 * value)} %"
    name, size = unit_for(value, unit)
    return f"{three(value / size)} {name}".rstrip()


def pair(first: float, second: float, unit: str) -> str:
    """`12.4 → 14.7 Mbit/s`, in the unit that suits the larger."""
    if is_share(unit):
        return f"{three(100 * first)} → {three(100 * second)} %"
    name, size = unit_for(max(abs(first), abs(second)), unit)
    return f"{three(first / size)} → {three(second / size)} {name}".rstrip()


def signed(value: float, decimals: int = 1) -> str:
    """`+6.1`, `−3.0`, `0.0`."""
    text = f"{abs(value):.{decimals}f}"
    if float(text) == 0:
        return text
    return ("+" if value > 0 else MINUS) + text


def _decimals(values: Sequence[float]) -> int:
    """Decimals that show a change: fewer for large ones."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return 0 if largest >= 20 else 1 if largest >= 0.95 else 2


def change(ratio: float | None) -> str:
    """A ratio as a change: `+6.1 %`."""
    if ratio is None or not math.isfinite(ratio):
        return "–"
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.005:
        return "0 %"
    return f"{signed(percent, _decimals([percent]))} %"


def interval(low: float, high: float) -> str:
    """An interval of a ratio as changes: `+1.2 to +5.0 %`."""
    ends = [100 * (low - 1), 100 * (high - 1)]
    decimals = _decimals(ends)
    return f"{signed(ends[0], decimals)} to {signed(ends[1], decimals)} %"


def points(difference: float) -> str:
    """A difference of shares in percentage points: `+0.31 pp`."""
    value = 100 * difference
    return f"{signed(value, 2 if abs(value) < 9.95 else 1)} pp"


def probability(p: float | None) -> str:
    """`0.032`, `< 0.001`."""
    if p is None or not math.isfinite(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def not_guarded(measures: Sequence[str]) -> str:
    """Of guardrails that no record can show."""
    return f"guardrails not run, because no record has it: {listed(measures)}"
