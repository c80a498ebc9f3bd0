"""What the checks need to know, counted where the records are. Every result is a few rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from uncork.experiment.health.arrivals import STEP_NS
from uncork.experiment.health.ramp import Step, last_step
from uncork.measure import rollups
from uncork.measure.metrics import rate, size
from uncork.measure.reduce import ReducePlan, Run, in_scope
from uncork.measure.schema import COLUMNS, LARGE_BYTES, Column, Columns

SAMPLE: Final = 3_000_000
"""Records that are compared with each other to find duplicates: those of the first buckets, so that equal
records are always in the sample together."""

IDENTITY: Final = (
    "engine", "group", "seed", "flow", "start_ns", "completion_ns", "busy_ns", "size_bytes", "bytes_acked",
    "service_start_unix_ns", "service_client", "service_listener", "service_scope", "arm_unit", "log_id",
)  # fmt: skip
"""Columns that identify a record: no two records have equal values in all of them."""

CONNECTION: Final = ("engine", "service_listener", "service_client", "service_protocol", "flow")
"""Columns that identify a connection of a server, together with the time of its start."""

ROLLED: Final = (
    "rollup_first_byte_after_last",
    "rollup_sent_again_above_sent",
    "rollup_min_rtt_above_median",
    "rollup_broken_off_above_responses",
)
"""Columns of roll-ups with the records of each contradiction."""

YEAR_2010: Final = 1_262_304_000_000_000_000

OWN_NAME: Final = "unit"
"""A column of text with the unit as its source wrote it, where records have one."""

NAMED_SHARE: Final = 0.05
"""Share of the records or bytes from which a unit is looked up."""

Rows = tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Counts:
    """What was counted."""

    plan: ReducePlan
    rows: int
    arms: Rows
    """By arm and listener: rows, units, first and last time, and rows with another controller than the chosen
    one.
    """
    numbers: dict[str, tuple[int, int]]
    """By column: values below zero, and values that are no number."""
    impossible: dict[str, int]
    """Contradictions within a record, by their name."""
    compared: int
    """Records that were compared to find duplicates."""
    duplicates: int
    """Those of them that are there more than once, without the first of each."""
    times: dict[str, int | None]
    """First and last time, and records before 2010."""
    scales: Rows
    """By engine, source and listener: geometric means."""
    units: dict[str, Any]
    """Units, those in several arms with names of some, records without a unit, and the share of the heaviest,
    of the second, and its name.
    """
    arrivals: dict[tuple[str, int], int]
    """Units by arm and half hour of their first record."""
    step: Step | None
    """The change of shares that explains units in several arms."""
    leaks: dict[str, int]
    """Connections, and those with requests of several arms."""
    policies: Rows
    """By policy and arm: propensity, rows, first and last time."""
    scopes: Rows
    """By engine, source and arm."""


def count(records: ir.Table, plan: ReducePlan, run: Run, unit_columns: tuple[str, ...] = ()) -> Counts:
    """Runs all queries. `unit_columns`: the columns that make a unit, by which units are named."""
    known = frozenset(records.columns)
    t = _Records(in_scope(records, plan), plan)
    totals = _one(run, t.narrow().aggregate(**_totals(t.columns, known)))
    rows = int(totals["rows"])
    duplicates = _duplicates(t, rows, known, run)
    units = _units(t, plan, known, unit_columns, run)
    return Counts(
        plan=plan,
        rows=rows,
        arms=_arms(t, known, run),
        numbers=_numbers(totals, known),
        impossible={name: int(totals[f"c{number}"]) for number, name in enumerate(CONTRADICTIONS)},
        compared=duplicates[0],
        duplicates=duplicates[1],
        times={
            name: None if totals[name] is None else int(totals[name]) for name in ("first", "last", "old")
        },
        scales=_scales(t, run),
        units=units,
        arrivals=_arrivals(t, plan, known, run),
        step=_step(t, plan, known, run) if units.get("several") else None,
        leaks=_leaks(t, known, run),
        policies=_policies(t, run),
        scopes=_scopes(t, run),
    )


@dataclass(frozen=True)
class _Records:
    """Records of a plan's scope."""

    table: ir.Table
    plan: ReducePlan

    @property
    def columns(self) -> Columns:
        return Columns(self.table)

    def narrow(self, *names: str) -> ir.Table:
        """These canonical columns, with the arm as ``arm``; all if none is named."""
        if not names:
            return self.table
        columns = {name: self.columns[name] for name in names if name != "arm"}
        if rollups.has_rollups(self.table):
            columns |= {name: self.table[name] for name in (rollups.RECORDS, rollups.FIRST, rollups.LAST)}
        return self.table.select(**columns, arm=self.columns[self.plan.arm].cast("string"))


def _one(run: Run, query: ir.Table) -> dict[str, Any]:
    row: dict[str, Any] = run(query).to_pylist()[0]
    return row


def _sorted(rows: Iterable[dict[str, Any]]) -> Rows:
    """In an order that does not depend on the engine."""
    return tuple(sorted(rows, key=lambda row: [str(value) for value in row.values()]))


CONTRADICTIONS: Final[dict[str, Callable[[Columns], ir.Value]]] = {
    "the first byte came after the last one": lambda t: t["first_byte_ns"] > t["completion_ns"],
    "more bytes were sent again than were sent": lambda t: t["bytes_retransmitted"] > t["bytes_sent"],
    "the least round-trip time is above the median": lambda t: t["rtt_min_ms"] > t["rtt_p50_ms"] * 1.001,
    "more responses were broken off than there were": lambda t: (
        t["service_broken_off"] > t["service_responses"]
    ),
}
"""What no record can be."""


def _totals(t: Columns, known: frozenset[str]) -> dict[str, ir.Value]:
    """All that one scan counts."""
    at, table = t["service_start_unix_ns"], t.table
    totals = {f"c{number}": _contradictions(t, number) for number in range(len(CONTRADICTIONS))}
    # Of records without the column there is one null, and a null added to a count is null.
    timed = isinstance(at, ir.Column)
    totals |= {
        "rows": rollups.count(table),
        "first": _first(table, at) if timed else table.count() + at,
        "last": _last(table, at) if timed else table.count() + at,
        "old": rollups.count(table, at < YEAR_2010) if timed else table.count() * 0,
    }
    for column in _checked(known):
        value = t[column.name]
        totals[f"{column.name}__below"] = table.count(where=(value < 0) & (value > -1e300))
        if column.kind == "number":
            # ibis compiles isinf to false for Spark
            totals[f"{column.name}__nan"] = table.count(where=value.isnan() | (value.abs() > 1e300))
    return totals


def _contradictions(t: Columns, number: int) -> ir.Value:
    """Records that are this contradiction; roll-ups have counted theirs."""
    table, is_so = t.table, list(CONTRADICTIONS.values())[number](t)
    if not rollups.has_rollups(table):
        return table.count(where=is_so)
    rolled = table[ROLLED[number]].cast("int64").fill_null(0)
    of_row = ibis.ifelse(rollups.is_rolled(table), rolled, is_so.fill_null(False).cast("int64"))
    return of_row.sum().fill_null(0).cast("int64")


def _first(table: ir.Table, at: ir.Value) -> ir.Value:
    """The first time. Of roll-ups the rows for checks have it."""
    if not rollups.has_rollups(table):
        return at.min()
    return table[rollups.FIRST].min()


def _last(table: ir.Table, at: ir.Value) -> ir.Value:
    if not rollups.has_rollups(table):
        return at.max()
    return table[rollups.LAST].max()


def _bytes(of: Columns) -> ir.Value:
    known = (of["bytes_acked"], of["bytes_delivered"], ibis.literal(0, "int64"))
    if not rollups.has_rollups(of.table):
        return ibis.coalesce(*known)
    return ibis.coalesce(of.table[rollups.BYTES].cast("int64"), *known)


def _checked(known: frozenset[str]) -> list[Column]:
    """Columns of numbers that the records have."""
    return [c for c in COLUMNS if c.kind != "text" and c.name in known and c.name != "arm_unit"]


def _numbers(totals: dict[str, Any], known: frozenset[str]) -> dict[str, tuple[int, int]]:
    pairs = {
        c.name: (int(totals[f"{c.name}__below"]), int(totals.get(f"{c.name}__nan", 0)))
        for c in _checked(known)
    }
    return {name: pair for name, pair in pairs.items() if any(pair)}


def _arms(records: _Records, known: frozenset[str], run: Run) -> Rows:
    unit = records.plan.unit
    extra = (unit,) if unit in known else ()
    t = records.narrow(
        "service_listener", "arm_experiment", "choice_cc", "cc", "service_start_unix_ns", *extra
    )
    at = t["service_start_unix_ns"]
    chosen, used = t["choice_cc"], t["cc"]
    follows = (chosen == used) | chosen.startswith(used.concat(":"))
    is_known = chosen.notnull() & used.notnull()
    query = t.group_by(
        listener=t["service_listener"], experiment=t["arm_experiment"], arm=t["arm"]
    ).aggregate(
        rows=rollups.count(t),
        units=t[unit].nunique() if extra else ibis.literal(0, "int64"),
        chosen=rollups.count(t, is_known),
        against=rollups.count(t, is_known & ~follows),
        first=_first(t, at),
        last=_last(t, at),
    )
    return _sorted(run(query).to_pylist())


def _scopes(records: _Records, run: Run) -> Rows:
    t = records.narrow("engine", "source")
    return _sorted(run(t.group_by("engine", "source", "arm").aggregate(rows=rollups.count(t))).to_pylist())


def _duplicates(records: _Records, rows: int, known: frozenset[str], run: Run) -> tuple[int, int]:
    buckets = max(1, min(100, 100 * SAMPLE // max(rows, 1)))
    t = records.table
    sample = t if buckets == 100 else t.filter(t[records.plan.bucket] < buckets)
    identity = [name for name in IDENTITY if name in known]
    if not identity:
        return 0, 0
    same = sample.group_by(identity).aggregate(n=sample.count())
    row = _one(run, same.aggregate(compared=same["n"].sum().fill_null(0), distinct=same.count()))
    return int(row["compared"]), int(row["compared"]) - int(row["distinct"])


def _scales(records: _Records, run: Run) -> Rows:
    """Geometric means of what large objects show: wrong units stand out by a factor of a thousand."""
    large = records.table.filter(size(records.columns) >= LARGE_BYTES)
    t = Columns(large)
    of = large.select(
        engine=t["engine"],
        source=t["source"],
        listener=t["service_listener"],
        rate=rate(t),
        rtt=t["rtt_min_ms"],
        busy=t["completion_ns"].cast("float64") / t["busy_ns"].nullif(0).cast("float64"),
    )
    query = of.group_by("engine", "source", "listener").aggregate(
        rows=of.count(),
        rate=_log_mean(of["rate"]),
        rtt_ms=_log_mean(of["rtt"]),
        over_busy=_log_mean(of["busy"]),
    )
    return _sorted(run(query).to_pylist())


def _log_mean(value: ir.Value) -> ir.Value:
    """The mean of the logarithms of positive values."""
    return ibis.cases(((value > 0.0) & (value < 1e300), value), else_=ibis.null().cast("float64")).ln().mean()


def _units(
    records: _Records, plan: ReducePlan, known: frozenset[str], unit_columns: tuple[str, ...], run: Run
) -> dict[str, Any]:
    if plan.unit not in known:
        return {}
    t = records.table.filter(records.columns[plan.arm].notnull())
    of = Columns(t)
    everything = t.select(
        unit=t[plan.unit],
        experiment=of["arm_experiment"],
        arm=of[plan.arm],
        bytes=_bytes(of),
        records=t[rollups.RECORDS] if rollups.has_rollups(t) else ibis.literal(1, "int64"),
    )
    rows = everything.filter(everything["unit"].notnull())
    per_unit = rows.group_by("unit", "experiment").aggregate(
        rows=rows["records"].sum(), arms=rows["arm"].nunique(), bytes=rows["bytes"].sum()
    )
    totals = _one(run, per_unit.aggregate(
        units=per_unit.count(), several=per_unit.count(where=per_unit["arms"] > 1),
        rows=per_unit["rows"].sum(), bytes=per_unit["bytes"].sum(),
        most_rows=per_unit["rows"].max(), most_bytes=per_unit["bytes"].max(),
    ))  # fmt: skip
    found = {name: int(value or 0) for name, value in totals.items()}
    found["missing"] = int(
        _one(run, everything.aggregate(n=everything["records"].sum(where=everything["unit"].isnull())))["n"]
        or 0
    )
    heavy = {name: found[f"most_{name}"] / max(found[name], 1) for name in ("rows", "bytes")}
    what = max(heavy, key=lambda name: heavy[name])
    names = _UnitNames(t, plan.unit, unit_columns, run)
    client, second = None, 0.0
    if heavy[what] >= NAMED_SHARE:
        order = [ibis.desc(per_unit[what]), per_unit["unit"]]
        top = run(per_unit.order_by(order).limit(2).select("unit", what)).to_pylist()
        client = names.of(top[0]["unit"])
        second = int(top[1][what]) / max(found[what], 1) if len(top) > 1 else 0.0
    several = []
    if found["several"]:
        some = per_unit.filter(per_unit["arms"] > 1).order_by("unit").limit(3).select("unit")
        several = [names.of(row["unit"]) for row in run(some).to_pylist()]
    return found | {
        "what": what, "share": heavy[what], "second": second, "client": client, "several_names": several
    }  # fmt: skip


@dataclass(frozen=True)
class _UnitNames:
    """What the analyst calls a unit: its own columns, else the client's network; its hash is in none."""

    table: ir.Table
    unit: str
    columns: tuple[str, ...]
    run: Run

    def of(self, unit: object) -> str:
        own = [name for name in self.columns or (OWN_NAME,) if name in self.table.columns]
        wanted = own or [name for name in ("service_client",) if name in self.table.columns]
        if not wanted:
            return f"unit {unit}"
        # As text: engines take a bare number above 2^63 for another type, and find no row.
        rows = self.table.filter(self.table[self.unit].cast("string") == str(unit))
        rows = rows.select(**{name: rows[name].cast("string") for name in wanted}).distinct()
        rows_found = self.run(rows.order_by(wanted).limit(1)).to_pylist()
        found = rows_found[0] if rows_found else dict.fromkeys(wanted)
        if own:
            return ", ".join(f"{name} = {found[name]}" for name in own)
        return str(found["service_client"] or f"unit {unit}")


def _arrivals(
    records: _Records, plan: ReducePlan, known: frozenset[str], run: Run
) -> dict[tuple[str, int], int]:
    """First appearances of units with one arm."""
    if plan.unit not in known or "service_start_unix_ns" not in known:
        return {}
    t = records.narrow("service_start_unix_ns", plan.unit)
    rows = t.filter(t["arm"].notnull() & t[plan.unit].notnull() & (t["service_start_unix_ns"] >= YEAR_2010))
    per_unit = rows.group_by(plan.unit).aggregate(
        arm=rows["arm"].max(), arms=rows["arm"].nunique(), first=rows["service_start_unix_ns"].min()
    )
    per_unit = per_unit.filter(per_unit["arms"] == 1)
    step = ibis.literal(STEP_NS, "int64")
    of = per_unit.select("arm", step=((per_unit["first"] - per_unit["first"] % step) / step).cast("int64"))
    counted = run(of.group_by("arm", "step").aggregate(n=of.count())).to_pylist()
    return {(row["arm"], int(row["step"])): int(row["n"]) for row in counted}


def _step(records: _Records, plan: ReducePlan, known: frozenset[str], run: Run) -> Step | None:
    """The last change of the shares, if no unit is in several arms after it."""
    names = ("arm_propensity", "service_start_unix_ns")
    if not known.issuperset(names):
        return None
    t = records.narrow(*names, "arm_experiment", plan.unit)
    share, at = t["arm_propensity"], t["service_start_unix_ns"]
    t = t.filter(t["arm"].notnull() & share.notnull() & at.notnull())
    query = t.group_by("arm", share=share.round(6)).aggregate(first=_first(t, at), last=_last(t, at))
    step = last_step(run(query).to_pylist())
    if step is None:
        return None
    begins = t[rollups.FIRST] if rollups.has_rollups(t) else at
    later = t.filter((begins >= step.at_ns) & t[plan.unit].notnull())
    per_unit = later.group_by(plan.unit, "arm_experiment").aggregate(arms=later["arm"].nunique())
    mixed = _one(run, per_unit.aggregate(n=per_unit.count(where=per_unit["arms"] > 1)))["n"]
    return None if mixed else step


def _leaks(records: _Records, known: frozenset[str], run: Run) -> dict[str, int]:
    """Connections with requests of several arms. A server numbers connections from its start."""
    if not {"flow", "start_ns", "service_start_unix_ns"} <= known:
        return {}
    names = [name for name in CONNECTION if name in known]
    t = records.narrow(*names, "start_ns", "service_start_unix_ns")
    second = ibis.literal(1_000_000_000, "int64")
    started = t["service_start_unix_ns"] - t["start_ns"]
    t = t.mutate(server_start=((started - started % second) / second).cast("int64"))
    t = t.filter(t["arm"].notnull() & t["flow"].notnull())
    several = t.group_by([*names, "server_start"]).aggregate(
        arms=t["arm"].nunique(),
    )
    query = several.aggregate(connections=several.count(), mixed=several.count(where=several["arms"] > 1))
    return {name: int(value) for name, value in _one(run, query).items()}


def _policies(records: _Records, run: Run) -> Rows:
    t = records.narrow("choice_policy", "arm_propensity", "service_start_unix_ns")
    t = t.filter(t["choice_policy"].notnull() & t["arm"].notnull())
    share, at = t["arm_propensity"], t["service_start_unix_ns"]
    query = t.group_by(policy=t["choice_policy"], arm=t["arm"]).aggregate(
        rows=rollups.count(t),
        propensity=share.min(),
        most=share.max(),
        first=_first(t, at),
        last=_last(t, at),
    )
    return _sorted(run(query).to_pylist())
