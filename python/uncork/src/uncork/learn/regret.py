"""Regret where the truth is known: the true gain of each version, against the gain of an oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from uncork.experiment import words
from uncork.experiment.report import svg
from uncork.experiment.report.figures import Figure, percent
from uncork.learn.decisions import Decisions
from uncork.learn.defaults import CLASSES
from uncork.learn.settings import Settings
from uncork.learn.tablefile import date
from uncork.learn.truth import Oracle, Truth, learned
from uncork.measure.errors import InputError


def figures(versions: Sequence[tuple[Settings, Decisions]], oracle: Oracle, ink: str) -> list[Figure]:
    """By class of objects: the true lift over all traffic, by version; the line above is the oracle's."""
    if any(settings.place for settings, _ in versions):
        raise InputError("--oracle", "these versions have places, the oracle has none", "leave it out")
    _, last = versions[-1]
    return [_figure(name, versions, oracle, ink) for name in CLASSES if name in last.sections]


def _figure(
    of_class: str, versions: Sequence[tuple[Settings, Decisions]], oracle: Oracle, ink: str
) -> Figure:
    truth = oracle.truths[of_class]
    choices = [learned(decisions, oracle, settings.treated)[of_class] for settings, decisions in versions]
    best = truth.mean_lift(truth.oracle())
    points = [(float(n), _percent(truth.mean_lift(on))) for n, on in enumerate(choices)]
    days = tuple(date(settings.as_of)[5:] for settings, _ in versions)
    x = svg.Axis("records before", 0, max(len(versions) - 1, 1), names=days)
    all_clients = math.exp(truth.mean_lift(np.ones(len(truth.share), dtype=np.bool_)))
    values = [_percent(best), *(value for _, value in points)]
    y = svg.around("true lift over all traffic", values, zero=True, shown=percent)
    settings, _ = versions[-1]
    line = svg.Line("the table", ink, points, dots=True)
    caption = (
        f"{_summary(of_class, truth, choices[-1], best)} All {settings.treated}: {words.change(all_clients)}."
    )
    rules = [(_percent(best), "oracle")]
    chart = svg.Chart(f"Regret of {of_class} objects", caption, x, y, [line], rules=rules, legend=False)
    return Figure(f"regret-{of_class}", f"Against an oracle: {of_class} objects", caption, chart.render)


def _summary(of_class: str, truth: Truth, on: np.ndarray, best: float) -> str:
    """The last version in sentences."""
    score = truth.score(on)
    harm = (
        f"{words.quantity(score.harmed, 'share')} of the traffic is more than 2 % worse; "
        f"{words.quantity(score.surely, 'share')} by the truth's 95 % interval."
    )
    if not best > 0:
        return f"No network can gain with {of_class} objects within the limit of retransmitted bytes. {harm}"
    regret = _percent(best) - _percent(truth.mean_lift(on))
    return (
        "The oracle knows each network's lift and keeps the limit of retransmitted bytes. The last version "
        f"has {score.gain:.1%} of its gain: a regret of {regret:.2f} points. {harm}"
    )


def _percent(log: float) -> float:
    return 100 * math.expm1(log)
