"""Evidence by an engine that this package cannot run: the query as SQL, and its result read from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncork.learn import evidence
from uncork.learn.evidence import COLUMNS, TEXT, TRAFFIC
from uncork.learn.settings import Settings
from uncork.learn.tablefile import date
from uncork.measure.cubes import BUCKETS
from uncork.measure.errors import InputError
from uncork.measure.reduce import compiled, in_scope
from uncork.measure.schema import canonical, unbound

QUERY = "query"
"""The metric of the row about the query itself, which is not part of the evidence."""
AGAIN = "run the statement that --show-sql prints with the same options, and write all rows of its result"
MAX_COUNT = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Result:
    """What the operator's engine found."""

    path: Path
    rows: pa.Table
    """In the columns of the evidence, without the row about the query."""
    asked: str
    """The query in words, as `asked` says it."""
    as_of: int
    """The day, since 1970, before which the records are."""
    records: int
    """How many records there were."""


def sql(settings: Settings, dialect: str, on_trial: Sequence[str] = ()) -> str:
    """The query in a dialect, over a table `records` with all canonical columns. Its last row
    describes the query, so that a reader of the result can check that it matches and is complete.
    """
    records = unbound()
    whole = evidence.query(records, settings, on_trial).union(_about(records, settings, on_trial))
    return (
        f"-- Evidence of records before {date(settings.as_of)}. Write the result as Parquet. Then, with\n"
        "-- the same options: uncork learn plan --evidence FILE\n"
        f"{compiled(whole, dialect)};\n"
    )


def asked(settings: Settings, on_trial: Sequence[str]) -> str:
    """In words, all that the query depends on."""
    limits = [limit.measure.metric for limit in settings.limits()]
    parts = {
        "records before": date(settings.as_of),
        "days": str(settings.window),
        "experiment": settings.experiment,
        "control": settings.control,
        "treated": " ".join(settings.candidates),
        "place": settings.place or "none",
        "guardrails": " ".join(dict.fromkeys(limits)) or "none",
        "on trial": " ".join(on_trial) or "none",
    }
    if on_trial:
        parts["treated by"] = " ".join(evidence.treated_by(settings))
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def _about(records: ir.Table, settings: Settings, on_trial: Sequence[str]) -> ir.Table:
    """One row: what the query is of, the day before which the records are, and how many these are."""
    some = in_scope(canonical(records), replace(evidence.scope(settings), experiment=None))
    total = some.aggregate(n=some.count())
    null, no_text = ibis.null().cast("int64"), ibis.null().cast("string")
    values = {name: no_text if kind == TEXT else null for name, kind in COLUMNS.items()}
    values |= {
        "metric": ibis.literal(QUERY),
        "arm": ibis.literal(asked(settings, on_trial)),
        "day": ibis.literal(settings.as_of, "int64"),
        "n": total["n"],
    }
    return total.select(**values)


def load_result(path: Path) -> Result:
    """Reads a Parquet file, or all files of a directory: many engines write a result in parts."""
    parts = [evidence.narrow(_checked(file)) for file in _files(path)]
    whole = pa.concat_tables(parts).unify_dictionaries()
    is_query = pc.equal(whole["metric"].cast(pa.string()), QUERY)
    about = whole.filter(is_query).to_pylist()
    if len(about) != 1 or about[0]["day"] is None:
        problem = (
            f"it has {len(about)} rows of the metric {QUERY!r} in place of one: it is not one whole result"
        )
        raise InputError(str(path), problem, AGAIN)
    rows = whole.filter(pc.fill_null(pc.invert(is_query), True))
    one = about[0]
    return Result(path, rows, str(one["arm"]), int(one["day"]), int(one["n"] or 0))


def counts(result: Result, settings: Settings, on_trial: Sequence[str] = ()) -> pa.Table:
    """The evidence, with the same bytes as `evidence.collect` has from the records."""
    _is_of_this_query(result, asked(settings, on_trial))
    for problem in _wrong(result.rows, settings):
        raise InputError(str(result.path), problem, AGAIN)
    is_traffic = pc.equal(result.rows["metric"].cast(pa.string()), TRAFFIC)
    found = pc.sum(result.rows.filter(is_traffic)["n"]).as_py() or 0
    if found != result.records:
        problem = f"its rows are of {found:,} records, and the query saw {result.records:,}: rows are missing"
        raise InputError(str(result.path), problem, AGAIN)
    return evidence.in_order({name: result.rows[name] for name in COLUMNS})


def _files(path: Path) -> list[Path]:
    """The files of a directory, without files that engines add to the result, such as `_SUCCESS`."""
    if not path.exists():
        raise InputError(str(path), "no such file or directory", "name the query's result, a Parquet file")
    if not path.is_dir():
        return [path]
    files = sorted(one for one in path.rglob("*") if one.is_file() and one.name[0] not in "._")
    if not files:
        raise InputError(str(path), "there are no files in it", AGAIN)
    return files


def _checked(file: Path) -> pa.Table:
    """The columns of the evidence, if they have the types that they are to have."""
    try:
        schema = pq.read_schema(file)
        if missing := [name for name in COLUMNS if name not in schema.names]:
            raise InputError(str(file), f"no column {missing[0]!r}", AGAIN)
        texts = [name for name, kind in COLUMNS.items() if kind == TEXT and _is_text(schema.field(name).type)]
        # Words as numbers: a wide result of a million networks needs much memory.
        table = pq.ParquetFile(file, read_dictionary=texts).read(list(COLUMNS))
    except (pa.ArrowException, OSError) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise InputError(str(file), f"it cannot be read as Parquet: {why}", AGAIN) from None
    return pa.table({name: _typed(file, name, table[name]) for name in COLUMNS})


def _typed(file: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind, wanted = column.type, COLUMNS[name]
    target = pa.string() if wanted == TEXT else wanted
    is_right = _is_text(kind) if wanted == TEXT else _is_number(kind)
    # The type of a column without values depends on the engine.
    if not is_right and column.null_count < len(column):
        what = "text" if wanted == TEXT else "whole numbers"
        first = column.drop_null()[0].as_py()
        raise InputError(str(file), f"column {name!r} is {kind} ({first!r}) and not {what}", AGAIN)
    if not is_right:
        return pa.chunked_array([pa.nulls(len(column), target)])
    try:
        return column if wanted == TEXT and pa.types.is_dictionary(kind) else column.cast(target)
    except pa.ArrowException as error:
        raise InputError(str(file), f"column {name!r} has a wrong value: {error}", AGAIN) from None


def _is_text(kind: pa.DataType) -> bool:
    one = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(one) or pa.types.is_large_string(one) or pa.types.is_string_view(one))


def _is_number(kind: pa.DataType) -> bool:
    """Sums are decimals in some engines, and floating point in the files of others, though they are whole."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def _is_of_this_query(result: Result, wanted: str) -> None:
    """A result of another day, or of other options, would give decisions that the user did not ask for."""
    had, needed = result.asked.split("; "), wanted.split("; ")
    other = [one for one in had if one not in needed]
    lacking = [one for one in needed if one not in had]
    if other or lacking:
        problem = f"it is the result of another query: {', '.join(other)}, and not {', '.join(lacking)}"
        raise InputError(str(result.path), problem, AGAIN)


def _wrong(rows: pa.Table, settings: Settings) -> Iterator[str]:
    """Values that the query cannot give."""
    words = rows["metric"].cast(pa.string())
    unknown = sorted(set(pc.unique(words).to_pylist()) - {*evidence.metrics(settings)}, key=str)
    if unknown:
        yield f"column 'metric' has {unknown[0]!r}, which was not asked for"
    bounds = {
        "day": (settings.as_of - settings.window, settings.as_of - 1),
        "bucket": (0, BUCKETS - 1),
        **dict.fromkeys(("n", "numerator", "denominator"), (0, MAX_COUNT)),
    }
    for name, (low, high) in bounds.items():
        ends = pc.min_max(rows[name])
        for value in (ends["min"].as_py(), ends["max"].as_py()):
            if value is not None and not low <= value <= high:
                yield f"column {name!r} has {_value(name, value)}; it must be {_range(name, low, high)}"


def _range(name: str, low: int, high: int) -> str:
    if high == MAX_COUNT:
        return f"{low} or more"
    return f"{_value(name, low)} to {_value(name, high)}"


def _value(name: str, value: int) -> str:
    return f"{value} ({date(value)})" if name == "day" else str(value)
