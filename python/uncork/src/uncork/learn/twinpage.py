"""The page of a twin: predicted lifts against measured ones."""

from __future__ import annotations

import math
from html import escape

from uncork import __version__
from uncork.experiment import words
from uncork.experiment.report import svg, tables
from uncork.experiment.report.figures import Figure, percent
from uncork.experiment.report.page import document, figure
from uncork.learn.lift import NORMAL, Estimate
from uncork.learn.twin import Calibration, Trial, earned


def page(found: Trial) -> str:
    """Predicted against measured lifts, as one file."""
    fit = found.calibration
    header = (
        f'<header>\n<p class="kind">uncork learn</p>\n<h1>The twin: {escape(found.treated)} over '
        f"{escape(found.control)}, predicted and measured</h1>\n"
        '<p class="question">Throughput of large objects, tenth percentile, by AS.</p>\n</header>\n'
        '<section class="verdict" aria-label="Calibration">\n'
        f'<p class="sentence">{escape(earned(fit))}</p>\n'
        f"<p>{escape(found.summary().splitlines()[0])} "
        "Skill 1 predicts every AS, 0 no better than the mean of the others.</p>\n</section>\n"
    )
    parts = [header, figure(_comparison(fit, "AS"), 1), _table(fit, "AS"), _networks(found), _untried(found)]
    footer = f"<footer>\n<p>Made by uncork {__version__}</p>\n</footer>\n"
    return document("uncork learn: the twin", "".join([*parts, footer]))


def _comparison(fit: Calibration, level: str) -> Figure:
    points: list[tuple[str, float, float, float, float, str, float]] = []
    for pair in fit.pairs:
        off = abs(pair.measured.lift - fit.prior(pair.predicted).lift)
        reach = NORMAL * math.hypot(pair.measured.error, fit.prior(pair.predicted).error)
        tone = "open" if off <= reach else "worse"
        lifts = (math.expm1(one.lift) for one in (pair.predicted, pair.measured))
        x, y, low, high = (100 * value for value in (*lifts, *_ends(pair.measured)))
        points.append((pair.name, x, y, low, high, tone, 0.3))
    across = svg.around("predicted lift", [point[1] for point in points], zero=True, shown=percent)
    up = svg.around("measured lift", [v for point in points for v in point[2:5]], zero=True, shown=percent)
    caption = (
        f"The lift of each {level}: predicted by the twin, and measured by the experiment with its "
        "95 % interval. Marked as worse: off the line by more than both errors and the spread explain."
    )
    chart = svg.Scatter(f"Predicted and measured lift by {level}", caption, across, up, points)
    return Figure(f"predicted-{level.lower()}", f"Predicted and measured by {level}", caption, chart.render)


def _ends(one: Estimate) -> tuple[float, float]:
    return math.expm1(one.lift - NORMAL * one.error), math.expm1(one.lift + NORMAL * one.error)


def _shown(one: Estimate) -> str:
    low, high = _ends(one)
    return f"{words.change(math.exp(one.lift))} ({words.interval(1 + low, 1 + high)})"


def _table(fit: Calibration, level: str) -> str:
    rows = sorted(fit.pairs, key=lambda pair: -pair.measured.lift)
    cells = [
        [escape(text) for text in (one.name, _shown(one.predicted), _shown(one.measured))] for one in rows
    ]
    body = tables.table([level, "predicted", "measured"], cells, left=(0,))
    return f'<section id="by-{level.lower()}">\n<h2>By {level}</h2>\n{body}</section>\n'


def _networks(found: Trial) -> str:
    """Networks that have lines of their own, held to measurements of theirs."""
    if found.networks is None:
        return ""
    text = (
        f"<p>{escape(found.networks.summary())} What is expected of ASes without data is by ASes alone.</p>\n"
    )
    own = found.networks.own
    return f"{figure(_comparison(own, 'network'), 2)}{text}{_table(own, 'network')}"


def _untried(found: Trial) -> str:
    """Controllers that no client has had, and ASes that no experiment was in."""
    others = [cc for cc in found.of_twin if cc != found.treated]
    fit = found.calibration
    unknown = found.unknown() if fit.earned else {}
    parts = []
    if others:
        systems = sorted({name for cc in others for name in found.of_twin[cc]})
        cells = [
            [escape(name), *(escape(_shown(found.of_twin[cc][name])) for cc in others)] for name in systems
        ]
        parts.append(
            '<section id="untried">\n<h2>Controllers without clients</h2>\n<p>As the twin predicts them, '
            "over the control arm; held to no measurement.</p>\n"
            f"{tables.table(['AS', *map(escape, others)], cells, left=(0,))}</section>\n"
        )
    if unknown:
        cells = [[escape(name), escape(_shown(fit.prior(one)))] for name, one in sorted(unknown.items())]
        parts.append(
            '<section id="prior">\n<h2>ASes without data</h2>\n'
            f"{tables.table(['AS', 'expected'], cells, left=(0,))}</section>\n"
        )
    return "".join(parts)
