"""From a table of canonical records to an analysis: the queries in order, with progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import ibis.expr.types as ir

from uncork.experiment import facts as facts_
from uncork.experiment import intime, needed
from uncork.experiment.analysis import analyse
from uncork.experiment.health import ratio
from uncork.experiment.health.balance import check_balance
from uncork.experiment.health.names import same_arm
from uncork.experiment.result import Analysis, Facts, Finding
from uncork.experiment.rows import Settings
from uncork.experiment.schedules import Calendar
from uncork.measure import rollups
from uncork.measure.cubes import Reduced
from uncork.measure.errors import InputError
from uncork.measure.keys import DAY_NS, HOUR_NS
from uncork.measure.metrics import available
from uncork.measure.reduce import Keep, Prepared, ReducePlan, Run, reduce_views, to_arrow
from uncork.measure.schema import canonical
from uncork.measure.stats.effect import TOTAL_EFFECT

Progress = Callable[[str], None]
CHANGED_BY_CALENDARS = ("sample ratio", "sample ratio by cell", "one arm per unit", "policy", "arrival times")
"""Checks that a design in time fails by its nature."""

NOT_ASSIGNED = ("size_class", "hour", "day", "block", "protocol", "cc", "group", "arm", "engine", "source")
"""Keys by which the arm itself may change the number of units: a better controller causes more requests."""

NOT_ROLLED = ("duplicates", "impossible values", "units of measure", "shared connections")
IN_ROLLUPS = "Roll-ups do not carry single records."
"""Of checks that need them."""

FOLDED = "Roll-ups have no rows for some clients: each record counts once, not each client."
FOLDED_REMEDY = "Raise --max-rows or --rollup-rows, or analyse the records."

REPEATED = "Arms of the laboratory repeat the same runs: each unit is in every arm."
IN_TIME = "In a design in time units change their arm with the calendar."

CONTROLS = ("control", "cubic", "a", "default")


@dataclass(frozen=True)
class Request:
    """What to compare, in which records."""

    settings: Settings
    control: str | None = None
    treated: str | None = None
    arm: str = "arm"
    unit: str = "arm_unit"
    bucket: str = "arm_bucket"
    experiment: str | None = None
    since: int | None = None
    until: int | None = None
    """In nanoseconds since 1970 (UTC)."""
    past: bool = True
    """Whether the time before the switch makes intervals narrower (CUPED)."""
    scope: str = "response"
    calendar: Calendar | None = None
    """Of a design in time; then there are no cells, and the units may change their arm."""
    place: str = "listener"
    """The key that names the calendar's places."""
    made_up: bool = False
    share: float | None = None
    """Declared share of the treated arm, of the units of both arms (0 to 1)."""


@dataclass(frozen=True)
class Named:
    """The two arms, and when they began to differ."""

    experiment: str
    control: str
    treated: str
    switch: int | None


def run(
    records: ir.Table,
    request: Request,
    *,
    query: Run = to_arrow,
    progress: Progress = lambda _: None,
    health: Callable[[ReducePlan], tuple[Finding, ...]] = lambda _: (),
    rejected: Mapping[str, int] | None = None,
    keep: Keep | None = None,
) -> Analysis:
    """The analysis of `records`. `query` runs a query where the records are, `keep` also keeps its result."""
    progress("who ran what, and when")
    has = set(records.columns)
    full = canonical(records)
    traffic = facts_.traffic(full, query, arm=request.arm, experiment=request.experiment)
    named = name_arms(traffic, request)
    plan = ReducePlan(
        control=named.control,
        arm=request.arm,
        bucket=request.bucket,
        unit=request.unit,
        experiment=request.experiment,
        arms=(named.control, named.treated),
        window=(request.since, request.until),
        scope=request.scope,
        per_unit=not rollups.is_folded(records),
    )
    rollups.check_time(records, "--since", request.since)
    rollups.check_time(records, "--until", request.until)
    if request.calendar is not None and rollups.has_rollups(records):
        raise InputError("--calendar", "roll-ups do not have the times of its spans", "analyse the records")
    metrics = available(has, request.settings.asked())
    views = needed.of_window(request.settings, traffic.has_time, metrics)
    since = max((at for at in (request.since, named.switch) if at is not None), default=None)

    kept = tuple(dict.fromkeys([*(key for view in views for key in view), *(["day"] * traffic.has_time)]))
    ready = records if keep is None else Prepared.of(records, plan, kept, metrics, keep)

    def count(some: needed.Counted, window: tuple[int | None, int | None]) -> dict[needed.View, Reduced]:
        return _paired(reduce_views(ready, replace(plan, window=window), some, query))

    progress("counting the records of the decision")
    of_window = count(views, (since, request.until))
    of_days: dict[needed.View, Reduced] = {}
    past: dict[needed.View, Reduced] = {}
    if traffic.has_time:
        progress("counting by day")
        in_time = needed.by_day(request.settings, of_window, metrics)
        of_days = count(in_time, (request.since, request.until))
    # Records of a window that begins with the switch have no past.
    has_past = named.switch is not None and (request.since is None or request.since < named.switch)
    if request.past and has_past:
        progress("counting the time before the switch")
        before = needed.of_past(request.settings, of_window, metrics)
        past = count(before, (request.since, named.switch))
    decision = replace(plan, window=(since, request.until))
    is_laboratory = traffic.is_laboratory() or facts_.is_laboratory_table(has)
    units = None if is_laboratory else facts_.unit_counts(records, decision, (), query).get(())
    planned = ratio.planned(units or facts_.UnitCounts({}, {}, 0), request.share)
    facts = _facts(traffic, named, of_window[()], request, since, rejected or {})
    facts = _with_plan(facts, units, planned)
    counted = next(iter(of_window[()].cells.values()), {})
    sources = facts_.sources(full, query, counted) if "engine" in has or "source" in has else {}
    settings = replace(request.settings, sources=sources)
    progress("checking the records")
    findings = health(decision)
    if rollups.has_rollups(records):
        findings = _not_run(findings, NOT_ROLLED, IN_ROLLUPS)
    if not plan.per_unit:
        findings = (*findings, Finding("folded clients", "warning", FOLDED, FOLDED_REMEDY))
    if request.calendar is not None:
        findings = _not_run(findings, CHANGED_BY_CALENDARS, IN_TIME)
    elif is_laboratory:
        findings = _not_run(findings, ("one arm per unit",), REPEATED)
    else:
        keys = [key for key in settings.keys if key not in NOT_ASSIGNED]
        cells = {
            key: _units_by_value(records, decision, key, of_window.get((key,)), planned, units, query)
            for key in keys
        }
        skipped = tuple(key for key in settings.keys if key in NOT_ASSIGNED)
        whole = ratio.check_ratio(units, planned, (named.control, named.treated))
        balance = check_balance(of_window[()], (named.control, named.treated))
        findings = (whole, ratio.check_cells(cells, planned, skipped), balance, *findings)
        if planned.share is None:
            findings = _not_run(findings, ("arrival times",), "The share differs between records.")
    progress("estimating effects")
    shares = {_day(day): share for day, share in traffic.shares_by_day(named.treated).items()}
    steps = request.calendar.mixed_shares() if request.calendar is not None else ()
    analysis = analyse(of_window, of_days, past, facts, settings, findings, shares, steps)
    if request.calendar is None:
        return analysis
    progress("counting by the calendar")
    return _in_time(analysis, records, plan, request, settings, query)


def _in_time(
    analysis: Analysis, records: ir.Table, plan: ReducePlan, request: Request, settings: Settings, query: Run
) -> Analysis:
    """The analysis with the calendar's design. Its total effect becomes the primary row."""
    calendar = request.calendar
    assert calendar is not None
    primary = next((row.measure for row in analysis.scorecard if row.role == "primary"), None)
    if primary is None:
        return analysis
    rows = [row for row in analysis.scorecard if row.measure != primary]
    wanted = [primary, *(row.measure for row in rows)] if calendar.kind == "switchback" else [primary]
    keys = intime.place_key(calendar, set(records.columns), request.place)
    metrics = tuple(dict.fromkeys(measure.metric for measure in wanted))
    spans = intime.by_span(records, calendar)
    counted = reduce_views(spans, replace(plan, metrics=metrics, window=(None, None)), [keys], query)[keys]
    designed = intime.effects(counted, calendar, wanted)
    total = {one.measure: one for one in designed if one.estimand == TOTAL_EFFECT}
    scorecard = intime.scorecard(analysis.scorecard, total, settings)
    traces = intime.traces(counted, calendar, primary)
    return replace(analysis, scorecard=scorecard, designed=designed, traces=traces)


def name_arms(traffic: facts_.Traffic, request: Request) -> Named:
    """Control and treated, from the request or from the records."""
    experiments = traffic.experiments()
    if request.experiment is None and len(experiments) > 1 and request.calendar is None:
        raise InputError(
            "records", f"they have the experiments {', '.join(experiments)}", "choose one with --experiment"
        )
    arms = traffic.arms()
    if len(arms) == 1:
        raise InputError(
            "records",
            f"there is only one arm, {arms[0]}",
            "read the records of both arms; check the policy and --arm",
        )
    control = request.control or next((name for name in CONTROLS if name in arms), None)
    control = control or next((arm for arm in arms if traffic.controller(arm) == "cubic"), None)
    if control is None or control not in arms:
        problem = f"no such arm: {control!r}" if control else "it is not clear which arm is the control"
        raise InputError(
            "--control", f"{problem}; the records have {', '.join(arms)}", "name the one to compare with"
        )
    others = [arm for arm in arms if arm != control]
    treated = request.treated or (others[0] if len(others) == 1 else None)
    if treated is None or treated not in others:
        there = ", ".join(others) or "no other arm"
        problem = f"no such arm: {treated!r}" if treated else "one arm is compared at a time"
        remedy = (
            "name one of them"
            if others
            else "an arm is missing: check the policy and the records' arm column"
        )
        remedy = same_arm(others) or remedy
        raise InputError("--treated", f"{problem}; next to {control} there is {there}", remedy)
    _check_window(traffic, request)
    switch = traffic.switch_hour(control, treated)
    experiment = request.experiment or (experiments[0] if experiments else "experiment")
    return Named(experiment, control, treated, switch * HOUR_NS if switch is not None else None)


def _check_window(traffic: facts_.Traffic, request: Request) -> None:
    """Some record is in the window."""
    hours = [int(str(row["hour"])) for row in traffic.rows if row["hour"] is not None]
    if not hours:
        return
    for option, at, is_empty in (
        ("--since", request.since, request.since is not None and request.since >= (max(hours) + 1) * HOUR_NS),
        ("--until", request.until, request.until is not None and request.until <= min(hours) * HOUR_NS),
    ):
        if is_empty and at is not None:
            raise InputError(
                f"{option} {_hour(at)}", "no record is left", f"the records are of {traffic.span()}"
            )


def _paired(views: Mapping[tuple[str, ...], Reduced]) -> dict[tuple[str, ...], Reduced]:
    """Views with both arms in their cubes."""
    for view, reduced in views.items():
        if len(reduced.arms) != 2:
            raise InputError(
                "records",
                f"by {', '.join(view) or 'nothing'} there is one arm, {reduced.arms[0]}",
                "an arm is missing in this window: check --since, --until and the policy",
            )
    return dict(views)


def _facts(
    traffic: facts_.Traffic,
    named: Named,
    whole: Reduced,
    request: Request,
    since: int | None,
    rejected: Mapping[str, int],
) -> Facts:
    start = since // HOUR_NS if since is not None else None
    days = [day for day in traffic.days() if since is None or (day + 1) * DAY_NS > since]
    if request.until is not None:
        days = [day for day in days if day * DAY_NS < request.until]
    units = sum(whole.units.values()).sum(axis=1) if whole.units else (0, 0)  # type: ignore[union-attr]
    return Facts(
        experiment=named.experiment,
        control=named.control,
        treated=named.treated,
        controllers=(traffic.controller(named.control, start), traffic.controller(named.treated, start)),
        share=0.5,
        since=_day(days[0]) if days else "",
        until=_day(days[-1]) if days else "",
        days=len(days) or 1,
        switch=_hour(named.switch) if named.switch is not None else "",
        rows=whole.rows,
        rejected=dict(sorted({**whole.rejected, **rejected}.items())),
        units=(int(units[0]), int(units[1])),
        policies=traffic.policies(),
        made_up=request.made_up,
        weighting=whole.weighting,
    )


def _with_plan(facts: Facts, units: facts_.UnitCounts | None, planned: ratio.Planned) -> Facts:
    """What was planned, and units counted once."""
    if planned.source == "declared":
        share = planned.share
    elif planned.source == "recorded" and units is not None:
        known = {p: n for p, n in units.treated.items() if p is not None}
        share = sum(p * n for p, n in known.items()) / sum(known.values())
    else:
        share = 0.5
    assert share is not None
    both = units.both if units is not None else 0
    return replace(facts, share=round(share, 4), share_is=planned.source, units_in_both=both)


def _units_by_value(
    records: ir.Table,
    plan: ReducePlan,
    key: str,
    reduced: Reduced | None,
    planned: ratio.Planned,
    units: facts_.UnitCounts | None,
    query: Run,
) -> dict[str, facts_.UnitCounts]:
    """Units of each value of a key; from what is counted already, if all have one propensity and one arm."""
    if units is None or reduced is None:
        return {}
    if planned.share is not None and not units.both:
        sums = {value[0]: counts.sum(axis=1) for value, counts in reduced.units.items()}
        return {
            name: facts_.UnitCounts({None: int(of[0])}, {None: int(of[1])}, 0) for name, of in sums.items()
        }
    return {value[0]: of for value, of in facts_.unit_counts(records, plan, (key,), query).items()}


def _not_run(findings: tuple[Finding, ...], names: tuple[str, ...], why: str) -> tuple[Finding, ...]:
    """The findings; the named checks count as not run."""
    others = tuple(one for one in findings if one.name not in names)
    return (*others, *(Finding(name, "not run", why) for name in names))


def _day(day: int) -> str:
    return datetime.fromtimestamp(day * 86400, UTC).strftime("%Y-%m-%d")


def _hour(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M")
