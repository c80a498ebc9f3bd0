"""ClickHouse: the same queries as SQL, embedded (chDB) or on a server.

Embedded it reads Parquet files. For a server pass a function that runs SQL and returns Arrow.
"""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq

from uncork.measure.reduce import Run, compiled

Execute = Callable[[str], pa.Table]
"""Runs a query of ClickHouse SQL."""


def open_files(files: Sequence[Path]) -> tuple[ir.Table, Run]:
    """Parquet files of one schema as a table, and what runs queries on it, with the embedded engine."""
    session: Any = importlib.import_module("chdb.session").Session()
    quoted = [str(path.resolve()).replace("\\", "\\\\").replace("'", "\\'") for path in files]
    selects = " UNION ALL ".join(f"SELECT * FROM file('{name}', Parquet)" for name in quoted)
    session.query("CREATE DATABASE IF NOT EXISTS uncork ENGINE = Atomic")
    session.query(f"CREATE OR REPLACE VIEW uncork.records AS {selects}")

    def execute(sql: str) -> pa.Table:
        return _read(session.query(sql, "ArrowStream").bytes())

    return records(pq.read_schema(files[0])), runner(execute)


def records(schema: pa.Schema, database: str = "uncork") -> ir.Table:
    """The table ``records`` of a database, with these columns."""
    return ibis.table(ibis.Schema.from_pyarrow(schema), name="records", database=database)


def runner(execute: Execute) -> Run:
    """What compiles queries and runs them as SQL."""

    def run(query: ir.Table) -> pa.Table:
        return execute(compiled(query, "clickhouse")).cast(query.schema().to_pyarrow())

    return run


def _read(data: bytes) -> pa.Table:
    if not data:
        raise RuntimeError("ClickHouse returned nothing")
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()
