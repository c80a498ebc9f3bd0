"""Flow records made up for tests of the reduction: all kinds of values, nulls and oddities."""

from typing import Any

import numpy as np
import pyarrow as pa

from uncork.measure.cubes import DistributionCube, Reduced

START_NS = 1_793_577_600_000_000_000
"""2 November 2026, 00:00 UTC."""


def table(rows: int = 3000, seed: int = 1) -> pa.Table:
    """Records of a server in the types of its Parquet files: unsigned counts, nulls where it writes them."""
    rng = np.random.default_rng(seed)
    unit = rng.integers(0, 400, rows)
    hashes = np.random.default_rng(7).integers(0, 2**64, 400, dtype=np.uint64)
    buckets = np.random.default_rng(8).integers(0, 100, 400)
    size = np.exp(rng.normal(13.5, 1.6, rows)).astype(np.int64) + 1
    busy = (size * 8e9 / np.exp(rng.normal(16.5, 1.0, rows))).astype(np.int64) + 1000
    completion = busy + rng.integers(0, 10**8, rows)
    is_broken = rng.random(rows) < 0.03
    rtt = np.exp(rng.normal(3.0, 0.8, rows))
    arms = np.where(unit % 2 == 0, "control", "bbr")
    columns: dict[str, Any] = {
        "engine": ["serve"] * rows,
        "group": np.char.add("e/", arms),
        "cc": np.where(arms == "bbr", "bbr", "cubic"),
        "seed": _counts(np.zeros(rows)),
        "flow": _counts(np.arange(rows)),
        "start_ns": _counts(rng.integers(0, 10**15, rows)),
        "completion_ns": _counts(completion, is_broken),
        "first_byte_ns": _counts(np.minimum(rng.integers(10**6, 10**8, rows), completion)),
        "busy_ns": _counts(busy),
        "size_bytes": _counts(size),
        "bytes_delivered": _counts(np.where(is_broken, size // 3, size)),
        "bytes_acked": _counts(np.where(is_broken, size // 3, size)),
        "bytes_sent": _counts(size + size // 50),
        "bytes_retransmitted": _counts(size // 50),
        "rtt_min_ms": pa.array(rtt, mask=rng.random(rows) < 0.1),
        "rtt_p50_ms": pa.array(rtt * np.exp(rng.exponential(0.3, rows))),
        "service_scope": ["response"] * rows,
        "service_start_unix_ns": _counts(START_NS + rng.integers(0, 3 * 86_400 * 10**9, rows)),
        "service_protocol": rng.choice(["h1", "h2", "h3"], rows),
        "service_listener": ["public"] * rows,
        "service_client": [f"192.0.{u % 256}.0/24" for u in unit],
        "service_asn": _counts(64500 + unit % 3, unit % 7 == 0),
        "service_country": pa.array(np.array(["PE", "DE", "US", "JP"])[unit % 4], mask=unit % 11 == 0),
        "service_responses": _counts(np.ones(rows)),
        "service_broken_off": _counts(is_broken),
        "choice_policy": ["f00d"] * rows,
        "choice_cc": np.where(arms == "bbr", "bbr", "cubic"),
        "arm_experiment": ["e"] * rows,
        "arm": arms,
        "arm_unit": pa.array(hashes[unit]),
        "arm_bucket": _counts(buckets[unit]),
        "arm_propensity": np.full(rows, 0.5),
    }
    return pa.table(columns)


def _counts(values: Any, mask: Any = None) -> pa.Array:
    return pa.array(np.asarray(values).astype(np.uint64), mask=mask)


def changed(table: pa.Table, **columns: Any) -> pa.Table:
    """The table with other values of some columns."""
    for name, values in columns.items():
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, array)
        else:
            table = table.append_column(name, array)
    return table


def counted(reduced: Reduced) -> dict[Any, int]:
    """All counts that are not zero, by metric, cell, arm, bucket and bin."""
    found = {}
    for key, cubes in reduced.cells.items():
        for name, cube in cubes.items():
            if isinstance(cube, DistributionCube):
                for arm, bucket, at in zip(*np.nonzero(cube.counts), strict=True):
                    place = (name, key, int(arm), int(bucket), int(at) + cube.first_bin)
                    found[place] = int(cube.counts[arm, bucket, at])
            else:
                for part in ("numerator", "denominator"):
                    values = getattr(cube, part)
                    for arm, bucket in zip(*np.nonzero(values), strict=True):
                        found[(name, key, int(arm), int(bucket), part)] = int(values[arm, bucket])
    return found
