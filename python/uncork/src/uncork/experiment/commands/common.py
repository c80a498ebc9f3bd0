"""What several commands share: reading records, progress, times, output files."""

from __future__ import annotations

import argparse
import csv
import re
import tempfile
import time
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import ibis
import ibis.expr.types as ir

from uncork.experiment.commands import invalid
from uncork.measure import console, own, rollups
from uncork.measure.address import Source
from uncork.measure.engines import duckdb
from uncork.measure.errors import InputError, available
from uncork.measure.keys import KEYS, key_column
from uncork.measure.metrics import declare
from uncork.measure.reduce import Keep, Run, to_arrow
from uncork.measure.schema import Columns, typed
from uncork.measure.sources import load, networks, read, stores
from uncork.measure.sources.losses import Losses
from uncork.measure.sources.reading import RECORD_SUFFIXES, find_files

QUIET_SECONDS = 5.0
MAX_VALUES = 8
"""Of a column, in a message."""
HOURS = ("hour", "block")
"""Keys that a roll-up of a day does not have."""
PATTERN = frozenset("*?[]{}\\")
"""Characters that engines take for a pattern of file names."""


@dataclass
class Progress:
    """Steps of long work on stderr: one changing line on a terminal, else a line now and then."""

    is_terminal: bool = field(default_factory=console.is_live)
    started: float = field(default_factory=time.monotonic)
    last: float = field(default_factory=time.monotonic)

    def __call__(self, step: str) -> None:
        now = time.monotonic()
        if self.is_terminal:
            console.live(f"{now - self.started:4.0f} s  {step}")
        elif now - self.last > QUIET_SECONDS:
            console.note(f"{now - self.started:4.0f} s  {step}")
            self.last = now

    def rows(self, name: str, done: int, total: int, rows: int) -> None:
        """Of a log that is imported."""
        share = f"{100 * done / total:.0f} %" if total else "all"
        self(f"{name}: {share}, {rows:,} rows")

    def done(self) -> None:
        if self.is_terminal:
            console.live("")


@dataclass(frozen=True)
class Records:
    """A table of records and what runs its queries. `held` are temporary files."""

    table: ir.Table
    run: Run
    rejected: dict[str, int]
    losses: Losses | None = None
    """Of logs."""
    held: object = None
    unit_columns: tuple[str, ...] = ()
    """The columns that make a unit, if they were named."""
    keep: Keep | None = None
    """Keeps the result of a query in the engine, if the engine can."""


def read_records(arguments: argparse.Namespace, progress: Progress) -> Records:
    """The records of the paths, on the chosen engine."""
    paths: Sequence[Source] = arguments.paths
    if not paths:
        raise InputError(
            "PATH", "no files or directories are given", "name some, or try: uncork experiment demo"
        )
    if arguments.engine != "duckdb":
        return _elsewhere(arguments, paths)
    mapping = load(arguments.mapping) if arguments.mapping else None
    unit = names(arguments.unit_columns) if arguments.unit_columns else None
    settings = duckdb.Settings(memory=memory(arguments.memory))
    loaded = read(
        paths,
        mapping,
        unit=unit,
        rejected=arguments.rejected,
        progress=progress.rows,
        networks=networks.load(arguments.networks) if arguments.networks else None,
        settings=settings,
    )
    declare(metric.metric() for metric in own.fitted(loaded.metrics, loaded.table))
    table = selected(loaded.table, arguments.where, arguments.exclude, to_arrow)
    invalid.check(table, to_arrow, () if mapping else loaded.files)
    keep = duckdb.keep if duckdb.is_small(table) else None
    return Records(table, to_arrow, loaded.rejected, loaded.losses, loaded, unit or (), keep)


def _elsewhere(arguments: argparse.Namespace, paths: Sequence[Source]) -> Records:
    """On Spark or ClickHouse, which are extras of this package."""
    if arguments.mapping:
        raise InputError(
            "--mapping", f"logs cannot be read with --engine {arguments.engine}", "import them first"
        )
    if arguments.networks:
        raise InputError(
            "--networks", f"not with --engine {arguments.engine}", "name networks while importing"
        )
    copies = tempfile.TemporaryDirectory(prefix="uncork-")
    local = stores.local(paths, Path(copies.name), RECORD_SUFFIXES)
    files, rejected = rollups.readable(find_files(local, False))
    of_rollups = [path for path in files if rollups.is_rollup(path)]
    if of_rollups and len(of_rollups) < len(files):
        problem = f"a roll-up next to records, which --engine {arguments.engine} does not keep apart"
        raise InputError(str(of_rollups[0]), problem, "leave --engine out, or name either of both")
    if pattern := next((str(path) for path in files if PATTERN & set(str(path))), None):
        problem = f"--engine {arguments.engine} reads this name as a pattern"
        raise InputError(pattern, problem, "rename the file")
    try:
        if arguments.engine == "spark":
            from uncork.measure.engines import spark

            table, run = spark.open_files(files, spark.local_session(arguments.spark_master))
        else:
            from uncork.measure.engines import clickhouse

            table, run = clickhouse.open_files(files)
    except ImportError as error:
        remedy = f"pip install 'uncork[{arguments.engine}]'"
        raise InputError(f"--engine {arguments.engine}", f"{error.name} is not installed", remedy) from error
    table = rollups.alone(typed(table)) if of_rollups else typed(table)
    table = selected(table, arguments.where, arguments.exclude, run)
    invalid.check(table, run)
    return Records(table, run, rejected, None, copies)


def memory(text: str) -> str:
    """A size with its unit, as the engine takes it."""
    if not re.fullmatch(r"\d+(\.\d+)?\s*([kMGT]i?B)", text):
        raise InputError(f"--memory {text}", "not a size with a unit", "write 3GB or 500MB")
    return text


def selected(
    table: ir.Table, where: Sequence[str], exclude: Sequence[str], run: Run | None = to_arrow
) -> ir.Table:
    """The rows in which each of these columns or keys has its value, and none of the others. Without ``run``
    there are no rows yet, and no names of keys.
    """
    conditions = [("--where", it) for it in where] + [("--exclude", it) for it in exclude]
    for option, condition in conditions:
        matches = _matches(table, condition, option, run)
        left = table.filter(~matches.fill_null(False) if option == "--exclude" else matches)
        if run is not None and _is_empty(left, run) and not _is_empty(table, run):
            column = condition.rpartition("=")[0]
            place, problem = f"{option} {condition}", "no record is left"
            raise InputError(place, problem, f"{column} has {values(table, column, run)}")
        table = left
    return table


def _is_empty(table: ir.Table, run: Run) -> bool:
    """Reads no further than to the first row."""
    return bool(run(table.limit(1).select(row=ibis.literal(1))).num_rows == 0)


def values(table: ir.Table, column: str, run: Run) -> str:
    """The most frequent values of a column or key, with their counts."""
    key = None if column in table.columns else key_column(column, set(table.columns))
    of = table[column] if key is None else key.value(Columns(table))
    counted = run(table.group_by(value=of).aggregate(n=lambda it: it.count())).to_pylist()
    counted.sort(key=lambda row: (-row["n"], str(row["value"])))
    named = [(key.text(row["value"]) if key else row["value"], row["n"]) for row in counted[:MAX_VALUES]]
    more = f" and {len(counted) - MAX_VALUES} more" if len(counted) > MAX_VALUES else ""
    return ", ".join(f"{'no value' if it is None else it} ({n:,})" for it, n in named) + more


def _matches(table: ir.Table, condition: str, option: str, run: Run | None) -> ir.BooleanValue:
    """Where the column has the value as text; of a key such as `region` or `country`, its name."""
    column, equals, value = condition.rpartition("=")
    if not equals:
        raise InputError(f"{option} {condition}", "no value is given", "write COLUMN=VALUE")
    if column in table.columns:
        return table[column].cast("string") == value
    if column not in KEYS:
        problem = f"no column or key {column!r}"
        remedy = f"write COLUMN=VALUE; {available(column, [*table.columns, *KEYS])}"
        raise InputError(f"{option} {condition}", problem, remedy)
    if run is None:
        raise InputError(f"{option} {condition}", "the query has no names of keys", "write COLUMN=VALUE")
    if column in HOURS:
        rollups.check_hours(table, f"{option} {condition}")
    key = key_column(column, set(table.columns))
    of = key.value(Columns(table))
    found = run(table.select(value=of).distinct())["value"].to_pylist()
    wanted = [it for it in found if it is not None and value in (key.text(it), str(it))]
    return of.isin(wanted) if wanted else of.isnull() & of.notnull()


def names(text: str) -> tuple[str, ...]:
    """Names in a list with commas; one that has commas itself stands in quotation marks."""
    fields = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(dict.fromkeys(field.strip() for field in fields if field.strip()))


def instant(text: str | None, option: str) -> int | None:
    """A time in ISO 8601, UTC unless it has an offset, as nanoseconds since 1970."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text}", "not a time", "write 2026-11-02 or 2026-11-02T18:00Z") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000_000


def share(text: str, option: str) -> float:
    """`5%` or `0.5 %` as a fraction."""
    try:
        number, unit = float(text.rstrip("% ")), text.strip()[-1:]
    except ValueError:
        number, unit = 0.0, ""
    if unit != "%" or not 0 < number <= 100:
        raise InputError(f"{option} {text}", "not a share", "write it in percent, such as 2%")
    return number / 100


def show(path: Path) -> None:
    """Opens a page in the browser."""
    if not webbrowser.open(path.resolve().as_uri()):
        console.note(f"no browser was found: open {path} yourself")
