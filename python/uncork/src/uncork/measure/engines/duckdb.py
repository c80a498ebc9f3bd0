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
SIZES = (("TINYINT", 7), ("SMALLINT", 15), ("INTEGER", 31))
"""Types of whole numbers, with the bits of their values."""
MAX_KEPT = 4_000_000
"""Tables with more records are not kept: with 30 columns about 1 GB."""


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
    """The result of the query as a table of its engine, with texts as numbers and numbers in few bytes:
    groups by them take a quarter of the time.
    """
    backend: ibis.BaseBackend = query.get_backend()
    view, wide, kept = map(ibis.util.gen_name, ("view", "wide", "kept"))
    connection = backend.con
    # Not `query.cache`: it cannot drop its table with each version of sqlglot. And not `create_table`, which
    # makes texts of their numbers again.
    backend.create_view(view, query)
    connection.execute(f"CREATE TEMP TABLE {wide} AS FROM {view}")
    connection.execute(f"DROP VIEW {view}")
    known = "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index"
    columns = dict(connection.execute(known, [wide]).fetchall())
    types = {name: _narrow(connection, wide, name, kind) for name, kind in columns.items()}
    if types == columns:
        return backend.table(wide, database=("temp", "main"))
    narrow = [f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in types.items()]
    connection.execute(f"CREATE TEMP TABLE {kept} AS SELECT {', '.join(narrow)} FROM {wide}")
    connection.execute(f"DROP TABLE {wide}")
    return backend.table(kept, database=("temp", "main"))


def _narrow(connection: duckdb.DuckDBPyConnection, table: str, column: str, kind: str) -> str:
    """The smallest type that has all values of a column of texts or of wide numbers."""
    if kind == "VARCHAR":
        values = f'SELECT DISTINCT "{column}" FROM {table} WHERE "{column}" IS NOT NULL ORDER BY 1'
        connection.execute(f'CREATE TEMP TYPE "{table} {column}" AS ENUM ({values})')
        return f'"{table} {column}"'
    if kind != "BIGINT":
        return kind
    ends = connection.execute(f'SELECT min("{column}"), max("{column}") FROM {table}').fetchall()[0]
    fits = (name for name, bits in SIZES if all(end is None or -(2**bits) <= end < 2**bits for end in ends))
    return next(fits, kind)


def hide_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Keeps DuckDB's bar out of stdout: where ``__main__`` has no file (``python -c``, notebooks), it draws
    one for each query of more than 2 s.
    """
    connection.execute("SET enable_progress_bar = false")
