"""From a table of canonical records to an analysis: the queries in order, with progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import ibis.expr.types as ir

from uncork.experiment import facts as facts_
from uncork.experiment import intime, measures, needed
from uncork.experiment.analysis import MAX_CELLS, PerClient, analyse
from uncork.experiment.health import arrivals, ratio
from uncork.experiment.health.balance import check_balance, uneven_cells
from uncork.experiment.health.fallback import check_fallback
from uncork.experiment.health.measured import check_measured
from uncork.experiment.health.names import same_arm
from uncork.experiment.result import Analysis, Facts, Finding
from uncork.experiment.rows import Settings, deciding
from uncork.experiment.schedules import Calendar
from uncork.measure import rollups
from uncork.measure.cubes import Reduced
from uncork.measure.errors import InputError
from uncork.measure.keys import DAY_NS, HOUR_NS
from uncork.measure.metrics import METRICS, available
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
BY_PROPENSITY = "; records count by the inverse of their arm's propensity, because shares differ"
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
    where: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """By which conditions the records were selected."""


@dataclass(frozen=True)
class Named:
    """The two arms, and when they began to differ."""

    experiment: str
    control: str
    treated: str
    switch: int | None


@dataclass(frozen=True)
class _Question:
    """What all steps share: the records, how they are queried, and what is compared in them."""

    records: ir.Table
    request: Request
    query: Run
    traffic: facts_.Traffic
    named: Named
    plan: ReducePlan

    @property
    def columns(self) -> set[str]:
        return set(self.records.columns)

    @property
    def arms(self) -> tuple[str, str]:
        return self.named.control, self.named.treated

    @property
    def is_laboratory(self) -> bool:
        """Whether arms repeat the same runs."""
        return self.traffic.is_laboratory() or facts_.is_laboratory_table(self.columns)

    @property
    def since(self) -> int | None:
        """Where the decision's window begins: not before the switch."""
        return max((at for at in (self.request.since, self.named.switch) if at is not None), default=None)

    @property
    def has_unequal_shares(self) -> bool:
        """Whether the arms' shares differ between places or times. A calendar compares such times itself."""
        hours = [at // HOUR_NS if at is not None else None for at in (self.since, self.request.until)]
        is_asked = self.request.calendar is None and not self.is_laboratory
        return is_asked and self.traffic.has_unequal_shares(self.arms, hours[0], hours[1])

    @property
    def decision(self) -> ReducePlan:
        return replace(self.plan, window=(self.since, self.request.until))

    @property
    def has_past(self) -> bool:
        """Records of a window that begins with the switch have no past."""
        switch, since = self.named.switch, self.request.since
        return self.request.past and switch is not None and (since is None or since < switch)


@dataclass(frozen=True)
class _Counts:
    """The reduced records: of the window, by day, and before the switch."""

    window: dict[needed.View, Reduced]
    days: dict[needed.View, Reduced]
    past: dict[needed.View, Reduced]
    per_client: PerClient
    """Ratios of guardrails with each unit counted once, of cells in which records per unit differ."""


@dataclass(frozen=True)
class _Assigned:
    """The units of both arms, if the records have assigned ones, and the planned share."""

    units: facts_.UnitCounts | None
    planned: ratio.Planned


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
    rollups.check_hours(records, "records")
    progress("who ran what, and when")
    question = _question(records, request, query)
    counts = _count(question, keep, progress)
    _check_limits(request.settings, counts.window[()])
    assigned = _assigned(question)
    facts = _facts(
        question.traffic, question.named, counts.window[()], request, question.since, rejected or {}
    )
    facts = _with_plan(facts, assigned.units, assigned.planned, question.plan)
    settings = _with_sources(question, counts)
    progress("checking the records")
    findings = _findings(question, counts, assigned, settings, health(question.decision))
    progress("estimating effects")
    by_day = question.traffic.shares_by_day(question.named.treated)
    shares = {_day(day): share for day, share in by_day.items()}
    steps = request.calendar.mixed_shares() if request.calendar is not None else ()
    analysis = analyse(
        counts.window,
        counts.days,
        counts.past,
        facts,
        settings,
        findings,
        shares,
        steps,
        per_client=counts.per_client,
    )
    if request.calendar is None:
        return analysis
    progress("counting by the calendar")
    return _in_time(analysis, records, question.plan, request, settings, query)


def _question(records: ir.Table, request: Request, query: Run) -> _Question:
    """Who ran what, and when; and whether the records can answer."""
    traffic = facts_.traffic(canonical(records), query, arm=request.arm, experiment=request.experiment)
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
    question = _Question(records, request, query, traffic, named, plan)
    plan = replace(plan, by_propensity=question.has_unequal_shares)
    rollups.check_time(records, "--since", request.since)
    rollups.check_time(records, "--until", request.until)
    if request.calendar is not None and rollups.has_rollups(records):
        raise InputError("--calendar", "roll-ups do not have the times of its spans", "analyse the records")
    return replace(question, plan=plan)


def _count(question: _Question, keep: Keep | None, progress: Progress) -> _Counts:
    """Reduces the records to counts, by the cells that the settings ask for."""
    request, traffic, plan = question.request, question.traffic, question.plan
    metrics = available(question.columns, request.settings.asked())
    views = needed.of_window(request.settings, traffic.has_time, metrics)
    keys = tuple(dict.fromkeys([*(key for view in views for key in view), *(["day"] * traffic.has_time)]))
    records = question.records
    ready = records if keep is None else Prepared.of(records, plan, keys, metrics, keep)

    def count(some: needed.Counted, window: tuple[int | None, int | None]) -> dict[needed.View, Reduced]:
        return _paired(reduce_views(ready, replace(plan, window=window), some, question.query))

    progress("counting the records of the decision")
    of_window = count(views, (question.since, request.until))
    of_days: dict[needed.View, Reduced] = {}
    past: dict[needed.View, Reduced] = {}
    if traffic.has_time:
        progress("counting by day")
        of_days = count(needed.by_day(request.settings, of_window, metrics), (request.since, request.until))
    if question.has_past:
        progress("counting the time before the switch")
        before = needed.of_past(request.settings, of_window, metrics)
        past = count(before, (request.since, question.named.switch))
    per_client = _per_client(question, of_window, ready)
    return _Counts(of_window, of_days, past, per_client)


def _per_client(
    question: _Question, window: Mapping[needed.View, Reduced], ready: ir.Table | Prepared
) -> PerClient:
    """Counted where records per unit differ: over all clients (then in all cells), or in a cell."""
    request, plan = question.request, question.plan
    if request.calendar is not None or question.is_laboratory or plan.unit not in question.columns:
        return {}
    ratios = {
        it.measure.metric for it in request.settings.guardrails if METRICS[it.measure.metric].kind == "ratio"
    }
    views = [view for view in window if view == () or (len(view) == 1 and view[0] in request.settings.keys)]
    is_uneven = bool(uneven_cells(window[()], 1))
    cells = {
        view: list(window[view].cells) if is_uneven else uneven_cells(window[view], MAX_CELLS)
        for view in views
    }
    wanted = {
        view: tuple(sorted(ratios & set(available(question.columns, ratios))))
        for view in views
        if cells[view]
    }
    if not any(wanted.values()):
        return {}
    once = replace(plan, window=(question.since, request.until), per_client=True)
    counted = _paired(reduce_views(ready, once, wanted, question.query))
    return {view: {key: counted[view].cells[key] for key in cells[view]} for view in wanted}


def _check_limits(settings: Settings, counted: Reduced) -> None:
    """Refuses a limit that was named and that the records cannot show."""
    found = counted.cells.get((), {})
    for limit in settings.guardrails if settings.are_limits_named else ():
        if limit.measure.metric not in found:
            problem = f"no record of the decision has {measures.name(limit.measure)}"
            raise InputError(
                f"--guardrail {limit.measure}", problem, "leave it out, or read records that have it"
            )


def _assigned(question: _Question) -> _Assigned:
    units = None
    if not question.is_laboratory:
        units = facts_.unit_counts(question.records, question.decision, (), question.query).get(())
    planned = ratio.planned(units or facts_.UnitCounts({}, {}, 0), question.request.share)
    return _Assigned(units, planned)


def _with_sources(question: _Question, counts: _Counts) -> Settings:
    """The settings, with the worst source of each metric."""
    counted = next(iter(counts.window[()].cells.values()), {})
    has_sources = bool({"engine", "source"} & question.columns)
    full = canonical(question.records)
    sources = facts_.sources(full, question.query, counted) if has_sources else {}
    return replace(question.request.settings, sources=sources)


def _findings(
    question: _Question,
    counts: _Counts,
    assigned: _Assigned,
    settings: Settings,
    findings: tuple[Finding, ...],
) -> tuple[Finding, ...]:
    """`findings` of health, and those of the assignment. Checks that cannot apply count as not run."""
    if rollups.has_rollups(question.records):
        findings = _not_run(findings, NOT_ROLLED, IN_ROLLUPS)
    if not question.plan.per_unit:
        findings = (*findings, Finding("folded clients", "warning", FOLDED, FOLDED_REMEDY))
    if question.request.calendar is not None:
        return _not_run(findings, CHANGED_BY_CALENDARS, IN_TIME)
    if question.is_laboratory:
        return _not_run(findings, ("one arm per unit",), REPEATED)
    findings = (*_of_assignment(question, counts, assigned, settings), *_with_fallback(findings, question))
    if question.plan.by_propensity:
        findings = _not_run(findings, (arrivals.NAME,), "The share differs between records.")
    return findings


def _with_fallback(findings: tuple[Finding, ...], question: _Question) -> tuple[Finding, ...]:
    """Compliance by the controllers in use, where records lack the chosen ones."""
    if not any(one.name == "compliance" and one.severity == "not run" for one in findings):
        return findings
    since = question.since // HOUR_NS if question.since is not None else None
    found = check_fallback({arm: question.traffic.controllers(arm, since) for arm in question.arms})
    return findings if found is None else tuple(found if it.name == found.name else it for it in findings)


def _of_assignment(
    question: _Question, counts: _Counts, assigned: _Assigned, settings: Settings
) -> tuple[Finding, ...]:
    """Sample ratio, over all and by cell, and balance."""
    units, planned = assigned.units, assigned.planned
    cells = {
        key: _units_by_value(
            question.records,
            question.decision,
            key,
            counts.window.get((key,)),
            planned,
            units,
            question.query,
        )
        for key in settings.keys
        if key not in NOT_ASSIGNED
    }
    skipped = tuple(key for key in settings.keys if key in NOT_ASSIGNED)
    whole = ratio.check_ratio(units, planned, question.arms)
    balance = check_balance(counts.window[()], question.arms)
    primary = deciding(counts.window[()].cells.get((), {}), settings)
    measured = check_measured(question.records, question.decision, primary, question.arms, question.query)
    return whole, ratio.check_cells(cells, planned, skipped), balance, measured


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
        controllers=traffic.pair(named.control, named.treated, start),
        windows=traffic.windows(named.control, named.treated, start),
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
        where=request.where,
        exclude=request.exclude,
    )


def _with_plan(
    facts: Facts, units: facts_.UnitCounts | None, planned: ratio.Planned, plan: ReducePlan
) -> Facts:
    """What was planned, how records count, and units counted once."""
    if planned.source == "declared":
        share = planned.share
    elif planned.source == "recorded" and units is not None:
        treated = [(p, n) for p, n in units.treated.items() if p is not None]
        # Of all units: each that is treated stands for 1 / p of them (Horvitz and Thompson 1952).
        share = sum(n for _, n in treated) / sum(n / p for p, n in treated)
    else:
        share = 0.5
    assert share is not None
    in_both = units.both if units is not None else 0
    weighting = facts.weighting + (BY_PROPENSITY if plan.by_propensity else "")
    return replace(
        facts, share=round(share, 4), share_is=planned.source, units_in_both=in_both, weighting=weighting
    )


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
