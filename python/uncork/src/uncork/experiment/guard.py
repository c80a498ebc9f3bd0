"""Guardrails: how much worse something got, with a fixed interval and one that holds at every look."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from uncork.experiment import estimate
from uncork.experiment.decide import Guardrail
from uncork.experiment.decide.guardrails import MIN_LIMIT
from uncork.experiment.result import Guarded, Limit, Row
from uncork.experiment.rows import Settings, limit_words, row_of
from uncork.measure.cubes import Cube, RatioCube
from uncork.measure.metrics import METRICS
from uncork.measure.stats import rare, sequential
from uncork.measure.stats.effect import Effect

Interval = tuple[float, float]


def states(
    cubes: Mapping[str, Cube],
    settings: Settings,
    estimand: str,
    *,
    alpha: float | None = None,
    per_client: Mapping[str, Cube] | None = None,
) -> tuple[Guarded, ...]:
    """The guardrails on metrics that the cell has. `alpha`: error rate of the bounds that hold at every look,
    shared by the cells of all keys. `per_client`: ratios in which each unit counts once, to be decided by.

    All are open: what they show is decided by `decide.guardrail_state`.
    """
    rate = 1 - settings.level if alpha is None else alpha
    once = per_client or {}
    return tuple(
        replace(
            _estimated(once.get(name, cubes[name]), limit, settings, estimand, rate), per_client=name in once
        )
        for limit in settings.guardrails
        if (name := limit.measure.metric) in cubes
    )


def guardrail(one: Guarded) -> Guardrail:
    """As the engine takes it."""
    return Guardrail(
        str(one.row.measure),
        one.limit_amount,
        one.harm,
        one.low,
        one.high,
        one.harm_low,
        one.harm_high,
        math.inf if one.df is None else one.df,
        one.p,
    )


def _estimated(cube: Cube, limit: Limit, settings: Settings, estimand: str, alpha: float) -> Guarded:
    outcome = estimate.outcomes(cube, [limit.measure], level=settings.level, estimand=estimand)[0]
    row = row_of(limit.measure, outcome, "guardrail", settings)
    if isinstance(cube, RatioCube) and (limit.points is not None or not isinstance(outcome, Effect)):
        found = _of_shares(cube, limit, row, settings.level, alpha)
        if found is not None:
            return found
    if not isinstance(outcome, Effect) or limit.points is not None:
        return Guarded(row, limit_words(limit), "open", None, None, None, limit_amount=_max_harm(limit))
    better = METRICS[limit.measure.metric].better
    fixed = _oriented((outcome.ratio_low - 1, outcome.ratio_high - 1), better)
    low, high = sequential.always_valid(outcome, alpha=alpha)
    valid = _oriented((low - 1, high - 1), better)
    harm = _oriented((outcome.ratio - 1, outcome.ratio - 1), better)[0]
    return _guarded(row, limit, harm, fixed, valid, df=outcome.degrees_of_freedom)


def _of_shares(cube: RatioCube, limit: Limit, row: Row, level: float, alpha: float) -> Guarded | None:
    """By the difference of two shares, or their ratio, where an arm may have few events or none."""
    found = _shares(cube, limit, level)
    if found is None:
        return None
    row = replace(row, control=found.control, treated=found.treated, reason="")
    better = METRICS[limit.measure.metric].better
    if limit.points is not None:
        p = found.p_above(limit.points) if better == "lower" else found.p_below(-limit.points)
        # Narrowest for harm that matters: twice the limit.
        valid = found.always_valid(alpha, expected=2 * max(limit.points, MIN_LIMIT))
        harm, low, high = _harm_in_points(found, better)
        return _guarded(row, limit, harm, (low, high), _oriented(valid, better), p=p)
    once = _relative_harm(found, limit, found.ratio_interval(level))
    always = _relative_harm(found, limit, found.always_valid_ratio(alpha))
    return None if once is None or always is None else _guarded(row, limit, once[0], once[1:], always[1:])


def relative_harm(cube: RatioCube, limit: Limit, level: float) -> tuple[float, float, float] | None:
    """Of a relative limit: how much worse the treated arm is, and the ends of the interval for one look, also
    where an arm has few events.
    """
    found = _shares(cube, limit, level)
    return None if found is None else _relative_harm(found, limit, found.ratio_interval(level))


def _relative_harm(
    found: rare.ShareDifference, limit: Limit, ends: Interval
) -> tuple[float, float, float] | None:
    """A control arm without events counts as its upper limit. Then only harm beyond the limit is known."""
    control, (low, high) = found.control, ends
    better = METRICS[limit.measure.metric].better
    if control <= 0:
        tail = (1 - found.level) / 2
        control = found.arms[0].limits(tail)[1]
        high = found.arms[1].limits(tail)[1] / control
        if better != "lower" or found.treated / control - 1 <= (limit.relative or 0.0):
            return None
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    ratio = found.treated / control - 1
    return _oriented((ratio, ratio), better)[0], *_oriented((low - 1, high - 1), better)


def harm_in_points(cube: RatioCube, limit: Limit, level: float) -> tuple[float, float, float] | None:
    """Of a limit in points: how much worse the treated arm is, and the ends of the interval for one look."""
    found = _shares(cube, limit, level)
    return None if found is None else _harm_in_points(found, METRICS[limit.measure.metric].better)


def _harm_in_points(found: rare.ShareDifference, better: str) -> tuple[float, float, float]:
    harm = _oriented((found.difference, found.difference), better)[0]
    return harm, *_oriented(found.interval(found.level), better)


def _shares(cube: RatioCube, limit: Limit, level: float) -> rare.ShareDifference | None:
    sums = (part[arm] for arm in (0, 1) for part in (cube.numerator, cube.denominator))
    found = rare.share_difference(*sums, level=level, is_rate=limit.points is None)
    return found if isinstance(found, rare.ShareDifference) else None


def _guarded(
    row: Row,
    limit: Limit,
    harm: float,
    fixed: Interval,
    valid: Interval,
    *,
    df: float = math.inf,
    p: float | None = None,
) -> Guarded:
    known = None if math.isinf(df) else df
    return Guarded(row, limit_words(limit), "open", harm, *valid, *fixed, _max_harm(limit), known, p)


def _max_harm(limit: Limit) -> float:
    return limit.points if limit.points is not None else limit.relative or 0.0


def _oriented(ends: Interval, better: str) -> Interval:
    """How much worse: the ends of a change, in the order of harm."""
    return ends if better == "lower" else (-ends[1], -ends[0])
