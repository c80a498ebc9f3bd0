"""Designs in time: switchback, paired links and steps of the share, from the calendar that was used.

Their estimands are the total effect and the spill-over. No A/B difference estimates them. The intervals come
from randomisation inference over the calendar's own coins.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import ibis
import ibis.expr.types as ir
import numpy as np

from uncork.experiment import estimate, measures
from uncork.experiment.estimate import Cubes
from uncork.experiment.result import Designed, Measure, Row, Trace
from uncork.experiment.rows import Settings, in_family, row_of
from uncork.experiment.schedules import Calendar, Span
from uncork.measure.cubes import Cube, Reduced
from uncork.measure.errors import InputError
from uncork.measure.keys import key_column
from uncork.measure.schema import NANOS_PER_SECOND
from uncork.measure.stats import paired, switchback
from uncork.measure.stats.effect import Effect, NoInterval, Outcome
from uncork.measure.stats.interference import control_level

SPAN = "calendar_span"
COLUMNS = ("since", "until", "place", "treated", "pair", "counts_from")


def read_calendar(path: Path) -> Calendar:
    """The calendar that `design` wrote."""
    try:
        lines = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--calendar {path}", f"cannot be read ({error})") from None
    if not lines or set(COLUMNS) - set(lines[0]):
        raise InputError(
            f"--calendar {path}", "not a calendar", "use the schedule.csv that design has written"
        )
    if short := next((n for n, line in enumerate(lines, 2) if None in map(line.get, COLUMNS)), None):
        raise InputError(f"--calendar {path}, line {short}", "a value is missing", "copy the file again")
    try:
        spans = tuple(_span(line) for line in lines)
        burn_ins = [_unix(line["counts_from"]) - span.since for line, span in zip(lines, spans, strict=True)]
    except ValueError as error:
        raise InputError(
            f"--calendar {path}", str(error), "use the schedule.csv that design has written"
        ) from None
    _check_grid(spans, burn_ins, path)
    is_switchback = {span.treated for span in spans} <= {0.0, 1.0}
    kind = "switchback" if is_switchback else "paired links" if _is_paired(spans) else "steps of the share"
    return Calendar(kind, 0, burn_ins[0], spans)


def _check_grid(spans: Sequence[Span], burn_ins: Sequence[int], path: Path) -> None:
    """All spans have the length and burn-in of the first one, and begin whole lengths after it."""
    first = spans[0]
    length = first.until - first.since
    for n, (span, burn_in) in enumerate(zip(spans, burn_ins, strict=True), 2):
        place = f"--calendar {path}, line {n}"
        if span.until - span.since != length or burn_in != burn_ins[0]:
            remedy = "write spans of one length, with the same time from since to counts_from"
            raise InputError(place, "another length or burn-in than that of the first span", remedy)
        if span.since < first.since or (span.since - first.since) % length:
            remedy = "sort the lines by time, and leave out whole spans only"
            raise InputError(place, "it does not begin whole lengths after the first span", remedy)


def _is_paired(spans: Sequence[Span]) -> bool:
    """Whether two places have two shares, and exchange them between the spans of each pair."""
    low, high = min(span.treated for span in spans), max(span.treated for span in spans)
    treated: dict[int, set[str]] = {}
    for span in spans:
        if span.treated not in (low, high):
            return False
        treated.setdefault(span.since, set()).update([span.place] if span.treated == high else [])
    times = [treated[since] for since in sorted(treated)]
    is_one_each = all(len(of) == 1 for of in times) and len({span.place for span in spans}) == 2
    return (
        is_one_each
        and len(times) % 2 == 0
        and all(a != b for a, b in zip(times[::2], times[1::2], strict=True))
    )


def _span(line: Mapping[str, str]) -> Span:
    return Span(
        _unix(line["since"]), _unix(line["until"]), line["place"], float(line["treated"]), int(line["pair"])
    )


def _unix(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def by_span(records: ir.Table, calendar: Calendar) -> ir.Table:
    """The records of connections that began after the burn-in of a span, with the number of its half."""
    first, length = calendar.spans[0].since, calendar.spans[0].until - calendar.spans[0].since
    last = max(span.until for span in calendar.spans)
    seconds = (
        records["service_start_unix_ns"].cast("int64") // ibis.literal(NANOS_PER_SECOND, "int64") - first
    )
    within = (seconds >= 0) & (seconds < last - first) & (seconds % length >= calendar.burn_in)
    # Twice the number of the span, and 1 more in the second half of what counts.
    half = calendar.burn_in + (length - calendar.burn_in) // 2
    number = (seconds // length) * 2 + (seconds % length >= half).cast("int64")
    return records.filter(within).mutate(**{SPAN: number.cast("string")})


def place_key(calendar: Calendar, columns: set[str], key: str) -> tuple[str, ...]:
    """The keys by which to count; one place needs none."""
    if len({span.place for span in calendar.spans}) < 2:
        return (SPAN,)
    key_column(key, columns)
    return (SPAN, key)


@dataclass(frozen=True)
class _Levels:
    """A measure by half span and place, of one arm or of the active one."""

    cells: Mapping[tuple[int, str], Cubes]
    measure: Measure

    @staticmethod
    def by_half(reduced: Reduced, calendar: Calendar, measure: Measure) -> _Levels:
        place = calendar.spans[0].place
        cells = {
            (int(key[0]), key[1] if len(key) > 1 else place): cubes for key, cubes in reduced.cells.items()
        }
        return _Levels(cells, measure)

    def of(self, span: int, place: str, arm: int) -> float:
        """Of a whole span; in each half a client counts once."""
        return self._value([self._cube(2 * span, place), self._cube(2 * span + 1, place)], arm)

    def halves(self, span: int, place: str, arm: int) -> list[float]:
        return [self._value([self._cube(2 * span + half, place)], arm) for half in (0, 1)]

    def _cube(self, half: int, place: str) -> Cube | None:
        return self.cells.get((half, place), {}).get(self.measure.metric)

    def _value(self, parts: list[Cube | None], arm: int) -> float:
        cube = estimate.total([part for part in parts if part is not None])
        value = estimate.level_of(cube, arm, self.measure, "").value
        return float("nan") if value is None else value


def effects(reduced: Reduced, calendar: Calendar, wanted: Sequence[Measure]) -> tuple[Designed, ...]:
    """The design's estimate of each measure, labelled by its estimand."""
    found: list[Designed] = []
    for measure in wanted:
        levels = _Levels.by_half(reduced, calendar, measure)
        if calendar.kind == "switchback":
            outcomes = _switchback(levels, calendar)
        elif calendar.kind == "paired links":
            outcomes = _paired(replace(levels, measure=_mean_of(measure)), calendar)
        else:
            outcomes = [_steps(levels, calendar)]
        found += [_designed(calendar.kind, measure, outcome) for outcome in outcomes]
    return tuple(found)


def _mean_of(measure: Measure) -> Measure:
    """Paired links compare means: the mean of all traffic is a weighted mean of the arms' means."""
    return measure if measure.statistic == "ratio" else Measure(measure.metric, "mean")


def _designed(kind: str, measure: Measure, outcome: Outcome) -> Designed:
    shown = _mean_of(measure) if kind == "paired links" else measure
    effect = outcome if isinstance(outcome, Effect) else None
    reason = outcome.reason if isinstance(outcome, NoInterval) else ""
    return Designed(kind, shown, measures.title(measure.metric), outcome.estimand, effect, reason)


def _numbered(calendar: Calendar) -> list[tuple[int, Span]]:
    first, length = calendar.spans[0].since, calendar.spans[0].until - calendar.spans[0].since
    return [((span.since - first) // length, span) for span in calendar.spans]


def _switchback(levels: _Levels, calendar: Calendar) -> list[Outcome]:
    """The total effect, and carry-over where it is found."""
    spans = _numbered(calendar)
    schedule = switchback.Schedule(
        np.array([span.since for _, span in spans]),
        calendar.spans[0].until - calendar.spans[0].since,
        np.array([span.pair for _, span in spans]),
        np.array([span.treated == 1 for _, span in spans]),
    )
    values = np.array([levels.of(n, span.place, int(span.treated == 1)) for n, span in spans])
    halves = np.array([levels.halves(n, span.place, int(span.treated == 1)) for n, span in spans])
    total = switchback.level_effect(schedule, values, np.random.default_rng(0))
    carried = switchback.carry_over(schedule, halves, np.random.default_rng(0))
    is_found = isinstance(carried, Effect) and carried.p_value < 1 - carried.level
    return [total, carried] if is_found else [total]


def _paired(levels: _Levels, calendar: Calendar) -> list[Outcome]:
    places = sorted({span.place for span in calendar.spans})
    shares = sorted({span.treated for span in calendar.spans})
    spans = _numbered(calendar)
    periods = max(n for n, _ in spans) + 1
    values = np.full((periods, 2, 2), np.nan)
    high = np.zeros(periods, dtype=np.int64)
    for n, span in spans:
        at = places.index(span.place)
        values[n, at] = [levels.of(n, span.place, arm) for arm in (0, 1)]
        if span.treated == shares[-1]:
            high[n] = at
    links = paired.PairedLinks(values, high, (shares[0], shares[-1]))
    rng = np.random.default_rng(0)
    both = [paired.ab_effect(links, rng, higher=higher) for higher in (False, True)]
    return [paired.total_effect(links, rng), paired.spill_over(links, rng), *both]


def _steps(levels: _Levels, calendar: Calendar) -> Outcome:
    spans = _numbered(calendar)
    return control_level(
        [span.place for _, span in spans],
        np.array([span.treated for _, span in spans]),
        np.array([levels.of(n, span.place, 0) for n, span in spans]),
        np.random.default_rng(0),
    ).spill_over


def traces(reduced: Reduced, calendar: Calendar, measure: Measure) -> tuple[Trace, ...]:
    """The measure in each span of each place, of the arm with most of the traffic."""
    places = sorted({span.place for span in calendar.spans})
    levels = _Levels.by_half(reduced, calendar, measure)
    found = []
    for place in places:
        spans = [(n, span) for n, span in _numbered(calendar) if span.place == place]
        values = [levels.of(n, place, int(span.treated > 0.5)) for n, span in spans]
        points = tuple(
            (span.since, span.treated, value if np.isfinite(value) else None)
            for (_, span), value in zip(spans, values, strict=True)
        )
        found.append(Trace(place, points))
    return tuple(found)


def scorecard(rows: Sequence[Row], total: Mapping[Measure, Designed], settings: Settings) -> tuple[Row, ...]:
    """The rows with total effects in place of differences between arms; the first of them is the primary
    one.
    """
    totals = [
        _row(one, "primary" if n == 0 else _role(one, rows), settings) for n, one in enumerate(total.values())
    ]
    if not totals:
        return tuple(rows)
    shown = {row.measure for row in totals}
    kept = [replace(row, role="secondary") if row.role == "primary" else row for row in rows]
    others = [*totals[1:], *(row for row in kept if row.measure not in shown)]
    return (*in_family(totals[:1], settings), *in_family(others, settings))


def _role(one: Designed, rows: Sequence[Row]) -> str:
    return next((row.role for row in rows if row.measure == one.measure), "secondary")


def _row(one: Designed, role: str, settings: Settings) -> Row:
    outcome = one.effect or NoInterval(one.reason, estimand=one.estimand)
    return row_of(one.measure, outcome, role, settings)
