"""The embedded engine: DuckDB over Parquet files, larger than memory."""

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import ibis
import ibis.expr.types as ir


@dataclass(frozen=True)
class Settings:
    """Limits of the engine. Beyond its memory it spills to ``spill``."""

    memory: str = "3GB"
    threads: int | None = None
    """All processors if ``None``."""
    spill: Path | None = None


@dataclass(frozen=True)
class Connection:
    """An embedded engine of its own."""

    backend: ibis.BaseBackend

    def read(self, files: Sequence[Path]) -> ir.Table:
        """The rows of Parquet files. Their columns may differ."""
        return self.backend.read_parquet(
            [_literal(path) for path in files], table_name="records", union_by_name=True
        )


DEFAULT = Settings()
MAX_KEPT = 4_000_000
"""Records of which tables are kept: with 30 columns about 1 GB."""


def _literal(path: Path) -> str:
    """DuckDB takes names for patterns: for a file named ``*.parquet`` it would read the whole directory."""
    return re.sub(r"[*?\[]", lambda it: f"[{it[0]}]", str(path.absolute()))


def connect(settings: Settings = DEFAULT, keep: object = None) -> Connection:
    """Starts an engine. Its tables keep ``keep`` alive, such as the directory of their files."""
    # Not a fixed name in a directory that all users share: another one may have made it first.
    private = tempfile.TemporaryDirectory(prefix="uncork-spill-")
    spill = settings.spill or private.name
    backend = ibis.duckdb.connect(
        memory_limit=settings.memory,
        threads=settings.threads or os.cpu_count() or 1,
        temp_directory=str(spill),
        preserve_insertion_order=False,
    )
    hide_progress(backend.con)
    backend.uncork_keep = (keep, private)
    return Connection(backend)


def is_small(records: ir.Table) -> bool:
    """Whether tables of all records fit into memory."""
    return bool(records.count().to_pyarrow().as_py() <= MAX_KEPT)


def keep(query: ir.Table) -> ir.Table:
    """The result of the query as a table of its engine, with texts as numbers."""
    backend: ibis.BaseBackend = query.get_backend()
    name = ibis.util.gen_name("kept")
    # Not `query.cache`: it cannot drop its table with each version of sqlglot.
    table = backend.create_table(name, query, temp=True)
    texts = "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND data_type = 'VARCHAR'"
    for (column,) in backend.con.execute(texts, [name]).fetchall():
        _enumerate(backend.con, name, column)
    return table


def _enumerate(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> None:
    """Keeps the column's texts as numbers: groups by them take a quarter of the time."""
    quoted, kind = f'"{column}"', f'"{table} {column}"'
    values = f"SELECT DISTINCT {quoted} FROM {table} WHERE {quoted} IS NOT NULL"
    connection.execute(f"CREATE TEMP TYPE {kind} AS ENUM ({values} ORDER BY 1)")
    connection.execute(f"ALTER TABLE {table} ALTER {quoted} TYPE {kind}")


def hide_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Keeps DuckDB's bar out of stdout: where ``__main__`` has no file (``python -c``, notebooks), it draws
    one for each query of more than 2 s.
    """
    connection.execute("SET enable_progress_bar = false")
