"""Figures of results, with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uncork.measure.errors import InputError, available

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^v<>p*"
"""They distinguish controllers without colours."""
PREFIXED = ("bit/s", "s")
"""Units that are written with a prefix: 20 Mbit/s, 50 ms."""

MAX_LEVEL = 4
"""Cells that have room for level names."""


@dataclass(frozen=True)
class Point:
    """A metric of a class in a cell."""

    cell: str
    choice: str
    metric: str
    unit: str
    value: float
    low: float
    high: float


def draw(document: dict[str, Any], metric: str | None, ax: Axes | None) -> Axes:
    """Points with intervals: the cells from left to right, a mark for each controller."""
    if ax is not None and not hasattr(ax, "errorbar"):
        raise InputError(
            f"ax={ax!r}", "is not one Axes of matplotlib", "write ax=pyplot.gca(), or leave it out"
        )
    points = _points(document)
    points = _with_metric(points, metric or _decisive(document, points))
    axes = _subplot() if ax is None else ax
    cells = list(dict.fromkeys(point.cell for point in points))
    choices = list(dict.fromkeys(point.choice for point in points))
    for nth, choice in enumerate(choices):
        shift = 0.5 * ((nth + 0.5) / len(choices) - 0.5)
        own = [point for point in points if point.choice == choice]
        axes.errorbar(
            [cells.index(point.cell) + shift for point in own],
            [point.value for point in own],
            yerr=[[point.value - point.low for point in own], [point.high - point.value for point in own]],
            label=choice,
            marker=MARKERS[nth % len(MARKERS)],
            linestyle="none",
            capsize=3,
        )
    many = len(cells) > MAX_LEVEL
    axes.set_xticks(range(len(cells)), cells, rotation=45 if many else 0, ha="right" if many else "center")
    axes.set_xlim(-0.5, len(cells) - 0.5)
    axes.margins(y=0.1)
    axes.set_ylim(bottom=0)
    _label(axes, points[0].metric, points[0].unit)
    axes.set_title(document["title"], wrap=True, fontsize="medium")
    axes.legend()
    return axes


def _subplot() -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError("plot", "matplotlib is not installed", "run: pip install 'uncork[plot]'") from error
    return pyplot.subplots(layout="constrained")[1]


def _label(axes: Axes, metric: str, unit: str) -> None:
    from matplotlib.ticker import EngFormatter

    prefixed = unit in PREFIXED
    axes.set_ylabel(metric if prefixed or not unit else f"{metric} ({unit})")
    if prefixed:
        axes.yaxis.set_major_formatter(EngFormatter(unit=unit))


def _points(document: dict[str, Any]) -> list[Point]:
    """All metrics of all cells. A controller that is an axis is left out of the names of cells."""
    axes = document["axes"]
    names = [axis["key"].rpartition(".")[2] for axis in axes]
    points = []
    for cell in document["cells"]:
        values = [axis["values"][at] for axis, at in zip(axes, cell["point"], strict=True)]
        shown = [f"{name} {value}" for name, value in zip(names, values, strict=True) if name != "cc"]
        for one in cell["classes"]:
            choice = one["cc"] if len(cell["classes"]) == 1 else f"{one['class']}: {one['cc']}"
            for of in one["metrics"]:
                value, low, high = (of["estimate"][key] for key in ("value", "low", "high"))
                ends = (value if low is None else low, value if high is None else high)
                points.append(Point("\n".join(shown), choice, of["name"], of["unit"], value, *ends))
    return points


def _decisive(document: dict[str, Any], points: list[Point]) -> str:
    """The metric of the first answer, or the first one."""
    known = dict.fromkeys(point.metric for point in points)
    answers = [answer["metric"] for answer in document["answers"]]
    return next((metric for metric in [*answers, *known] if metric in known), "")


def _with_metric(points: list[Point], metric: str) -> list[Point]:
    found = [point for point in points if point.metric == metric]
    if not found:
        known = [point.metric for point in points]
        raise InputError(f"metric={metric}", "no cell has it", available(str(metric), known))
    return found
