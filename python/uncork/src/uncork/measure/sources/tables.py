"""Tables with column names of their own (Parquet, DuckDB, Arrow streams) to canonical records, by a mapping.

The same conversions as of logs: numbers at once, all else by each different value. Columns that the mapping
does not name stay as they are, so that a table can be split by any of them.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncork.measure.engines.duckdb import hide_progress
from uncork.measure.errors import InputError, available
from uncork.measure.files import Table
from uncork.measure.schema import COLUMNS, MAX_COUNT, Column, arrow_type
from uncork.measure.sources import outcome
from uncork.measure.sources.fields import Field, converter, factor_of
from uncork.measure.sources.identity import hashed
from uncork.measure.sources.importing import (
    REGION,
    TABLES,
    Rejects,
    assigned,
    region_of,
    schema_of,
    unit_of,
)
from uncork.measure.sources.lines import NoRecordError, RowError
from uncork.measure.sources.losses import UNKNOWN
from uncork.measure.sources.mapping import Mapping
from uncork.measure.sources.networks import Networks

if TYPE_CHECKING:
    import duckdb

BATCH: Final = 100_000
"""Rows in memory, and in a row group of the result."""

_PARQUET: Final = b"PAR1"
_DUCKDB: Final = b"DUCK"
"""From the ninth byte on."""

_QUERY: Final = re.compile(r"\s*(SELECT|FROM|WITH|VALUES|TABLE|PIVOT|UNPIVOT)\b", re.IGNORECASE | re.DOTALL)

_CANONICAL: Final = {column.name for column in COLUMNS}


def is_table(path: Path) -> bool:
    """Whether a file is a table, not a log: by its name, or by its first bytes."""
    return path.suffix in TABLES or is_parquet(path) or _is_duckdb(path)


def is_parquet(path: Path) -> bool:
    """By its first bytes: parts of a table may have any name."""
    return _head(path).startswith(_PARQUET)


def is_parquet_named(path: Path) -> bool:
    """Whether a file without a mapping is read as Parquet: what has its name is, or is an error."""
    return path.suffix == ".parquet" or is_parquet(path)


def _is_duckdb(path: Path) -> bool:
    return _head(path)[8:].startswith(_DUCKDB)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(12)


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """What an engine says of a table that it cannot read, with the file's name."""
    import duckdb

    try:
        yield
    except (duckdb.Error, pa.ArrowException) as error:
        problem = f"cannot be read as a table: {str(error).splitlines()[0]}"
        remedy = "copy the file again, or correct the query (table = …) of the mapping"
        raise InputError(str(path), problem, remedy) from error


def open_batches(path: Path, mapping: Mapping) -> pa.RecordBatchReader:
    """The rows of a Parquet file, or of the mapping's ``table`` in a DuckDB file."""
    if path.suffix == ".duckdb" or _is_duckdb(path):
        import duckdb

        if not mapping.table:
            raise InputError(str(path), "the mapping names no table", 'write table = "NAME" or a query')
        if not _is_duckdb(path):
            raise InputError(str(path), "no DuckDB file", "name a file that DuckDB has written")
        connection = duckdb.connect(str(path), read_only=True)
        hide_progress(connection)
        return connection.sql(_query(connection, path, mapping.table)).fetch_record_batch(BATCH)
    file = pq.ParquetFile(path)
    return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(BATCH))


def _query(connection: "duckdb.DuckDBPyConnection", path: Path, table: str) -> str:
    """For all rows of a table or view, with or without its schema; or the query itself."""
    rows = connection.execute("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
    names = {name: (schema, name) for schema, name in rows}
    names |= {f"{schema}.{name}": (schema, name) for schema, name in rows}
    if table in names:
        return "FROM " + ".".join('"{}"'.format(part.replace('"', '""')) for part in names[table])
    if _QUERY.match(table):
        return table
    raise InputError(str(path), f"no table or view {table!r}", available(table, sorted(names)))


def convert(
    batches: pa.RecordBatchReader,
    mapping: Mapping,
    target: Path,
    rejects: Rejects,
    name: str,
    networks: Networks | None = None,
) -> int:
    """Writes the records to ``target`` and returns their number. ``name`` is that of the table in messages.

    ``batches`` may come from any library: ``pa.RecordBatchReader.from_stream(relation)``.
    """
    check_columns(set(batches.schema.names), mapping, name)
    schema = _schema(batches.schema, mapping, has_networks=networks is not None)
    rows, at = 0, 0
    with Table(target, schema) as writer:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            records = _Batch(table, mapping, schema, networks).records(rejects, name, at)
            rejects.losses.add(records)
            writer.write(records)
            rows, at = rows + records.num_rows, at + table.num_rows
    return rows


def check_columns(names: set[str], mapping: Mapping, place: str) -> None:
    """Whether the table has all columns that the mapping reads."""
    for name in mapping.lacking(names):
        raise InputError(place, f"no column {name!r}, which {mapping.name} maps", available(name, names))


def _schema(table: pa.Schema, mapping: Mapping, *, has_networks: bool) -> pa.Schema:
    schema = schema_of(mapping, has_networks=has_networks)
    for field in table:
        if field.name not in schema.names:
            kind = pa.string() if _is_text_only(field.type) else field.type
            schema = schema.append(pa.field(field.name, kind))
    return schema


def _is_text_only(kind: pa.DataType) -> bool:
    """Whether Parquet has no such type: the column is written as text."""
    return bool(pa.types.is_null(kind) or pa.types.is_interval(kind))


class _Batch:
    """Some rows of a table."""

    def __init__(
        self, table: pa.Table, mapping: Mapping, schema: pa.Schema, networks: Networks | None
    ) -> None:
        self._table, self._mapping, self._schema, self._networks = table, mapping, schema, networks
        self._reasons: dict[int, RowError] = {}
        """Why a row is rejected, by its number."""

    def records(self, rejects: Rejects, name: str, first: int) -> pa.Table:
        """The rows as records, without rejected rows."""
        mapping = self._mapping
        columns: dict[str, Any] = {}
        for column, of in mapping.fields().values():
            columns[column.name] = self._column(column, of)
        for of in mapping.leave_out:
            matches = pc.equal(self._column(Column("condition", "count"), of), 1)
            left_out = NoRecordError(f"not a download: {' '.join(of.sources)}")
            self._reject(pc.fill_null(matches, False), left_out)
        if mapping.source is not None:
            columns.setdefault("source", pa.array([mapping.source] * len(self._table), pa.string()))
        if mapping.id is not None:
            texts = self._column(Column("id", "text"), mapping.id).to_pylist()
            ids = [None if it is None else hashed(it) for it in texts]
            columns["log_id"] = pa.array(ids, pa.int64())
        if self._networks is not None:
            columns[REGION] = self._regions()
        if mapping.unit is not None:
            columns |= self._units(columns)
        made = pa.Table.from_arrays([self._as(field, columns) for field in self._schema], schema=self._schema)
        made, is_head = outcome.finished(made, mapping)
        self._reject(is_head, NoRecordError(outcome.NO_BODY))
        return made.filter(self._accepted(rejects, name, first, made["arm"]))

    def _as(self, field: pa.Field, columns: dict[str, Any]) -> pa.Array:
        """A column by its mapping, or of the table's own."""
        if field.name in columns:
            return pa.array(columns[field.name], field.type)
        if field.name not in self._table.column_names:
            return pa.nulls(len(self._table), field.type)
        values = self._table[field.name].combine_chunks()
        if _is_text_only(values.type):
            return pa.array([None if it is None else str(it) for it in values.to_pylist()], pa.string())
        if field.name not in _CANONICAL or values.type == field.type:
            return values.cast(field.type)
        column = next(it for it in COLUMNS if it.name == field.name)
        return pa.array(self._column(column, Field(sources=(field.name,))), field.type)

    def _column(self, column: Column, of: Field) -> pa.Array:
        values = self._table[of.sources[0]].combine_chunks() if len(of.sources) == 1 else None
        if values is not None and _is_number(column, of, values.type):
            return self._numbers(column, of, values)
        names = [name for name in of.names_read() if name in self._table.column_names]
        return self._by_value(names, converter(column, of), arrow_type(column))

    def _numbers(self, column: Column, of: Field, values: pa.Array) -> pa.Array:
        """Numbers in the column's unit. A number that is negative or not finite rejects its row."""
        if pa.types.is_temporal(values.type):
            values = self._nanoseconds(values, of.sources[0])
        is_whole = pa.types.is_integer(values.type) and column.kind == "count" and factor_of(column, of) == 1
        if not is_whole:
            values = pc.multiply(values.cast(pa.float64()), float(factor_of(column, of)))
            filled = pc.fill_null(values, 0.0)
            self._reject(pc.invert(pc.is_finite(filled)), RowError(f"{of.sources[0]}: not finite"))
            values = pc.if_else(pc.is_finite(filled), values, pa.scalar(None, pa.float64()))
            self._reject(pc.greater(filled, float(MAX_COUNT)), RowError(f"{of.sources[0]}: too large"))
        elif pa.types.is_uint64(values.type):
            is_large = pc.greater(pc.fill_null(values, 0), pa.scalar(MAX_COUNT, pa.uint64()))
            self._reject(is_large, RowError(f"{of.sources[0]}: too large"))
            values = pc.if_else(is_large, pa.scalar(None, pa.uint64()), values)
        self._reject(pc.less(pc.fill_null(values, 0), 0), RowError(f"{of.sources[0]}: negative"))
        if column.kind == "count" and not is_whole:
            is_fine = pc.and_(pc.less(values, float(MAX_COUNT)), pc.greater_equal(values, 0.0))
            values = pc.round(pc.if_else(is_fine, values, pa.scalar(None, pa.float64())))
        if of.is_required:
            self._reject(pc.is_null(values), RowError(f"{of.sources[0]}: missing"))
        return values.cast(arrow_type(column), safe=False)

    def _nanoseconds(self, values: pa.Array, name: str) -> pa.Array:
        """Times and durations. One that does not fit rejects its row."""
        if pa.types.is_interval(values.type):
            spans = pa.array([_nanoseconds_of(it) for it in values.to_pylist()], pa.int64())
            is_unknown = pc.and_(pc.is_null(spans), pc.is_valid(values))
            self._reject(is_unknown, RowError(f"{name}: months are no duration"))
            return spans
        if pa.types.is_date(values.type):
            values = values.cast(pa.timestamp("s"))
        factor = _NANOSECONDS[values.type.unit]
        whole, most = values.cast(pa.int64()), MAX_COUNT // factor
        least = 0 if pa.types.is_timestamp(values.type) else -most
        filled = pc.fill_null(whole, 0)
        fits = pc.and_(pc.less_equal(filled, most), pc.greater_equal(filled, least))
        self._reject(pc.invert(fits), RowError(f"{name}: no possible time"))
        return pc.multiply(pc.if_else(fits, whole, pa.scalar(None, pa.int64())), factor)

    def _by_value(
        self, names: list[str], convert: Callable[[dict[str, object]], Any], kind: pa.DataType
    ) -> pa.Array:
        """Each different value once."""
        found: dict[tuple[object, ...], Any] = {}
        values: list[Any] = []
        for at, row in enumerate(self._rows(names)):
            if row not in found:
                try:
                    found[row] = convert(dict(zip(names, row, strict=True)))
                except RowError as error:
                    found[row] = error
            value = found[row]
            if isinstance(value, RowError):
                self._reasons.setdefault(at, value)
                value = None
            values.append(value)
        return pa.array(values, kind)

    def _rows(self, names: list[str]) -> Iterator[tuple[object, ...]]:
        if not names:
            return iter([()] * len(self._table))
        return zip(*(_texts(self._table[name]) for name in names), strict=True)

    def _units(self, columns: dict[str, Any]) -> dict[str, Any]:
        rule = self._mapping.unit
        assert rule is not None
        nothing = b"\0"
        found: dict[tuple[object, ...], bytes] = {}
        units: list[bytes] = []
        for at, row in enumerate(self._rows([rule.source])):
            if row not in found:
                try:
                    found[row] = unit_of({rule.source: row[0]}, rule)
                except RowError as error:
                    found[row] = nothing
                    self._reasons.setdefault(at, error)
            if found[row] is nothing:
                self._reasons.setdefault(at, RowError(f"{rule.source}: missing, and it is the unit"))
            units.append(found[row])
        return dict(assigned(units, rule, columns))

    def _regions(self) -> pa.Array:
        networks = self._networks
        of = self._mapping.columns.get("service_client") or Field(sources=("service_client",))
        if networks is None or not set(of.sources) <= set(self._table.column_names):
            return pa.nulls(len(self._table), pa.string())
        return self._by_value(list(of.sources), lambda row: region_of(row, of, networks), pa.string())

    def _reject(self, where: pa.Array, reason: RowError) -> None:
        for at in np.flatnonzero(np.asarray(where)).tolist():
            self._reasons.setdefault(at, reason)

    def _accepted(self, rejects: Rejects, name: str, first: int, arms: pa.ChunkedArray) -> pa.Array:
        keep = np.ones(len(self._table), dtype=np.bool_)
        for at, reason in sorted(self._reasons.items()):
            keep[at] = False
            row = self._table.slice(at, 1).to_pylist()[0] if rejects.path is not None else {}
            arm = None if isinstance(reason, NoRecordError) else arms[at].as_py() or UNKNOWN
            rejects.add(name, first + at + 1, json.dumps(row, default=str), str(reason), arm)
        return pa.array(keep)


def _is_number(column: Column, of: Field, kind: pa.DataType) -> bool:
    changes = of.time or of.is_in or of.pattern or of.names or of.none or of.is_network or of.any_of
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_time = pa.types.is_temporal(kind) and column.unit == "ns" and of.unit is None
    return column.kind != "text" and not changes and column.name != "arm_unit" and (is_number or is_time)


_NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY_NS: Final = 86_400 * 10**9
_YEARS_US: Final = (-62_135_596_800 * 10**6, 253_402_300_800 * 10**6)
"""From the year 1 to 9999, in microseconds since 1970."""


def _nanoseconds_of(span: Any) -> int | None:
    """Of an interval of months, days and nanoseconds."""
    return None if span is None or span[0] else int(span[1]) * _DAY_NS + int(span[2])


def _texts(values: pa.ChunkedArray) -> list[object]:
    """Values as a log has them: text; times in ISO 8601."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", "UTC"), safe=False)
        whole = values.cast(pa.int64())
        is_year = pc.and_(pc.greater_equal(whole, _YEARS_US[0]), pc.less(whole, _YEARS_US[1]))
        values = pc.if_else(is_year, values, pa.scalar(None, values.type))
    return [_text(it) for it in values.to_pylist()]


def _text(value: Any) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, list | dict | tuple) else value
