"""Files and directories to one table of records, on the embedded engine."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import ibis.expr.types as ir

from uncork_experiment.engines import duckdb
from uncork_experiment.errors import InputError
from uncork_experiment.sources import uncork
from uncork_experiment.sources.importing import Progress, import_files
from uncork_experiment.sources.mapping import Mapping

OTHER_TABLES: Final = ("objects.parquet", "series.parquet")
"""Tables of the laboratory beside the flows; read only if named."""

JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True)
class Loaded:
    """Records that can be reduced. Imported logs live as long as the table does."""

    table: ir.Table
    files: tuple[Path, ...]
    rejected: dict[str, int] = field(default_factory=dict)
    """Rows that could not be read, by reason."""


def read(
    paths: Sequence[Path | str],
    mapping: Mapping | None = None,
    *,
    unit: Sequence[str] | None = None,
    work: Path | None = None,
    rejected: Path | None = None,
    progress: Progress | None = None,
    settings: duckdb.Settings = duckdb.DEFAULT,
) -> Loaded:
    """Reads Parquet files where they are, and imports all others into ``work`` (a temporary directory).

    Parquet files and JSON lines are uncork's records, or canonical ones; with a mapping all files are logs.
    ``unit`` are the columns that tell units of the laboratory apart, by default each flow.
    """
    files = found([Path(path) for path in paths], mapping is not None)
    temporary = tempfile.TemporaryDirectory(prefix="uncork-experiment-") if work is None else None
    into = Path(temporary.name) if temporary is not None else Path(str(work))
    into.mkdir(parents=True, exist_ok=True)
    logs = [path for path in files if mapping is not None or path.suffix != ".parquet"]
    tables = [path for path in files if path not in logs]
    ready = [path if uncork.has_buckets(path) else _bucketed(path, into, unit) for path in tables]
    counts: Counter[str] = Counter()
    if logs:
        imported = import_files(logs, mapping or uncork.JSON_LINES, into, rejected, progress)
        counts = imported.rejected
        ready += imported.files
    return Loaded(duckdb.connect(settings, temporary).read(ready), tuple(files), dict(counts))


def found(paths: Sequence[Path], is_log: bool) -> list[Path]:
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
    return path.suffix in (".parquet", ".jsonl", ".ndjson")


def _bucketed(path: Path, into: Path, unit: Sequence[str] | None) -> Path:
    target = into / f"lab-{len(list(into.iterdir())):04d}-{path.name}"
    uncork.add_buckets(path, target, unit)
    return target
