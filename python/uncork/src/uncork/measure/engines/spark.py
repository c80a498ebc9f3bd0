"""PySpark: the same queries on a cluster that the operator has, or a local one of several workers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from uncork.measure.reduce import Run

SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""What a session needs, and what it does not."""


def local_session(master: str = "local-cluster[2,1,1024]", settings: dict[str, str] | None = None) -> Any:
    """A session on this machine: by default two workers in processes of their own, a core and 1 GiB each."""
    from pyspark.sql import SparkSession  # an extra, and large

    builder = SparkSession.builder.master(master).appName("uncork")
    for name, value in {**SETTINGS, "spark.sql.shuffle.partitions": "4", **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def open_files(files: Sequence[Path | str], session: Any) -> tuple[ir.Table, Run]:
    """Parquet files of one schema as a table, and what runs queries on it."""
    frame = session.read.parquet(*[str(path) for path in files])
    frame.createOrReplaceTempView("uncork_records")
    return table("uncork_records", session)


def table(name: str, session: Any) -> tuple[ir.Table, Run]:
    """A table or view that the session knows, and what runs queries on it."""
    return ibis.pyspark.connect(session).table(name), run


def run(query: ir.Table) -> pa.Table:
    """Runs a query. The result has the query's own types: integers stay integers in columns with nulls."""
    return query.to_pyarrow().cast(query.schema().to_pyarrow())
