"""Roll-ups: counts of records by client, arm, bucket and period, as `uncork records rollup` writes them.

They are read as a table of records in which a row stands for many (docs/reference/rollups.md). Its keys
have the names of the record's columns, its counts begin with ``rollup_``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq

from uncork.measure import console
from uncork.measure.bins import IMPOSSIBLE
from uncork.measure.errors import InputError
from uncork.measure.schema import NANOS_PER_SECOND, canonical

SCHEMA: Final = b"uncork.rollup/1"

HOST: Final = "rollup_host"
PERIOD: Final = "rollup_period_s"
RECORDS: Final = "rollup_records"
"""How many records a row stands for; 1 of a record."""
BYTES: Final = "rollup_bytes"
TRAFFIC_RECORDS: Final = "rollup_traffic_records"
TRAFFIC_BYTES: Final = "rollup_traffic_bytes"
"""Of rows that stand for no record: what clients without rows of their own have, by network."""
FOLD: Final = "rollup_fold"
FIRST: Final = "rollup_first_unix_ns"
LAST: Final = "rollup_last_unix_ns"
"""Of the rows for checks of a roll-up, which stand for no record; of a record its start."""

TIME: Final = "service_start_unix_ns"

COVERED: Final = "record of a period that a roll-up counts"
UNCOUNTED: Final = "record of a period of a roll-up that counts fewer"
"""Of the former, how many more they are than the roll-ups of their period and place count: those of other
hosts, probably.
"""
DAMAGED: Final = "damaged roll-up, counted as one record"

NAME: Final = re.compile(
    r"rollup-.+-(?P<day>\d{8})T\d{6}\.\d{3}Z-\d+(?:s|min|h|d)"
    r"(?:-of-(?P<of>\d+))?-(?P<hash>[0-9a-f]{16})\.parquet"
)
"""A merged file of many hosts (`uncork records merge`) says of how many files it is."""
SOURCES: Final = b"rollup.sources"
"""In the metadata of a merged file: the hashes of these files, as their names have them."""
HASH_DIGITS: Final = 16
HOUR_S: Final = 3600

PLACE: Final = ("engine", "service_scope", "service_listener")
"""By which a period is covered: records name no host."""


def is_rollup(path: Path) -> bool:
    """Whether a Parquet file is a roll-up, by its metadata."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowInvalid, OSError):
        return False
    return metadata.get(b"uncork.schema") == SCHEMA


def readable(paths: Sequence[Path]) -> tuple[list[Path], Counter[str]]:
    """The files that are whole, each counted once, and the number of the others by reason."""
    kept = whole(paths)
    return once(kept), +Counter({DAMAGED: len(paths) - len(kept)})


def whole(paths: Sequence[Path]) -> list[Path]:
    """The files without damaged roll-ups of hosts, which are named on stderr: they do not stop the others. A
    merged file may be all that is left of many, so a damaged one is an error.
    """
    names = {path: name for path in paths if (name := NAME.fullmatch(path.name))}
    if not names:
        return list(paths)
    from uncork import _native  # Records need none of it.

    found = zip(names, _native.rollup_damage(list(names)), strict=True)
    damage = {path: reason for path, reason in found if reason}
    for path, reason in damage.items():
        if names[path]["of"] or len(damage) == len(paths):
            raise InputError(str(path), "it is damaged, by the hash in its name", "copy it again")
        console.note(f"warning: left out: {reason}")
    return [path for path in paths if path not in damage]


def once(paths: Sequence[Path]) -> list[Path]:
    """The files, without the ones counted by a merged file among them. Roll-ups of one name are one file."""
    named = [(path, NAME.fullmatch(path.name)) for path in paths]
    merged = [(int(name["of"]), path) for path, name in named if name is not None and name["of"]]
    counted: set[str] = set()
    superseded: set[Path] = set()
    for _, path in sorted(merged, reverse=True):
        sources = _sources(path)
        common = len(sources & counted)
        if common == len(sources):
            superseded.add(path)
        elif common:
            problem = f"it counts {common} files that another merged file counts, too"
            remedy = "merge the roll-ups of the hosts again, without merged files of other names"
            raise InputError(str(path), problem, remedy)
        counted |= sources
    left = [(path, name) for path, name in named if path not in superseded]
    kept = [(path, name) for path, name in left if name is None or name["hash"] not in counted]
    first = {path.name: path for path, name in reversed(kept) if name is not None}
    return [path for path, _ in kept if first.get(path.name, path) == path]


def _sources(path: Path) -> set[str]:
    """The hashes of the files that a merged file counts."""
    try:
        text = (pq.read_schema(path).metadata or {})[SOURCES].decode()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise InputError(str(path), f"it cannot be read as a merged file: {error}", "copy it again") from None
    return {text[at : at + HASH_DIGITS] for at in range(0, len(text), HASH_DIGITS)}


def has_rollups(records: ir.Table) -> bool:
    """Whether rows of the table may stand for many records."""
    return RECORDS in records.columns


def is_rolled(records: ir.Table) -> ir.BooleanValue:
    """Which rows are of roll-ups."""
    return records[HOST].notnull()


def count(records: ir.Table, where: ir.BooleanValue | None = None) -> ir.Value:
    """The number of records."""
    if not has_rollups(records):
        return records.count(where=where)
    return records[RECORDS].sum(where=where).fill_null(0).cast("int64")


def together(table: ir.Table) -> tuple[ir.Table, int]:
    """Roll-ups and records as one table, and how many records are left out because a roll-up counts them."""
    kept = table
    for period in _periods(table):
        kept = _uncovered(kept, period)
    left_out = int(table.count().to_pyarrow().as_py()) - int(kept.count().to_pyarrow().as_py())
    return _kept(alone(kept)), left_out


def uncounted(table: ir.Table) -> int:
    """How many more records are left out than the roll-ups of their periods and places count."""
    return sum(_more(table, period) for period in _periods(table))


def _more(table: ir.Table, period_s: int) -> int:
    length = ibis.literal(period_s * NANOS_PER_SECOND, "int64")
    at = table[TIME].cast("int64")
    rolled = is_rolled(table) & (table[PERIOD].cast("int64") == period_s)
    keys = {"start": at - at % length} | {name: _place(table, name) for name in PLACE}
    amounts = {
        "counted": ibis.ifelse(rolled, table[RECORDS].cast("int64"), 0),
        "single": ibis.ifelse(is_rolled(table), 0, 1).cast("int64"),
        "rolled": rolled.cast("int64"),
    }
    rows = table.select(**keys, **amounts)
    sums = rows.group_by([*keys]).aggregate(**{name: rows[name].sum() for name in amounts})
    more = sums.filter(sums["rolled"] > 0, sums["single"] > sums["counted"])
    return int((more["single"] - more["counted"]).sum().to_pyarrow().as_py() or 0)


def alone(table: ir.Table) -> ir.Table:
    """Roll-ups, and records that none of them counts, as one table: a row may stand for many records."""
    full = canonical(table)
    times = {
        name: ibis.ifelse(is_rolled(full), full[name].cast("int64"), full[TIME]) for name in (FIRST, LAST)
    }
    return full.mutate(**{RECORDS: full[RECORDS].cast("int64").fill_null(1)}, **times)


def _kept(table: ir.Table) -> ir.Table:
    """The table in its engine: many small files are read once, not for each query."""
    backend: ibis.BaseBackend = table.get_backend()
    name = ibis.util.gen_name("rollups")
    backend.create_table(name, table, temp=True)
    return backend.table(name, database=("temp", "main"))


def _periods(table: ir.Table) -> list[int]:
    """Lengths of the roll-ups' periods, in seconds."""
    found = table.filter(table[PERIOD].notnull()).select(period=table[PERIOD].cast("int64")).distinct()
    return sorted(found.to_pyarrow()["period"].to_pylist())


def _uncovered(table: ir.Table, period_s: int) -> ir.Table:
    """Without the records that a roll-up of this length of periods counts."""
    length = ibis.literal(period_s * NANOS_PER_SECOND, "int64")
    at = table[TIME].cast("int64")
    full = table.mutate(_start=at - at % length)
    rolled = full.filter(is_rolled(full) & (full[PERIOD].cast("int64") == period_s))
    covered = rolled.select("_start", *PLACE).distinct()
    same = [full["_start"] == covered["_start"]]
    same += [_place(full, name) == _place(covered, name) for name in PLACE]
    records = full.filter(~is_rolled(full)).anti_join(covered, same)
    return ibis.union(full.filter(is_rolled(full)), records.select(full.columns)).drop("_start")


def _place(table: ir.Table, name: str) -> ir.Value:
    """Lines of a log have a time and no scope: each is a response."""
    return table[name].fill_null("response" if name == "service_scope" else "")


def check_time(records: ir.Table, option: str, unix_ns: int | None) -> None:
    """Whether a time is at the edge of all periods: a roll-up cannot be divided."""
    if unix_ns is None or not has_rollups(records):
        return
    for period in _periods(records):
        if unix_ns % (period * NANOS_PER_SECOND):
            raise InputError(
                option,
                f"roll-ups have periods of {period} s, and this time is within one",
                f"name a multiple of {period} s, or analyse the records",
            )


def check_hours(records: ir.Table, place: str) -> None:
    """Whether the hours of the records are known: a merged file of a day has none."""
    if has_rollups(records) and max(_periods(records), default=0) > HOUR_S:
        remedy = "merge with --period 1h, or name roll-ups of hosts"
        raise InputError(place, "roll-ups of a day have no hours", remedy)


def is_folded(records: ir.Table) -> bool:
    """Whether clients have no rows of their own because a roll-up was too large."""
    if not has_rollups(records):
        return False
    folded = records.filter(records[FOLD].fill_null(0) > 0, records[RECORDS] > 0).limit(1)
    return bool(folded.select(row=ibis.literal(1)).to_pyarrow().num_rows)


def folded(records: ir.Table) -> tuple[int, int]:
    """Of the records with an arm: how many are of clients without rows of their own, and how many in all."""
    if not has_rollups(records):
        return 0, 0
    some = records.filter(records["arm"].notnull())
    found = some.aggregate(of=count(some), folded=count(some, some[FOLD].fill_null(0) > 0)).to_pyarrow()
    row = found.to_pylist()[0]
    return int(row["folded"]), int(row["of"])


def traffic(records: ir.Table) -> tuple[ir.Value, ir.Value]:
    """Records and bytes of each row by client network. A row of a roll-up without a client has none: the rows
    of traffic have them.
    """
    acked = ibis.coalesce(records["bytes_acked"], records["bytes_delivered"]).cast("int64")
    one = ibis.literal(1, "int64")
    if not has_rollups(records):
        return one, acked
    if TRAFFIC_RECORDS not in records.columns:
        remedy = "roll the records up again with this version"
        raise InputError("records", f"the roll-ups have no column {TRAFFIC_RECORDS}", remedy)
    of_client = records["service_client"].notnull() & records[TRAFFIC_RECORDS].isnull()

    def of(traffic: str, own: str, record: ir.Value) -> ir.Value:
        of_row = ibis.ifelse(of_client, records[own].cast("int64"), records[traffic].cast("int64"))
        return ibis.ifelse(is_rolled(records), of_row, record)

    return of(TRAFFIC_RECORDS, RECORDS, one), of(TRAFFIC_BYTES, BYTES, acked)


def bins(records: ir.Table, columns: Mapping[str, ir.Value], metric: str) -> ir.Table | None:
    """The bins of a distribution with these columns and `n`, how many records have each. Null is the bin of
    values that cannot be. None of a metric that roll-ups do not have.
    """
    lists = distribution(records, metric)
    if lists is None:
        return None
    pairs = records.select(**columns, pair=lists[0].zip(lists[1]).unnest())
    of, counts = pairs["pair"]["f1"], pairs["pair"]["f2"]
    bins = of.cast("int64").nullif(ibis.literal(IMPOSSIBLE, "int64"))
    return pairs.select(*columns, bin=bins.cast("int32"), n=counts.cast("int64"))


def distribution(records: ir.Table, metric: str) -> tuple[ir.Value, ir.Value] | None:
    """The lists of bins and of their counts; none of a metric that roll-ups do not have."""
    bins, counts = f"rollup_{metric}_bins", f"rollup_{metric}_counts"
    if bins not in records.columns:
        return None
    return records[bins], records[counts]


def sums(records: ir.Table, metric: str) -> tuple[ir.Value, ir.Value] | None:
    """The sums of a ratio; none of a metric that roll-ups do not have."""
    of, per = f"rollup_{metric}_of", f"rollup_{metric}_per"
    if of not in records.columns:
        return None
    return records[of].cast("int64"), records[per].cast("int64")


def known(records: ir.Table, metric: str) -> ir.Value:
    """How many records of each row of a roll-up have the metric."""
    if (lists := distribution(records, metric)) is not None:
        return lists[1].sums().fill_null(0).cast("int64")
    if metric in ("retransmitted", "aborted"):
        return records[RECORDS]
    if metric == "failed" and (found := sums(records, metric)) is not None:
        return found[1].fill_null(0)
    if metric == "start_resent":
        return ibis.ifelse(records["size_bytes"] == 0, records[RECORDS], 0)
    if metric == "queued":
        return known(records, "rtt_inflation")
    if metric in ("stutters", "stalled") and (played := distribution(records, "playback_latency")):
        return played[1].sums().fill_null(0).cast("int64")
    return ibis.literal(0, "int64")
