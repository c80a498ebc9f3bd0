"""Guardrails: how much worse something may get, judged by bounds that hold at every look."""

from __future__ import annotations

from collections.abc import Mapping

from uncork_experiment import estimate
from uncork_experiment.cubes import Cube
from uncork_experiment.metrics import METRICS
from uncork_experiment.result import Guarded, Limit
from uncork_experiment.rows import Settings, limit_words, row_of
from uncork_experiment.stats import sequential
from uncork_experiment.stats.effect import Effect


def states(cubes: Mapping[str, Cube], settings: Settings, estimand: str) -> tuple[Guarded, ...]:
    """The guardrails whose metrics the cell has."""
    return tuple(
        _state(cubes, limit, settings, estimand)
        for limit in settings.guardrails
        if limit.measure.metric in cubes
    )


def _state(cubes: Mapping[str, Cube], limit: Limit, settings: Settings, estimand: str) -> Guarded:
    outcome = estimate.outcomes(
        cubes[limit.measure.metric], [limit.measure], level=settings.level, estimand=estimand
    )[0]
    row = row_of(limit.measure, outcome, "guardrail", settings)
    if not isinstance(outcome, Effect):
        return Guarded(row, limit_words(limit), "open", None, None, None)
    low, high = sequential.always_valid(outcome, alpha=1 - settings.level)
    harms = sorted(_harm(ratio, outcome, limit) for ratio in (low, high))
    most = limit.points if limit.points is not None else limit.relative or 0.0
    state = "broken" if harms[0] > most else "holds" if harms[1] < most else "open"
    return Guarded(row, limit_words(limit), state, _harm(outcome.ratio, outcome, limit), harms[0], harms[1])


def _harm(ratio: float, effect: Effect, limit: Limit) -> float:
    """How much worse this ratio is, in the limit's unit; negative if better."""
    worse = ratio - 1 if METRICS[limit.measure.metric].better == "lower" else 1 - ratio
    return worse * effect.control if limit.points is not None else worse
