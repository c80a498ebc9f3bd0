"""Logs to Parquet files of canonical records, in batches: memory does not grow with the log.

What is wrong with a row goes with it into a file of rejected rows, with the file's name and the line's
number.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncork.measure.assignment import assign, client, cookie, header
from uncork.measure.errors import InputError
from uncork.measure.files import Table, part_of, put_in_place, writing
from uncork.measure.own import METADATA, dumps
from uncork.measure.schema import Column, arrow_schema
from uncork.measure.sources import cmcd, headers, lines, nothing, outcome
from uncork.measure.sources.fields import Field, Value, address_of, converter, first_group, text_of
from uncork.measure.sources.identity import Occurrences, hashed
from uncork.measure.sources.joining import Connections, Key, key_of
from uncork.measure.sources.lines import NoRecordError, Read, Row, RowError
from uncork.measure.sources.losses import UNKNOWN, Losses
from uncork.measure.sources.mapping import NO_ARM, Mapping, UnitRule
from uncork.measure.sources.networks import Networks

BATCH: Final = 20_000
"""Rows in memory, and in a row group of the result."""

BEGINNING: Final = 4_096
"""Characters by which logs of one name are kept apart."""

LONGEST: Final = 2_000
"""Characters of a rejected line that are kept."""

TABLES: Final = (".parquet", ".duckdb")
"""What names of tables end in."""

REGION: Final = "region"
"""The column with the name that a file of networks gives to the client."""

Progress = Callable[[str, int, int, int], None]
"""Called once per batch with the file's name, its bytes read and in all, and its rows so far."""


@dataclass
class Imported:
    """What became of the rows of some files."""

    files: list[Path] = field(default_factory=list)
    rows: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By reason."""
    sample: str = ""
    """A line that was rejected, with its file and number."""
    losses: Losses = field(default_factory=Losses)
    unseen: tuple[str, ...] = ()
    """Fields that the mapping reads, and that no line had."""


@dataclass
class Rejects:
    """The file of rejected rows, an object in each line. It is made when there is one, and gets its name when
    all are in it.
    """

    path: Path | None
    counts: Counter[str]
    losses: Losses = field(default_factory=Losses)
    file: TextIO | None = None
    sample: str = ""

    def add(self, name: str, number: int, line: str, reason: str, arm: str | None = UNKNOWN) -> None:
        """A rejected row. ``arm``: which one lost it; ``None`` if it is rightly no record."""
        self.counts[reason] += 1
        if arm is not None:
            self.losses.lost[arm] += 1
        self.sample = self.sample or f"{name}, line {number}: {line[: nothing.SHOWN]}"
        if self.path is None:
            return
        with writing(self.path):
            if self.file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                part = part_of(self.path)
                self.file = part.open("w", encoding="utf-8", errors="backslashreplace")
            entry = {"file": name, "line": number, "reason": reason, "text": line[:LONGEST]}
            self.file.write(json.dumps(entry) + "\n")

    def close(self) -> None:
        if self.file is None or self.path is None:
            return
        part = part_of(self.path)
        try:
            with writing(self.path):
                self.file.close()
                put_in_place(part, self.path)
        finally:
            part.unlink(missing_ok=True)


def import_files(
    paths: Sequence[Path],
    mapping: Mapping,
    into: Path,
    rejected: Path | None = None,
    progress: Progress | None = None,
    networks: Networks | None = None,
    connections: Connections | None = None,
) -> Imported:
    """Writes ``into/MARK-NAME.parquet`` for each log, and rejected rows to the file ``rejected``.

    With ``connections`` each line gets what ``joining`` says. Logs that have lines and no
    record are an error that says which format would work; so are lines without any known connection.
    """
    if connections is not None and mapping.connection is None:
        remedy = 'add [connection] with address = "FIELD" and port = "FIELD"'
        raise InputError("--join", f"{mapping.name} does not name the client's port", remedy)
    with writing(into):
        into.mkdir(parents=True, exist_ok=True)
    imported = Imported()
    rejects = Rejects(rejected, imported.rejected, imported.losses)
    seen: set[str] = set()
    try:
        try:
            for number, path in enumerate(paths):
                target = _target(into, path, number, imported.files)
                imported.rows += _one(path, mapping, target, rejects, progress, networks, connections, seen)
                imported.files.append(target)
        finally:
            rejects.close()
        imported.sample = rejects.sample
        if imported.rows == 0:
            raise nothing.error(paths, mapping, imported.rejected, imported.sample)
        if connections is not None:
            connections.check()
            _measure(imported.files, connections)
    except Exception:
        for file in imported.files:
            file.unlink()
        raise
    if headers.is_late(mapping):
        imported.unseen = mapping.unseen(seen)
        imported.losses.unseen = () if mapping.is_built_in() else imported.unseen
    return imported


def _target(into: Path, path: Path, number: int, others: Sequence[Path]) -> Path:
    """A file for the records of a log. Its mark is of how the log begins: a log that is imported again
    replaces its records, and another one of the same name, as after a rotation, does not.
    """
    if not path.is_file():
        return into / f"{number:04d}-{path.name}.parquet"  # a pipe: it can be read once
    target = into / f"{_mark(path)}-{path.name}.parquet"
    # A copy: the check of duplicates must see it.
    return target.with_name(f"{number:04d}-{target.name}") if target in others else target


def _mark(path: Path) -> str:
    """Of the text that a log begins with, compressed or not; of all of a table, because many begin alike."""
    from uncork.measure.sources import tables

    digest = partial(hashlib.blake2b, digest_size=4)
    if tables.is_table(path):
        with path.open("rb") as table:
            return hashlib.file_digest(table, digest).hexdigest()
    with lines.open_text(path) as log:
        return digest(log.read(BEGINNING).encode("utf-8", "surrogateescape")).hexdigest()


def _measure(files: Sequence[Path], connections: Connections) -> None:
    """Adds the figures of connections with one response. Which they are is known when all lines are read."""
    rows, first = connections.of_records(), 0
    for file in files:
        table = pq.read_table(file)
        with Table(file, table.schema) as writer:
            writer.write(connections.measured(table, rows.slice(first, table.num_rows)))
        first += table.num_rows


def _one(
    path: Path,
    mapping: Mapping,
    target: Path,
    rejects: Rejects,
    progress: Progress | None,
    networks: Networks | None,
    connections: Connections | None,
    seen: set[str],
) -> int:
    from uncork.measure.sources import tables

    if tables.is_table(path):
        if connections is not None:
            raise InputError("--join", f"{path} is a table", "name logs, one line for each response")
        seen.update(mapping.names_read())
        with tables.understood(path):
            batches = tables.open_batches(path, mapping)
            return tables.convert(batches, mapping, target, rejects, path.name, networks)
    return _import(path, mapping, target, rejects, progress, networks, connections, seen)


def _import(
    path: Path,
    mapping: Mapping,
    target: Path,
    rejects: Rejects,
    progress: Progress | None,
    networks: Networks | None,
    connections: Connections | None,
    seen: set[str],
) -> int:
    total, rows = path.stat().st_size, 0
    schema = schema_of(mapping, has_networks=networks is not None)
    is_compressed = bool(lines.compression_of(path))
    with lines.open_text(path) as text, Table(target, schema) as writer:
        counted = _Counted(text, path)
        make = _Rows(mapping, path.name, rejects, schema, networks, connections, seen)
        for batch in _batches(_read(counted, mapping, path.name)):
            table = make.table(batch)
            writer.write(table)
            rows += table.num_rows
            if progress is not None:
                progress(path.name, total if is_compressed else counted.bytes, total, rows)
    return rows


def schema_of(mapping: Mapping, *, has_networks: bool = False) -> pa.Schema:
    """Of the files that an import with this mapping writes: canonical columns, and its own."""
    extra = {name: column.kind for name, (column, _) in mapping.extra().items()}
    schema = arrow_schema(extra | ({REGION: "text"} if has_networks else {}))
    return schema.with_metadata({METADATA: dumps(mapping.metrics)}) if mapping.metrics else schema


class _Counted:
    """Lines of a file, and how many bytes they had."""

    def __init__(self, text: Iterable[str], path: Path) -> None:
        self._text, self._path = text, path
        self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        with lines.whole(self._path):
            for line in self._text:
                self.bytes += len(line)
                yield line


def _read(text: Iterable[str], mapping: Mapping, name: str) -> Iterator[Read]:
    """The rows of a log, as the mapping says. `name`: of the file, in messages."""
    if mapping.format == "json":
        reads = lines.json_rows(text)
    elif mapping.format == "csv":
        check = partial(headers.check, mapping=mapping, place=name)
        reads = lines.csv_rows(text, mapping.delimiter, mapping.header, check)
    elif mapping.format == "w3c":
        clock = headers.Clock(mapping, name)
        reads = clock.rows(lines.w3c_rows(clock.lines(text), clock.check))
    elif mapping.pattern is not None:
        reads = lines.pattern_rows(text, mapping.pattern)
    elif mapping.format == "parquet":
        remedy = f"name {' or '.join(TABLES)} files"
        raise InputError("--mapping", f"{mapping.name} is of tables, not of logs such as {name}", remedy)
    else:
        reads = lines.text_rows(text)
    if not mapping.cmcd:
        return reads
    return cmcd.Sessions(mapping.cmcd).rows(_flat(reads) if mapping.flat else reads)


def _flat(reads: Iterable[Read]) -> Iterator[Read]:
    for number, line, row in reads:
        try:
            yield number, line, row if isinstance(row, RowError) else flattened(row)
        except RecursionError:
            yield number, line, RowError(lines.TOO_DEEP)


def _batches(reads: Iterable[Read]) -> Iterator[list[Read]]:
    batch: list[Read] = []
    for read in reads:
        batch.append(read)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


@dataclass(frozen=True)
class _Good:
    """A row that can be read."""

    number: int
    line: str
    values: list[Value]
    unit: bytes | None
    region: str | None
    id: int
    key: Key | None
    """Of the connection, with a join."""


class _Rows:
    """Rows of one log to tables."""

    def __init__(
        self,
        mapping: Mapping,
        name: str,
        rejects: Rejects,
        schema: pa.Schema,
        networks: Networks | None,
        connections: Connections | None,
        seen: set[str],
    ) -> None:
        self._mapping, self._name, self._rejects, self._schema = mapping, name, rejects, schema
        self._networks, self._connections, self._seen = networks, connections, seen
        self._convert = {name: converter(column, of) for name, (column, of) in mapping.fields().items()}
        self._skip = [converter(Column("condition", "count"), of) for of in mapping.leave_out]
        self._client = mapping.columns.get("service_client")
        self._id = None if mapping.id is None else converter(Column("id", "text"), mapping.id)
        self._occurrences = Occurrences()

    def table(self, batch: list[Read]) -> pa.Table:
        """The batch with all columns, without rejected rows."""
        good = [it for read in batch if (it := self._row(*read)) is not None]
        columns: dict[str, Sequence[Value]] = {
            name: [it.values[at] for it in good] for at, name in enumerate(self._convert)
        }
        if self._mapping.source is not None:
            columns.setdefault("source", [self._mapping.source] * len(good))
        if self._mapping.has_ids:
            columns["log_id"] = [it.id for it in good]
        if self._networks is not None:
            columns[REGION] = [it.region for it in good]
        if self._mapping.unit is not None:
            columns |= assigned([it.unit for it in good if it.unit is not None], self._mapping.unit, columns)
        nulls = [None] * len(good)
        arrays = [pa.array(columns.get(it.name, nulls), it.type) for it in self._schema]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        if not self._mapping.has_ids:
            self._rejects.losses.add(table)
            return table
        took = table["completion_ns"].to_pylist()
        table, is_head = outcome.finished(table, self._mapping)
        for it, is_left_out in zip(good, is_head.to_pylist(), strict=True):
            if is_left_out:
                self._rejects.add(self._name, it.number, it.line, outcome.NO_BODY, arm=None)
        is_record = pc.invert(is_head)
        if self._connections is not None:
            table = self._connections.join(table, [it.key for it in good], took)
            self._connections.keep(is_record)
        table = table.filter(is_record)
        self._rejects.losses.add(table)
        return table

    def _row(self, number: int, line: str, row: Row | RowError) -> _Good | None:
        if isinstance(row, RowError):
            self._reject(number, line, row)
            return None
        try:
            row = flattened(row) if self._mapping.flat else row
        except RecursionError:
            self._reject(number, line, RowError(lines.TOO_DEEP))
            return None
        if not row.keys() <= self._seen:
            self._seen.update(row)
        line = line or json.dumps(row)
        try:
            return self._good(number, line, row)
        except RowError as error:
            self._reject(number, line, error, row)
            return None

    def _good(self, number: int, line: str, row: Row) -> _Good:
        """The row's values. Raises ``RowError``."""
        for of, skip in zip(self._mapping.leave_out, self._skip, strict=True):
            if skip(row) == 1:
                raise NoRecordError(f"not a download: {' '.join(of.sources)}")
        unit = None if self._mapping.unit is None else unit_of(row, self._mapping.unit)
        values = [value(row) for value in self._convert.values()]
        named = self._id(row) if self._id is not None else None
        number_of = self._occurrences.id(line) if named is None else hashed(str(named))
        return _Good(number, line, values, unit, self._region(row), number_of, self._key(row))

    def _reject(self, number: int, line: str, error: RowError, row: Row | None = None) -> None:
        if self._connections is not None and row is not None:
            self._connections.is_shared_with(self._key(row))
        arm = None if isinstance(error, NoRecordError) else self._arm(row)
        self._rejects.add(self._name, number, line, str(error), arm)

    def _arm(self, row: Row | None) -> str:
        """Of a row that is rejected."""
        try:
            convert = self._convert.get("arm")
            return UNKNOWN if row is None or convert is None else str(convert(row) or UNKNOWN)
        except RowError:
            return UNKNOWN

    def _key(self, row: Row) -> Key | None:
        rule = self._mapping.connection
        if self._connections is None or rule is None:
            return None
        port = None if rule.port is None else text_of(row.get(rule.port)) or ""
        return key_of(text_of(row.get(rule.address)), port)

    def _region(self, row: Row) -> str | None:
        if self._networks is None or self._client is None:
            return None
        return region_of(row, self._client, self._networks)


def region_of(row: Row, client: Field, networks: Networks) -> str | None:
    """The name that the networks give to the client's address, as the log has it."""
    texts = (text_of(row.get(name)) for name in client.sources)
    address = first_group(client.pattern, next((it for it in texts if it is not None), None))
    return None if address is None else networks.name(address_of(address))


def flattened(row: Row, prefix: str = "") -> Row:
    """Nested objects as fields with dots."""
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def unit_of(row: Row, rule: UnitRule) -> bytes:
    """The bytes to hash for the bucket. Raises ``RowError``."""
    value = first_group(rule.pattern, text_of(row.get(rule.source)))
    if not value:
        raise RowError(f"{rule.source}: missing, and it is the unit")
    try:
        return client(address_of(value)) if rule.kind == "prefix" else _KINDS[rule.kind](value)
    except ValueError:
        raise RowError(f"{rule.source}: no address") from None


_KINDS: Final = {"cookie": cookie, "header": header}


def assigned(units: list[bytes], rule: UnitRule, columns: Container[str]) -> dict[str, Sequence[Value]]:
    """Hash and bucket of the units; the arm, where the log has none and the rule knows the arms."""
    of = assign(rule.experiment, units)
    found: dict[str, Sequence[Value]] = {"arm_unit": of.hash.tolist(), "arm_bucket": of.bucket.tolist()}
    if rule.experiment.arms == (NO_ARM,) or "arm" in columns:
        return found
    arms = [rule.experiment.arms[arm] if arm >= 0 else None for arm in of.arm.tolist()]
    takes_part = [rule.experiment.name if arm is not None else None for arm in arms]
    return found | {"arm": arms, "arm_experiment": takes_part, "arm_propensity": of.propensity.tolist()}
