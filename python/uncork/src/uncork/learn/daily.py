"""Evidence of roll-ups, one day at a time.

All of the evidence but traffic is by day, and traffic adds up: so a plan needs the memory of one day, and a
day that has not changed since the last plan is not read again. A roll-up's name has a hash of its content, so
names show whether anything changed.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncork import __version__
from uncork.experiment.commands.common import Progress, read_records
from uncork.learn import evidence, resultfile
from uncork.learn.evidence import COLUMNS, TEXT, TRAFFIC
from uncork.learn.settings import Settings
from uncork.learn.tablefile import date
from uncork.measure import rollups
from uncork.measure.errors import InputError
from uncork.measure.files import write_table
from uncork.measure.rollups import NAME

DAYS = "days"
"""The directory of evidence by day, next to the versions. It can be removed at any time."""
BINNED = ("throughput", "completion")
"""Metrics with bins that plans use. The others have most of the bytes."""
OF_HOSTS = frozenset({"rollup_host", "service_start_unix_ns", "hour", "block"})
"""Columns and keys that a merged file does not have."""
FORM = "client-days"
"""What rows have: files of another form are made again."""
FOLDED = b"uncork.folded"
"""Metadata: records of folded clients, and all with an arm."""
TRAFFIC_KEYS = ("metric", "class", "place", "client", "asn", "country")

Files = Mapping[int, Sequence[Path]]
"""Roll-ups by the day since 1970 on which their period begins."""


@dataclass(frozen=True)
class Day:
    """The evidence of a day."""

    rows: pa.Table
    folded: tuple[int, int]


def by_day(paths: Iterable[Path]) -> Files | None:
    """The files by day; none if a file is not a roll-up, by its name."""
    found: dict[int, list[Path]] = {}
    for path in rollups.once(list(paths)):
        match = NAME.fullmatch(path.name)
        if match is None:
            return None
        found.setdefault(_day(match["day"]), []).append(path)
    return found or None


def _day(text: str) -> int:
    return int(datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).timestamp()) // 86_400


def collect(
    options: argparse.Namespace,
    files: Files,
    settings: Settings,
    on_trial: Sequence[str],
    root: Path,
    progress: Progress,
) -> Day:
    """What `evidence.collect` finds in all of these files, and how many records are of folded clients."""
    days = range(settings.as_of - settings.window, settings.as_of)
    wanted = {day: files[day] for day in days if day in files}
    if not wanted:
        problem = f"no roll-up is of the {settings.window} days before {date(settings.as_of)}"
        raise InputError("records", problem, "name newer ones, or another day with --until")
    found, used = [], set()
    for day, paths in wanted.items():
        path = root / DAYS / f"{date(day)}-{_key(options, paths, settings, on_trial, day)}.parquet"
        progress(f"evidence of {date(day)}")
        found.append(_load(path) or _read(options, paths, settings, on_trial, path, progress))
        used.add(path)
    for old in (root / DAYS).glob("*.parquet"):
        if old not in used:
            old.unlink(missing_ok=True)
    folded = tuple(sum(one.folded[at] for one in found) for at in (0, 1))
    return Day(_summed([one.rows for one in found]), (folded[0], folded[1]))


def _key(
    options: argparse.Namespace, paths: Sequence[Path], settings: Settings, on_trial: Sequence[str], day: int
) -> str:
    """Of all that the evidence of the day depends on."""
    hashed = hashlib.sha256()
    asked = resultfile.asked(evidence.of_day(settings, day), on_trial)
    networks = Path(options.networks).read_bytes() if options.networks else b""
    for part in (
        __version__,
        FORM,
        str(settings.unit_condition),
        asked,
        str(options.where),
        str(options.exclude),
    ):
        hashed.update(part.encode() + b"\0")
    hashed.update(hashlib.sha256(networks).digest())
    for name in sorted(path.name for path in paths):
        hashed.update(name.encode() + b"\0")
    return hashed.hexdigest()[:32]


def _load(path: Path) -> Day | None:
    """A damaged file is made again."""
    try:
        rows = pq.read_table(path)
        folded, of = (rows.schema.metadata or {})[FOLDED].split(b",")
        return Day(evidence.narrow(rows), (int(folded), int(of)))
    except (OSError, pa.ArrowException, KeyError, ValueError):
        return None


def _read(
    options: argparse.Namespace,
    paths: Sequence[Path],
    settings: Settings,
    on_trial: Sequence[str],
    path: Path,
    progress: Progress,
) -> Day:
    kept = rollups.whole(paths)
    with tempfile.TemporaryDirectory(prefix="uncork-") as work:
        few = _merged(options, kept, Path(work))
        records = read_records(argparse.Namespace(**{**vars(options), "paths": few}), progress)
        rows = evidence.collect(records.table, settings, records.run, on_trial)
        found = Day(rows, rollups.folded(records.table))
    # A damaged file may come again, whole, under the same name.
    if len(kept) == len(paths):
        write_table(path, rows.replace_schema_metadata({FOLDED: b"%d,%d" % found.folded}))
    return found


def _merged(options: argparse.Namespace, paths: Sequence[Path], work: Path) -> list[Path]:
    """The day's files as one, unless a condition needs what only they have: an engine takes milliseconds for
    each file, and keeps all of its columns.
    """
    named = {text.rpartition("=")[0] for text in (*options.where, *options.exclude)}
    if named & OF_HOSTS:
        return list(paths)
    from uncork import _native  # Only plans from roll-ups need it.

    return _native.merge_rollups(list(paths), work, "day", BINNED)


def _summed(days: Sequence[pa.Table]) -> pa.Table:
    """Days together. Traffic has no day, and adds up."""
    whole = pa.concat_tables(days).unify_dictionaries()
    is_traffic = pc.equal(whole["metric"].cast(pa.string()), TRAFFIC)
    rest, traffic = whole.filter(pc.invert(is_traffic)), whole.filter(is_traffic)
    texts = {name: traffic[name].cast(_plain(name)) for name in COLUMNS}
    sums = pa.table(texts).group_by(TRAFFIC_KEYS).aggregate([("n", "sum"), ("numerator", "sum")])
    sums = sums.rename_columns({"n_sum": "n", "numerator_sum": "numerator"})
    has = set(sums.column_names)
    full = {name: sums[name] if name in has else pa.nulls(len(sums), _plain(name)) for name in COLUMNS}
    both = pa.concat_tables([rest, evidence.narrow(pa.table(full))]).unify_dictionaries()
    return evidence.in_order({name: both[name] for name in COLUMNS})


def _plain(name: str) -> pa.DataType:
    return pa.string() if COLUMNS[name] == TEXT else COLUMNS[name]
