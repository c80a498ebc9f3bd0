"""What to count: the views of each window, with the metrics that are shown of them. Every query is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from uncork.experiment.measures import IN_CELLS
from uncork.experiment.result import Measure
from uncork.experiment.rows import Settings, first_of
from uncork.experiment.timeline import SHOWN
from uncork.measure.cubes import Reduced

View = tuple[str, ...]
Counted = dict[View, tuple[str, ...]]
"""Groupings, and the metrics that are counted in them."""

TIMES = ("day", "hour", "block")
DAILY = (
    Measure("throughput", "p50"),
    Measure("throughput", "p10"),
    Measure("bandwidth", "p10"),
    Measure("stutters", "ratio"),
    Measure("playback_latency", "p50"),
    Measure("retransmitted", "ratio"),
)
HEAT = Measure("throughput", "p50"), Measure("completion", "p50")


def of_window(settings: Settings, has_time: bool, metrics: Sequence[str]) -> Counted:
    """In the window of the decision; `metrics` are what the records have."""
    guarded = [limit.measure for limit in settings.guardrails]
    declared = [settings.primary] if settings.primary else []
    in_cells = _among(metrics, [*_metrics([*declared, *guarded]), *IN_CELLS])
    views: Counted = {(): tuple(metrics)} | {(key,): in_cells for key in _keys(settings)}
    heat = _among(metrics, _metrics(HEAT))
    return views | ({("size_class", "hour"): heat} if has_time and heat else {})


def by_day(settings: Settings, window: Mapping[View, Reduced], metrics: Sequence[str]) -> Counted:
    """Of all time."""
    views: Counted = {("day",): _among(metrics, [*_deciding(settings, window, ()), *_metrics(DAILY)])}
    for key in _keys(settings):
        # Breaks are not looked for by size.
        shown = [] if key == "size_class" else _metrics(SHOWN)
        views[(key, "day")] = _among(metrics, [*_deciding(settings, window, (key,)), *shown])
    return {view: of_view for view, of_view in views.items() if of_view}


def of_past(settings: Settings, window: Mapping[View, Reduced], metrics: Sequence[str]) -> Counted:
    """Before the switch."""
    views = [(), *((key,) for key in _keys(settings))]
    found = {view: _among(metrics, _deciding(settings, window, view)) for view in views}
    return found if found[()] else {}


def _deciding(settings: Settings, window: Mapping[View, Reduced], view: View) -> list[str]:
    """The primary metric. If none is declared, completion time too where a cell of the view lacks it, and for
    the heat map."""
    if settings.primary:
        return [settings.primary.metric]
    first = first_of(window[()].cells.get((), {}))
    if first is None:
        return []
    lacks = any(first.metric not in cubes for cubes in window[view].cells.values()) if view else False
    return [first.metric, *(["completion"] if lacks or view == ("size_class",) else [])]


def _keys(settings: Settings) -> list[str]:
    return [key for key in settings.keys if key not in TIMES]


def _metrics(some: Iterable[Measure]) -> list[str]:
    return [measure.metric for measure in some]


def _among(metrics: Sequence[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """The wanted ones that the records have, in their order."""
    names = set(wanted)
    return tuple(name for name in metrics if name in names)
