"""Lines of an access log and the connections of ``uncork steer record --client-ports``.

The client's network, its port and the time identify the connection of a line. The line gets its arm and
controller.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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

NO_PORT: Final = "no client port in the line"
NO_CONNECTION: Final = "no connection with this address and port at this time"
SEVERAL: Final = "connections with different arms: two clients of the network had the same port"

_CLIENT, _PORT = "service_client", "service_client_port"
_START, _END = "service_start_unix_ns", "service_end_unix_ns"
_TYPES: Final = {column.name: arrow_type(column) for column in COLUMNS}
_SCHEMA: Final = pa.schema(
    [(_CLIENT, pa.string()), *((name, pa.int64()) for name in (_PORT, _START, _END))]
    + [(name, _TYPES[name]) for name in JOINED]
)

Key = tuple[str, int]
"""The client's network, as records have it, and its port."""


@dataclass(frozen=True)
class Times:
    """When a response began and ended, in nanoseconds since 1970."""

    start: int
    end: int


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

    def columns(self, keys: Sequence[Key | None], times: Sequence[Times | None]) -> dict[str, pa.Array]:
        """The columns of lines with these keys and times. A line without a connection has nulls."""
        rows = pa.array([self._find(key, at) for key, at in zip(keys, times, strict=True)], pa.int64())
        return {name: _one_chunk(pc.take(self.table[name], rows)) for name in JOINED}

    def _find(self, key: Key | None, at: Times | None) -> int | None:
        if key is None or at is None:
            self.unmatched[NO_PORT] += 1
            return None
        near = [row for row in self._rows.get(key, ()) if self._is_near(row, at, SLACK_NS)]
        exact = [row for row in near if self._is_near(row, at, 0)]
        chosen = exact or near
        if len({self._arm[row] for row in chosen}) == 1:
            self.matched += 1
            return chosen[0]
        self.unmatched[SEVERAL if chosen else NO_CONNECTION] += 1
        return None

    def _is_near(self, row: int, at: Times, slack: int) -> bool:
        return bool(self._start[row] - slack <= at.start and at.end <= self._end[row] + slack)

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
        service, choice = _object(record, "service"), _object(record, "choice")
        arm = _object(choice, "arm")
        if service.get("client_port") is None or service.get("end_unix_ns") is None:
            continue
        yield {
            _CLIENT: service.get("client"),
            _PORT: service["client_port"],
            _START: service.get("start_unix_ns"),
            _END: service["end_unix_ns"],
            "cc": record.get("cc"),
            **{f"choice_{name}": choice.get(name) for name in ("policy", "rule", "cc")},
            "arm_experiment": arm.get("experiment"),
            "arm": arm.get("arm"),
            **{f"arm_{name}": arm.get(name) for name in ("unit", "bucket", "propensity")},
        }


def _object(of: Row, name: str) -> Row:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


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


def _one_chunk(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
