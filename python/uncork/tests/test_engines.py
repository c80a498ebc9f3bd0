"""The same records give the same counts, bit for bit, on every engine that can be installed here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import flows
from uncork.experiment.health import check
from uncork.measure.engines import clickhouse, duckdb, spark
from uncork.measure.reduce import ReducePlan, Run, reduce_views, to_arrow

PLAN = ReducePlan(control="control", metrics=("throughput", "completion", "retransmitted", "rtt_inflation"))
VIEWS = [(), ("region", "size_class")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two files of records with oddities: missing arms, buckets out of range, values that cannot be."""
    paths = []
    for seed in (1, 2):
        table = flows.table(4000, seed)
        rtt, arm = table["rtt_p50_ms"].to_numpy().copy(), table["arm"].to_pylist()
        rtt[:4] = [np.nan, np.inf, -1.0, 0.0]
        arm[4:9] = [None] * 5
        bucket = table["arm_bucket"].to_pylist()
        bucket[9] = 100
        path = tmp_path_factory.mktemp("records") / f"{seed}.parquet"
        pq.write_table(flows.changed(table, rtt_p50_ms=rtt, arm=arm, arm_bucket=bucket), path)
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def embedded(files: list[Path]) -> tuple[Any, Any]:
    table = duckdb.connect().read(files)
    return _bits(table, to_arrow), check(table, PLAN)


def _bits(table: Any, run: Run) -> dict[Any, Any]:
    """All that a reduction has, in a form that can be compared."""
    views = reduce_views(table, PLAN, VIEWS, run)
    return {
        view: (
            flows.counted(reduced), {key: units.tolist() for key, units in reduced.units.items()},
            reduced.rows, reduced.rejected, reduced.outside, reduced.arms,
        )
        for view, reduced in views.items()
    }  # fmt: skip


def test_the_embedded_engine_counts_all(embedded: tuple[Any, Any]) -> None:
    counted, _, rows, rejected, *_ = embedded[0][()]
    assert rows == 8000
    assert rejected["no arm"] == 10
    assert rejected["no bucket from 0 to 99"] == 2
    assert rejected["rtt_inflation: a value that cannot be"] > 0
    assert len(counted) > 3000


@pytest.mark.clickhouse
def test_clickhouse_counts_the_same(files: list[Path], embedded: tuple[Any, Any]) -> None:
    table, run = clickhouse.open_files(files)
    assert _bits(table, run) == embedded[0]
    assert check(table, PLAN, run) == embedded[1]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers in processes of their own."""
    session = spark.local_session()
    yield session
    session.stop()


@pytest.mark.spark
def test_a_spark_cluster_counts_the_same(files: list[Path], embedded: tuple[Any, Any], cluster: Any) -> None:
    assert cluster.sparkContext.master.startswith("local-cluster[2")
    table, run = spark.open_files(files, cluster)
    assert _bits(table, run) == embedded[0]


@pytest.mark.proof
@pytest.mark.spark
def test_health_on_spark_is_the_same(files: list[Path], embedded: tuple[Any, Any], cluster: Any) -> None:
    table, run = spark.open_files(files, cluster)
    assert check(table, PLAN, run) == embedded[1]


def test_the_embedded_engine_spills_beyond_its_memory(files: list[Path], tmp_path: Path) -> None:
    """With 60 MB, and threads that need more than that for the distinct units of many cells."""
    settings = duckdb.Settings(memory="60MB", threads=2, spill=tmp_path)
    table = duckdb.connect(settings).read(files * 30)
    reduced = reduce_views(table, PLAN, [("block", "asn", "size_class")])
    assert reduced[("block", "asn", "size_class")].rows == 240_000
