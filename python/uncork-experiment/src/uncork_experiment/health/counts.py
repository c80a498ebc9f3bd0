"""What the checks need to know, counted where the records are. Every result is a few rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from uncork_experiment.metrics import LARGE_BYTES, rate, size
from uncork_experiment.reduce import ReducePlan, Run, in_scope
from uncork_experiment.schema import COLUMNS, Columns, canonical

SAMPLE: Final = 3_000_000
"""Records that are compared with each other to find duplicates: those of the first buckets, so that equal
records are always in the sample together."""

IDENTITY: Final = (
    "engine", "group", "seed", "flow", "start_ns", "completion_ns", "busy_ns", "size_bytes", "bytes_acked",
    "service_start_unix_ns", "service_client", "service_listener", "service_scope", "arm_unit",
)  # fmt: skip
"""Columns of which two records never have all in common."""

CONNECTION: Final = (
    "engine",
    "service_listener",
    "service_client",
    "service_protocol",
    "flow",
    "connection_start",
)

Rows = tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Counts:
    """What was counted."""

    plan: ReducePlan
    rows: int
    arms: Rows
    """By arm and listener: rows, bytes, and those whose controller was not the chosen one."""
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
    """Units, those in several arms, and the heaviest."""
    leaks: dict[str, int]
    """Connections, and those with requests of several arms."""
    policies: Rows
    """By policy and arm: propensity, rows, first and last time."""
    scopes: Rows
    """By engine, source and arm."""


def count(records: ir.Table, plan: ReducePlan, run: Run) -> Counts:
    """Runs all queries."""
    t = canonical(in_scope(records, plan))
    arm = t[plan.arm].cast("string")
    known = frozenset(records.columns)
    rows = int(_one(run, t.aggregate(rows=t.count()))["rows"])
    duplicates = _duplicates(t, plan, rows, known, run)
    return Counts(
        plan=plan,
        rows=rows,
        arms=_arms(t, arm, run),
        numbers=_numbers(t, known, run),
        impossible=_impossible(t, run),
        compared=duplicates[0],
        duplicates=duplicates[1],
        times=_times(t, run),
        scales=_scales(t, run),
        units=_units(t, arm, plan, known, run),
        leaks=_leaks(t, arm, known, run),
        policies=_policies(t, arm, run),
        scopes=_sorted(run(t.group_by("engine", "source", arm=arm).aggregate(rows=t.count())).to_pylist()),
    )


def _one(run: Run, query: ir.Table) -> dict[str, Any]:
    row: dict[str, Any] = run(query).to_pylist()[0]
    return row


def _sorted(rows: Iterable[dict[str, Any]]) -> Rows:
    """In an order that does not depend on the engine."""
    return tuple(sorted(rows, key=lambda row: [str(value) for value in row.values()]))


def _arms(t: ir.Table, arm: ir.Value, run: Run) -> Rows:
    chosen, used = t["choice_cc"], t["cc"]
    follows = (chosen == used) | chosen.startswith(used.concat(":"))
    query = t.group_by(listener=t["service_listener"], experiment=t["arm_experiment"], arm=arm).aggregate(
        rows=t.count(),
        bytes=t["bytes_acked"].sum().fill_null(0),
        chosen=t.count(where=chosen.notnull() & used.notnull()),
        against=t.count(where=chosen.notnull() & used.notnull() & ~follows),
    )
    return _sorted(run(query).to_pylist())


def _numbers(t: ir.Table, known: frozenset[str], run: Run) -> dict[str, tuple[int, int]]:
    columns = [c for c in COLUMNS if c.kind != "text" and c.name in known and c.name != "arm_unit"]
    counts: dict[str, ir.Value] = {}
    for column in columns:
        value = t[column.name]
        counts[f"{column.name}__below"] = t.count(where=value < 0)
        if column.kind == "number":
            no_number = value.isnan() | value.isinf()
            counts[f"{column.name}__nan"] = t.count(where=value.notnull() & no_number)
    row = _one(run, t.aggregate(**counts)) if counts else {}
    found = {c.name: (int(row[f"{c.name}__below"]), int(row.get(f"{c.name}__nan", 0))) for c in columns}
    return {name: pair for name, pair in found.items() if any(pair)}


def _impossible(t: ir.Table, run: Run) -> dict[str, int]:
    contradictions = {
        "the first byte came after the last one": t["first_byte_ns"] > t["completion_ns"],
        "more bytes were sent again than were sent": t["bytes_retransmitted"] > t["bytes_sent"],
        "the least round-trip time is above the median": t["rtt_min_ms"] > t["rtt_p50_ms"] * 1.001,
        "more responses were broken off than there were": t["service_broken_off"] > t["service_responses"],
    }
    named = {
        f"c{number}": t.count(where=condition) for number, condition in enumerate(contradictions.values())
    }
    row = _one(run, t.aggregate(**named))
    return {name: int(row[f"c{number}"]) for number, name in enumerate(contradictions)}


def _duplicates(t: ir.Table, plan: ReducePlan, rows: int, known: frozenset[str], run: Run) -> tuple[int, int]:
    buckets = max(1, min(100, 100 * SAMPLE // max(rows, 1)))
    sample = t if buckets == 100 else t.filter(t[plan.bucket] < buckets)
    identity = [name for name in IDENTITY if name in known]
    same = sample.group_by(identity).aggregate(n=sample.count())
    row = _one(run, same.aggregate(compared=same["n"].sum().fill_null(0), distinct=same.count()))
    return int(row["compared"]), int(row["compared"]) - int(row["distinct"])


def _times(t: ir.Table, run: Run) -> dict[str, int | None]:
    at = t["service_start_unix_ns"]
    query = t.aggregate(
        known=at.count(), first=at.min(), last=at.max(), old=t.count(where=at < 1_262_304_000_000_000_000)
    )
    return {name: None if value is None else int(value) for name, value in _one(run, query).items()}


def _scales(t: ir.Table, run: Run) -> Rows:
    """Geometric means of what large objects show: wrong units stand out by a factor of a thousand."""
    large = t.filter(size(Columns(t)) >= LARGE_BYTES)
    of = large.select("engine", "source", listener=large["service_listener"], rate=rate(Columns(large)),
                      rtt=large["rtt_min_ms"], busy=large["completion_ns"].cast("float64")
                      / large["busy_ns"].nullif(0).cast("float64"))  # fmt: skip
    query = of.group_by("engine", "source", "listener").aggregate(
        rows=of.count(),
        rate=_log_mean(of["rate"]),
        rtt_ms=_log_mean(of["rtt"]),
        over_busy=_log_mean(of["busy"]),
    )
    return _sorted(run(query).to_pylist())


def _log_mean(value: ir.Value) -> ir.Value:
    """The mean of the logarithms of positive values."""
    positive = ibis.cases((value > 0.0, value), else_=ibis.null().cast("float64"))
    return ibis.cases((positive < 1e300, positive), else_=ibis.null().cast("float64")).ln().mean()


def _units(t: ir.Table, arm: ir.Value, plan: ReducePlan, known: frozenset[str], run: Run) -> dict[str, Any]:
    if plan.unit not in known:
        return {}
    assigned = t.filter(arm.notnull())
    per_unit = assigned.group_by(unit=assigned[plan.unit], experiment=assigned["arm_experiment"]).aggregate(
        rows=assigned.count(),
        arms=assigned[plan.arm].nunique(),
        bytes=ibis.coalesce(assigned["bytes_acked"], assigned["bytes_delivered"]).sum().fill_null(0),
        client=assigned["service_client"].max(),
    )
    totals = per_unit.aggregate(
        units=per_unit.count(), several=per_unit.count(where=per_unit["arms"] > 1),
        rows=per_unit["rows"].sum(), bytes=per_unit["bytes"].sum(),
    )  # fmt: skip
    heaviest = run(per_unit.order_by(per_unit["rows"].desc(), "unit").limit(1)).to_pylist()
    largest = run(per_unit.order_by(per_unit["bytes"].desc(), "unit").limit(1)).to_pylist()
    return _one(run, totals) | {"by_rows": heaviest, "by_bytes": largest}


def _leaks(t: ir.Table, arm: ir.Value, known: frozenset[str], run: Run) -> dict[str, int]:
    """Connections whose requests were of several arms. A server numbers connections from its start."""
    if not {"flow", "start_ns", "service_start_unix_ns"} <= known:
        return {}
    second = ibis.literal(1_000_000_000, "int64")
    started = t["service_start_unix_ns"] - t["start_ns"]
    rows = t.mutate(connection_start=((started - started % second) / second).cast("int64"), arm_text=arm)
    rows = rows.filter(rows["arm_text"].notnull() & rows["flow"].notnull())
    connections = rows.group_by([name for name in CONNECTION if name == "connection_start" or name in known])
    several = connections.aggregate(arms=rows["arm_text"].nunique(), rows=rows.count())
    query = several.aggregate(
        connections=several.count(), mixed=several.count(where=several["arms"] > 1),
        rows=several["rows"].sum(where=several["arms"] > 1).fill_null(0),
    )  # fmt: skip
    return {name: int(value) for name, value in _one(run, query).items()}


def _policies(t: ir.Table, arm: ir.Value, run: Run) -> Rows:
    rows = t.filter(t["choice_policy"].notnull() & arm.notnull())
    query = rows.group_by(policy=rows["choice_policy"], arm=rows["arm"]).aggregate(
        rows=rows.count(), propensity=rows["arm_propensity"].min(), most=rows["arm_propensity"].max(),
        first=rows["service_start_unix_ns"].min(), last=rows["service_start_unix_ns"].max(),
    )  # fmt: skip
    return _sorted(run(query).to_pylist())
