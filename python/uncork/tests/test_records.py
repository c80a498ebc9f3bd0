"""uncork's own records: files that `uncork serve` and `uncork lab run` wrote."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from uncork.measure.assignment import Experiment, assign, cookie
from uncork.measure.cubes import DistributionCube
from uncork.measure.errors import InputError
from uncork.measure.reduce import ReducePlan, reduce
from uncork.measure.sources import read

DATA = Path(__file__).parent / "data"
POLICY = Experiment("bbr-2026", ("control", "reno"), 8000, key=bytes(range(16)))
"""With the cookies u1 to u30. Each asked for three files."""


def test_parquet_of_a_server_is_read_where_it_is() -> None:
    loaded = read([DATA / "serve"])
    reduced = reduce(loaded.table, ReducePlan(control="control"))
    responses = pq.read_table(DATA / "serve" / "responses.parquet")
    in_arms = responses["arm"].to_pylist()
    assert reduced.rows == responses.num_rows, "connections are not added to responses"
    assert reduced.outside == in_arms.count(None)
    units = {arm: set() for arm in reduced.arms}
    for arm, unit in zip(in_arms, responses["arm_unit"].to_pylist(), strict=True):
        if arm is not None:
            units[arm].add(unit)
    assert reduced.units[()].sum(axis=1).tolist() == [len(units[arm]) for arm in reduced.arms]
    assert reduced.cells[()]["aborted"].numerator.sum() == sum(  # type: ignore[union-attr]
        broken
        for broken, arm in zip(responses["service_broken_off"].to_pylist(), in_arms, strict=True)
        if arm
    )


def test_the_server_assigned_as_the_package_does() -> None:
    responses = pq.read_table(DATA / "serve" / "responses.parquet")
    expected = assign(POLICY, [cookie(f"u{n}") for n in range(1, 31)])
    assigned = {
        (int(hash_), POLICY.arms[arm], int(bucket))
        for hash_, arm, bucket in zip(expected.hash, expected.arm, expected.bucket, strict=True)
        if arm >= 0
    }
    recorded = zip(*(responses[name].to_pylist() for name in ("arm_unit", "arm", "arm_bucket")), strict=True)
    assert {row for row in recorded if row[0] is not None} == assigned


def test_json_lines_are_the_same_records() -> None:
    loaded = read([DATA / "serve.jsonl"])
    records = loaded.table.to_pyarrow().to_pylist()
    lines = [json.loads(line) for line in (DATA / "serve.jsonl").read_text().splitlines()]
    assert len(records) == len(lines) == 40
    assert loaded.rejected == {}
    for record, line in zip(sorted(records, key=_place), sorted(lines, key=_place_of_line), strict=True):
        assert record["service_scope"] == line["service"]["scope"]
        assert record["bytes_acked"] == line["bytes_acked"]
        assert record["rtt_p50_ms"] == line["rtt_ms"]["p50"]
        assert record["choice_cc"] == line["choice"]["cc"]
        arm = line["choice"]["arm"] or {}
        assert (record["arm"], record["arm_unit"], record["arm_bucket"], record["arm_experiment"]) == tuple(
            arm.get(name) for name in ("arm", "unit", "bucket", "experiment")
        )


def _place(record: dict[str, object]) -> tuple[object, ...]:
    return record["start_ns"], record["service_scope"]


def _place_of_line(line: dict[str, dict[str, object]]) -> tuple[object, ...]:
    return line["start_ns"], line["service"]["scope"]


def test_a_broken_line_is_counted_and_kept(tmp_path: Path) -> None:
    text = (DATA / "serve.jsonl").read_text()
    log = tmp_path / "records.jsonl"
    log.write_text(text + '{"engine":"serve"}\n{"engine":"serve","cc":"bbr","busy_ns":-5}\n{"half":')
    loaded = read([log], rejected=tmp_path / "bad.jsonl")
    assert loaded.rejected == {"cc: missing": 1, "busy_ns: negative": 1, "the line is not JSON": 1}
    bad = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [it["line"] for it in bad] == [41, 42, 43]


def test_the_laboratory_gets_arms_and_buckets() -> None:
    loaded = read([DATA / "lab"])
    reduced = reduce(loaded.table, ReducePlan(control="cubic", by=("group",)))
    assert reduced.arms == ("cubic", "bbr1")
    assert {key[0] for key in reduced.cells} == {"asia-pacific", "europe", "latin-america", "north-america"}
    for key, cubes in reduced.cells.items():
        bandwidth = cubes["bandwidth"]
        assert isinstance(bandwidth, DistributionCube)
        assert (bandwidth.counts.sum(axis=(1, 2)) / bandwidth.whole).tolist() == [6, 6]
        assert reduced.units[key].sum(axis=1).tolist() == [6, 6]


def test_objects_of_the_laboratory_are_read_if_named() -> None:
    by_flow = read([DATA / "lab"]).table.count().to_pyarrow().as_py()
    loaded = read([DATA / "lab" / "objects.parquet"])
    assert loaded.table.count().to_pyarrow().as_py() > by_flow
    cubes = reduce(loaded.table, ReducePlan(control="cubic")).cells[()]
    assert {"completion", "first_byte"} <= set(cubes)


def test_a_run_can_be_the_unit_of_the_laboratory() -> None:
    reduced = reduce(read([DATA / "lab"], unit=("seed",)).table, ReducePlan(control="cubic"))
    assert reduced.units[()].sum(axis=1).tolist() == [1, 1]


def test_wrong_paths_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read([tmp_path / "none"])
    with pytest.raises(InputError, match="no records"):
        read([tmp_path])
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="no Parquet file"):
        read([bad])
    with pytest.raises(InputError, match="no column 'user'"):
        read([DATA / "lab"], unit=("user",))


def test_a_pair_of_the_laboratory_is_one_unit() -> None:
    """Each path of the recorded run carries a flow with CUBIC, and the next one with BBR."""
    buckets = read([DATA / "lab"]).table.select("flow", "cc", "arm_unit", "arm_bucket").to_pyarrow()
    by_flow = sorted(buckets.to_pylist(), key=lambda row: row["flow"])
    for control, treated in zip(by_flow[::2], by_flow[1::2], strict=True):
        assert (control["cc"], treated["cc"]) == ("cubic", "bbr1")
        assert control["arm_unit"] == treated["arm_unit"]
        assert control["arm_bucket"] == treated["arm_bucket"]
    assert len({row["arm_unit"] for row in by_flow}) == len(by_flow) // 2


def test_flows_that_are_not_paired_are_units_of_their_own(tmp_path: Path) -> None:
    table = pq.read_table(DATA / "lab" / "flows.parquet")
    text = (table.schema.metadata or {})[b"uncork.scenario.text"]
    metadata = {b"uncork.scenario.text": text.replace(b"paired = true", b"paired = false")}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "flows.parquet")
    units = read([tmp_path]).table.to_pyarrow()["arm_unit"].to_pylist()
    assert len(set(units)) == len(units)
