"""The figures of a report: each draws itself for any width."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from uncork.experiment import measures, words
from uncork.experiment.report import palette, svg, tables
from uncork.experiment.result import (
    Analysis,
    Cell,
    Distribution,
    Heat,
    Incident,
    Interference,
    Price,
    Row,
    SequentialLook,
    Series,
    Trace,
)
from uncork.experiment.verdict import SOURCES, key_words

MAX_ROWS = 24
"""Of a forest plot; all cells are in the table and in the document."""


@dataclass(frozen=True)
class Figure:
    """`draw` takes a width and gives SVG text."""

    id: str
    title: str
    caption: str
    draw: Callable[[float], str]
    below: str = ""
    """A table under the caption, ready HTML."""


def all_of(analysis: Analysis) -> list[Figure]:
    """The figures, in the order of the page."""
    inks = palette.inks(analysis.facts.names)
    names = arm_names(analysis)
    figures = [forest(analysis, key) for key in dict.fromkeys(cell.key for cell in analysis.cells)]
    figures += [one for of in analysis.distributions for one in distribution(of, names, inks)]
    figures += daily(analysis, names, inks)
    figures += [looks(analysis.looks, analysis)] if analysis.looks else []
    figures += [heat(analysis.heat)] if analysis.heat else []
    figures += [price(analysis.prices, analysis)] if len(analysis.prices) > 1 else []
    figures += [incident(one, n, names, inks) for n, one in enumerate(analysis.incidents)]
    figures += [trace(analysis, inks)] if analysis.traces else []
    if analysis.interference and len(analysis.interference.steps) > 1:
        figures.append(interference(analysis.interference, names, inks))
    return figures


def arm_names(analysis: Analysis) -> tuple[str, str]:
    """The arms with their controllers: `control (cubic)`."""
    facts = analysis.facts
    pairs = zip((facts.control, facts.treated), facts.names, strict=True)
    first, second = (arm if arm == cc or not cc else f"{arm} ({cc})" for arm, cc in pairs)
    return first, second


def tone(verdict: str) -> str:
    return verdict if verdict in ("better", "worse") else "open"


def percent(value: float) -> str:
    """A tick: `+5 %`, `0`, `−10 %`."""
    text = f"{abs(value):g}"
    return "0" if text == "0" else f"{'+' if value > 0 else words.MINUS}{text} %"


def _benefit(row: Row) -> tuple[float, float, float]:
    """Change and interval in percent, turned so that more is better: less time is more speed."""
    assert row.effect is not None
    ratios = row.effect.ratio, row.effect.ratio_low, row.effect.ratio_high
    if row.better == "lower":
        ratios = 1 / ratios[0], 1 / ratios[2], 1 / ratios[1]
    value, low, high = (100 * (ratio - 1) for ratio in ratios)
    return value, low, high


def forest(analysis: Analysis, key: str) -> Figure:
    cells = [cell for cell in analysis.cells if cell.key == key]
    shown = sorted(cells, key=lambda cell: -cell.share)[:MAX_ROWS]
    if key != "size_class":
        shown.sort(key=lambda cell: _sort_value(cell), reverse=True)
    else:
        shown = [cell for cell in cells if cell in shown]
    whole = next((row for row in analysis.scorecard if row.role == "primary"), None)
    rows = ([_forest_row("all", whole, head=True)] if whole else []) + [
        _forest_row(cell.value, cell.primary, head=False) for cell in shown
    ]
    ends = [value for row in rows for value in (row.low, row.high) if value is not None]
    axis = svg.around(
        "change of speed, better to the right"
        if key == "size_class"
        else f"change of {whole.name if whole else 'the primary measure'}",
        [min(max(value, -60.0), 80.0) for value in ends],
        zero=True,
        shown=percent,
    )
    of = key_words(key)
    left = len(cells) - len(shown)
    caption = (
        f"Change with its {100 * (whole.effect.level if whole and whole.effect else 0.95):g} % interval. "
    )
    caption += (
        "Green is better and purple worse after correction for the number of cells (q < 0.05); grey is open. "
    )
    caption += "Arrows leave the picture. "
    if key == "size_class":
        caption += (
            "Objects of 3 MB and more by throughput, smaller ones by completion time (less time is "
            "more speed). "
        )
    caption += f"The {left} smallest are left out." if left else ""
    chart = svg.Forest(f"Effect by {of}", caption, axis, 0.0, rows)
    return Figure(f"by-{key}", f"Where it helps and where it hurts: by {of}", caption, chart.render)


def _sort_value(cell: Cell) -> float:
    return cell.primary.effect.ratio if cell.primary and cell.primary.effect else -math.inf


def _forest_row(label: str, row: Row | None, *, head: bool) -> svg.ForestRow:
    if row is None or row.effect is None:
        return svg.ForestRow(label, None, None, None, "open", "too little data", head)
    value, low, high = _benefit(row)
    note = words.change(row.effect.ratio) + (" time" if row.better == "lower" else "")
    return svg.ForestRow(label, value, low, high, tone(row.verdict), note, head)


def distribution(of: Distribution, names: tuple[str, str], inks: tuple[str, str]) -> list[Figure]:
    source = f" Source: {SOURCES.get(of.source, of.source)}." if of.source else ""
    figures = []
    if all(curve.points for curve in of.cdf):
        caption = f"Share of samples up to each value of {of.title}, with {_band()}.{source}"
        figures.append(
            Figure(
                f"cdf-{of.metric}",
                f"How {of.title} spreads",
                caption,
                lambda width: _cdf(of, names, inks, width),
            )
        )
    if len(of.curve) > 4:
        better = "Above" if of.better == "higher" else "Below"
        caption = (
            f"The change at each percentile, slowest at the {'left' if of.better == 'higher' else 'right'}, "
            f"with {_band()}. "
            f"{better} zero is better. Each interval holds for its percentile alone. The ends of wide ones "
            "leave the picture."
        )
        figures.append(
            Figure(
                f"curve-{of.metric}",
                f"Who gains: {of.title} by percentile",
                caption,
                lambda width: _curve(of, inks[1], width),
            )
        )
    return figures


def _band() -> str:
    return "95 % bands clustered by the assigned unit"


def _cdf(of: Distribution, names: tuple[str, str], inks: tuple[str, str], width: float) -> str:
    inner = [value for curve in of.cdf for value, share, _, _ in curve.points if 0.003 < share < 0.997]
    name, size = words.unit_for(sorted(inner)[len(inner) // 2], of.unit)
    x = svg.Axis(f"{of.title}{', ' + name if name else ''}", min(inner) / size, max(inner) / size, log=True)
    y = svg.Axis("% of samples", 0, 100, most=5)
    lines = [
        svg.Line(
            names[arm],
            inks[arm],
            [
                (value / size, 100 * share)
                for value, share, _, _ in curve.points
                if x.low <= value / size <= x.high
            ],
            [
                (value / size, 100 * low, 100 * high)
                for value, _, low, high in curve.points
                if x.low <= value / size <= x.high
            ],
        )
        for arm, curve in enumerate(of.cdf)
    ]
    return svg.Chart(f"Distribution of {of.title}", f"{names[0]} against {names[1]}", x, y, lines).render(
        width
    )


def _curve(of: Distribution, ink: str, width: float) -> str:
    ends = [100 * (end - 1) for _, _, low, high in of.curve for end in (low, high)]
    inner = [100 * (ratio - 1) for _, ratio, _, _ in of.curve]
    ranked = sorted(inner)
    usual = ranked[len(ranked) // 10], ranked[-1 - len(ranked) // 10]
    reach = 2.0 * max(usual[1] - usual[0], 6.0)
    ends = [min(max(end, usual[0] - reach), usual[1] + reach) for end in ends]
    y = svg.around("change", ends, zero=True, shown=percent)
    x = svg.Axis("percentile", 0, 100, shown=lambda v: f"p{v:g}", most=10 if width > 500 else 5)
    points = [(100 * q, 100 * (ratio - 1)) for q, ratio, _, _ in of.curve]
    band = [(100 * q, 100 * (low - 1), 100 * (high - 1)) for q, _, low, high in of.curve]
    line = svg.Line("", ink, points, band)
    chart = svg.Chart(
        f"Quantile treatment curve of {of.title}",
        "Change at each percentile",
        x,
        y,
        [line],
        rules=[(0.0, "")],
        legend=False,
    )
    return chart.render(width)


def daily(analysis: Analysis, names: tuple[str, str], inks: tuple[str, str]) -> list[Figure]:
    if not analysis.daily:
        return []
    caption = f"Each day's value with {_band()}."
    switch = analysis.facts.switch
    if switch:
        caption += f" Before the switch ({switch.replace('T', ' ')}) both arms ran the same controller."
    days = [level.at for level in analysis.daily[0].control]
    marks = switch_marks(days, switch, names[1])
    contested = [one for one in analysis.incidents if one.contested]
    marks += [shade(days, one.first, one.last, f"contested link: {one.value}") for one in contested[:1]]
    return [
        Figure(
            "daily",
            "Both arms by day",
            caption,
            lambda width: "".join(
                time_chart(series, names, inks, marks, width, legend=n == 0)
                for n, series in enumerate(analysis.daily)
            ),
        )
    ]


def switch_marks(days: Sequence[str], switch: str, treated: str) -> list[svg.Mark]:
    """The moment at which the arms began to differ."""
    before = sum(day < switch[:10] for day in days)
    return [svg.Mark(f"{treated} on", before - 0.5)] if switch and 0 < before < len(days) else []


def shade(days: Sequence[str], first: str, last: str, name: str) -> svg.Mark:
    return svg.Mark(name, sum(day < first for day in days) - 0.5, sum(day <= last for day in days) - 0.5)


def time_chart(
    series: Series,
    names: tuple[str, str],
    inks: tuple[str, str],
    marks: Sequence[svg.Mark],
    width: float,
    *,
    legend: bool,
) -> str:
    """One measure of both arms by day."""
    values = [
        end
        for arm in (series.control, series.treated)
        for level in arm
        for end in (level.low, level.high, level.value)
        if end is not None
    ]
    middle = sorted(values)[len(values) // 2] if values else 1.0
    scale, unit = (0.01, "%") if words.is_share(series.unit) else words.unit_for(middle, series.unit)[::-1]
    name = measures.title(series.measure.metric)
    name = name if series.measure.statistic == "ratio" else f"{series.measure.statistic} {name}"
    y = svg.around(
        f"{name}{', ' + unit if unit else ''}", [value / scale for value in values], zero=True, most=4
    )
    days = tuple(day_label(level.at) for level in series.control)
    x = svg.Axis("", -0.5, len(days) - 0.5, names=days, most=6 if width > 500 else 3)
    lines = []
    for arm, levels in enumerate((series.control, series.treated)):
        points = [
            (float(n), level.value / scale) for n, level in enumerate(levels) if level.value is not None
        ]
        band = [
            (float(n), level.low / scale, level.high / scale)
            for n, level in enumerate(levels)
            if level.low is not None and level.high is not None
        ]
        lines.append(svg.Line(names[arm], inks[arm], points, band))
    return svg.Chart(
        f"{name} by day", f"{names[0]} against {names[1]}", x, y, lines, marks, legend=legend
    ).render(width, 130)


_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def day_label(day: str) -> str:
    """`2 Nov` of `2026-11-02`."""
    return f"{int(day[8:10])} {_MONTHS[int(day[5:7]) - 1]}"


def looks(some: Sequence[SequentialLook], analysis: Analysis) -> Figure:
    caption = (
        "The primary measure with all data until each day, in standard errors, against the O'Brien-Fleming "
        "boundary for "
        "daily looks. Stop for a verdict only where the line is outside: a look each day at 1.96 would be "
        "wrong 27 % of "
        "the time (28 looks). Values are as measured, not adjusted by the time before."
    )

    def draw(width: float) -> str:
        z = [(float(n), look.z) for n, look in enumerate(some) if look.z is not None]
        reach = max([abs(value) for _, value in z] + [4.0])
        limit = min(reach * 1.15, 3 * max(abs(some[-1].boundary), reach / 3))
        y = svg.around("standard errors, better above", [-limit, limit], most=5)
        days = tuple(day_label(look.at) for look in some)
        x = svg.Axis("", -0.5, len(days) - 0.5, names=days, most=6 if width > 500 else 3)
        lines = [svg.Line("so far", palette.inks(analysis.facts.names)[1], z, dots=True)]
        for sign, name in ((1, "boundary"), (-1, "")):
            edge = [
                (float(n), sign * look.boundary) for n, look in enumerate(some) if look.boundary <= y.high
            ]
            lines.append(svg.Line(name, "s6 d1", edge))
        return svg.Chart("Sequential boundary", caption, x, y, lines, rules=[(0.0, "")]).render(width, 170)

    return Figure("looks", "When a verdict was possible", caption, draw)


def heat(of: Heat) -> Figure:
    caption = (
        "Median throughput of objects of 3 MB and more, median completion time of smaller ones (less is "
        "better). Green is "
        "better, purple worse; grey where it is not significant after correction for all cells (q < 0.05)."
    )

    def draw(width: float) -> str:
        gains = [
            abs(row.gain)
            for cell in of.cells
            if (row := cell.row) and row.gain is not None and tone(row.verdict) != "open"
        ]
        most = max([*gains, 0.05])
        lookup = {(cell.x, cell.y): cell.row for cell in of.cells}
        cells = [[_heat_cell(lookup.get((x, y)), most, width) for x in of.x_values] for y in of.y_values]
        ends = f"{100 * most:.0f} % worse", "", f"{100 * most:.0f} % better"
        return svg.HeatMap(
            "Change by size and hour", caption, (of.x, of.x_values), (of.y, of.y_values), cells, ends
        ).render(width)

    return Figure("heat", "Object size against time of day", caption, draw)


def _heat_cell(row: Row | None, most: float, width: float) -> tuple[float | None, str] | None:
    if row is None or row.effect is None or row.gain is None:
        return None
    label = (
        words.change(row.effect.ratio) if width > 500 else words.change(row.effect.ratio).removesuffix(" %")
    )
    return (0.5 + row.gain / most / 2 if tone(row.verdict) != "open" else None), label


def price(prices: Sequence[Price], analysis: Analysis) -> Figure:
    key = "asn" if any(cell.key == "asn" for cell in analysis.cells) else analysis.cells[0].key
    metric = next((row.name for row in analysis.scorecard if row.role == "primary"), "the primary measure")
    caption = (
        f"Each dot is one {key_words(key)}: what is paid in bytes sent again, and what is gained. "
        "Larger dots have more units."
    )

    def draw(width: float) -> str:
        most = max(one.share for one in prices)
        points = [
            (
                one.value,
                100 * (one.retransmitted_treated - one.retransmitted_control),
                100 * (one.gain.ratio - 1),
                100 * (one.gain.ratio_low - 1),
                100 * (one.gain.ratio_high - 1),
                tone(one.verdict),
                one.share / most,
            )
            for one in prices
        ]
        x = svg.around(
            "change of the retransmitted share, percentage points", [point[1] for point in points], zero=True
        )
        ends = [min(max(end, -80.0), 100.0) for point in points for end in point[3:5]]
        y = svg.around(f"change of {metric}", ends, zero=True, most=5, shown=percent)
        return svg.Scatter("Price and gain", caption, x, y, points).render(width)

    return Figure("price", "What the gain costs in retransmissions", caption, draw)


def incident(of: Incident, n: int, names: tuple[str, str], inks: tuple[str, str]) -> Figure:
    dates = day_label(of.first) if of.first == of.last else f"{day_label(of.first)} to {day_label(of.last)}"
    caption = f"A break in {of.value}, {dates}. "
    if of.contested:
        caption += (
            "Contested link: the control arm got worse as well, so both arms shared what was full. The gap "
            "is the "
            "difference between arms that compete there; how much of it would remain if all traffic were "
            "treated is not known."
        )

    def draw(width: float) -> str:
        label = "contested link" if of.contested else "break"
        days = [level.at for level in of.series[0].control]
        marks = [shade(days, of.first, of.last, label)]
        return "".join(
            time_chart(series, names, inks, marks, width, legend=at == 0)
            for at, series in enumerate(of.series)
        )

    title = f"An incident: {of.value}, {dates}"
    return Figure(f"incident-{n}", title, caption, draw, tables.incident(of, names))


def trace(analysis: Analysis, inks: tuple[str, str]) -> Figure:
    """The primary measure in each span, a line for each arm, one picture for each place."""
    row = next(row for row in analysis.scorecard if row.role == "primary")
    name = measures.name(row.measure)
    caption = (
        f"{name} in each span of the calendar, of the arm that had most of the traffic. The first "
        "minutes are left out."
    )

    def one(of: Trace, width: float, first: bool) -> str:
        known = [(at, share, value) for at, share, value in of.points if value is not None]
        start = of.points[0][0]
        unit, size = words.unit_for(max((value for _, _, value in known), default=1.0), row.unit)
        y = svg.around(
            f"{of.place}: {name}, {unit}", [value / size for _, _, value in known], zero=True, most=4
        )
        x = svg.Axis("days", 0, max((of.points[-1][0] - start) / 86400, 1e-9))
        lines = [
            svg.Line(
                arm,
                ink,
                [
                    ((at - start) / 86400, value / size)
                    for at, share, value in known
                    if (share > 0.5) == treated
                ],
                dots=True,
            )
            for arm, ink, treated in zip(arm_names(analysis), inks, (False, True), strict=True)
        ]
        return svg.Chart(f"{name} by span", caption, x, y, lines, legend=first).render(width, 140)

    def draw(width: float) -> str:
        return "".join(one(of, width, n == 0) for n, of in enumerate(analysis.traces[:6]))

    return Figure("trace", "The design in time", caption, draw)


def interference(of: Interference, names: tuple[str, str], inks: tuple[str, str]) -> Figure:
    caption = (
        f"The control arm's own level at each share of treated traffic (spill-over), with {_band()}. "
        f"{of.sentence}"
    )

    def draw(width: float) -> str:
        levels = [(step.share, step.control) for step in of.steps]
        ends = [end for _, level in levels for end in (level.low, level.high, level.value) if end is not None]
        name, size = words.unit_for(max(ends, default=1.0), of.unit)
        points = [(100 * share, level.value / size) for share, level in levels if level.value is not None]
        band = [
            (100 * share, level.low / size, level.high / size)
            for share, level in levels
            if level.low is not None and level.high is not None
        ]
        x = svg.Axis("share of traffic in the treated arm, %", 0, 100)
        y = svg.around(
            f"{of.measure.statistic} {of.title}, {name}", [end / size for end in ends], zero=True, most=4
        )
        line = svg.Line(names[0], inks[0], points, band if len(band) > 1 else (), dots=True)
        return svg.Chart("Control arm against allocation", caption, x, y, [line]).render(width, 130)

    return Figure("interference", "Does the control arm move with the allocation?", caption, draw)
