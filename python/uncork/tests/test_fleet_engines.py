"""The configurations of deploy/fleet, on the engines that are installed."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from test_rollups import program
from uncork.experiment import demo

FLEET = Path(__file__).parents[3] / "deploy/fleet"
PERIOD = "30min"


@pytest.fixture(scope="module")
def rollups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hosts' roll-ups, as a store has them."""
    made = tmp_path_factory.mktemp("made")
    target = tmp_path_factory.mktemp("rollups")
    for seed, host in ((1, "edge1"), (2, "edge2")):
        pq.write_table(demo.table(seed, 0.02), made / f"{host}.parquet")
        command = [program(), "records", "rollup", f"{made}/{host}.parquet", "-o", f"{target}/{host}"]
        subprocess.run([*command, "--period", PERIOD, "--host", host], check=True, capture_output=True)
    return target


def expected(rollups: Path) -> list[tuple[Any, ...]]:
    """Arm, records and retransmitted bytes, by DuckDB."""
    table = ibis.duckdb.connect().read_parquet(str(rollups / "*/rollup-*.parquet"))
    found = (
        table.filter(table["arm"] != "", table["rollup_records"] > 0)
        .group_by("arm")
        .aggregate(records=table["rollup_records"].sum(), of=table["rollup_retransmitted_of"].sum())
        .order_by("arm")
        .to_pyarrow()
    )
    return [tuple(row.values()) for row in found.to_pylist()]


def statements() -> list[str]:
    lines = [
        line for line in (FLEET / "clickhouse.sql").read_text().splitlines() if not line.startswith("--")
    ]
    return [one.strip() for one in "\n".join(lines).split(";") if one.strip()]


@pytest.mark.clickhouse
def test_clickhouse__files_of_two_hosts__the_sums_of_the_rows(rollups: Path, tmp_path: Path) -> None:
    session: Any = importlib.import_module("chdb.session").Session(str(tmp_path / "chdb"))
    *made, query = statements()
    for statement in made:
        if "S3Queue" in statement:
            assert session.query(f"EXPLAIN AST {statement}").bytes()
            # The same columns, filled by hand: the embedded engine has no Keeper.
            statement = statement.partition("ENGINE =")[0] + "ENGINE = Null"
        session.query(statement)
    session.query(
        f"INSERT INTO uncork.rollup_files SELECT * FROM file('{rollups}/*/rollup-*.parquet', Parquet, "
        f"'{columns(made)}')"
    )
    found = pa.ipc.open_stream(pa.py_buffer(session.query(query, "ArrowStream").bytes())).read_all()
    sums = session.query(
        "SELECT arm, sum(rollup_records) AS n, sum(retransmitted_of) AS s FROM uncork.rollups "
        "WHERE arm != '' GROUP BY arm ORDER BY arm",
        "ArrowStream",
    )
    rows = pa.ipc.open_stream(pa.py_buffer(sums.bytes())).read_all().to_pylist()
    assert [tuple(row.values()) for row in rows] == expected(rollups)
    medians = found.column("median_bit_s").to_pylist()
    assert all(1e5 < it < 1e10 for it in medians), medians
    session.query("OPTIMIZE TABLE uncork.rollups FINAL")
    again = pa.ipc.open_stream(pa.py_buffer(session.query(query, "ArrowStream").bytes())).read_all()
    assert again.column("records") == found.column("records")
    session.close()


def columns(made: list[str]) -> str:
    """The columns of the table of files."""
    (table,) = [one for one in made if "S3Queue" in one]
    return table.partition("(")[2].partition("\n)\nENGINE")[0].strip().replace("\n", " ")


@pytest.mark.spark
def test_spark__files_that_arrive_in_two_rounds__each_counts_once(rollups: Path, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    sys.path.insert(0, str(FLEET))
    try:
        job = importlib.import_module("spark")
    finally:
        sys.path.remove(str(FLEET))
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    source, target = tmp_path / "source", tmp_path / "target"
    for host in ("edge1", "edge2", "none"):
        if host != "none":
            (source / host).parent.mkdir(exist_ok=True)
            (source / host).symlink_to(rollups / host)
        job.take(spark, str(source), str(target), str(tmp_path / "checkpoint"), "parquet")
    table = spark.read.parquet(str(target)).where("arm != ''")
    sums = table.groupBy("arm").agg({"rollup_records": "sum", "rollup_retransmitted_of": "sum"})
    rows = {row["arm"]: row for row in sums.collect()}
    found = [
        (arm, row["sum(rollup_records)"], row["sum(rollup_retransmitted_of)"])
        for arm, row in sorted(rows.items())
    ]
    assert found == expected(rollups)
    spark.stop()
