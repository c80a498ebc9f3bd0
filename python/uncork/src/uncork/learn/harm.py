"""How likely a guardrail's limit is kept by each network: harm, shrunk as lifts are.

The always-valid bounds of guardrails say where a limit is surely broken; most networks have too few records
for that. Here the evidence of all days is taken together, and a network that has little of it is expected to
be like its AS, its country and all clients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from uncork.experiment.decide import Guardrail
from uncork.experiment.decide.guardrails import MIN_LIMIT, in_limits
from uncork.experiment.guard import harm_in_points, relative_harm
from uncork.experiment.result import Limit
from uncork.learn.evidence import Counts, Section
from uncork.learn.lift import (
    NORMAL,
    SCALE,
    Estimate,
    Hierarchy,
    Lifts,
    Pools,
    factors,
    shrink,
)
from uncork.learn.settings import Settings
from uncork.learn.tree import PRIOR_TAU
from uncork.measure.cubes import BUCKETS, RatioCube
from uncork.measure.metrics import METRICS
from uncork.measure.stats import jackknife
from uncork.measure.stats.effect import Effect

Ints = NDArray[np.int64]

AT_LIMIT = -PRIOR_TAU
"""The margin at the limit: as much as siblings differ before any evidence."""

LEVEL = 0.95
"""Of the interval that an error is taken from."""


@dataclass(frozen=True)
class Margins:
    """What the treated arm spares, as a lift is what it gains: negative if it does harm. By the scale of a
    margin, shrinkage does with it as with lifts.
    """

    limit: Limit
    lifts: Lifts

    @property
    def scale(self) -> float:
        """Margin by harm in the limit's unit: a difference of shares, or the logarithm of a ratio."""
        return AT_LIMIT / _max_harm(self.limit)


def margins(section: Section, settings: Settings, tree: Hierarchy) -> tuple[Margins, ...]:
    """The margins of each limit, if the evidence has its metric."""
    found = []
    for limit in settings.limits():
        counts = section.metrics.get(limit.measure.metric)
        if counts is None:
            continue
        # The kernel's records have no responses, so the number of aborted ones is unknown.
        if not counts.denominator.all():
            counts = counts.where(counts.denominator > 0)
        if len(counts.arm):
            lifts = shrink(tree, *_pools(counts, settings, tree, limit).estimates(section.bytes))
            found.append(Margins(limit, lifts.lean()))
    return tuple(found)


def _max_harm(limit: Limit) -> float:
    return max(limit.points if limit.points is not None else math.log1p(limit.relative or 0.0), MIN_LIMIT)


def _pools(counts: Counts, settings: Settings, tree: Hierarchy, limit: Limit) -> Pools:
    factor = factors(counts, np.ones(len(counts.arm), dtype=np.int64), settings)
    weight = np.asarray(np.rint(factor * SCALE), dtype=np.int64)
    return Pools(counts, weight, tree, limit.measure, partial(margin, limit, from_zero=settings.from_zero))


def margin(limit: Limit, counts: Counts, weight: Ints, *, from_zero: bool = True) -> Estimate | None:
    """The margin by these rows, each counted as often as its weight says. `from_zero`: see `Settings`."""
    sums = np.zeros((2, 2, BUCKETS))
    for at, values in enumerate((counts.numerator, counts.denominator)):
        np.add.at(sums[at], (counts.arm, counts.bucket), values * weight)
    cube = RatioCube(sums[0], sums[1])
    if limit.points is not None:
        return _margin_in_points(limit, cube)
    effect = jackknife.ratio_effect(sums[0, 0], sums[1, 0], sums[0, 1], sums[1, 1])
    if not isinstance(effect, Effect):
        return _margin_of_few(limit, cube) if from_zero else None
    more = math.log(effect.ratio)
    error = (math.log(effect.ratio_high) - more) / NORMAL
    harm = more if METRICS[limit.measure.metric].better == "lower" else -more
    scale = AT_LIMIT / _max_harm(limit)
    return Estimate(scale * harm, -scale * error)


def _margin_of_few(limit: Limit, cube: RatioCube) -> Estimate | None:
    """Of a relative limit, where an arm has too few events for a jackknife."""
    found = relative_harm(cube, limit, LEVEL)
    if found is None or min(found) <= -1:
        return None
    harm, low, _ = (math.log1p(one) for one in found)
    scale = AT_LIMIT / _max_harm(limit)
    return Estimate(scale * harm, -scale * (harm - low) / NORMAL)


def _margin_in_points(limit: Limit, cube: RatioCube) -> Estimate | None:
    """As `uncork experiment analyze` takes it, also where an arm has few events or none."""
    found = harm_in_points(cube, limit, LEVEL)
    if found is None or limit.points is None:
        return None
    harm, error = in_limits(Guardrail(str(limit.measure), limit.points, *found), LEVEL)
    return Estimate(AT_LIMIT * harm, -AT_LIMIT * error)
