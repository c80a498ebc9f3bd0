"""Shares that may be rare: the difference between two arms, also where an arm has few events or none.

A limit in percentage points is a limit for a difference. A logarithm cannot answer it where the control arm
has no event, and a normal interval is too narrow where there are few. So each arm has its own interval, and
the difference has one that follows from them:

- One arm: Clopper and Pearson's interval on *effective* counts. The variance between buckets says how many
  independent observations the arm is worth (Korn and Graubard 1998). The upper limit adds one more unit
  with events, as heavy as such a unit can be (Fay and Feuer 1997). Without events this is the rule of three:
  with n units at most 3.7 / n, at the 95 % level.
- The difference: `MOVER`, the method of variance estimates recovery (Newcombe 1998; Zou and Donner 2008).
- At every look: the same interval with the tail of the normal mixture (Robbins 1970; Waudby-Smith et al.
  2024) in place of 2.5 %.

Events of one unit belong together, as in the jackknife: all sums are by bucket, and a unit has one bucket.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from uncork.measure.stats.effect import NoInterval
from uncork.measure.stats.jackknife import kish_units
from uncork.measure.stats.tails import normal_quantile, normal_tail, student_quantile

Floats = NDArray[np.float64]

MIN_TAIL = 1e-15
"""Tails of an interval are never thinner: below it quantiles of the beta distribution lose their digits."""

ROUNDING = 1e-9
"""Error of a share, as a part of it, up to which buckets are equal: sums of floats are not exact."""

MIN_FILLED = 20
"""Buckets from which on their spread is known. Equal shares in that number of buckets, none of them 0 or 1,
show that a unit does not have all of its events, or none."""

MIN_SPREAD = 1e-3
"""Deviation of a bucket's share, as a part of it, that is assumed at least."""

LARGER = 10
"""How much larger the second difference is for which an interval at every look is narrow."""

CORRELATION_TEST = 2.58
"""Standard errors from which on the arms' buckets count as correlated (1 % of pairs without correlation)."""


@dataclass(frozen=True)
class ArmShare:
    """The share of one arm, and how well it is known."""

    share: float
    """sum(numerator) / sum(denominator)."""
    variance: float
    """Of `share`, clustered by bucket."""
    freedom: float
    """Degrees of freedom of `variance`, given `share`."""
    size: float
    """Independent units that the arm is worth (Kish 1965)."""
    step: float
    """What one more unit with events can add to the share."""
    is_rate: bool
    """Whether the value may exceed 1, as events per song do."""

    def limits(self, tail: float) -> tuple[float, float]:
        """Lower and upper limit; each is beyond the truth with probability `tail`."""
        tail = min(max(tail, MIN_TAIL), 0.5)
        if self.share > 0.5 and not self.is_rate:
            low, high = self._mirrored().limits(tail)
            return 1 - high, 1 - low
        return self._low(tail), self._high(tail)

    def _mirrored(self) -> ArmShare:
        return ArmShare(1 - self.share, self.variance, self.freedom, self.size, self.step, self.is_rate)

    def _low(self, tail: float) -> float:
        if self.share == 0:
            return 0.0
        variance = self._widened(tail)
        if self.is_rate:
            return _gamma_quantile(self.share, variance, tail)
        size = self.share * (1 - self.share) / variance
        return float(special.betaincinv(self.share * size, (1 - self.share) * size + 1, tail))

    def _high(self, tail: float) -> float:
        more = self.share + self.step
        variance = self._widened(tail) if self.share else 0.0
        if self.is_rate:
            return _gamma_quantile(more, variance + self.step**2, 1 - tail)
        if more >= 1:
            return 1.0
        # With equal weights this is Clopper and Pearson's beta(x + 1, n - x).
        variance += self.step**2 * max(1 - 2 * self.share - self.step, 0.0)
        size = more * (1 - more) / max(variance, 1e-300)
        return float(special.betaincinv(more * size, (1 - more) * size + 1, 1 - tail))

    def _widened(self, tail: float) -> float:
        """The variance with which a normal tail reaches as far as Student's t."""
        if math.isinf(self.freedom) or tail >= 0.5:
            return self.variance
        return self.variance * (student_quantile(tail, self.freedom) / normal_quantile(tail)) ** 2


@dataclass(frozen=True)
class ShareDifference:
    """The difference of two shares, treated minus control, with its interval at `level`."""

    arms: tuple[ArmShare, ArmShare]
    """Control and treated."""
    correlation: float
    """Between the arms' shares; 0 in an A/B test."""
    level: float

    @property
    def control(self) -> float:
        return self.arms[0].share

    @property
    def treated(self) -> float:
        return self.arms[1].share

    @property
    def difference(self) -> float:
        return self.treated - self.control

    @property
    def low(self) -> float:
        return self.interval(self.level)[0]

    @property
    def high(self) -> float:
        return self.interval(self.level)[1]

    def interval(self, level: float) -> tuple[float, float]:
        """Interval of the difference for one look at this level."""
        return self._within((1 - level) / 2)

    def always_valid(self, alpha: float = 0.05, *, expected: float = 0.01) -> tuple[float, float]:
        """Interval of the difference that holds at all looks together, with probability 1 - `alpha`.

        `expected` is the difference (0.01 is a percentage point) for which it is narrowest. A small cell
        cannot show that, but a far larger one: half of `alpha` is for `LARGER` times as much. Two intervals
        that each hold with 1 - `alpha` / 2 hold together, so the narrower one may be used.
        """
        sizes = expected, LARGER * expected
        return self._within(max(mixture_tail(self.error, alpha=alpha / 2, expected=size) for size in sizes))

    def ratio_interval(self, level: float) -> tuple[float, float]:
        """Interval of treated / control; the upper end is infinite where control may be 0."""
        return self._ratio_within((1 - level) / 2)

    def always_valid_ratio(self, alpha: float = 0.05, *, expected: float = 0.5) -> tuple[float, float]:
        """As `always_valid`, of treated / control."""
        base = max(self.control, self.treated, self.arms[0].step)
        return self._ratio_within(mixture_tail(self.error / base, alpha=alpha, expected=expected))

    def p_above(self, limit: float) -> float:
        """One-sided p-value of the hypothesis that the difference is at most `limit`."""
        return _tail_at(lambda tail: self._within(tail)[0] - limit)

    def p_below(self, limit: float) -> float:
        """One-sided p-value of the hypothesis that the difference is at least `limit`."""
        return _tail_at(lambda tail: limit - self._within(tail)[1])

    @property
    def error(self) -> float:
        """Standard error of the difference; not 0 without events, where one more unit with events counts."""
        parts = [math.sqrt(arm.variance + arm.step**2 * (arm.share == 0)) for arm in self.arms]
        squares = parts[0] ** 2 + parts[1] ** 2 - 2 * self.correlation * parts[0] * parts[1]
        return math.sqrt(max(squares, 1e-300))

    def _within(self, tail: float) -> tuple[float, float]:
        (low0, high0), (low1, high1) = (arm.limits(tail) for arm in self.arms)
        reach_down = self._reach(self.treated - low1, high0 - self.control)
        reach_up = self._reach(high1 - self.treated, self.control - low0)
        return self.difference - reach_down, self.difference + reach_up

    def _reach(self, first: float, second: float) -> float:
        return math.sqrt(max(first**2 + second**2 - 2 * self.correlation * first * second, 0.0))

    def _ratio_within(self, tail: float) -> tuple[float, float]:
        """MOVER for ratios (Donner and Zou 2012)."""
        (low0, high0), (low1, high1) = (arm.limits(tail) for arm in self.arms)
        return (
            _ratio_end(self.control, self.treated, high0, low1, self.correlation, -1),
            _ratio_end(self.control, self.treated, low0, high1, self.correlation, 1),
        )


def share_difference(
    control_num: Floats,
    control_den: Floats,
    treated_num: Floats,
    treated_den: Floats,
    *,
    units: tuple[float, float] | None = None,
    level: float = 0.95,
    is_rate: bool = False,
) -> ShareDifference | NoInterval:
    """The difference of sum(numerator) / sum(denominator), treated minus control.

    All arrays have shape (K,): sums per bucket, of all K buckets. `units`: distinct units of control and of
    treated; where they are None, the buckets' sizes say how many there are. `is_rate`: the value may exceed
    1, as events per song do.
    """
    control, treated = (
        [np.asarray(part, dtype=np.float64) for part in arm]
        for arm in ((control_num, control_den), (treated_num, treated_den))
    )
    if not all(np.all(np.isfinite(part)) and np.all(part >= 0) for part in (*control, *treated)):
        return NoInterval("a sum is negative or not a number")
    values = [float(num.sum() / den.sum()) if den.sum() > 0 else None for num, den in (control, treated)]
    for arm, value in zip(("control", "treated"), values, strict=True):
        if value is None:
            return NoInterval(f"the {arm} arm has no data", values[0], values[1])
        if value > 1 and not is_rate:
            return NoInterval(f"the {arm} arm has a share above 1: {value:.3g}", values[0], values[1])
    counts = units if units is not None else (math.inf, math.inf)
    nums = control[0], treated[0]
    arms = [
        _arm(num, den, nums, count, is_rate)
        for (num, den), count in zip((control, treated), counts, strict=True)
    ]
    return ShareDifference((arms[0], arms[1]), _correlation(control, treated), level)


def mixture_tail(error: float, *, alpha: float, expected: float) -> float:
    """The tail on either side that a fixed interval needs, to hold at every look with probability 1 - alpha.

    `error` is the estimate's standard error, `expected` the size of change for which it is narrowest.
    """
    spread = (expected / error) ** 2
    return float(normal_tail(math.sqrt((1 + 1 / spread) * math.log((1 + spread) / alpha**2))))


def effective_units(den: Floats, units: float = math.inf) -> float:
    """How many units of equal size the arm is worth: (sum of sizes) squared over the sum of squares.

    There are at most `units`, if they are known.
    """
    kish = kish_units(den)
    known = units if math.isfinite(units) and units > 0 else math.inf
    filled = float(np.count_nonzero(den))
    return max(min(kish, known), 1.0) if math.isfinite(min(kish, known)) else max(filled, 1.0)


def _arm(num: Floats, den: Floats, nums: Sequence[Floats], units: float, is_rate: bool) -> ArmShare:
    share = float(num.sum() / den.sum())
    size = effective_units(den, units)
    step = _step(num, nums, float(den.sum()), size)
    filled = den > 0
    parts = (num - share * den)[filled] / den.sum()
    count = len(parts)
    variance = float(parts @ parts) * count / max(count - 1, 1)
    is_equal = variance <= (ROUNDING * share) ** 2
    if is_equal and count >= MIN_FILLED and share > 0 and (share < 1 or is_rate):
        return ArmShare(share, (MIN_SPREAD * share) ** 2 / count, count - 1.0, size, step, is_rate)
    if share == 0 or is_equal:
        # Without events, or with buckets that do not differ (one, say): each unit has all of its events, or
        # none.
        unknown = share / size if is_rate else share * (1 - share) / size
        return ArmShare(share, unknown, math.inf, size, step, is_rate)
    return ArmShare(share, variance, _freedom(parts, num[filled]), size, step, is_rate)


def _freedom(parts: Floats, num: Floats) -> float:
    """Degrees of freedom of the variance sum(parts**2), given the share (Satterthwaite 1946).

    Each event's bucket adds to the variance and to the share. Where all add alike, as single events do, the
    share knows its variance, and the degrees are unlimited: the effective counts have that uncertainty.
    """
    squares = parts**2 / float(parts @ parts)
    surprise = float(np.sum((squares - num / num.sum()) ** 2))
    count = len(parts)
    return min(2 / surprise, 1e6) if count > 2 and surprise > 0 else max(count - 1.0, 1.0)


def _step(num: Floats, nums: Sequence[Floats], total: float, size: float) -> float:
    """What one more unit with events can add to the share of an arm with `size` units.

    It is as heavy as the heaviest bucket of either arm. The fewer buckets have events, the less is known of
    that: as many parts of it, and one part of a unit with events alone. An arm with many such buckets of its
    own says the same by itself: a far higher share of the other arm does not make its units heavier.
    """

    def by(some: Sequence[Floats]) -> float:
        seen = sum(int(np.count_nonzero(one)) for one in some)
        heaviest = max(float(one.max(initial=0.0)) for one in some) / total
        return (seen * heaviest + 1 / size) / (seen + 1)

    return min(by(nums), by([num]), 1 / size)


def _correlation(control: list[Floats], treated: list[Floats]) -> float:
    """Between the arms' shares by bucket, if there surely is one; 0 where each unit is in one arm only."""
    both = (control[1] > 0) & (treated[1] > 0)
    count = int(np.count_nonzero(both))
    if count < 4:
        return 0.0
    first, second = ((num - num.sum() / den.sum() * den)[both] for num, den in (control, treated))
    spread = math.sqrt(float(first @ first) * float(second @ second))
    if spread == 0:
        return 0.0
    found = float(first @ second) / spread
    return found if abs(found) * math.sqrt(count) > CORRELATION_TEST else 0.0


def _gamma_quantile(mean: float, variance: float, probability: float) -> float:
    """A quantile of the gamma distribution with this mean and variance."""
    shape = mean**2 / max(variance, 1e-300)
    return float(special.gammaincinv(shape, probability)) * mean / shape


def _ratio_end(
    control: float, treated: float, end0: float, end1: float, correlation: float, side: int
) -> float:
    """Where treated / control ends: at treated's limit `end1` over control's limit `end0`, but not both at
    once."""
    product = control * treated - correlation * (control - end0) * (treated - end1)
    bottom = end0 * (2 * control - end0)
    top = end1 * (2 * treated - end1)
    if side > 0 and bottom <= 0:
        return math.inf
    if bottom <= 0:
        return end1 / end0 if end0 > 0 else 0.0
    root = math.sqrt(max(product**2 - top * bottom, 0.0))
    return max((product + side * root) / bottom, 0.0)


def _tail_at(excess: Callable[[float], float]) -> float:
    """The largest tail at which `excess(tail)` is at most 0, as a one-sided p-value."""
    if excess(0.5) <= 0:
        return 1.0
    low, high = math.log(MIN_TAIL), math.log(0.5)
    for _ in range(40):
        middle = (low + high) / 2
        if excess(math.exp(middle)) > 0:
            high = middle
        else:
            low = middle
    return math.exp(high)
