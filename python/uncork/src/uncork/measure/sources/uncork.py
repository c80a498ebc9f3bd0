"""uncork's own records: JSON lines of `serve`, `play` and `watch`, and the laboratory's Parquet files.

Records of the laboratory have no unit: a bucket is computed from columns that identify a client. Their arm
is the controller.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from uncork.measure.assignment import Experiment, assign, cookie
from uncork.measure.errors import InputError
from uncork.measure.schema import COLUMNS, NAMES, arrow_type
from uncork.measure.sources.fields import Field
from uncork.measure.sources.importing import BATCH
from uncork.measure.sources.mapping import Mapping
from uncork.measure.sources.pairs import SEPARATOR, Pairs, joined

LAB_RUN: Final = ("seed",)
"""What identifies a run of the laboratory, together with the axes of its matrix."""

CLIENT: Final = "client"
"""A column that is added to the laboratory's files during the analysis: the client of the flow."""

# The name is part of the hash that forms buckets.
_ANY: Final = Experiment(name="uncork-experiment", arms=("any",))

OWN: Final = (
    "for columns of your own write a mapping (--mapping my.toml; see docs/howto/import-your-records.md)"
)

JSON_LINES: Final = Mapping(
    name="uncork",
    format="json",
    columns={
        column.name: Field(
            # A line has the places of a flow record, or the names of columns, as a table written as JSON.
            sources=tuple(dict.fromkeys((column.json or column.name, column.name))),
            is_first=True,
            is_required=column.name in ("engine", "cc"),
        )
        for column in COLUMNS
        if column.name != "log_id"
    },
    flat=True,
    has_ids=False,
)
"""A flow record in each line."""


def has_buckets(path: Path) -> bool:
    """Whether a Parquet file has all that an analysis needs."""
    names = _names(path)
    return {"arm", "arm_bucket"} <= names


def rows(path: Path) -> int:
    """The number of rows of a Parquet file, which must have records."""
    _names(path)
    return int(pq.read_metadata(path).num_rows)


def _names(path: Path) -> set[str]:
    try:
        names = set(pq.read_schema(path).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(str(path), f"no Parquet file: {error}") from None
    if not names & {"cc", "arm"}:
        raise InputError(str(path), "no records: it has neither a column cc nor arm", OWN)
    return names


def add_buckets(path: Path, target: Path, unit: Sequence[str] | None = None) -> int:
    """Writes the file again with ``arm``, ``arm_unit`` and ``arm_bucket``: the laboratory's, row group by row
    group. Returns the number of rows.
    """
    names = _names(path)
    if stray := [name for name in unit or () if name not in names]:
        raise InputError(str(path), f"no column {stray[0]!r}", f"there are {', '.join(sorted(names))}")
    run = () if unit else _lab_run(path, names)
    pairs = None if unit else Pairs.from_file(path, run)
    columns = tuple(unit or (*run, "group", CLIENT))
    file, rows = pq.ParquetFile(path), 0
    schema: pa.Schema | None = None
    writer: pq.ParquetWriter | None = None
    try:
        for batch in file.iter_batches(BATCH):
            table = pa.Table.from_batches([batch])
            if pairs is not None:
                table = table.append_column(CLIENT, pairs.clients(table))
            is_missing = _all_null(table, columns) if unit else None
            table = _with_unit(table, columns, is_missing)
            if writer is None:
                schema = table.schema
                writer = pq.ParquetWriter(target, schema, compression="zstd")
            writer.write_table(table.cast(schema))
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _lab_run(path: Path, names: set[str]) -> tuple[str, ...]:
    """Axes are the columns before ``engine`` or ``group`` that are no canonical ones."""
    axes = [name for name in pq.read_schema(path).names if "." in name and name not in NAMES]
    missing = [name for name in (*LAB_RUN, "group", "flow") if name not in names]
    if missing:
        raise InputError(
            str(path), f"no arm_bucket, and no {missing[0]} to compute it", "name the unit's columns"
        )
    return (*axes, *LAB_RUN)


def _all_null(table: pa.Table, columns: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows have no unit: none of its columns has a value."""
    nulls = [np.asarray(pc.is_null(table[name], nan_is_null=True)) for name in columns]
    return np.asarray(np.logical_and.reduce(nulls))


def _with_unit(
    table: pa.Table, columns: tuple[str, ...], is_missing: NDArray[np.bool_] | None = None
) -> pa.Table:
    units = joined(table, columns).to_pylist()
    assigned = assign(_ANY, [cookie(text or SEPARATOR) for text in units])
    # Records without any of the unit's columns have no unit; together they are none.
    is_missing = np.array([not text.strip(SEPARATOR) for text in units], dtype=np.bool_)
    if "arm" not in table.column_names:
        table = table.append_column("arm", table["cc"].cast(pa.string()))
    if not {"engine", "source"} & set(table.column_names):
        # The laboratory's objects, which name no engine: their times are the client's.
        table = table.append_column("source", pa.array(["client"] * len(table)))
    dropped = [name for name in ("arm_unit", "arm_bucket", CLIENT) if name in table.column_names]
    kept = table.drop_columns(dropped)
    types = {column.name: arrow_type(column) for column in COLUMNS}
    kept = kept.append_column("arm_unit", pa.array(assigned.hash, types["arm_unit"], mask=is_missing))
    return kept.append_column("arm_bucket", pa.array(assigned.bucket, types["arm_bucket"], mask=is_missing))
