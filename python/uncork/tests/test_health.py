"""Every fault, planted into healthy records, is found and named; healthy records give nothing."""

from collections.abc import Callable
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import flows
from uncork.experiment.health import check, empty_cells
from uncork.experiment.result import Finding
from uncork.measure.reduce import ReducePlan, reduce

PLAN = ReducePlan(control="control", arms=("control", "bbr"))
NOW_NS = flows.START_NS + 3 * 86_400 * 10**9


def findings(table: pa.Table, plan: ReducePlan = PLAN) -> dict[str, Finding]:
    return {finding.name: finding for finding in check(ibis.memtable(table), plan, now_ns=NOW_NS)}


def faults(table: pa.Table, plan: ReducePlan = PLAN) -> dict[str, str]:
    """Names and severities of what is not well."""
    found = findings(table, plan).items()
    return {name: it.severity for name, it in found if it.severity in ("warning", "blocks")}


def test_healthy_records_have_no_fault() -> None:
    found = findings(flows.table())
    assert {name: it.severity for name, it in found.items()} == dict.fromkeys(
        (
            "missing arm", "compliance", "duplicates", "impossible values", "contradictions", "clocks",
            "units of measure", "missing units", "one client", "one arm per unit", "arrival times",
            "shared connections", "policy", "sources",
        ),
        "ok",
    )  # fmt: skip
    assert found["compliance"].numbers["compliant_share"] == 1


def _array(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    return np.array(table[name].to_pylist(), dtype=object)


def _set(name: str, rows: Any, value: Any) -> Callable[[pa.Table], pa.Table]:
    """Some rows of a column get another value."""

    def plant(table: pa.Table) -> pa.Table:
        values = _array(table, name)
        values[rows] = value(values[rows]) if callable(value) else value
        kind = pa.int64() if pa.types.is_unsigned_integer(table.schema.field(name).type) else None
        return flows.changed(table, **{name: pa.array(values.tolist(), type=kind)})

    return plant


def _twice(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(100, 50)])


def _heavy(table: pa.Table) -> pa.Table:
    """One client with far more bytes than any other."""
    total = sum(table["bytes_acked"].to_pylist())
    return _set("bytes_acked", slice(0, 1), 10 * total)(table)


def _many(table: pa.Table) -> pa.Table:
    """One client with half of the records."""
    one = table.slice(0, 1)
    more = pa.concat_tables([one] * table.num_rows)
    return pa.concat_tables(
        [
            flows.changed(table, bytes_acked=table["bytes_acked"].cast(pa.int64())),
            flows.changed(more, flow=pa.array(range(10_000, 13_000), pa.uint64()), bytes_acked=[1] * 3000),
        ]
    )


def _leaking(table: pa.Table) -> pa.Table:
    """Two host names share a connection: requests of both arms on it."""
    return flows.changed(
        table, flow=pa.array([n // 2 for n in range(table.num_rows)], pa.uint64()),
        service_client=["192.0.2.0/24"] * 3000,
        start_ns=[t - flows.START_NS for t in table["service_start_unix_ns"].to_pylist()],
        size_bytes=pa.array(range(1, 3001), pa.uint64()),
    )  # fmt: skip


def _policy_of(table: pa.Table, names: tuple[str, str], propensities: tuple[float, float]) -> pa.Table:
    is_late = np.array(table["service_start_unix_ns"].to_pylist()) >= flows.START_NS + 86_400 * 10**9
    share = np.where(is_late, propensities[1], propensities[0])
    is_bbr = np.array(table["arm"].to_pylist()) == "bbr"
    return flows.changed(
        table,
        choice_policy=np.where(is_late, names[1], names[0]),
        arm_propensity=np.where(is_bbr, share, 0.5),
    )


HALF = slice(0, 1500)
PLANTED: dict[str, tuple[Callable[[pa.Table], pa.Table], str, str, str]] = {
    "records twice": (_twice, "duplicates", "blocks", "50 of 3050 records are there more than once"),
    "microseconds for nanoseconds": (
        _set("service_start_unix_ns", slice(None), lambda v: [x // 1000 for x in v]),
        "clocks",
        "blocks",
        "All records are from before 2010, the last of 1970-01-21",
    ),
    "a clock of 1970": (
        _set("service_start_unix_ns", slice(0, 5), 10**15),
        "clocks",
        "blocks",
        "5 records are from before 2010",
    ),
    "a clock ahead": (
        _set("service_start_unix_ns", slice(0, 5), NOW_NS + 86_400 * 10**9),
        "clocks",
        "blocks",
        "2026-11-06 00:00 UTC, which is to come",
    ),
    "busy time in us": (
        _set("busy_ns", slice(None), lambda v: v // 1000),
        "units of measure",
        "blocks",
        "completion over busy time",
    ),
    "times in ms for s": (
        lambda t: _set("busy_ns", slice(None), lambda v: v * 1000)(t),
        "units of measure",
        "blocks",
        "Of serve acked public, throughput",
    ),
    "completion in us": (
        _set("completion_ns", slice(None), lambda v: [x and x // 1000 for x in v]),
        "units of measure",
        "blocks",
        "completion over busy time",
    ),
    "round trips in us": (
        _set("rtt_min_ms", slice(None), lambda v: [x and x * 1e3 for x in v]),
        "units of measure",
        "blocks",
        "round-trip time",
    ),
    "negative values": (
        _set("bytes_acked", slice(0, 5), -1),
        "impossible values",
        "blocks",
        "no number: 5 values of bytes_acked.",
    ),
    "NaN": (
        _set("rtt_p50_ms", slice(0, 1), float("nan")),
        "impossible values",
        "warning",
        "no number: 1 value of rtt_p50_ms.",
    ),
    "infinity": (_set("rtt_p50_ms", slice(0, 1), float("inf")), "impossible values", "warning", "no number"),
    "no treated arm": (
        lambda t: t.filter(pc.equal(t["arm"], "control")),
        "missing arm",
        "blocks",
        "No record has the arm bbr",
    ),
    "no arm at a site": (
        lambda t: flows.changed(t, service_listener=np.where(_array(t, "arm") == "bbr", "a", "b")),
        "missing arm",
        "blocks",
        "control at a, bbr at b",
    ),
    "records without an arm": (
        _set("arm", slice(0, 9), None),
        "missing arm",
        "warning",
        "9 records are of the experiment and name no arm",
    ),
    "half of the bytes": (_heavy, "one client", "blocks", "One client, 192.0."),
    "half of the records": (_many, "one client", "blocks", "of the records"),
    "another controller": (
        _set("cc", slice(0, 600), "reno"),
        "compliance",
        "blocks",
        "ran another controller than chosen",
    ),
    "shared connections": (_leaking, "shared connections", "blocks", "carried requests of several arms"),
    "units in two arms": (
        _set("arm", slice(0, 1), "bbr"),
        "one arm per unit",
        "warning",
        "are in more than one arm",
    ),
    "another share": (
        lambda t: _policy_of(t, ("old", "new"), (0.1, 0.5)),
        "policy",
        "blocks",
        "share of the arm bbr",
    ),
    "another policy": (
        lambda t: _policy_of(t, ("old", "new"), (0.5, 0.5)),
        "policy",
        "warning",
        "old from 2026-11-02 00:00, new from 2026-11-03 00:00",
    ),
    "first byte after the last": (
        _set("first_byte_ns", HALF, 10**15),
        "contradictions",
        "blocks",
        "the first byte came after the last one",
    ),
    "measured differently": (
        lambda t: flows.changed(t, source=np.where(_array(t, "arm") == "bbr", "log", "acked")),
        "sources",
        "blocks",
        "not measured alike",
    ),
    "two recorders": (_set("engine", HALF, "watch"), "sources", "blocks", "the same traffic may be in both"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_and_named(fault: str) -> None:
    plant, name, severity, words = PLANTED[fault]
    table = flows.table()
    if fault == "units in two arms":
        first = table["arm"].to_pylist().index("control")
        table = pa.concat_tables([table.slice(first, 1), table.slice(0, first), table.slice(first + 1)])
    found = findings(plant(table))
    assert (found[name].severity, words in found[name].sentence) == (severity, True), found[name].sentence
    assert found[name].remedy


def test_only_the_planted_fault_is_named() -> None:
    assert faults(_set("rtt_p50_ms", slice(0, 1), float("nan"))(flows.table())) == {
        "impossible values": "warning"
    }
    assert faults(_twice(flows.table())) == {"duplicates": "blocks"}


def test_options_of_a_controller_are_no_breach() -> None:
    table = flows.changed(
        flows.table(), choice_cc=[f"{cc}:loss_floor" for cc in flows.table()["cc"].to_pylist()]
    )
    assert faults(table) == {}


def test_no_records_are_a_fault() -> None:
    assert faults(flows.table(10).slice(0, 0)) == {"records": "blocks"}


def test_records_of_a_plain_log_are_checked_as_far_as_they_go() -> None:
    columns = [
        "arm",
        "arm_bucket",
        "arm_unit",
        "service_start_unix_ns",
        "bytes_delivered",
        "completion_ns",
        "size_bytes",
    ]
    found = findings(flows.changed(flows.table().select(columns), source=["log"] * 3000))
    assert {name for name, it in found.items() if it.severity in ("warning", "blocks")} == set()
    idle = {name for name, it in found.items() if it.severity == "not run"}
    assert idle == {"compliance", "shared connections", "policy"}, "each is listed, and why"
    assert "choice_cc" in found["compliance"].sentence


def test_empty_cells_are_named() -> None:
    table = flows.table()
    spoilt = _set("service_country", slice(0, 1), "NZ")(table)
    spoilt = _set("service_asn", slice(0, 1), 64999)(spoilt)
    finding = empty_cells(reduce(ibis.memtable(spoilt), ReducePlan(control="control", by=("asn",))))
    assert finding.severity == "warning"
    assert "AS64999" in finding.sentence
    healthy = empty_cells(reduce(ibis.memtable(table), ReducePlan(control="control", by=("asn",))))
    assert healthy.severity == "ok"
