"""Design: how long, how large, which unit, and do the intervals hold? From cubes of records of the past.

What the past knows is the scatter of a measure between its 100 buckets of units. An experiment that gives the
shares a and b of the same traffic to its arms has the variance of the whole, times 1/a + 1/b.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from uncork.experiment.estimate import total
from uncork.measure.cubes import Cube, DistributionCube, RatioCube
from uncork.measure.stats.jackknife import (
    MIN_BUCKETS,
    quantiles_with_replicates,
    ratio_with_replicates,
)
from uncork.measure.stats.sequential import obrien_fleming
from uncork.measure.stats.tails import normal_quantile, student_tail

Floats = NDArray[np.float64]

MIN_STEPS = 4
"""Cumulated spans of days that show how fast the variance falls."""

MAX_DAYS = 730
"""Longer experiments are not proposed."""

ASSUMED_FALL = 0.5
"""How the variance falls with days where the past is too short to show it: as days to the power of -0.5."""


@dataclass(frozen=True)
class Precision:
    """How well the past knows one measure."""

    value: float
    """In the metric's unit."""
    log_error: float
    """Standard error of the logarithm of `value`."""
    units: int
    """Distinct units of the past."""
    days: int
    fall: float
    """The variance falls as days to the power of minus this: 1 if every day brings new users, 0 if none."""
    fall_is_measured: bool


@dataclass(frozen=True)
class NoPrecision:
    """Past records give no precision, and why."""

    reason: str


@dataclass(frozen=True)
class Goal:
    """What an experiment is to find."""

    relative: float = 0.05
    """The least change worth finding: 0.05 is 5 %."""
    level: float = 0.95
    power: float = 0.8
    shares: tuple[float, float] = (0.5, 0.5)
    """Share of all units in the control and in the treated arm."""
    looks: int = 1
    """Looks at the verdict; more than one are of O'Brien and Fleming."""

    def reach(self) -> float:
        """Standard errors that an effect must have."""
        last = float(obrien_fleming(self.looks, 1 - self.level)[-1])
        return last + normal_quantile(self.power)


def precision(
    days: Sequence[Mapping[str, Cube]], metric: str, q: float | None, units: int
) -> Precision | NoPrecision:
    """Precision of the quantile `q` of `metric`, or of its ratio or mean for None, from the cubes of each
    day.

    All arms count together. `units` is the number of distinct units of all days.
    """
    cubes = [cubes[metric] for cubes in days if metric in cubes]
    if not cubes:
        return NoPrecision(f"the records have no {metric}")
    spans = sorted({round(len(cubes) * 2 ** (-step / 2)) for step in range(12)} - {0, 1} | {len(cubes)})
    known = [(span, _log_error(_sum(cubes[:span]), q)) for span in spans]
    last = known[-1][1]
    if isinstance(last, NoPrecision):
        return last
    steps = [(span, error) for span, error in known if isinstance(error, tuple)]
    measured = len(steps) >= MIN_STEPS
    fall = ASSUMED_FALL
    if measured:
        logs = np.log([[span, error[1]] for span, error in steps])
        fall = min(max(-2 * float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]), 0.0), 1.0)
    return Precision(last[0], last[1], units, len(cubes), fall, measured)


def mde(past: Precision, goal: Goal, days: float) -> float:
    """The least relative change that `days` days find."""
    return math.expm1(goal.reach() * _error(past, goal, days))


def days_needed(past: Precision, goal: Goal) -> float | None:
    """Days until `goal.relative` is found; None if it takes years, as the same units return: take more."""
    if goal.relative == 0 or goal.relative <= -1:
        raise ValueError(f"a relative change of {goal.relative:g} cannot be looked for")
    times = (goal.reach() * _error(past, goal, past.days) / math.log1p(abs(goal.relative))) ** 2
    if times <= 1:
        # Within the past the variance is known, and falls at most as fast as the days.
        return max(1.0, past.days * math.pow(times, 1 / max(past.fall, 0.25)))
    days = past.days * math.exp(min(math.log(times) / max(past.fall, 0.05), 50.0))
    return days if days <= MAX_DAYS else None


def units_needed(past: Precision, goal: Goal) -> int:
    """Units per arm that find `goal.relative` in as many days as the past has, with arms of equal size."""
    deviation = past.log_error * math.sqrt(past.units)
    return math.ceil(2 * (goal.reach() * deviation / math.log1p(abs(goal.relative))) ** 2)


@dataclass(frozen=True)
class UnitChoice:
    """A unit of assignment, and what it costs."""

    unit: str
    units: int
    """Those of the past."""
    mde: float | None
    """Least relative change found in as many days as the past has; None if too few buckets have data."""
    days: float | None
    """Until the goal's change is found; None if never by more days."""
    units_needed: int | None
    """In each arm, to find it in as many days as the past has."""
    sentence: str


Days = Sequence[Mapping[str, Cube]]

CLIENT_NETWORK, COOKIE, BLOCK = "client network", "cookie or header", "PoP x hour"

ABOUT_UNITS = {
    CLIENT_NETWORK: "Known when a connection is accepted, HTTP/3 and TCP alike; needs no cookie.",
    COOKIE: "Follows a user between networks, but is known only with the first request, if at all.",
    BLOCK: "The arms share no link at any time: estimates the total effect (switchback). A calendar of "
    "pairs needs fewer hours than this.",
}


def compare_units(
    candidates: Mapping[str, tuple[Days, int]], metric: str, q: float | None, goal: Goal
) -> tuple[UnitChoice, ...]:
    """The same records by several units, most precise first: cubes of each day, and the number of units."""
    choices = [_choice(name, days, units, metric, q, goal) for name, (days, units) in candidates.items()]
    return tuple(sorted(choices, key=lambda one: (one.mde is None, one.mde or 0.0)))


def _choice(name: str, days: Days, units: int, metric: str, q: float | None, goal: Goal) -> UnitChoice:
    known, about = precision(days, metric, q, units), ABOUT_UNITS.get(name, "")
    if isinstance(known, NoPrecision):
        few = f"{known.reason}: use randomisation inference (a switchback), not buckets."
        return UnitChoice(name, units, None, None, None, f"{about} {few}".strip())
    if name == BLOCK:
        # Every hour is a new unit.
        known = replace(known, fall=1.0)
    found = mde(known, goal, known.days)
    return UnitChoice(name, units, found, days_needed(known, goal), units_needed(known, goal), about)


@dataclass(frozen=True)
class AaCheck:
    """An A/A check: what the analysis finds where nothing is."""

    false_positives: float
    """Share of random splits of the past in which it finds an effect at 5 %."""
    splits: int
    holds: bool
    sentence: str


def aa_check(
    cube: Cube, q: float | None, rng: np.random.Generator, *, splits: int = 400
) -> AaCheck | NoPrecision:
    """Splits the past's buckets at random into two arms of the same size, again and again.

    All splits are of the same records, so this tests whether the intervals hold for such records (no client
    with half of the traffic, no measure with too few events), not whether the units were counted right.
    """
    whole = _sum([cube])
    if q is None and isinstance(whole, DistributionCube):
        whole = whole.mean()
    values = _replicates(whole, q)
    if isinstance(values, NoPrecision):
        return values
    buckets = _filled(whole)
    hits, done = 0, 0
    for _ in range(splits):
        order = rng.permutation(buckets)
        half = len(order) // 2
        found = _differ([_steps(whole, q, some) for some in (order[:half], order[half:])])
        if found is not None:
            hits, done = hits + found, done + 1
    if done < splits // 2:
        return NoPrecision("most halves of the records have too little data")
    share = hits / done
    holds = 0.02 <= share <= 0.08
    words = (
        "as it should"
        if holds
        else "and not in about 5 %: intervals of this measure do not hold on these records"
    )
    found_in = f"the analysis finds an effect in {share * 100:.1f} %, {words}."
    sentence = f"Of {done} splits of the past into two equal arms, {found_in}"
    return AaCheck(share, done, holds, sentence)


def _differ(halves: Sequence[Floats | None]) -> bool | None:
    """Whether the logarithms of two halves differ at 5 %; None if a half has no value."""
    first, second = halves
    if first is None or second is None:
        return None
    variances = [float(np.var(logs[1:]) * (len(logs) - 2)) for logs in (first, second)]
    frees = [len(logs) - 2.0 for logs in (first, second)]
    variance = sum(variances)
    if variance == 0:
        return None
    # Welch and Satterthwaite.
    freedom = variance**2 / sum(one**2 / free for one, free in zip(variances, frees, strict=True))
    return bool(2 * student_tail(abs(second[0] - first[0]) / math.sqrt(variance), freedom) < 0.05)


def _sum(cubes: Sequence[Cube]) -> Cube:
    """The sum of cubes, with all arms as one."""
    whole = total(cubes)
    if isinstance(whole, DistributionCube):
        counts = whole.counts.sum(axis=0, keepdims=True)
        used = np.flatnonzero(counts.sum(axis=(0, 1)))
        first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 1)
        return DistributionCube(counts[:, :, first:last], whole.first_bin + first, whole.gamma, whole.whole)
    assert whole is not None, "there is at least one"
    return RatioCube(whole.numerator.sum(axis=0, keepdims=True), whole.denominator.sum(axis=0, keepdims=True))


def _error(past: Precision, goal: Goal, days: float) -> float:
    """Standard error of the log ratio after `days` days."""
    scale = (past.days / days) ** past.fall * sum(1 / share for share in goal.shares)
    return past.log_error * math.sqrt(scale)


def _log_error(cube: Cube, q: float | None) -> tuple[float, float] | NoPrecision:
    """Value, and the standard error of its logarithm, of a cube with one arm."""
    logs = _replicates(cube, q)
    if isinstance(logs, NoPrecision):
        return logs
    error = float(np.std(logs[1:]) * math.sqrt(len(logs) - 2))
    return (math.exp(logs[0]), error) if error > 0 else NoPrecision("the buckets do not vary")


def _replicates(cube: Cube, q: float | None) -> Floats | NoPrecision:
    """Logarithm of the value of all buckets, and without each, of a cube with one arm."""
    buckets = _filled(cube)
    if len(buckets) < MIN_BUCKETS:
        return NoPrecision(f"there is data in {len(buckets)} buckets, and {MIN_BUCKETS} are needed")
    logs = _steps(cube, q, buckets)
    return NoPrecision("there are too few events") if logs is None else logs


def _steps(cube: Cube, q: float | None, buckets: NDArray[np.intp]) -> Floats | None:
    """As `_replicates`, of some buckets with data; None if a value is not above zero."""
    if isinstance(cube, DistributionCube) and q is not None:
        counts, wanted = cube.counts[0][buckets], np.array([q])
        values = quantiles_with_replicates(counts, wanted, first_bin=cube.first_bin, gamma=cube.gamma)[:, 0]
    else:
        ratio = cube.mean() if isinstance(cube, DistributionCube) else cube
        values = ratio_with_replicates(ratio.numerator[0][buckets], ratio.denominator[0][buckets])
    return np.asarray(np.log(values)) if np.all(values > 0) else None


def _filled(cube: Cube) -> NDArray[np.intp]:
    """Buckets with data of a cube with one arm."""
    weight = cube.counts[0].sum(axis=1) if isinstance(cube, DistributionCube) else cube.denominator[0]
    return np.flatnonzero(weight > 0)
