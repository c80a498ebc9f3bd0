"""Lines of an access log and the connections of ``uncork steer record --client-ports``.

The client's network, its port and the time identify the connection of a line. The line gets its arm and
controller. The only response of a connection gets the kernel's figures, too: they are of the connection.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from uncork.measure.errors import InputError
from uncork.measure.schema import COLUMNS, NANOS_PER_SECOND, arrow_type
from uncork.measure.sources.fields import network_of
from uncork.measure.sources.lines import Row, RowError, json_rows, open_text

SLACK_NS: Final = 5 * NANOS_PER_SECOND
"""A line may be this much before or after its connection: the recorder sees a new socket with its next pass,
and some servers log a response when its connection is closed."""

JOINED: Final = (
    "cc", "choice_policy", "choice_rule", "choice_cc",
    "arm_experiment", "arm", "arm_unit", "arm_bucket", "arm_propensity",
)  # fmt: skip
"""Columns that a line gets from its connection."""

WHERE: Final = ("service_asn", "service_country")
"""Columns that a line without them gets, too."""

MEASURED: Final = (
    "busy_ns", "bytes_acked", "bytes_sent", "bytes_retransmitted", "packets_sent", "packets_lost",
    "packets_marked", "timeouts", "rtt_min_ms", "rtt_p50_ms", "rtt_p95_ms", "service_min_rtt_ns",
    "service_delivery_rate_bps", "service_rwnd_limited_ns", "service_sndbuf_limited_ns",
    "service_app_limited_ns", *(column.name for column in COLUMNS if column.part == "start"),
)  # fmt: skip
"""Columns that the only response of a connection gets from it."""

NO_PORT: Final = "no client port in the line"
NO_CONNECTION: Final = "no connection with this address and port at this time"
SEVERAL: Final = "connections with different arms: two clients of the network had the same port"

_CLIENT, _PORT = "service_client", "service_client_port"
_START, _END = "service_start_unix_ns", "service_end_unix_ns"
_COLUMNS: Final = {column.name: column for column in COLUMNS}
_SCHEMA: Final = pa.schema(
    [(_CLIENT, pa.string()), *((name, pa.int64()) for name in (_PORT, _START, _END))]
    + [(name, arrow_type(_COLUMNS[name])) for name in (*JOINED, *WHERE, *MEASURED)]
)
_PLACES: Final = {
    name: (_COLUMNS[name].json if name in _COLUMNS else name.replace("service_", "service.", 1)).split(".")
    for name in _SCHEMA.names
}
"""Where a line of JSON has the columns."""

Key = tuple[str, int]
"""The client's network, as records have it, and its port."""


@dataclass
class Connections:
    """Connections by client network and port; what became of the lines that were looked up."""

    table: pa.Table
    matched: int = 0
    unmatched: Counter[str] = field(default_factory=Counter)
    """Lines without a connection, by reason."""

    def __post_init__(self) -> None:
        self._rows: dict[Key, list[int]] = {}
        clients, ports = self.table[_CLIENT].to_pylist(), self.table[_PORT].to_pylist()
        for row, key in enumerate(zip(clients, ports, strict=True)):
            self._rows.setdefault(key, []).append(row)
        self._start, self._end = _ints(self.table[_START]), _ints(self.table[_END])
        arms = zip(*(self.table[name].to_pylist() for name in ("cc", "arm_experiment", "arm")), strict=True)
        self._arm = [tuple(it) for it in arms]
        self._lines = np.zeros(self.table.num_rows, dtype=np.int64)
        """How many lines each connection has."""
        self._of_lines: list[pa.Array] = []
        """The connection of each record, as a row of the table."""

    def join(self, table: pa.Table, keys: Sequence[Key | None], took: Sequence[int | None]) -> pa.Table:
        """The table of lines with these keys and times, with what they get from their connections.

        A line without a connection has nulls.
        """
        starts = table[_START].to_pylist()
        found = [self._find(*line) for line in zip(keys, starts, took, strict=True)]
        np.add.at(self._lines, [row for row in found if row is not None], 1)
        rows = pa.array(found, pa.int64())
        self._of_lines.append(rows)
        table = _with(table, {name: pc.take(self.table[name], rows) for name in JOINED})
        places = {name: pc.take(self.table[name], rows) for name in WHERE}
        return _with(table, {name: pc.coalesce(table[name], values) for name, values in places.items()})

    def keep(self, is_record: pa.Array) -> None:
        """Of the lines that were joined last, these are records."""
        self._of_lines.append(self._of_lines.pop().filter(is_record))

    def is_shared_with(self, key: Key | None) -> None:
        """A line that was left out is of a connection with this key."""
        if key is not None:
            self._lines[self._rows.get(key, [])] += 2

    def of_records(self) -> pa.Array:
        """The connection of each record of all logs, as a row of the table; null for none."""
        return pa.concat_arrays(self._of_lines)

    def measured(self, table: pa.Table, rows: pa.Array) -> pa.Table:
        """The table of records of these connections, with the kernel's figures. After the last line.

        A server's time ends when the kernel has taken the last byte; the connection's when the client has
        acknowledged it.
        """
        lines = pc.take(pa.array(self._lines), rows)
        rows = pc.if_else(pc.equal(lines, 1), rows, pa.scalar(None, pa.int64()))
        figures = {name: pc.take(self.table[name], rows) for name in MEASURED}
        busy = figures["busy_ns"]
        took = pc.if_else(pc.is_valid(table["completion_ns"]), busy, pa.scalar(None, pa.int64()))
        source = pc.if_else(pc.is_valid(busy), pa.scalar("acked"), pa.scalar(None, pa.string()))
        figures |= {"completion_ns": took, "source": source}
        return _with(table, {name: pc.coalesce(values, table[name]) for name, values in figures.items()})

    def _find(self, key: Key | None, start: int | None, took: int | None) -> int | None:
        if key is None or start is None:
            self.unmatched[NO_PORT] += 1
            return None
        end = start + (took or 0)
        near = [row for row in self._rows.get(key, ()) if self._is_near(row, start, end, SLACK_NS)]
        exact = [row for row in near if self._is_near(row, start, end, 0)]
        chosen = exact or near
        if len({self._arm[row] for row in chosen}) == 1:
            self.matched += 1
            return chosen[0]
        self.unmatched[SEVERAL if chosen else NO_CONNECTION] += 1
        return None

    def _is_near(self, row: int, start: int, end: int, slack: int) -> bool:
        return bool(self._start[row] - slack <= start and end <= self._end[row] + slack)

    def check(self) -> None:
        """Whether any line has a connection. Raises ``InputError``."""
        if self.matched == 0 and self.unmatched:
            reason = self.unmatched.most_common(1)[0][0]
            remedy = "compare the times of log and records, and log the port of the connection ($remote_port)"
            raise InputError("--join", f"no line has a connection: {reason}", remedy)


def load(paths: Iterable[Path]) -> Connections:
    """The connections of files of records. Files without client ports are left out, if others have them."""
    files = list(paths)
    tables = [table for path in files if (table := _read(path)) is not None]
    if not tables:
        place = ", ".join(str(path) for path in files[:3])
        raise InputError(
            place, "no records with a client port", "record with uncork steer record --client-ports"
        )
    return Connections(pa.concat_tables(tables))


def _read(path: Path) -> pa.Table | None:
    if path.suffix != ".parquet":
        with open_text(path) as lines:
            rows = list(_json_rows(lines, path))
        return pa.Table.from_pylist(rows, schema=_SCHEMA) if rows else None
    names = set(pq.read_schema(path).names)
    if not {_CLIENT, _PORT, _START, _END} <= names:
        return None
    table = pq.read_table(path, columns=[name for name in _SCHEMA.names if name in names])
    nulls = pa.nulls(table.num_rows)
    columns = [table[it.name].cast(it.type) if it.name in names else nulls.cast(it.type) for it in _SCHEMA]
    table = pa.Table.from_arrays(columns, schema=_SCHEMA)
    return table.filter(pc.and_(pc.is_valid(table[_PORT]), pc.is_valid(table[_END])))


def _json_rows(lines: Iterable[str], path: Path) -> Iterator[dict[str, Any]]:
    for number, _, record in json_rows(lines):
        if isinstance(record, RowError):
            raise InputError(f"{path}, line {number}", str(record), "name records of uncork steer record")
        found = {name: _at(record, place) for name, place in _PLACES.items()}
        if found[_PORT] is not None and found[_END] is not None:
            yield found


def _at(record: Row, place: Sequence[str]) -> Any:
    found: Any = record
    for name in place:
        found = found.get(name) if isinstance(found, dict) else None
    # Columns of Parquet have 0 and 1.
    return int(found) if isinstance(found, bool) else found


def key_of(address: str | None, port: str | None) -> Key | None:
    """The key of a client. The address may have the port: ``203.0.113.7:39849``, ``[2001:db8::7]:39849``."""
    if address is None:
        return None
    if port is None:
        port = address.rpartition(":")[2]
    try:
        return network_of(address), int(port)
    except ValueError:
        return None


def _ints(values: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(values, 0), dtype=np.int64)


def _with(table: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), table.schema.field(name), values)
    return table
