"""Made-up records of a server. Its clients begin with one of several initial windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from uncork.learn.demo import EXPERIMENT, START

WINDOWS = {"ten": 10, "w20": 20, "w40": 40, "w64": 64}
"""Packets by arm; the first one is control."""
OPTIONS = ["--control", "ten", "--control-settings", "tcp=cubic,initial_window=10p"]
for _name, _packets in list(WINDOWS.items())[1:]:
    OPTIONS += ["--arm", f"{_name}:tcp=cubic,initial_window={_packets}p"]


@dataclass(frozen=True)
class Path:
    """What each window but ten does to objects of 100 kB: change of the time, and of the share resent."""

    time: tuple[float, float, float]
    resent: tuple[float, float, float] = (0.0, 0.0, 0.0)


# As measured in docs/evidence/start-windows.md.
FAST = Path((-0.09, -0.28, -0.32))
DSL = Path((-0.13, -0.29, 1.15), (0.06, 0.16, 0.36))
SLOW = Path((0.06, -0.04, 1.10), (0.04, 0.16, 0.35))
SAME = Path((0.0, 0.0, 0.0))


@dataclass(frozen=True)
class System:
    """An AS and its networks."""

    asn: int
    country: str
    networks: int
    path: Path


SYSTEMS = (
    System(64501, "PE", 4, FAST),
    System(64502, "PE", 4, DSL),
    System(64511, "IN", 4, SLOW),
    System(64512, "IN", 4, SAME),
)


def table(
    systems: tuple[System, ...] = SYSTEMS, days: int = 7, daily: int = 500, seed: int = 1, first: int = 0
) -> pa.Table:
    """`daily` records a day of each network, of objects of 90 kB, dealt alike to the windows. The records
    begin on the day `first`.
    """
    rng = np.random.default_rng(seed)
    names = [(at, f"198.{18 + at}.{n}.0/24") for at, one in enumerate(systems) for n in range(one.networks)]
    count = len(names) * daily * days
    who = np.repeat(np.arange(len(names)), daily * days)
    system = np.array([at for at, _ in names])[who]
    arm = rng.integers(0, len(WINDOWS), count)
    lift = np.log1p([(0.0, *one.path.time) for one in systems])[system, arm]
    more = np.array([(0.0, *one.path.resent) for one in systems])[system, arm]
    seconds = np.exp(-1.5 + lift + rng.normal(0, 0.4, count))
    size = np.full(count, 90_000)
    again = np.clip(0.01 * rng.random(count) + more * 2 * rng.random(count), 0, 0.9)
    begin = int(START.timestamp()) + first * 86_400 + rng.integers(0, days * 86_400, count)
    columns = {
        "engine": pa.array(["serve"] * count),
        "cc": pa.array(["cubic"] * count),
        "completion_ns": pa.array((seconds * 1e9).astype(np.int64)),
        "busy_ns": pa.array((seconds * 1e9).astype(np.int64)),
        "size_bytes": pa.array(size),
        "bytes_acked": pa.array(size),
        "bytes_delivered": pa.array(size),
        "bytes_sent": pa.array((size * (1 + again)).astype(np.int64)),
        "bytes_retransmitted": pa.array((size * again).astype(np.int64)),
        "rtt_min_ms": pa.array(np.full(count, 30.0)),
        "rtt_p50_ms": pa.array(30.0 + 5 * rng.random(count)),
        "service_scope": pa.array(["response"] * count),
        "service_start_unix_ns": pa.array(begin * 1_000_000_000),
        "service_client": pa.array(np.array([name for _, name in names])[who]),
        "service_asn": pa.array(np.array([one.asn for one in systems])[system]),
        "service_country": pa.array(np.array([one.country for one in systems])[system]),
        "service_responses": pa.array(np.ones(count, dtype=np.int64)),
        "service_broken_off": pa.array((rng.random(count) < 0.004).astype(np.int64)),
        "service_initial_window": pa.array(np.array(list(WINDOWS.values()))[arm]),
        "arm_experiment": pa.array([EXPERIMENT] * count),
        "arm": pa.array(np.array(list(WINDOWS))[arm]),
        "arm_unit": pa.array(rng.integers(0, 2**63, count, dtype=np.uint64)),
        "arm_bucket": pa.array(rng.integers(0, 100, count)),
        "arm_propensity": pa.array(np.full(count, 0.25)),
    }
    return pa.table(columns)
