"""Power: the minimum detectable effect, and how much more data an answer needs.

A two-sided test at level alpha finds an effect with probability `power` if it is (z[1 - alpha/2] + z[power])
standard errors large; with few degrees of freedom t replaces z (Bloom 1995).
"""

from __future__ import annotations

import math

from uncork.measure.stats.effect import Effect
from uncork.measure.stats.tails import student_quantile


def reach(*, level: float = 0.95, power: float = 0.8, degrees_of_freedom: float = math.inf) -> float:
    """Standard errors that an effect needs for detection with probability `power`."""
    return student_quantile(0.5 + level / 2, degrees_of_freedom) + student_quantile(power, degrees_of_freedom)


def log_error(effect: Effect) -> float:
    """Standard error of the logarithm of the ratio, as `effect`'s interval has it."""
    width = math.log(effect.ratio_high / effect.ratio_low)
    return width / 2 / student_quantile(0.5 + effect.level / 2, effect.degrees_of_freedom)


def mde(effect: Effect, *, power: float = 0.8) -> float:
    """The least relative change (0.03 is 3 %) that this much data finds with probability `power`."""
    found = reach(level=effect.level, power=power, degrees_of_freedom=effect.degrees_of_freedom)
    return math.expm1(found * log_error(effect))


def data_needed(effect: Effect, relative: float, *, power: float = 0.8) -> float:
    """How many times this much data finds a relative change of `relative`: 2.0 is twice as much.

    The variance falls with the number of *units*. More days of the same units help less: this is a lower
    limit.
    """
    if relative == 0 or relative <= -1:
        raise ValueError(f"a relative change of {relative:g} cannot be looked for")
    found = reach(level=effect.level, power=power, degrees_of_freedom=effect.degrees_of_freedom)
    return (found * log_error(effect) / abs(math.log1p(relative))) ** 2


def days_needed(effect: Effect, days: float, relative: float, *, power: float = 0.8) -> float:
    """Days *more* than the `days` so far until a relative change of `relative` is found; 0 if there are
    enough."""
    return max(0.0, days * (data_needed(effect, relative, power=power) - 1))


def units_needed(log_deviation: float, relative: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """Units per arm, where one unit contributes `log_deviation` to the log ratio: its error is
    `log_deviation` x sqrt(2 / units)."""
    if relative == 0 or relative <= -1:
        raise ValueError(f"a relative change of {relative:g} cannot be looked for")
    return 2 * (reach(level=level, power=power) * log_deviation / math.log1p(relative)) ** 2
