"""Tables with column names of their own (Parquet, DuckDB, Arrow streams) to canonical records, by a mapping.

The same conversions as of logs: numbers at once, all else by each different value. Columns that the mapping
does not name stay as they are, so that a table can be split by any of them.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncork.measure.engines.duckdb import hide_progress
from uncork.measure.errors import InputError, available
from uncork.measure.files import Table
from uncork.measure.schema import COLUMNS, Column, arrow_type
from uncork.measure.sources import outcome
from uncork.measure.sources.fields import MAX_COUNT, Field, converter, factor_of
from uncork.measure.sources.importing import REGION, Rejects, assigned, schema_of, unit_of
from uncork.measure.sources.lines import RowError
from uncork.measure.sources.mapping import Mapping
from uncork.measure.sources.networks import Networks

BATCH: Final = 100_000
"""Rows in memory, and in a row group of the result."""

SUFFIXES: Final = (".parquet", ".duckdb")

_CANONICAL: Final = {column.name for column in COLUMNS}


def is_table(path: Path) -> bool:
    """Whether a file is a table, not a log."""
    return path.suffix in SUFFIXES


def open_batches(path: Path, mapping: Mapping) -> pa.RecordBatchReader:
    """The rows of a Parquet file, or of the mapping's ``table`` in a DuckDB file."""
    if path.suffix == ".duckdb":
        import duckdb

        if not mapping.table:
            raise InputError(str(path), "the mapping names no table", 'write table = "NAME" or a query')
        query = mapping.table if " " in mapping.table else f'FROM "{mapping.table}"'
        connection = duckdb.connect(str(path), read_only=True)
        hide_progress(connection)
        return connection.sql(query).fetch_record_batch(BATCH)
    file = pq.ParquetFile(path)
    return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(BATCH))


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
            writer.write(records)
            rows, at = rows + records.num_rows, at + table.num_rows
    return rows


def check_columns(names: set[str], mapping: Mapping, place: str) -> None:
    """Whether the table has all columns that the mapping reads."""
    for name in _read_by(mapping):
        if name not in names:
            raise InputError(place, f"no column {name!r}, which {mapping.name} maps", available(name, names))


def _read_by(mapping: Mapping) -> list[str]:
    fields = [*(of for _, of in mapping.fields().values()), *mapping.leave_out]
    names = [name for of in fields for name in _sources(of)]
    return list(dict.fromkeys([*names, *([mapping.unit.source] if mapping.unit else [])]))


def _sources(of: Field) -> list[str]:
    return [*of.sources, *(name for part in of.any_of for name in part.sources)]


def _schema(table: pa.Schema, mapping: Mapping, *, has_networks: bool) -> pa.Schema:
    schema = schema_of(mapping, has_networks=has_networks)
    for field in table:
        if field.name not in schema.names:
            is_null = pa.types.is_null(field.type)
            schema = schema.append(pa.field(field.name, pa.string() if is_null else field.type))
    return schema


class _Batch:
    """Some rows of a table."""

    def __init__(
        self, table: pa.Table, mapping: Mapping, schema: pa.Schema, networks: Networks | None
    ) -> None:
        self._table, self._mapping, self._schema, self._networks = table, mapping, schema, networks
        self._reasons: dict[int, str] = {}
        """Why a row is rejected, by its number."""

    def records(self, rejects: Rejects, name: str, first: int) -> pa.Table:
        """The rows as records, without rejected rows."""
        mapping = self._mapping
        columns: dict[str, Any] = {}
        for column, of in mapping.fields().values():
            columns[column.name] = self._column(column, of)
        for of in mapping.leave_out:
            matches = pc.equal(self._column(Column("condition", "count"), of), 1)
            self._reject(pc.fill_null(matches, False), f"not a download: {' '.join(of.sources)}")
        if mapping.source is not None:
            columns.setdefault("source", pa.array([mapping.source] * len(self._table), pa.string()))
        if self._networks is not None:
            columns[REGION] = self._regions()
        if mapping.unit is not None:
            columns |= self._units(columns)
        made = pa.Table.from_arrays([self._as(field, columns) for field in self._schema], schema=self._schema)
        made, is_head = outcome.finished(made, mapping)
        self._reject(is_head, outcome.NO_BODY)
        return made.filter(self._accepted(rejects, name, first))

    def _as(self, field: pa.Field, columns: dict[str, Any]) -> pa.Array:
        """A column by its mapping, or of the table's own."""
        if field.name in columns:
            return pa.array(columns[field.name], field.type)
        if field.name not in self._table.column_names:
            return pa.nulls(len(self._table), field.type)
        values = self._table[field.name].combine_chunks()
        if field.name not in _CANONICAL or values.type == field.type:
            return values.cast(field.type)
        column = next(it for it in COLUMNS if it.name == field.name)
        return pa.array(self._column(column, Field(sources=(field.name,))), field.type)

    def _column(self, column: Column, of: Field) -> pa.Array:
        values = self._table[of.sources[0]].combine_chunks() if len(of.sources) == 1 else None
        if values is not None and _is_number(column, of, values.type):
            return self._numbers(column, of, values)
        return self._by_value(_sources(of), converter(column, of), arrow_type(column))

    def _numbers(self, column: Column, of: Field, values: pa.Array) -> pa.Array:
        """Numbers in the column's unit. A number that is negative or not finite rejects its row."""
        if pa.types.is_temporal(values.type):
            values = values.cast(_instants(values.type)).cast(pa.int64())
        is_whole = pa.types.is_integer(values.type) and column.kind == "count" and factor_of(column, of) == 1
        if not is_whole:
            values = pc.multiply(values.cast(pa.float64()), float(factor_of(column, of)))
            filled = pc.fill_null(values, 0.0)
            self._reject(pc.invert(pc.is_finite(filled)), f"{of.sources[0]}: not finite")
            values = pc.if_else(pc.is_finite(filled), values, pa.scalar(None, pa.float64()))
            self._reject(pc.greater(filled, float(MAX_COUNT)), f"{of.sources[0]}: too large")
        self._reject(pc.less(pc.fill_null(values, 0), 0), f"{of.sources[0]}: negative")
        if column.kind == "count" and not is_whole:
            is_fine = pc.and_(pc.less(values, float(MAX_COUNT)), pc.greater_equal(values, 0.0))
            values = pc.round(pc.if_else(is_fine, values, pa.scalar(None, pa.float64())))
        if of.is_required:
            self._reject(pc.is_null(values), f"{of.sources[0]}: missing")
        return values.cast(arrow_type(column), safe=False)

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
                self._reasons.setdefault(at, str(value))
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
                    self._reasons.setdefault(at, str(error))
            if found[row] is nothing:
                self._reasons.setdefault(at, f"{rule.source}: missing, and it is the unit")
            units.append(found[row])
        return dict(assigned(units, rule, columns))

    def _regions(self) -> pa.Array:
        of = self._mapping.columns.get("service_client")
        name = of.sources[0] if of is not None and of.sources else "service_client"
        if name not in self._table.column_names or self._networks is None:
            return pa.nulls(len(self._table), pa.string())
        find = self._networks.name
        return self._by_value(
            [name], lambda row: None if row[name] is None else find(str(row[name])), pa.string()
        )

    def _reject(self, where: pa.Array, reason: str) -> None:
        for at in np.flatnonzero(np.asarray(where)).tolist():
            self._reasons.setdefault(at, reason)

    def _accepted(self, rejects: Rejects, name: str, first: int) -> pa.Array:
        keep = np.ones(len(self._table), dtype=np.bool_)
        for at, reason in sorted(self._reasons.items()):
            keep[at] = False
            row = self._table.slice(at, 1).to_pylist()[0] if rejects.path is not None else {}
            rejects.add(name, first + at + 1, json.dumps(row, default=str), reason)
        return pa.array(keep)


def _is_number(column: Column, of: Field, kind: pa.DataType) -> bool:
    changes = of.time or of.is_in or of.pattern or of.names or of.none or of.is_network or of.any_of
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_time = pa.types.is_temporal(kind) and column.unit == "ns" and of.unit is None
    return column.kind != "text" and not changes and column.name != "arm_unit" and (is_number or is_time)


def _instants(kind: pa.DataType) -> pa.DataType:
    return pa.duration("ns") if pa.types.is_duration(kind) else pa.timestamp("ns")


def _texts(values: pa.ChunkedArray) -> list[object]:
    """Values as a log has them: text; times in ISO 8601."""
    if pa.types.is_temporal(values.type) and not pa.types.is_duration(values.type):
        values = values.cast(pa.timestamp("us", "UTC"), safe=False)
        return [None if it is None else it.isoformat() for it in values.to_pylist()]
    found: list[object] = values.to_pylist()
    return [str(it) if isinstance(it, list | dict) else it for it in found]
