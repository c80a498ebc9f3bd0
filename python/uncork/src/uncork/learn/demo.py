"""Records of an experiment that never took place. Some ASes gain by BBR. Everything is MADE UP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from uncork.measure.files import write_table

START = datetime(2026, 11, 2, tzinfo=UTC)
CONTROL, TREATED, EXPERIMENT = "control", "bbr", "explore"


@dataclass(frozen=True)
class System:
    """An AS: its networks and how much BBR raises their throughput, in log units."""

    asn: int
    country: str
    networks: int
    lift: float
    retransmits: float = 0.0
    """What BBR adds to the share of bytes sent again."""


SYSTEMS = (
    System(64501, "PE", 5, 0.25),
    System(64502, "PE", 4, 0.15),
    System(64511, "IN", 5, 0.20),
    System(64512, "IN", 3, 0.25, 0.06),
    System(64521, "DE", 6, 0.0),
    System(64522, "DE", 4, -0.15),
)


def table(
    systems: tuple[System, ...] = SYSTEMS,
    days: int = 7,
    daily: int = 220,
    seed: int = 1,
    spread: float = 0.03,
) -> pa.Table:
    """`daily` records a day of each network, half of either arm.

    Networks differ from their AS by `spread`.
    """
    rng = np.random.default_rng(seed)
    lifts, of, names = [], [], []
    for at, one in enumerate(systems):
        for network in range(one.networks):
            lifts.append(one.lift + rng.normal(0, spread))
            of.append(at)
            names.append(f"198.{18 + at // 32}.{at % 32 * 8 + network}.0/24")
    count = len(names) * daily * days
    who = np.repeat(np.arange(len(names)), daily * days)
    system = np.array(of)[who]
    bbr = rng.random(count) < 0.5
    size = np.where(rng.random(count) < 0.7, 5_000_000, 200_000)
    level = np.random.default_rng(7).normal(16.6, 0.4, len(names))
    rate = np.exp(level[who] + np.array(lifts)[who] * bbr + rng.normal(0, 0.45, count))
    again = 0.01 * rng.random(count) + bbr * np.array([one.retransmits for one in systems])[system]
    start = int(START.timestamp()) + rng.integers(0, days * 86_400, count)
    columns = {
        "engine": pa.array(["serve"] * count),
        "cc": pa.array(np.where(bbr, "bbr", "cubic")),
        "completion_ns": pa.array((size * 8e9 / rate).astype(np.int64)),
        "busy_ns": pa.array((size * 8e9 / rate).astype(np.int64)),
        "size_bytes": pa.array(size),
        "bytes_acked": pa.array(size),
        "bytes_delivered": pa.array(size),
        "bytes_sent": pa.array((size * (1 + again)).astype(np.int64)),
        "bytes_retransmitted": pa.array((size * again).astype(np.int64)),
        "service_scope": pa.array(["response"] * count),
        "service_start_unix_ns": pa.array(start * 1_000_000_000),
        "service_listener": pa.array(["public"] * count),
        "service_client": pa.array(np.array(names)[who]),
        "service_asn": pa.array(np.array([one.asn for one in systems])[system]),
        "service_country": pa.array(np.array([one.country for one in systems])[system]),
        "service_responses": pa.array(np.ones(count, dtype=np.int64)),
        "service_broken_off": pa.array((rng.random(count) < 0.004).astype(np.int64)),
        "arm_experiment": pa.array([EXPERIMENT] * count),
        "arm": pa.array(np.where(bbr, TREATED, CONTROL)),
        "arm_unit": pa.array(rng.integers(0, 2**63, count, dtype=np.uint64)),
        "arm_bucket": pa.array(rng.integers(0, 100, count)),
        "arm_propensity": pa.array(np.full(count, 0.5)),
    }
    return pa.table(columns)


def write(directory: Path, days: int, seed: int = 1) -> Path:
    """Writes the records as one Parquet file."""
    return write_table(directory / "records.parquet", table(days=days, seed=seed))


def end(days: int) -> str:
    """The day after the records."""
    return (START + timedelta(days=days)).strftime("%Y-%m-%d")
