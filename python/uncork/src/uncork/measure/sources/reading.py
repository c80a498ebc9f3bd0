"""Files and directories to one table of records, on the embedded engine."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq

from uncork.measure import rollups, schema
from uncork.measure.address import Source, source
from uncork.measure.engines import duckdb
from uncork.measure.errors import InputError
from uncork.measure.own import METADATA, OwnMetric, loads
from uncork.measure.sources import stores, tables, uncork
from uncork.measure.sources.importing import REGION, Progress, import_files
from uncork.measure.sources.losses import Losses
from uncork.measure.sources.mapping import Mapping
from uncork.measure.sources.networks import Networks

OTHER_TABLES: Final = ("objects.parquet", "series.parquet")
"""Tables of the laboratory next to the flows; read only if named."""

RECORD_SUFFIXES: Final = (".parquet", ".jsonl", ".ndjson")
"""Files of a directory that are records."""

JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True)
class LoadedRecords:
    """Records that can be reduced. Imported logs live until the table is dropped."""

    table: ir.Table
    files: tuple[Path, ...]
    rejected: dict[str, int] = field(default_factory=dict)
    """Rows that could not be read, by reason."""
    losses: Losses | None = None
    """Of logs."""
    metrics: tuple[OwnMetric, ...] = ()
    """Metrics of the records in addition to the built-in ones."""


def read(
    paths: Sequence[Source | str],
    mapping: Mapping | None = None,
    *,
    unit: Sequence[str] | None = None,
    work: Path | None = None,
    rejected: Path | None = None,
    progress: Progress | None = None,
    networks: Networks | None = None,
    settings: duckdb.Settings = duckdb.DEFAULT,
) -> LoadedRecords:
    """Reads Parquet files where they are, and imports all others into ``work`` (a temporary directory).
    Objects of a store are copied to it.

    Parquet files and JSON lines are uncork's records, or canonical ones; a mapping is for all files.
    ``unit`` are the columns that identify a unit; of results of the laboratory by default each flow.
    """
    temporary = tempfile.TemporaryDirectory(prefix="uncork-") if work is None else None
    into = Path(temporary.name) if temporary is not None else Path(str(work))
    into.mkdir(parents=True, exist_ok=True)
    sources = [source(path) if isinstance(path, str) else path for path in paths]
    local = stores.local(sources, into, None if mapping else RECORD_SUFFIXES)
    files, counts = rollups.readable(find_files(local, mapping is not None))
    logs = [path for path in files if mapping is not None or not tables.is_parquet_named(path)]
    parquet = [path for path in files if path not in logs]
    check(parquet)
    ready = [path if uncork.has_buckets(path) else _bucketed(path, into, unit) for path in parquet]
    losses = None
    if logs:
        imported = import_files(logs, mapping or uncork.JSON_LINES, into, rejected, progress, networks)
        counts, losses = counts + imported.rejected, imported.losses
        ready += imported.files
    untyped = duckdb.connect(settings, temporary).read(ready)
    check_texts(untyped, parquet)
    table = schema.typed(untyped, is_duckdb=True, unsigned=unsigned(parquet))
    if any(rollups.is_rollup(path) for path in parquet):
        table, covered, uncounted = *rollups.together(table), rollups.uncounted(table)
        counts += Counter({rollups.COVERED: covered, rollups.UNCOUNTED: uncounted})
    if networks is not None and mapping is None:
        table = with_regions(table, networks)
    return LoadedRecords(table, tuple(files), dict(counts), losses, metrics_of(ready))


def check(tables: Sequence[Path]) -> None:
    """Whether there is a row in the Parquet files."""
    if tables and not any(uncork.rows(path) for path in tables):
        raise InputError(", ".join(str(path) for path in tables[:3]), "no rows", "name files with records")


def check_texts(records: ir.Table, files: Sequence[Path]) -> None:
    """Whether columns of numbers that are texts have numbers in them."""
    for column in schema.COLUMNS:
        is_number = column.kind != "text" and column.name != "arm_unit"
        if not is_number or column.name not in records.columns or not records[column.name].type().is_string():
            continue
        value = records[column.name]
        is_filled, is_fine = value.nullif("").notnull(), value.try_cast("float64").notnull()
        found = records.aggregate(
            filled=is_filled.sum(),
            numbers=is_fine.sum(),
            example=value.min(where=is_filled & ~is_fine),
        )
        row = found.to_pyarrow().to_pylist()[0]
        if not row["filled"] or row["numbers"]:
            continue
        time = ' = { from = "COLUMN", time = "iso" }' if column.name.endswith("unix_ns") else ' = "COLUMN"'
        place = ", ".join(map(str, _with_texts(files, column.name)[:3]))
        raise InputError(
            f"{place}: column {column.name}",
            f"none of its {row['filled']:,} values is a number, such as {row['example']!r}",
            f"write numbers, or a mapping with {column.name}{time} (--mapping)",
        )


def unsigned(files: Sequence[Path]) -> frozenset[str]:
    """Columns of files of others with values above 63 bits, by the files' statistics."""
    found: set[str] = set()
    for path in files:
        of = pq.read_schema(path)
        if any(key.startswith(b"uncork.") for key in of.metadata or {}):
            continue
        wide = [name for name in schema.NAMES & set(of.names) if pa.types.is_uint64(of.field(name).type)]
        if wide:
            found |= _too_large(pq.read_metadata(path), set(wide))
    return frozenset(found)


def _too_large(metadata: pq.FileMetaData, names: set[str]) -> set[str]:
    found = set()
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema in names:
                of = column.statistics
                if of is None or not of.has_min_max or of.max > schema.MAX_COUNT:
                    found.add(column.path_in_schema)
    return found


def _with_texts(files: Sequence[Path], name: str) -> list[Path]:
    """The files in which the column has texts, or all."""
    found = [path for path in files if _is_text(pq.read_schema(path), name)]
    return found or list(files)


def _is_text(of: pa.Schema, name: str) -> bool:
    if name not in of.names:
        return False
    kind = of.field(name).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def with_regions(records: ir.Table, networks: Networks) -> ir.Table:
    """The records with the names of their clients' networks as ``region``."""
    if "service_client" not in records.columns:
        raise InputError(
            "--networks", "the records have no column service_client", "map the client's address"
        )
    clients = records.filter(records["service_client"].notnull()).select("service_client").distinct()
    texts = [str(it) for it in clients.to_pyarrow()["service_client"].to_pylist()]
    named = pa.table({"_client": pa.array(texts, pa.string()), REGION: [networks.name(it) for it in texts]},
                     schema=pa.schema({"_client": pa.string(), REGION: pa.string()}))  # fmt: skip
    bare = records.drop(REGION) if REGION in records.columns else records
    names = ibis.memtable(named)
    return bare.left_join(names, bare["service_client"] == names["_client"]).drop("_client")


def metrics_of(files: Sequence[Path]) -> tuple[OwnMetric, ...]:
    """The metrics that an import declared in these files."""
    found = [(pq.read_schema(path).metadata or {}).get(METADATA, b"[]") for path in files]
    return tuple({metric.name: metric for text in found for metric in loads(text)}.values())


def find_files(paths: Sequence[Path], is_log: bool) -> list[Path]:
    """The files of all paths; of directories those with records, at any depth."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(it for it in path.rglob("*") if it.is_file() and not it.name.startswith("."))
            files += [it for it in inside if is_log or _has_records(it)]
        elif path.exists():
            files.append(path)
        else:
            raise InputError(str(path), "no such file or directory")
    if not files:
        raise InputError(", ".join(map(str, paths)), "no records", "they are in .parquet or .jsonl files")
    return files


def _has_records(path: Path) -> bool:
    if path.name in OTHER_TABLES:
        return False
    return path.suffix in RECORD_SUFFIXES


def _bucketed(path: Path, into: Path, unit: Sequence[str] | None) -> Path:
    target = into / f"lab-{len(list(into.iterdir())):04d}-{path.name}"
    uncork.add_buckets(path, target, unit)
    return target
