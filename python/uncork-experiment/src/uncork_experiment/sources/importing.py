"""Logs to Parquet files of canonical records, in batches: memory does not grow with the log.

What is wrong with a row goes with it into a file of rejected rows, with the file's name and the line's
number.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from uncork_experiment.assignment import assign, client, cookie, header
from uncork_experiment.schema import COLUMNS, arrow_schema
from uncork_experiment.sources import cmcd, lines
from uncork_experiment.sources.fields import NONE, Value, converter
from uncork_experiment.sources.lines import Read, Row, RowError
from uncork_experiment.sources.mapping import NO_ARM, Mapping, UnitRule

BATCH: Final = 20_000
"""Rows in memory, and in a row group of the result."""

LONGEST: Final = 2_000
"""Characters of a rejected line that are kept."""

Progress = Callable[[str, int, int, int], None]
"""Called once per batch with the file's name, its bytes read and in all, and its rows so far."""


@dataclass
class Imported:
    """What became of the rows of some files."""

    files: list[Path] = field(default_factory=list)
    rows: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By reason."""


@dataclass
class _Rejects:
    """The file of rejected rows, made when there is one: an object in each line."""

    path: Path | None
    counts: Counter[str]
    file: TextIO | None = None

    def add(self, name: str, number: int, line: str, reason: str) -> None:
        self.counts[reason] += 1
        if self.path is None:
            return
        if self.file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("w", encoding="utf-8", errors="backslashreplace")
        entry = {"file": name, "line": number, "reason": reason, "text": line[:LONGEST]}
        self.file.write(json.dumps(entry) + "\n")

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def import_files(
    paths: Sequence[Path],
    mapping: Mapping,
    into: Path,
    rejected: Path | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Writes ``into/NAME.parquet`` for each log, and rejected rows to the file ``rejected``."""
    into.mkdir(parents=True, exist_ok=True)
    imported = Imported()
    rejects = _Rejects(rejected, imported.rejected)
    try:
        for number, path in enumerate(paths):
            target = into / f"{number:04d}-{path.name}.parquet"
            imported.rows += _import(path, mapping, target, rejects, progress)
            imported.files.append(target)
    finally:
        rejects.close()
    return imported


def _import(path: Path, mapping: Mapping, target: Path, rejects: _Rejects, progress: Progress | None) -> int:
    total, rows = path.stat().st_size, 0
    schema = arrow_schema()
    with lines.open_text(path) as text, pq.ParquetWriter(target, schema, compression="zstd") as writer:
        counted = _Counted(text)
        for batch in _batches(_read(counted, mapping)):
            good = _converted(batch, mapping, path.name, rejects)
            writer.write_table(_table(good, mapping, schema))
            rows += len(good)
            if progress is not None:
                progress(path.name, counted.bytes if path.suffix != ".gz" else total, total, rows)
    return rows


class _Counted:
    """Lines, and how many bytes they had."""

    def __init__(self, text: Iterable[str]) -> None:
        self._text = text
        self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self.bytes += len(line)
            yield line


def _read(text: Iterable[str], mapping: Mapping) -> Iterator[Read]:
    """The rows of a log, as the mapping says."""
    if mapping.format == "json":
        reads = lines.json_rows(text)
    elif mapping.format == "csv":
        reads = lines.csv_rows(text, mapping.delimiter)
    elif mapping.format == "w3c":
        reads = lines.w3c_rows(text)
    elif mapping.pattern is not None:
        reads = lines.pattern_rows(text, mapping.pattern)
    else:
        reads = lines.text_rows(text)
    return cmcd.Sessions(mapping.cmcd).rows(reads) if mapping.cmcd else reads


def _batches(reads: Iterable[Read]) -> Iterator[list[Read]]:
    batch: list[Read] = []
    for read in reads:
        batch.append(read)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


Good = tuple[dict[str, Value], bytes | None]
"""Values of the mapped columns, and the unit."""


def _converted(batch: list[Read], mapping: Mapping, name: str, rejects: _Rejects) -> list[Good]:
    by_name = {column.name: column for column in COLUMNS}
    convert = {column: converter(by_name[column], of) for column, of in mapping.columns.items()}
    good: list[Good] = []
    for number, line, row in batch:
        if isinstance(row, RowError):
            rejects.add(name, number, line, str(row))
            continue
        row = flattened(row) if mapping.flat else row
        try:
            unit = None if mapping.unit is None else _unit(row, mapping.unit)
            good.append(({column: value(row) for column, value in convert.items()}, unit))
        except RowError as error:
            rejects.add(name, number, line or json.dumps(row), str(error))
    return good


def flattened(row: Row, prefix: str = "") -> Row:
    """Nested objects as fields with dots."""
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _unit(row: Row, rule: UnitRule) -> bytes:
    value = str(row.get(rule.source, ""))
    if value in NONE:
        raise RowError(f"{rule.source}: missing, and it is the unit")
    try:
        return {"prefix": client, "cookie": cookie, "header": header}[rule.kind](value)
    except ValueError:
        raise RowError(f"{rule.source}: no address") from None


def _table(good: list[Good], mapping: Mapping, schema: pa.Schema) -> pa.Table:
    """The batch as a table with all canonical columns."""
    columns: dict[str, Sequence[Value]] = {
        name: [values[name] for values, _ in good] for name in mapping.columns
    }
    if mapping.source is not None:
        columns.setdefault("source", [mapping.source] * len(good))
    if mapping.unit is not None:
        columns |= _assigned([unit for _, unit in good if unit is not None], mapping.unit, columns)
    nulls = [None] * len(good)
    return pa.table({it.name: pa.array(columns.get(it.name, nulls), it.type) for it in schema}, schema=schema)


def _assigned(
    units: list[bytes], rule: UnitRule, columns: dict[str, Sequence[Value]]
) -> dict[str, Sequence[Value]]:
    """Hash and bucket of the units; the arm, where the log has none and the rule knows the arms."""
    assigned = assign(rule.experiment, units)
    found: dict[str, Sequence[Value]] = {
        "arm_unit": assigned.hash.tolist(),
        "arm_bucket": assigned.bucket.tolist(),
    }
    if rule.experiment.arms == (NO_ARM,) or "arm" in columns:
        return found
    arms = [rule.experiment.arms[arm] if arm >= 0 else None for arm in assigned.arm.tolist()]
    takes_part = [rule.experiment.name if arm is not None else None for arm in arms]
    return found | {
        "arm": arms,
        "arm_experiment": takes_part,
        "arm_propensity": assigned.propensity.tolist(),
    }
