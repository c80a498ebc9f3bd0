"""The canonical columns: the flow record's own names (docs/reference/results.md), their types and units."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import pyarrow as pa

Kind = Literal["text", "count", "number"]

NANOS_PER_SECOND: Final = 1_000_000_000
NANO_DIGITS: Final = 9
MAX_COUNT: Final = 2**63 - 1


@dataclass(frozen=True)
class Column:
    """A canonical column. A count is a whole number and never negative; a number is floating point."""

    name: str
    kind: Kind
    unit: str = ""
    about: str = ""
    json: str = ""
    """Its place in a line of JSON."""
    part: str = ""


_FLOWS: Final = json.loads(files("uncork.measure").joinpath("columns.json").read_text("utf-8"))
"""What the crate uncork-flow defines."""

LARGE_BYTES: Final[int] = _FLOWS["large_bytes"]
"""Of objects from this size on throughput is compared; of smaller ones completion time."""


def _of_flows() -> list[Column]:
    """The columns of flow records; some parts are not for analyses."""
    return [Column(**row) for row in _FLOWS["columns"] if row["part"] not in ("lab", "optional")]


COLUMNS: Final[tuple[Column, ...]] = (
    *_of_flows(),
    Column("log_id", "count", about="Of imported logs: identifies the line. Not in uncork's own files."),
    Column("source", "text", about="How throughput was measured: one of SOURCES. Not in uncork's own files."),
)

NAMES: Final = frozenset(column.name for column in COLUMNS)

SOURCES: Final = ("client", "acked", "log_lowat", "log")
"""Where throughput comes from, best first: measured by the client; acknowledged bytes over busy time; a log
of a server that limits unsent data (``tcp_notsent_lowat``); a plain log, which measures the send buffer."""

CLIENT_ENGINES: Final = ("sim", "quic-sim", "netns", "play")
"""Engines that record when the client had the last byte."""

SERVER_ENGINES: Final = ("serve", "watch")

_ARROW: Final[dict[Kind, pa.DataType]] = {"text": pa.string(), "count": pa.int64(), "number": pa.float64()}
_IBIS: Final[dict[Kind, str]] = {"text": "string", "count": "int64", "number": "float64"}


def arrow_type(column: Column) -> pa.DataType:
    """Hashes of units have 64 bits, all others fit into 63: a signed type, which every engine has."""
    return pa.uint64() if column.name == "arm_unit" else _ARROW[column.kind]


def arrow_schema(extra: Mapping[str, Kind] | None = None) -> pa.Schema:
    """The schema of records that this package writes, with further columns."""
    fields = [(column.name, arrow_type(column)) for column in COLUMNS]
    return pa.schema(fields + [(name, _ARROW[kind]) for name, kind in (extra or {}).items()])


def unbound(extra: Iterable[str] = ()) -> ir.Table:
    """A table of canonical records that is nowhere yet: to compile queries."""
    columns = {column.name: _IBIS[column.kind] for column in COLUMNS} | dict.fromkeys(extra, "string")
    return ibis.table(columns, name="records")


class Columns:
    """The canonical columns of records, each made when it is asked for: ``Columns(records)["busy_ns"]``.

    Integers are signed; a column that the records lack is null. Further columns are as they are. ``source``
    follows from the engine where it is missing.
    """

    def __init__(self, records: ir.Table) -> None:
        self.table = records
        self._known = frozenset(records.columns)

    def __getitem__(self, name: str) -> ir.Value:
        if name == "source":
            return self._source()
        column = _BY_NAME.get(name)
        if column is None or (name == "arm_unit" and name in self._known):
            return self.table[name]
        wanted = _IBIS[column.kind]
        if name not in self._known:
            return ibis.null().cast(wanted)
        value = self.table[name]
        return value if value.type() == ibis.dtype(wanted) else value.cast(wanted)

    def _source(self) -> ir.Value:
        engine, none = self["engine"], ibis.null().cast("string")
        is_client, is_server = engine.isin(CLIENT_ENGINES), engine.isin(SERVER_ENGINES)
        by_engine = none
        if "engine" in self._known:
            by_engine = ibis.cases((is_client, "client"), (is_server, "acked"), else_=none)
        if "source" not in self._known:
            return by_engine
        return ibis.coalesce(self.table["source"].cast("string"), by_engine)


def canonical(records: ir.Table) -> ir.Table:
    """The records with all canonical columns, and their own."""
    columns = Columns(records)
    return records.mutate(**{column.name: columns[column.name] for column in COLUMNS})


@ibis.udf.scalar.builtin(name="epoch_ns")  # type: ignore[untyped-decorator]
def _epoch_ns(moment) -> int:  # type: ignore[no-untyped-def, empty-body]
    """DuckDB's own: a cast of a time with an offset would take the session's zone."""


@ibis.udf.scalar.builtin(name="epoch_us")  # type: ignore[untyped-decorator]
def _epoch_us(moment) -> int:  # type: ignore[no-untyped-def, empty-body]
    """DuckDB's own: of all times that it has."""


def _possible_ns(moment: ir.Value) -> ir.Value:
    """Of a time in microseconds, in DuckDB; -1 before 1970, and where nanoseconds do not fit into 64 bits."""
    micros = _epoch_us(moment)
    is_fine = (micros >= 0) & (micros <= MAX_COUNT // 1000)
    # The engine multiplies all values, also where the condition does not hold.
    ns = ibis.ifelse(is_fine, micros, ibis.literal(0, "int64")) * 1000
    return ibis.cases(
        (moment.isnull(), ibis.null().cast("int64")), (is_fine, ns), else_=ibis.literal(-1, "int64")
    )


def _unix_ns(moment: ir.TimestampValue) -> ir.Value:
    seconds, micros = moment.epoch_seconds().cast("int64"), moment.microsecond().cast("int64")
    return seconds * NANOS_PER_SECOND + micros * 1000


def typed(records: ir.Table, *, is_duckdb: bool = False, unsigned: Collection[str] = frozenset()) -> ir.Table:
    """The records with canonical columns of other types as numbers: times, floating point and text.

    A value that is none (infinite, NaN, no number) becomes -1, which is left out and counted. ``unsigned``:
    columns that may have values above 63 bits. In others the engine looks for values without a condition.
    """
    changed = {
        name: _number(records[name], column, is_duckdb, is_unsigned=name in unsigned)
        for name, column in _BY_NAME.items()
        if column.kind != "text" and name in records.columns and name != "arm_unit"
    }
    changed = {name: value for name, value in changed.items() if value is not None}
    return records.mutate(**changed) if changed else records


def _number(
    value: ir.Value, column: Column, is_duckdb: bool, *, is_unsigned: bool = False
) -> ir.Value | None:
    """``None`` if the column is a number already."""
    kind = value.type()
    if kind.is_null() or _is_duckdb_null(kind):
        return ibis.null().cast(_IBIS[column.kind])
    if kind.is_timestamp() or kind.is_date() or kind.is_unknown():  # unknown: DuckDB's TIMESTAMPTZ_NS
        moment = value.cast("timestamp") if kind.is_date() else value
        if kind.is_unknown() or (is_duckdb and getattr(kind, "scale", None) == NANO_DIGITS):
            return _epoch_ns(moment)
        return _possible_ns(moment) if is_duckdb else _unix_ns(moment)
    if is_unsigned and kind == ibis.dtype("uint64"):
        fits = value <= ibis.literal(MAX_COUNT, "uint64")
        return ibis.cases(
            (value.isnull(), ibis.null().cast("int64")),
            (fits, value.cast("int64")),
            else_=ibis.literal(-1, "int64"),
        )
    if kind.is_integer() or (column.kind == "number" and kind.is_numeric()):
        return None
    value = value.nullif("") if kind.is_string() else value
    number = value.try_cast("float64") if kind.is_string() else value.cast("float64")
    if kind.is_string() and column.kind == "count":
        whole = ibis.coalesce(value.try_cast("int64"), ibis.literal(-1, "int64"))
        return ibis.cases((value.isnull(), ibis.null().cast("int64")), else_=whole)
    target = _IBIS[column.kind]
    is_fine = number.abs() < 9e18
    return ibis.cases(
        (value.isnull(), ibis.null().cast(target)),
        (is_fine, number.cast(target)),
        else_=ibis.literal(-1, target),
    )


def _is_duckdb_null(kind: dt.DataType) -> bool:
    """Whether a Parquet column has no type, for lack of values. Ibis does not know this type of DuckDB."""
    return isinstance(kind, dt.Unknown) and str(kind.raw_type) == '"NULL"'


_BY_NAME: Final = {column.name: column for column in COLUMNS}
