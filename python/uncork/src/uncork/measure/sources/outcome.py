"""What became of a response: finished, broken off, or no download at all. One rule for logs and tables.

A server logs a response that the client gave up with status 200 and the time until then. It has no completion
time, by the flow record (docs/reference/results.md): otherwise the arm with more of them looks faster.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.measure.sources.mapping import Mapping

NO_BODY: Final = "not a download: complete without a byte of its length, as an answer to HEAD"


def finished(table: pa.Table, mapping: Mapping) -> tuple[pa.Table, pa.Array]:
    """The records with ``service_broken_off``, starts and completion times; and which rows are no downloads.

    ``table`` has all canonical columns.
    """
    broken = table["service_broken_off"]
    delivered, size = table["bytes_delivered"], table["size_bytes"]
    is_empty = pc.fill_null(pc.and_(pc.equal(delivered, 0), pc.greater(size, 0)), False)
    is_head = pc.and_(is_empty, pc.fill_null(pc.equal(broken, 0), False))
    columns = mapping.columns
    if columns.get("size_bytes") != columns.get("bytes_delivered"):
        short = pc.less(delivered, size).cast(pa.int64())
        broken = pc.max_element_wise(broken, short, skip_nulls=True)
        table = _with(table, "service_broken_off", broken)
    # A record is of one response unless it says how many: without, no share is broken off.
    one = pc.if_else(pc.is_valid(broken), pa.scalar(1, pa.int64()), pa.scalar(None, pa.int64()))
    table = _with(table, "service_responses", pc.coalesce(table["service_responses"], one))
    of = mapping.columns.get("service_start_unix_ns")
    if of is not None and of.is_end:
        start = pc.subtract(table["service_start_unix_ns"], pc.fill_null(table["completion_ns"], 0))
        table = _with(table, "service_start_unix_ns", start)
    is_broken = pc.fill_null(pc.greater(broken, 0), False)
    completion = pc.if_else(is_broken, pa.scalar(None, pa.int64()), table["completion_ns"])
    return _with(table, "completion_ns", completion), _one_chunk(is_head)


def _with(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(name), values)


def _one_chunk(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
