"""How far lifts are from what the days before made expect: errors are widened until they cover that.

Beliefs (mixture.py) are as good as their model: lifts drift, change their sign, or differ in a way that no
class describes. The evidence shows it. The last quarter of the days is predicted by the days before; if
networks are further from their predictions than both errors say, all errors of the section grow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from uncork.learn.evidence import Section
from uncork.learn.lift import Lifts, estimated, lifts, pools
from uncork.learn.mixture import beliefs
from uncork.learn.settings import PRIMARY, Settings

Floats = NDArray[np.float64]

PART, MAX_DAYS = 4, 7
"""The last 1/PART of the days is held out, at most MAX_DAYS."""
MIN_DAYS = 2
FAR = 16.0
"""Maximum of a squared deviation, in variances: a network that lies moves the others little."""
MAX_WIDENING = 4.0
ROUNDS = 20


def calibrated(section: Section, settings: Settings) -> Lifts | None:
    """All lifts of a section, with errors that cover the days held out; none if it has no evidence."""
    found = lifts(section, settings)
    if found is None or not settings.calibrated:
        return found
    return replace(found, widening=widening(section, settings, found))


def widening(section: Section, settings: Settings, known: Lifts) -> float:
    """Factor of the standard deviations: 1 or more, as far as the days held out show beyond chance."""
    measure = PRIMARY[section.of_class]
    counts = section.metrics[measure.metric]
    days = settings.as_of - int(counts.day.min(initial=settings.as_of))
    if days < MIN_DAYS:
        return 1.0
    first = settings.as_of - min(max(1, days // PART), MAX_DAYS)
    before = replace(section, metrics={measure.metric: counts.where(counts.day < first)})
    predicted = estimated(before, replace(settings, as_of=first), known.hierarchy)
    measured, _ = pools(counts.where(counts.day >= first), settings, known.hierarchy, measure).of_networks()
    at = np.fromiter(measured, dtype=np.int64, count=len(measured))
    belief = beliefs(predicted, ()).network
    own = np.array([[one.lift, one.error**2] for one in measured.values()]).reshape(-1, 2)
    return float(np.sqrt(_factor((own[:, 0] - belief.mean[at]) ** 2, belief.sd[at] ** 2, own[:, 1])))


def _factor(square: Floats, variance: Floats, error: Floats) -> float:
    """Factor of `variance` by which the mean of `square` over its expectation (with the variance `error` of
    the measurement) is 1 within two standard errors. Networks weigh as much as their prediction is of that
    expectation. All arrays: shape (networks,).
    """
    weight = variance / (variance + error)
    if not len(weight):
        return 1.0
    most = 1 + 2 * float(np.sqrt(2 * (weight**2).sum())) / float(weight.sum())

    def mean(factor: float) -> float:
        return float(weight @ np.minimum(square / (factor * variance + error), FAR)) / float(weight.sum())

    low, high = 1.0, MAX_WIDENING**2
    if mean(low) <= most:
        return low
    for _ in range(ROUNDS):
        between = float(np.sqrt(low * high))
        low, high = (between, high) if mean(between) > most else (low, between)
    return high
