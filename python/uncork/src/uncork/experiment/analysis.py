"""Reduced records -> Analysis. Pure: no file, no clock; the same cubes give the same result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from uncork.experiment import estimate, guard, measures, words
from uncork.experiment.decisions import aimed, decided
from uncork.experiment.estimate import Cubes
from uncork.experiment.measures import IN_CELLS
from uncork.experiment.needed import DAILY, HEAT, TIMES
from uncork.experiment.result import (
    Analysis,
    Cell,
    Curve,
    Distribution,
    Facts,
    Finding,
    Heat,
    HeatCell,
    Measure,
    Price,
    Row,
    SequentialLook,
    Series,
)
from uncork.experiment.rows import Settings, deciding, in_family, primary_for, row_of, rows_of
from uncork.experiment.timeline import incidents, interference, series_of
from uncork.measure.cubes import Cube, DistributionCube, Key, Reduced
from uncork.measure.metrics import METRICS, SIZE_CLASSES
from uncork.measure.stats import power, sequential
from uncork.measure.stats.effect import Effect, ab_at_share

View = tuple[str, ...]
Views = Mapping[View, Reduced]
Pasts = Mapping[View, Reduced]
PerClient = Mapping[View, Mapping[Key, Cubes]]

MAX_CELLS = 400
"""Of a key; the smaller ones are left out, and the page says so."""


def analyse(
    window: Views,
    daily: Views,
    past: Pasts,
    facts: Facts,
    settings: Settings,
    health: tuple[Finding, ...] = (),
    shares: Mapping[str, float] | None = None,
    steps: Sequence[float] = (),
    per_client: PerClient | None = None,
) -> Analysis:
    """The analysis of two arms.

    `shares`: by day, the share of traffic in the treated arm. `steps`: the shares of a calendar, by which
    places have different ones on the same day. `per_client`: ratios with each unit counted once, of cells in
    which records per unit differ; guardrails are decided by these.
    """
    whole = _only(window[()])
    declared = settings.primary
    settings = replace(settings, primary=deciding(whole, settings))
    estimand = _estimand(facts, shares or {}, steps)
    before = _only(past[()]) if () in past else {}
    scorecard = _scorecard(whole, before, settings, estimand)
    once = per_client or {}
    guardrails = guard.states(whole, settings, estimand, per_client=once.get((), {}).get((), {}))
    cells = _cells(window, past, once, settings, facts, estimand)
    primary = settings.primary
    days = daily.get(("day",))
    found = Analysis(
        facts=facts,
        settings=settings.words(),
        health=health,
        scorecard=scorecard,
        guardrails=guardrails,
        cells=cells,
        distributions=_distributions(whole, facts, settings, estimand),
        daily=_daily(days, primary),
        looks=_looks(days, facts, settings, estimand),
        heat=_heat(window.get(("size_class", "hour")), past.get(("size_class",)), settings, estimand),
        prices=(),
        incidents=incidents(daily, facts, settings.keys, settings, estimand),
        interference=interference(days, shares or {}, facts, settings),
        notes=(*_instead(declared, settings), *_notes(window, settings)),
        not_guarded=_not_guarded(whole, settings),
    )
    found = decided(found, settings, lambda cell: _days_more(cell, daily, past, facts, settings))
    return replace(found, prices=_prices(found.cells, settings))


def _estimand(facts: Facts, shares: Mapping[str, float], planned: Sequence[float]) -> str:
    """What a difference between the arms estimates."""
    by_day = [share for day, share in shares.items() if facts.since <= day <= facts.until]
    steps = sorted({round(share, 2) for share in planned or by_day})
    if facts.share_is == "assumed" and not planned:
        return "A/B"
    if len(steps) < 2:
        return ab_at_share(round(facts.share, 4))
    return f"A/B at shares {words.listed([f'{100 * share:g} %' for share in steps])}"


def _only(reduced: Reduced) -> Cubes:
    """The cubes of everything."""
    return reduced.cells.get((), {})


def _scorecard(whole: Cubes, before: Cubes, settings: Settings, estimand: str) -> tuple[Row, ...]:
    guarded = {limit.measure for limit in settings.guardrails}
    names = sorted(whole, key=list(METRICS).index)
    shown = [measure for name in names for measure in measures.shown(name)]
    extra = [settings.primary] if settings.primary and settings.primary not in shown else []
    wanted = [
        (
            measure,
            "primary" if measure == settings.primary else "guardrail" if measure in guarded else "secondary",
        )
        for measure in [*extra, *shown]
    ]
    wanted.sort(key=lambda pair: pair[1] != "primary")
    rows = rows_of(whole, wanted, settings, estimand, before)
    # The primary measure was declared before: a family of its own.
    first = [row for row in rows if row.role == "primary"]
    return (*in_family(first, settings), *in_family(rows[len(first) :], settings))


def _cells(
    window: Views, past: Pasts, per_client: PerClient, settings: Settings, facts: Facts, estimand: str
) -> tuple[Cell, ...]:
    """All cells of all keys, without advice."""
    drafts: list[Cell] = []
    keys = [key for key in settings.keys if (key,) in window and key not in TIMES]
    count = sum(min(len(window[(key,)].cells), MAX_CELLS) for key in keys)
    alpha = (1 - settings.level) / max(count, 1)
    for key in keys:
        reduced = window[(key,)]
        earlier = past[(key,)].cells if (key,) in past else {}
        once = per_client.get((key,), {})
        for value in reduced.largest(MAX_CELLS):
            draft = _draft(key, value, reduced, earlier.get(value, {}), facts, settings, estimand)
            guards = guard.states(
                reduced.cells[value], settings, estimand, alpha=alpha, per_client=once.get(value, {})
            )
            drafts.append(replace(draft, guardrails=guards))
    return tuple(sorted(drafts, key=lambda cell: _order(cell, settings)))


def _order(cell: Cell, settings: Settings) -> tuple[int, int, float]:
    sizes = SIZE_CLASSES.index(cell.value) if cell.value in SIZE_CLASSES else 0
    return settings.keys.index(cell.key), sizes, -cell.share


def _draft(
    key: str,
    value: Key,
    reduced: Reduced,
    earlier: Cubes,
    facts: Facts,
    settings: Settings,
    estimand: str,
) -> Cell:
    """Without its guardrails."""
    cubes = reduced.cells[value]
    total = facts.total_units
    units = reduced.units[value].sum(axis=1)
    primary = primary_for(cubes, settings)
    others = [
        (measure, "secondary")
        for name in IN_CELLS
        if name in cubes
        for measure in measures.shown(name)
        if measure != primary
    ]
    first = rows_of(cubes, [(primary, "primary")] if primary else [], settings, estimand, earlier)
    return Cell(
        key,
        value[0],
        (int(units[0]), int(units[1])),
        float(units.sum()) / total if total else float(reduced.records[value].sum()) / max(facts.rows, 1),
        first[0] if first else None,
        tuple(rows_of(cubes, others, settings, estimand)),
        (),
        "wait",
        "",
        None,
    )


def _days_more(cell: Cell, daily: Views, past: Pasts, facts: Facts, settings: Settings) -> int | None:
    """Days until a change of `detect` would be found; None if more days of the same units cannot show it.

    The variance is a + b / days: what differs between units does not go away with time. Both parts come from
    the variances of the whole time and of its halves. Without records by day, all of it counts as falling: a
    lower limit.
    """
    if cell.primary is None or cell.primary.effect is None:
        return None
    effect = cell.primary.effect
    needed = power.data_needed(effect, aimed(cell.primary, settings.detect))
    if needed <= 1:
        return None
    whole = power.log_error(effect) ** 2
    halves = _halves(cell, daily, past, facts, settings)
    falling = min(max(sum(halves) / 2 - whole, 0.0), whole) if len(halves) == 2 else whole
    staying, wanted = whole - falling, whole / needed
    if wanted <= staying:
        return None
    return math.ceil(facts.days * (falling / (wanted - staying) - 1))


def _halves(cell: Cell, daily: Views, past: Pasts, facts: Facts, settings: Settings) -> list[float]:
    """Variances of the logarithm of the ratio in the first and the second half of the days."""
    reduced = daily.get((cell.key, "day"))
    if reduced is None or cell.primary is None:
        return []
    days = sorted(key for key in reduced.cells if key[0] == cell.value and key[1] >= facts.switch[:10])
    measure, middle = cell.primary.measure, len(days) // 2
    before = past[(cell.key,)].cells.get((cell.value,), {}) if (cell.key,) in past else {}
    variances = []
    for half in (days[:middle], days[middle:]):
        pool = estimate.pooled([reduced.cells[day] for day in half], [measure.metric])
        rows = rows_of(pool, [(measure, "primary")], settings, "", before)
        variances += [power.log_error(row.effect) ** 2 for row in rows if row.effect]
    return variances


def _distributions(cubes: Cubes, facts: Facts, settings: Settings, estimand: str) -> tuple[Distribution, ...]:
    found = []
    for metric in ("throughput", "completion", "bandwidth", "playback_latency"):
        cube = cubes.get(metric)
        if not isinstance(cube, DistributionCube):
            continue
        names = facts.control, facts.treated
        bands = tuple(Curve(names[arm], estimate.cdf(cube, arm, level=settings.level)) for arm in (0, 1))
        curve = estimate.curve(cube, level=settings.level, estimand=estimand)
        found.append(
            Distribution(
                metric,
                measures.title(metric),
                measures.unit(metric),
                METRICS[metric].better,
                settings.sources.get(metric, ""),
                bands,
                curve,
            )
        )
    return tuple(found)


def _daily(days: Reduced | None, primary: Measure | None) -> tuple[Series, ...]:
    if days is None or len(days.cells) < 2:
        return ()
    wanted = list(dict.fromkeys([*([primary] if primary else []), *DAILY]))
    series = [
        series_of(days.cells, [(key[0], key) for key in sorted(days.cells)], measure) for measure in wanted
    ]
    return tuple(one for one in series if sum(level.value is not None for level in one.control) > 1)


def _looks(
    days: Reduced | None, facts: Facts, settings: Settings, estimand: str
) -> tuple[SequentialLook, ...]:
    """The primary measure as it would have been seen each day, against the O'Brien-Fleming boundary for
    daily looks.
    """
    primary = settings.primary
    if days is None or primary is None:
        return ()
    names = [
        key for key in sorted(days.cells) if key[0] >= facts.switch[:10] and primary.metric in days.cells[key]
    ]
    if len(names) < 2:
        return ()
    boundary = sequential.obrien_fleming(len(names), 1 - settings.level)
    sign = 1 if METRICS[primary.metric].better == "higher" else -1
    looks = []
    so_far: Cube | None = None
    for n, key in enumerate(names):
        cube = days.cells[key][primary.metric]
        so_far = cube if so_far is None else estimate.total([so_far, cube])
        assert so_far is not None
        outcome = estimate.outcomes(so_far, [primary], level=settings.level, estimand=estimand)[0]
        z = sign * math.log(outcome.ratio) / power.log_error(outcome) if isinstance(outcome, Effect) else None
        looks.append(SequentialLook(key[0], z, float(boundary[n])))
    return tuple(looks)


def _heat(reduced: Reduced | None, past: Reduced | None, settings: Settings, estimand: str) -> Heat | None:
    if reduced is None or len(reduced.cells) < 4:
        return None
    hours = [f"{hour:02d}" for hour in range(24)]
    blocks = {f"{start:02d}–{start + 3:02d}": hours[start : start + 3] for start in range(0, 24, 3)}
    sizes = [size for size in SIZE_CLASSES if any(key[0] == size for key in reduced.cells)]
    before = past.cells if past else {}
    drafts: list[tuple[str, str, Row | None]] = []
    for size in sizes:
        for block, of_block in blocks.items():
            parts = [reduced.cells[(size, hour)] for hour in of_block if (size, hour) in reduced.cells]
            drafts.append((block, size, _heat_row(parts, before.get((size,), {}), settings, estimand)))
    judged = iter(in_family([row for _, _, row in drafts if row], settings))
    cells = tuple(HeatCell(x, y, next(judged) if row else None) for x, y, row in drafts)
    return Heat("hour of the day, UTC", "object size", tuple(blocks), tuple(sizes), cells)


def _heat_row(parts: Sequence[Cubes], before: Cubes, settings: Settings, estimand: str) -> Row | None:
    for measure in HEAT:
        cube = estimate.total([cubes[measure.metric] for cubes in parts if measure.metric in cubes])
        if cube is not None:
            past = before.get(measure.metric)
            outcome = estimate.outcomes(cube, [measure], level=settings.level, estimand=estimand, past=past)[
                0
            ]
            return row_of(measure, outcome, "secondary", settings)
    return None


def _prices(cells: Sequence[Cell], settings: Settings) -> tuple[Price, ...]:
    """Retransmissions against gain, by network where there are networks."""
    key = "asn" if "asn" in settings.keys else settings.keys[0] if settings.keys else ""
    prices = []
    for cell in cells:
        sent = next((row for row in cell.rows if row.measure.metric == "retransmitted"), None)
        row = cell.primary
        if cell.key != key or row is None or row.effect is None or sent is None:
            continue
        if sent.control is not None and sent.treated is not None:
            prices.append(Price(cell.value, sent.control, sent.treated, row.effect, cell.share, row.verdict))
    return tuple(prices)


def _instead(declared: Measure | None, settings: Settings) -> tuple[str, ...]:
    """That another measure decides than the declared one."""
    if declared is None or settings.primary is None or declared == settings.primary:
        return ()
    found = measures.name(settings.primary)
    return (f"No record has {measures.name(declared)}: {found} decides.",)


def _not_guarded(whole: Cubes, settings: Settings) -> tuple[str, ...]:
    """Limits that the records cannot show."""
    return tuple(measures.name(one.measure) for one in settings.guardrails if one.measure.metric not in whole)


def _notes(window: Views, settings: Settings) -> tuple[str, ...]:
    notes = []
    for key in settings.keys:
        if (key,) in window and len(window[(key,)].cells) > MAX_CELLS:
            left = len(window[(key,)].cells) - MAX_CELLS
            notes.append(f"The {left} smallest cells by {key} are left out.")
    return tuple(notes)
