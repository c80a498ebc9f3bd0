"""When units first appear: in both arms alike, unless one arm's clock is off, or its records begin later.

Each unit counts once, at its first record, so units are independent of each other and of their requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncork.experiment.result import Finding
from uncork.measure.keys import HOUR_NS, date

NAME: Final = "arrival times"

STEP_NS: Final = HOUR_NS // 2
"""Time zones differ by half hours."""

MAX_SHIFT: Final = 28
"""Half hours: 14 hours."""

MIN_PER_BIN: Final = 8
MAX_BIN: Final = 12
"""Units in a bin on average, and half hours of the widest bin."""

SURE: Final = 6.0
"""Standard deviations of chi-square above its mean from which the arms differ: chance gives it less than once
in a thousand experiments with five bins, and less with more (tests/test_health_ratio.py counts)."""

EXPLAINED: Final = 0.3
"""A shift is named if no more than this part of the excess remains with it."""

APART: Final = 0.5
"""Part of their units that the arms have at the same times, below which a trend decides the comparison."""

Floats = NDArray[np.float64]


def check_arrivals(counts: Mapping[tuple[str, int], int], arms: tuple[str, str]) -> Finding:
    """`counts`: units by arm and half hour (since 1970) of their first record."""
    steps = [step for _, step in counts]
    both = {arm for arm, _ in counts}
    if not steps or not set(arms) <= both:
        return Finding(NAME, "not run", "The records have no units with times, or one arm only.")
    first, length = min(steps), max(steps) - min(steps) + 1
    if length > 2 * 24 * 3_700:
        return Finding(NAME, "not run", "The records span more than ten years: see clocks.")
    series = np.zeros((2, length))
    for (arm, step), units in counts.items():
        if arm in arms:
            series[arms.index(arm), step - first] += units
    width = next((w for w in (1, 2, 4, 8, MAX_BIN) if series.sum() * w >= MIN_PER_BIN * length), None)
    if width is None or length < 3 * width:
        return Finding(NAME, "not run", "There are too few units for their times.")
    at_rest = _excess(series, 0, width)
    if at_rest <= SURE:
        return Finding(
            NAME, "ok", "Units of both arms first appear at the same times.", "", {"excess": at_rest}
        )
    excess = {k: _excess(series, k, width) for k in range(-MAX_SHIFT, MAX_SHIFT + 1)}
    remaining = min(excess.values())
    # Within a bin neighbours fit alike: take the middle of the shifts that fit.
    shift = round(float(np.median([k for k, value in excess.items() if value <= remaining + 1])))
    numbers = {"excess": at_rest, "shift_h": shift / 2, "excess_with_shift": remaining}
    if abs(shift) >= 2 and remaining <= EXPLAINED * at_rest:
        way, hours = ("later" if shift > 0 else "earlier"), f"about {abs(shift) / 2:g} hours"
        sentence = f"Units of {arms[1]} appear {hours} {way} than those of {arms[0]}, at all times."
        remedy = "A clock or time zone of one arm is off: log UTC in both, or correct the mapping's times."
        return Finding(NAME, "blocks", sentence, remedy, numbers)
    return _uneven(series, first, width, arms, numbers)


def _uneven(
    series: Floats, first: int, width: int, arms: tuple[str, str], numbers: dict[str, float]
) -> Finding:
    """The arms differ in time, and not by a shift: the worst time is named."""
    binned = _binned(series, width)
    common = float(np.minimum(*(binned / binned.sum(axis=1, keepdims=True))).sum())
    numbers = numbers | {"common": common}
    if common < APART:
        part = f"{100 * common:.0f} %"
        sentence = f"{arms[0]} and {arms[1]} ran at different times: {part} of their units appear together."
        remedy = "A change in time looks like an effect: use times with both arms (--since, --until)."
        return Finding(NAME, "blocks", sentence, remedy, numbers)
    share = series[1].sum() / series.sum()
    total = binned.sum(axis=0)
    expected = share * total
    spread = np.maximum(share * (1 - share) * total, 1e-9)
    worst = int(np.argmax((binned[1] - expected) ** 2 / spread))
    when = date((first + worst * width) * STEP_NS, "%Y-%m-%d %H:%M")
    units = f"{binned[0, worst]:,.0f} units of {arms[0]} and {binned[1, worst]:,.0f} of {arms[1]}"
    sentence = f"Units of the arms first appear at other times: from {when} UTC for {width / 2:g} h {units}."
    remedy = "Did the share change, or an arm begin later? Analyse each share on its own (--since, --until)."
    return Finding(NAME, "warning", sentence, remedy, numbers)


def _binned(series: Floats, width: int) -> Floats:
    padded = np.pad(series, ((0, 0), (0, -series.shape[1] % width)))
    return np.asarray(padded.reshape(2, -1, width).sum(axis=2))


def _excess(series: Floats, shift: int, width: int) -> float:
    """Chi-square of both arms' times, the second moved back by `shift` half hours, in deviations above its
    mean. Given the sums, each bin is binomial.
    """
    moved = np.pad(series, ((0, 0), (MAX_SHIFT, MAX_SHIFT)))
    moved[1] = np.roll(moved[1], -shift)
    binned = _binned(moved, width)
    total = binned.sum(axis=0)
    binned, total = binned[:, total > 0], total[total > 0]
    share = binned[1].sum() / total.sum()
    chi = float(((binned[1] - share * total) ** 2 / (share * (1 - share) * total)).sum())
    degrees = max(len(total) - 1, 1)
    return (chi - degrees) / float(np.sqrt(2 * degrees))
