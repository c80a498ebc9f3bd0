"""The report page: the arms that the active versions gave to clients over time, and the expected gain."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np

from uncork import __version__
from uncork.experiment import words
from uncork.experiment.report import palette, svg, tables
from uncork.experiment.report.figures import Figure, percent
from uncork.experiment.report.page import document, figure
from uncork.experiment.result import Finding
from uncork.learn import regret
from uncork.learn.budget import choices
from uncork.learn.changes import mean_lift
from uncork.learn.decisions import Decision, Decisions, coded
from uncork.learn.defaults import LARGE
from uncork.learn.entries import PreviousArms
from uncork.learn.explain import active_versions
from uncork.learn.gain import DAYS, Gain, Gains, gains
from uncork.learn.settings import Settings
from uncork.learn.store import Store
from uncork.learn.tablefile import date
from uncork.learn.total import Total, totals
from uncork.learn.truth import Oracle
from uncork.measure.errors import InputError

MAX_SYSTEMS = 60
MAX_CHANGES = 40


@dataclass(frozen=True)
class Point:
    """A version that was active."""

    number: int
    settings: Settings
    decisions: Decisions

    @cached_property
    def networks(self) -> Decisions:
        """Its entries of networks."""
        return self.decisions.networks

    def share(self, arm: str) -> float:
        """Of the bytes of clients."""
        return float(self.networks.share[self.networks.arm == arm].sum())

    def gain(self) -> tuple[float, float, float]:
        """Expected lift of all traffic outside of the random share, and its widest 95 % interval."""
        on = self.networks.where(self.networks.arm != self.settings.control)
        return _mean(on, float(self.networks.share.sum()))


def _mean(some: Decisions, total: float) -> tuple[float, float, float]:
    """By bytes, with the widest interval."""
    mean, reach = mean_lift(some.share, some.lift, some.sd, total)
    return math.expm1(mean), math.expm1(mean - reach), math.expm1(mean + reach)


def page(store: Store, oracle: Path | None = None) -> str:
    """The whole page as one file. `oracle`: the truth, where somebody knows it."""
    points = [
        Point(number, store.settings(number), store.decisions(number))
        for number in dict.fromkeys([*active_versions(store), store.need_current()])
    ]
    last = next(point for point in points if point.number == store.need_current())
    measured = gains(store.evidence(last.number), last.settings)
    figures = [
        *_over_time(points),
        *_measured(measured, last.settings),
        *_regret(points, oracle),
        _systems(last),
        *_by_bound(last),
    ]
    body = "".join(
        [
            _header(last, measured, totals(store.trials(last.number), last.networks)),
            *(figure(one, n) for n, one in enumerate(figures, 1)),
            _checks(store.findings(last.number)),
            _changes(points),
            _footer(store, oracle),
        ]
    )
    return document(f"uncork learn: version {last.number}", body)


def _header(last: Point, measured: Gains, confirmed: Mapping[str, Total]) -> str:
    settings = last.settings
    gain, low, high = last.gain()
    arms = [f"{arm} for {words.quantity(last.share(arm), 'share')}" for arm in settings.candidates]
    sentence = (
        f"{words.listed(arms)} of the bytes; expected lift over all traffic "
        f"{words.change(1 + gain)} ({words.interval(1 + low, 1 + high)})."
    )
    return (
        f'<header>\n<p class="kind">uncork learn</p>\n<h1>{escape(_named(settings))} or '
        f"{escape(settings.control)}, by network</h1>\n"
        f'<p class="question">Version {last.number}: records before {date(settings.as_of)}; its table '
        f"expires {date(settings.as_of + settings.ttl)}.</p>\n</header>\n"
        f'<section class="verdict" aria-label="Active version">\n<p class="sentence">{escape(sentence)}</p>\n'
        "<p>The lift is what the random share says of the networks that the table switches on, as if arms "
        f"did not share bottlenecks: an expectation. {_latest_gain(measured)} {_by_switchback(confirmed)}"
        "</p>\n</section>\n"
    )


def _latest_gain(measured: Gains) -> str:
    """What the last days say, in a sentence."""
    if not measured:
        return "The holdback has too few records to measure it."
    parts = (
        f"{section} objects {words.change(math.exp(one.lift))} "
        f"({words.interval(math.exp(one.low), math.exp(one.high))})"
        for section, (*_, one) in measured.items()
    )
    return escape(
        f"Measured against the holdback, in {DAYS} days: {', '.join(parts)}; where it shares bottlenecks "
        "with the table's clients, this is not the total gain."
    )


def _by_switchback(confirmed: Mapping[str, Total]) -> str:
    """What the confirmed ASes gained as a whole, in a sentence."""
    parts = [
        f"{section} objects of {one.systems} AS{'' if one.systems == 1 else 'es'} with "
        f"{words.quantity(one.share, 'share')} of the bytes "
        f"{words.change(one.ratio)} ({words.interval(one.low, one.high)})"
        for section, one in confirmed.items()
    ]
    return escape(f"Total gain, by switchbacks: {', '.join(parts)}.") if parts else ""


def _measured(measured: Gains, settings: Settings) -> list[Figure]:
    """The lift over the holdback of all that the table decided for, by section."""
    return [
        _course(f"measured-{n}", section, course, settings)
        for n, (section, course) in enumerate(measured.items(), 1)
        if len(course) > 1
    ]


def _regret(points: Sequence[Point], oracle: Path | None) -> list[Figure]:
    if oracle is None:
        return []
    if points[-1].settings.others:
        raise InputError("--oracle", "it knows one treated arm, and the table has several", "leave it out")
    versions = [(point.settings, point.decisions) for point in points]
    return regret.figures(versions, Oracle.load(oracle), _inks(points[-1].settings)[1])


def _course(name: str, section: str, course: Sequence[Gain], settings: Settings) -> Figure:
    def percents(*logs: float) -> tuple[float, ...]:
        return tuple(100 * math.expm1(log) for log in logs)

    points = [percents(one.lift, one.low, one.high) for one in course]
    x = svg.Axis("week up to", 0, len(course) - 1, names=tuple(date(one.day)[5:] for one in course))
    y = svg.around("lift over the holdback", [v for point in points for v in point], zero=True, shown=percent)
    caption = (
        f"All {section} objects that the table decided for, against those of the holdback: {DAYS} days each, "
        f"with 95 % intervals. Last: {course[-1].table} records against {course[-1].holdback}. Where both "
        "share bottlenecks, this is not the total gain."
    )
    line = svg.Line(
        _named(settings),
        _inks(settings)[1],
        [(float(n), point[0]) for n, point in enumerate(points)],
        [(float(n), point[1], point[2]) for n, point in enumerate(points)],
        dots=True,
    )
    chart = svg.Chart(f"Measured lift of {section} objects", caption, x, y, [line], legend=False)
    return Figure(name, f"Gain over the holdback: {section} objects", caption, chart.render)


def _over_time(points: Sequence[Point]) -> list[Figure]:
    """Nothing to draw of one version alone."""
    if len(points) < 2:
        return []
    settings = points[-1].settings
    inks = _inks(settings)
    days = tuple(date(point.settings.as_of)[5:] for point in points)
    x = svg.Axis("records before", 0, len(points) - 1, names=days)
    gains = [tuple(100 * value for value in point.gain()) for point in points]
    band = [(float(n), gain[1], gain[2]) for n, gain in enumerate(gains)]
    line = svg.Line(
        _named(settings), inks[1], [(float(n), gain[0]) for n, gain in enumerate(gains)], band, dots=True
    )
    axis = svg.around("lift over all traffic", [v for g in gains for v in g], zero=True, shown=percent)
    caption = (
        "Expected lift over all traffic by the networks that each version switches on, with the widest "
        "95 % interval: errors of all networks go together."
    )
    chart = svg.Chart("Expected lift by version", caption, x, axis, [line], legend=False)
    shares = svg.Chart(
        "Share by arm",
        "Share of the bytes by arm of the clients' networks.",
        x,
        svg.around("share of the bytes", [0.0, 100.0], zero=True, shown=_share),
        [
            svg.Line(
                arm, ink, [(float(n), 100 * point.share(arm)) for n, point in enumerate(points)], dots=True
            )
            for arm, ink in zip((settings.control, *settings.candidates), _all_inks(settings), strict=True)
        ],
    )
    return [
        Figure("gain", "What it is expected to bring", caption, chart.render),
        Figure("share", "How much traffic has which arm", shares.description, shares.render),
    ]


def _inks(settings: Settings) -> tuple[str, str]:
    tcp = [settings.arms.get(arm, {}).get("tcp", arm) for arm in (settings.control, settings.treated)]
    return palette.inks((tcp[0], tcp[1]))


def _all_inks(settings: Settings) -> tuple[str, ...]:
    """Of control and each treated arm: by what they are, of several by their place."""
    if not settings.others:
        return _inks(settings)
    return tuple(f"s{n % len(palette.COLOURS)} d0" for n in range(1 + len(settings.candidates)))


def _named(settings: Settings) -> str:
    """The treated arms."""
    return ", ".join(settings.candidates)


def _systems(last: Point) -> Figure:
    """Lift against traffic, of the ASes with most of it."""
    networks = last.networks
    is_large = np.array([name.rpartition("/")[2] == LARGE for name in networks.section], dtype=np.bool_)
    large = networks.where(is_large) if is_large.any() else networks
    system, names = coded(large.parent)
    traffic = np.bincount(system, large.share, len(names))
    dots = []
    for at in np.argsort(-traffic, kind="stable")[:MAX_SYSTEMS].tolist():
        if traffic[at] <= 0:
            break
        own = large.where(system == at)
        lift, low, high = _mean(own, float(traffic[at]))
        tone = "better" if low > 0 else "worse" if high < 0 else "open"
        on = float(own.share[own.arm != last.settings.control].sum() / traffic[at])
        dots.append((str(names[at]), 100 * float(traffic[at]), 100 * lift, 100 * low, 100 * high, tone, on))
    shares = [dot[1] for dot in dots] or [100.0]
    x = svg.Axis("share of the bytes", min(shares) * 0.8, max(shares) * 1.25, log=True, shown=_share)
    y = svg.around("lift", [v for dot in dots for v in dot[2:5]], zero=True, shown=percent)
    caption = (
        f"ASes with most traffic, at most {MAX_SYSTEMS}: lift by their networks' posteriors, by "
        "bytes, with the widest 95 % interval, against their share of all bytes. A large dot: most of the "
        f"AS's bytes have {_named(last.settings)} by the table."
    )
    chart = svg.Scatter("ASes by lift and traffic", caption, x, y, dots)
    return Figure("systems", "Who gains", caption, chart.render)


def _by_bound(last: Point) -> list[Figure]:
    """The gain against the budget of harm; nothing to choose where no network gains."""
    found = choices(last.decisions, last.settings)
    if not any(one.networks for one in found):
        return []
    points = [(float(n), 100 * math.expm1(one.gain)) for n, one in enumerate(found)]
    names = tuple(f"{100 * one.harmed:.3g} %" for one in found)
    x = svg.Axis("traffic that may be harmed", 0, len(found) - 1, names=names)
    y = svg.around("lift over all traffic", [point[1] for point in points], zero=True, shown=percent)
    caption = (
        "Expected lift over all traffic by the budget of harm (--harmed), if all changes came at once. This "
        f"version has {100 * last.settings.harmed:.3g} %: at most this part of the traffic is more than "
        f"{100 * last.settings.tolerated:.3g} % worse, with a probability of "
        f"{100 * last.settings.sure:.3g} %."
    )
    line = svg.Line(_named(last.settings), _inks(last.settings)[1], points, dots=True)
    chart = svg.Chart("Gain by budget of harm", caption, x, y, [line], legend=False)
    return [Figure("budget", "What the budget of harm costs", caption, chart.render)]


def _share(value: float) -> str:
    return f"{value:.3g} %"


def _changes(points: Sequence[Point]) -> str:
    """The networks that changed their arm: newest first, then most traffic."""
    rows: list[tuple[str, float, Decision]] = []
    count = 0
    before = PreviousArms({})
    for point in points:
        is_new = point.networks.arm != before.arms(point.networks, point.settings)
        new = point.networks.where(is_new)
        count += len(new)
        most = new.where(np.argsort(-new.share, kind="stable")[:MAX_CHANGES])
        rows += [(date(point.settings.as_of), one.share, one) for one in most]
        before = PreviousArms.from_decisions(point.networks)
    rows.sort(key=lambda row: (row[0], row[1]), reverse=True)
    cells = [
        [
            escape(day),
            escape(f"{one.key} ({one.parent})"),
            escape(one.section),
            escape(one.arm),
            escape(one.reason),
            escape(words.change(math.exp(one.lift))),
            escape(words.quantity(share, "share")),
        ]
        for day, share, one in rows[:MAX_CHANGES]
    ]
    more = f"<p>{count - MAX_CHANGES} more are not shown.</p>\n" if count > MAX_CHANGES else ""
    headings = ["day", "network", "objects", "now", "why", "lift", "bytes"]
    body = tables.table(headings, cells, left=(0, 1, 2, 3, 4)) if cells else "<p>None.</p>\n"
    return f'<section id="changes">\n<h2>Changes</h2>\n{body}{more}</section>\n'


def _checks(found: Mapping[str, Sequence[Finding]]) -> str:
    """The checks of the records; of earlier versions there are none."""
    parts = [f"<h3>{escape(name)}</h3>\n{tables.health(of)}" for name, of in found.items()]
    heading = "<h2>Can the records be trusted?</h2>"
    return f'<section id="checks">\n{heading}\n{"".join(parts)}</section>\n' if parts else ""


def _footer(store: Store, oracle: Path | None) -> str:
    known = ["--oracle", str(oracle)] if oracle else []
    command = shlex.join(["uncork", "learn", "report", str(store.root), *known])
    return (
        f"<footer>\n<p>Made by uncork {__version__} with</p>\n"
        f'<pre><code class="command">{escape(command)}</code></pre>\n</footer>\n'
    )
