"""Tables of others: ordinary types that an engine refuses, values that do not fit, names of any kind."""

import json
import shutil
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flows
from uncork.measure.errors import InputError
from uncork.measure.schema import COLUMNS
from uncork.measure.sources import import_files, networks, read
from uncork.measure.sources.mapping import parse

OWN = """format = "parquet"
[columns]
service_start_unix_ns = "t"
completion_ns = { from = "ms", unit = "ms" }
bytes_delivered = "bytes"
arm = "arm"
"""
T = datetime(2026, 11, 2, 12, 0, 1, tzinfo=UTC)
NS = 1_793_620_801 * 10**9


def table(**columns: Any) -> pa.Table:
    made = {"t": [T, T], "ms": [5, 6], "bytes": [7, 8], "arm": ["bbr", "cubic"]}
    return pa.table(made | columns)


def imported(
    tmp_path: Path, mapping: str, of: pa.Table, name: str = "own.parquet"
) -> tuple[Any, dict[str, int]]:
    pq.write_table(of, tmp_path / name)
    result = import_files([tmp_path / name], parse(mapping, "own.toml"), tmp_path / "out")
    return pq.read_table(result.files[0]).to_pylist(), dict(result.rejected)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (
            {"t": pa.array([datetime(9999, 12, 31), T.replace(tzinfo=None)], pa.timestamp("us"))},
            "t: no possible time",
        ),
        (
            {"t": pa.array([datetime(1, 1, 1), T.replace(tzinfo=None)], pa.timestamp("us"))},
            "t: no possible time",
        ),
        ({"bytes": pa.array([2**64 - 1, 8], pa.uint64())}, "bytes: too large"),
    ],
)
def test_table__value_that_does_not_fit__costs_its_row(
    tmp_path: Path, column: dict[str, Any], reason: str
) -> None:
    rows, left_out = imported(tmp_path, OWN, table(**column))
    assert ([row["service_start_unix_ns"] for row in rows], left_out) == ([NS], {reason: 1})


@pytest.mark.parametrize("name", ["part-00000", "own.parq", "own.parquet"])
def test_table__of_binary_text_and_any_name__is_read(tmp_path: Path, name: str) -> None:
    of = table(arm=pa.array([b"bbr", b"cubic"], pa.binary()))
    rows, _ = imported(tmp_path, OWN, of, name)
    assert [row["arm"] for row in rows] == ["bbr", "cubic"]


def test_table__date_and_time_in_two_columns__make_a_time(tmp_path: Path) -> None:
    own = OWN.replace('"t"', '{ from = ["d", "t"], time = "iso" }')
    days, times = [date(2026, 11, 2)] * 2, pa.array([time(12, 0, 1)] * 2, pa.time64("us"))
    rows, _ = imported(tmp_path, own, table(d=days, t=times))
    assert [row["service_start_unix_ns"] for row in rows] == [NS, NS]


def test_table__first_of_several_columns__one_is_enough(tmp_path: Path) -> None:
    own = OWN.replace('"bytes"', '{ first = ["sent", "bytes"] }')
    assert [row["bytes_delivered"] for row in imported(tmp_path, own, table())[0]] == [7, 8]
    both = table(sent=pa.array([None, 9], pa.int64()))
    assert [row["bytes_delivered"] for row in imported(tmp_path, own, both)[0]] == [7, 9]


def test_table__id_names_a_column__identifies_rows(tmp_path: Path) -> None:
    rows, _ = imported(tmp_path, 'id = "rid"\n' + OWN, table(rid=["a", "b"]))
    assert len({row["log_id"] for row in rows} - {None}) == 2
    with pytest.raises(InputError, match=r"own.parquet: no column 'rid'"):
        imported(tmp_path, 'id = "rid"\n' + OWN, table())


def test_table__addresses_with_ports__have_the_names_of_their_networks(tmp_path: Path) -> None:
    pq.write_table(table(ip=["192.0.2.7:443", "203.0.113.9"]), tmp_path / "own.parquet")
    own = parse(OWN + 'service_client = { from = "ip", network = true }\n', "own.toml")
    named = networks.parse(["192.0.2.0/24,Lima"], "regions.csv")
    result = import_files([tmp_path / "own.parquet"], own, tmp_path / "out", networks=named)
    assert pq.read_table(result.files[0])["region"].to_pylist() == ["Lima", None]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "own.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA s")
        row = "SELECT 5 AS bytes, 'bbr' AS arm, INTERVAL 2 SECOND AS took"
        connection.execute(f"CREATE TABLE logs AS {row}; CREATE TABLE s.more AS {row}")
        connection.execute(f'CREATE TABLE "my logs" AS {row}')
    return path


DATABASE = 'format = "parquet"\ntable = "NAME"\n[columns]\n'
DATABASE += 'bytes_delivered = "bytes"\narm = "arm"\ncompletion_ns = "took"\n'


@pytest.mark.parametrize("name", ["logs", "s.more", "my logs", "SELECT * FROM logs"])
def test_duckdb__table_schema_and_query__are_read(tmp_path: Path, database: Path, name: str) -> None:
    result = import_files([database], parse(DATABASE.replace("NAME", name), "own.toml"), tmp_path / "out")
    assert pq.read_table(result.files[0])["completion_ns"].to_pylist() == [2 * 10**9]
    without = DATABASE.replace("NAME", name).replace('completion_ns = "took"\n', "")
    result = import_files([database], parse(without, "own.toml"), tmp_path / "out")
    assert pq.read_table(result.files[0])["took"].to_pylist() == [
        "MonthDayNano(months=0, days=0, nanoseconds=2000000000)"
    ]


def test_duckdb__another_database_of_the_same_name__adds_its_records(tmp_path: Path, database: Path) -> None:
    """All databases begin with their format."""
    mapping, out = parse(DATABASE.replace("NAME", "logs"), "own.toml"), tmp_path / "out"
    other = tmp_path / "other" / database.name
    other.parent.mkdir()
    shutil.copy(database, other)
    with duckdb.connect(str(other)) as connection:
        connection.execute("UPDATE logs SET bytes = 6")
    for path in (database, other, database):
        import_files([path], mapping, out)
    assert sorted(pq.read_table(out)["bytes_delivered"].to_pylist()) == [5, 6]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nologs", "no table or view 'nologs'; did you mean"),
        ("SELECT x FROM logs", "cannot be read as a table: .*x"),
    ],
)
def test_duckdb__wrong_table_or_query__is_named_with_its_file(
    tmp_path: Path, database: Path, name: str, problem: str
) -> None:
    with pytest.raises(InputError, match=f"own.duckdb: {problem}"):
        import_files([database], parse(DATABASE.replace("NAME", name), "own.toml"), tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "problem"), [("own.duckdb", "no DuckDB file"), ("own.parquet", "cannot be read")]
)
def test_file__that_is_none_of_its_name__is_named(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / name).write_bytes(b"x" * 100)
    with pytest.raises(InputError, match=f"{name}: {problem}"):
        import_files([tmp_path / name], parse(DATABASE, "own.toml"), tmp_path / "out")


def test_canonical_table__values_that_do_not_fit__count_as_impossible(tmp_path: Path) -> None:
    of = flows.table(2)
    times = pa.array([datetime(9999, 12, 31), datetime(2026, 11, 2)], pa.timestamp("us"))
    of = flows.changed(of, service_start_unix_ns=times, bytes_acked=pa.array([2**64 - 1, 9], pa.uint64()))
    pq.write_table(of, tmp_path / "own.parquet")
    rows = read([tmp_path / "own.parquet"]).table.to_pyarrow().to_pylist()
    assert [row["service_start_unix_ns"] for row in rows] == [-1, 1_793_577_600 * 10**9]
    assert [row["bytes_acked"] for row in rows] == [-1, 9]


def test_json_lines__with_the_names_of_columns__are_read_as_parquet_is(tmp_path: Path) -> None:
    rows = [row | {"arm_unit": n} for n, row in enumerate(flows.table(3).to_pylist())]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read([tmp_path / "own.jsonl"]).table.to_pyarrow().to_pylist()
    names = [column.name for column in COLUMNS if column.name in rows[0]]
    assert [{name: row[name] for name in names} for row in found] == [
        {name: row[name] for name in names} for row in rows
    ]
