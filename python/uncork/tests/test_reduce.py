"""The reduction against the same done with plain Python, record by record."""

import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flows
from flows import counted
from uncork.experiment import estimate
from uncork.experiment.result import Measure
from uncork.measure.bins import bin_of
from uncork.measure.cubes import PER_CLIENT, WEIGHT, DistributionCube, RatioCube
from uncork.measure.engines import duckdb
from uncork.measure.errors import InputError
from uncork.measure.keys import KEYS
from uncork.measure.metrics import METRICS, SIZE_CLASSES
from uncork.measure.reduce import Prepared, ReducePlan, reduce, reduce_views
from uncork.measure.stats.effect import Effect

PLAN = ReducePlan(control="control", per_unit=False)
"""Records count; those of clients have tests of their own."""
Record = dict[str, Any]


def slow_values(record: Record) -> dict[str, float | tuple[int, int]]:
    """All metrics of a record, written down once more."""
    values: dict[str, float | tuple[int, int]] = {}
    size, acked, busy = record["size_bytes"], record["bytes_acked"], record["busy_ns"]
    completion = record["completion_ns"]
    if size >= 3_000_000:
        values["throughput"] = acked * 8e9 / busy
    else:
        values["completion"] = 3600.0 if completion is None else completion / 1e9
    if size >= 500_000:
        values["bandwidth"] = acked * 8e9 / busy
    values["first_byte"] = record["first_byte_ns"] / 1e9
    if record["rtt_min_ms"] is not None:
        values["rtt_inflation"] = record["rtt_p50_ms"] / record["rtt_min_ms"]
        values["queue_delay"] = max((record["rtt_p50_ms"] - record["rtt_min_ms"]) / 1e3, 1e-5)
    values["retransmitted"] = (record["bytes_retransmitted"], record["bytes_sent"])
    values["aborted"] = (record["service_broken_off"], record["service_responses"])
    return values


def slow_key(record: Record) -> tuple[str, str]:
    size = record["size_bytes"]
    limits = (100_000, 1_000_000, 3_000_000, 10_000_000)
    hour = record["service_start_unix_ns"] // 3_600_000_000_000 % 24
    return SIZE_CLASSES[sum(size >= limit for limit in limits)], f"{hour:02d}"


def test_counts_are_those_of_plain_python() -> None:
    table = flows.table()
    reduced = reduce(ibis.memtable(table), replace(PLAN, by=("size_class", "hour")))
    expected: dict[Any, int] = defaultdict(int)
    units: dict[Any, set[int]] = defaultdict(set)
    for record in table.to_pylist():
        place = (slow_key(record), reduced.arms.index(record["arm"]), record["arm_bucket"])
        units[place].add(record["arm_unit"])
        for name, value in slow_values(record).items():
            if isinstance(value, tuple):
                expected[(name, *place, "numerator")] += value[0]
                expected[(name, *place, "denominator")] += value[1]
            else:
                expected[(name, *place, int(bin_of(value)))] += 1
    assert dict(counted(reduced)) == {place: count for place, count in expected.items() if count}
    assert {place: len(of) for place, of in units.items()} == {
        (key, arm, bucket): int(counts[arm, bucket])
        for key, counts in reduced.units.items()
        for arm, bucket in zip(*np.nonzero(counts), strict=True)
    }
    assert (reduced.rows, reduced.rejected, reduced.outside) == (3000, {}, 0)
    assert reduced.arms == ("control", "bbr")


@pytest.mark.parametrize("per_unit", [False, True])
def test_views_are_what_each_alone_would_be(per_unit: bool) -> None:
    records, plan = ibis.memtable(flows.table()), replace(PLAN, per_unit=per_unit)
    views = [(), ("region",), ("region", "day"), ("asn",), ("size_class",)]
    together = reduce_views(records, plan, views)
    for view in views:
        alone = reduce(records, replace(plan, by=view))
        assert counted(together[view]) == counted(alone)
        assert {k: v.tolist() for k, v in together[view].units.items()} == {
            k: v.tolist() for k, v in alone.units.items()
        }


@pytest.mark.parametrize("per_unit", [False, True])
def test_prepared_records_give_the_same_counts(per_unit: bool, tmp_path: Path) -> None:
    table = flows.table(1_000)
    rtt = table["rtt_p50_ms"].to_numpy().copy()
    rtt[:3] = [math.nan, -5.0, math.inf]
    arm, bucket = table["arm"].to_pylist(), table["arm_bucket"].to_pylist()
    arm[:20], bucket[30] = ["third"] * 10 + [None] * 10, 100
    experiment = ["e"] * 900 + ["f"] * 100
    table = flows.changed(table, rtt_p50_ms=rtt, arm=arm, arm_bucket=bucket, arm_experiment=experiment)
    pq.write_table(table, tmp_path / "records.parquet")
    records = duckdb.connect(duckdb.Settings(threads=1)).read([tmp_path / "records.parquet"])
    day = 86_400 * 10**9
    plan = replace(PLAN, arms=("control", "bbr"), per_unit=per_unit, experiment="e")
    views = [(), ("region",), ("region", "day"), ("size_class",)]
    metrics = ("throughput", "rtt_inflation", "retransmitted", "aborted")
    prepared = Prepared.of(records, plan, ("region", "day", "size_class"), metrics, duckdb.keep)
    for window in ((None, None), (flows.START_NS + day, None)):
        some = replace(plan, window=window, metrics=metrics)
        plain, kept = (reduce_views(of, some, views) for of in (records, prepared))
        for view in views:
            assert counted(kept[view]) == counted(plain[view])
            assert (kept[view].rejected, kept[view].rows) == (plain[view].rejected, plain[view].rows)


def test_each_unit_counts_once_in_each_cell() -> None:
    table = flows.table(1_000)
    rtt = table["rtt_p50_ms"].to_numpy().copy()
    rtt[:3] = [math.nan, -5.0, math.inf]
    unit = [None if n < 10 else value for n, value in enumerate(table["arm_unit"].to_pylist())]
    table = flows.changed(table, rtt_p50_ms=rtt, arm_unit=pa.array(unit, pa.uint64()))
    reduced = reduce(ibis.memtable(table), replace(PLAN, by=("size_class",), per_unit=True))
    values: dict[Any, list[int]] = defaultdict(list)
    for n, record in enumerate(table.to_pylist()):
        inflation = record["rtt_p50_ms"] / record["rtt_min_ms"] if record["rtt_min_ms"] else None
        if inflation is not None and 0 <= inflation < math.inf:
            client = n if record["arm_unit"] is None else record["arm_unit"]
            values[
                slow_key(record)[:1], reduced.arms.index(record["arm"]), record["arm_bucket"], client
            ].append(int(bin_of(inflation)))
    expected: dict[Any, int] = defaultdict(int)
    for (key, arm, bucket, _), bins in values.items():
        for one in bins:
            expected["rtt_inflation", key, arm, bucket, one] += WEIGHT // len(bins)
    found = {place: count for place, count in counted(reduced).items() if place[0] == "rtt_inflation"}
    assert found == expected
    assert reduced.rejected["rtt_inflation: a value that cannot be"] == 3
    assert reduced.weighting == PER_CLIENT
    assert sum(int(records.sum()) for records in reduced.records.values()) == 1_000


def test_both_regions_faster_are_not_slower_together() -> None:
    """Simpson: treated clients of the slow region are three times as fast, and come three times as often."""
    rng = np.random.default_rng(1)
    unit = np.arange(1_200)
    is_slow, is_treated = unit % 2 == 1, unit % 4 >= 2
    records = np.repeat(unit, np.where(is_slow & is_treated, 9, 3))
    speed = np.where(is_slow, 1e6, 3e7) * np.where(is_treated, np.where(is_slow, 3.0, 1.1), 1.0)
    busy = (4e6 * 8e9 / speed[records] / rng.lognormal(0, 0.3, len(records))).astype(np.int64)
    table = flows.changed(
        flows.table(len(records)),
        arm=np.where(is_treated, "bbr", "control")[records],
        arm_unit=pa.array(records.astype(np.uint64)),
        arm_bucket=pa.array((records // 4 % 100).astype(np.uint64)),
        service_country=np.where(is_slow, "PE", "DE")[records],
        size_bytes=[4_000_000] * len(records),
        bytes_acked=[4_000_000] * len(records),
        busy_ns=busy,
    )

    def ratios(per_unit: bool) -> dict[Any, float]:
        plan = replace(PLAN, metrics=("throughput",), per_unit=per_unit)
        views = reduce_views(ibis.memtable(table), plan, [(), ("country",)])
        p60 = [Measure("throughput", "p60")]
        return {
            key: effect.ratio
            for view in views.values()
            for key, cubes in view.cells.items()
            for effect in estimate.outcomes(cubes["throughput"], p60, level=0.95, estimand="")
            if isinstance(effect, Effect)
        }

    by_client, by_record = ratios(True), ratios(False)
    assert by_record[()] < 0.5, "the trap"
    assert by_client["DE",] == pytest.approx(1.1, rel=0.1)
    assert by_client["PE",] == pytest.approx(3, rel=0.1)
    assert 1.0 < by_client[()] < 3.1


def test_keys_have_readable_texts() -> None:
    records = ibis.memtable(flows.table(500))
    keys = {name: set() for name in ("region", "day", "block", "asn", "propensity", "protocol", "cc")}
    for name, found in keys.items():
        found |= {key[0] for key in reduce(records, replace(PLAN, by=(name,), metrics=())).cells}
    assert keys["region"] == {"Latin America", "Europe", "North America", "Asia-Pacific", "unknown"}
    assert keys["day"] == {"2026-11-02", "2026-11-03", "2026-11-04"}
    assert "2026-11-02T00" in keys["block"]
    assert keys["asn"] == {"AS64500", "AS64501", "AS64502", "unknown"}
    assert (keys["propensity"], keys["cc"]) == ({"0.5"}, {"bbr", "cubic"})


def test_every_named_key_compiles() -> None:
    table = flows.table(50)
    missing = {n for key in KEYS.values() for n in key.needs if "|" not in n} - set(table.column_names)
    records = ibis.memtable(flows.changed(table, **{name: ["x"] * 50 for name in missing}))
    for name in KEYS:
        assert len(reduce(records, replace(PLAN, by=(name,), metrics=())).cells) >= 1


def test_impossible_values_are_left_out_and_counted() -> None:
    table = flows.table(400)
    rtt = np.full(400, 20.0)
    rtt[:3] = [math.nan, -5.0, math.inf]
    minimum = np.full(400, 10.0)
    minimum[3] = 0.0  # no ratio, hence no value
    spoilt = flows.changed(table, rtt_p50_ms=rtt, rtt_min_ms=minimum)
    sent = table["bytes_sent"].to_numpy().astype(np.int64)
    sent[10] = -1
    spoilt = flows.changed(spoilt, bytes_sent=sent)
    reduced = reduce(ibis.memtable(spoilt), PLAN)
    inflation, share = reduced.cells[()]["rtt_inflation"], reduced.cells[()]["retransmitted"]
    assert isinstance(inflation, DistributionCube)
    assert isinstance(share, RatioCube)
    assert inflation.counts.sum() == 396
    assert share.denominator.sum() == sent.sum() + 1
    assert reduced.rejected == {
        "rtt_inflation: a value that cannot be": 3,
        "queue_delay: a value that cannot be": 3,
        "retransmitted: a value that cannot be": 1,
    }


def test_nothing_delivered_is_the_lowest_bin_and_beyond_the_bounds_the_outermost() -> None:
    table = flows.table(300)
    acked = np.zeros(300, dtype=np.int64)
    acked[0] = 10**15
    spoilt = flows.changed(table, size_bytes=[4_000_000] * 300, bytes_acked=acked, busy_ns=[1000] * 300)
    cube = reduce(ibis.memtable(spoilt), PLAN).cells[()]["throughput"]
    assert isinstance(cube, DistributionCube)
    low, high = METRICS["throughput"].bounds
    assert cube.first_bin == bin_of(low)
    assert cube.first_bin + cube.counts.shape[2] - 1 == bin_of(high)
    assert (cube.counts[..., 0].sum(), cube.counts[..., -1].sum()) == (299, 1)


def test_records_without_arm_or_bucket_are_counted() -> None:
    table = flows.table(300)
    arm, bucket = table["arm"].to_pylist(), table["arm_bucket"].to_pylist()
    experiment = ["e"] * 300
    arm[:7] = [None] * 7
    experiment[:4] = [None] * 4  # the first four take no part
    bucket[20], bucket[21] = 100, None
    reduced = reduce(
        ibis.memtable(flows.changed(table, arm=arm, arm_bucket=bucket, arm_experiment=experiment)), PLAN
    )
    assert reduced.rejected == {"no arm": 3, "no bucket from 0 to 99": 2}
    assert (reduced.rows, reduced.outside) == (300, 4)
    assert reduced.cells[()]["first_byte"].counts.sum() == 291  # type: ignore[union-attr]


def test_connections_are_not_added_to_responses() -> None:
    table = flows.table(300)
    scope = ["connection"] * 100 + ["response"] * 200
    records = ibis.memtable(flows.changed(table, service_scope=scope))
    assert reduce(records, PLAN).rows == 200
    assert reduce(records, replace(PLAN, scope="connection")).rows == 100
    watched = flows.changed(table, service_scope=scope, engine=["watch"] * 300)
    assert reduce(ibis.memtable(watched), PLAN).rows == 300


def test_window_and_experiment_choose_records() -> None:
    table = flows.table(300)
    day = 86_400 * 10**9
    window = (flows.START_NS + day, flows.START_NS + 2 * day)
    times = table["service_start_unix_ns"].to_pylist()
    records = ibis.memtable(flows.changed(table, arm_experiment=["e"] * 200 + ["f"] * 100))
    assert reduce(records, replace(PLAN, experiment="f")).rows == 100
    inside = sum(window[0] <= time < window[1] for time in times)
    assert reduce(ibis.memtable(table), replace(PLAN, window=window)).rows == inside
    with pytest.raises(InputError, match="several: e, f"):
        reduce(records, PLAN)


def test_arms_that_are_not_compared_are_outside() -> None:
    table = flows.table(300)
    arm = table["arm"].to_pylist()
    arm[:30] = ["third"] * 30
    records = ibis.memtable(flows.changed(table, arm=arm))
    assert reduce(records, PLAN).arms == ("control", "bbr", "third")
    two = reduce(records, replace(PLAN, arms=("control", "bbr")))
    assert (two.arms, two.outside, two.rejected) == (("control", "bbr"), 30, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"control": "cubic"}, "--control: the column arm has no arm 'cubic'; there are: bbr, control"),
        ({"by": ("colour",)}, "no key or column 'colour'"),
        ({"by": ("host",)}, "the key 'host' needs the column service_host"),
        ({"metrics": ("speed",)}, "no metric 'speed'"),
        ({"metrics": ("stutters",)}, "stutters needs the column playback_stutters"),
        ({"arm": "wing"}, "--arm: the records have no column 'wing'"),
        ({"bucket": "pail"}, "--bucket: the records have no column 'pail'"),
    ],
)
def test_errors_name_place_value_and_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        reduce(ibis.memtable(flows.table(50)), replace(PLAN, **change))
    assert message in str(error.value)


def test_no_records_is_an_error_about_the_control() -> None:
    with pytest.raises(InputError, match="there are: none"):
        reduce(ibis.memtable(flows.table(50).slice(0, 0)), PLAN)


def test_players_have_their_metrics() -> None:
    table = flows.table(4)
    song = flows.changed(
        table,
        engine=["play"] * 4,
        arm=["control", "bbr"] * 2,
        playback_startup_ns=pa.array([10**9, 2 * 10**9, None, 10**9], pa.int64()),
        playback_played_ns=[10**11] * 4,
        playback_stalled_ns=[10**9, 0, 0, 0],
        playback_stutters=[2, 0, 1, 0],
        playback_items=[1, 1, 2, 1],
    )
    cubes = reduce(ibis.memtable(song), PLAN).cells[()]
    latency, stutters, stalled = cubes["playback_latency"], cubes["stutters"], cubes["stalled"]
    assert isinstance(latency, DistributionCube)
    assert isinstance(stutters, RatioCube)
    assert isinstance(stalled, RatioCube)
    last = latency.first_bin + latency.counts.shape[2] - 1
    assert last == bin_of(3600.0), "who heard nothing waited longest"
    assert (stutters.numerator.sum(1).tolist(), stutters.denominator.sum(1).tolist()) == ([3, 0], [3, 2])
    assert stalled.numerator.sum() / stalled.denominator.sum() == pytest.approx(1 / 401)
    assert cubes["bandwidth"].counts.sum() == 4  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("country", "region"),
    [("PE", "Latin America"), ("AO", "Africa"), ("US", "North America"), ("SA", "Middle East")]
    + [(other, "unknown") for other in (None, "", "XX", "us", "A", "PER", "AO BF")],
)
def test_a_region_is_found_by_its_country(country: str | None, region: str) -> None:
    table = flows.changed(flows.table(40, 1), service_country=pa.array([country] * 40, pa.string()))
    reduced = reduce(ibis.memtable(table), ReducePlan(control="control", by=("region",)))
    assert list(reduced.cells) == [(region,)]
