"""Flow records of an experiment that never took place: a small generator over paths, seeded.

Everything here is MADE UP. It exists so that the first command shows a whole report, and so that tests know
the truth. Rates follow the controllers' published response functions (CUBIC: RFC 9438 section 5; BBR:
bottleneck rate less its probing), so BBR helps on lossy long paths, costs retransmissions where buffers are
shallow, and halves throughput inside a data centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncork.measure.files import write_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXPERIMENT = "demo-made-up"
CONTROL, TREATED = "control", "bbr"
START = datetime(2026, 11, 2, tzinfo=UTC)
DAYS = 17
BEFORE = 3
"""Days on which both arms still run CUBIC."""
INCIDENT = ("PE", 11, 12)
"""Country, first and last day (from 0) of the made-up failure upstream that both arms share."""
MSS = 1448


@dataclass(frozen=True)
class Network:
    """One autonomous system: rate in Mbit/s, round-trip time in s, loss as a share, buffer in
    bandwidth-delay products.
    """

    country: str
    asn: int
    units: int
    rate: float
    rtt: float
    loss: float
    buffer: float
    listener: str = "public"


NETWORKS = (
    Network("BR", 64501, 520, 18, 0.110, 0.00012, 0.6),
    Network("BR", 64502, 380, 30, 0.090, 5e-05, 0.9),
    Network("PE", 64503, 420, 12, 0.140, 0.00018, 0.7),
    Network("IN", 64511, 650, 10, 0.120, 0.00026, 0.6),
    Network("IN", 64512, 420, 22, 0.080, 1.1e-04, 1.0),
    Network("JP", 64513, 420, 80, 0.045, 2.8e-05, 1.0),
    Network("DE", 64521, 520, 60, 0.022, 1.8e-05, 1.5),
    Network("DE", 64522, 380, 35, 0.030, 2.2e-05, 2.5),
    Network("GB", 64523, 420, 45, 0.025, 3e-05, 1.2),
    Network("US", 64531, 700, 70, 0.035, 1.7e-05, 1.0),
    Network("US", 64532, 450, 25, 0.060, 6.6e-05, 0.4),
    Network("ZA", 64541, 26, 15, 0.170, 0.00012, 0.8),
    Network("US", 64600, 140, 900, 0.0015, 1e-06, 0.5, "internal"),
)


def cubic_rate(rtt: Floats, loss: Floats) -> Floats:
    """Mean rate in bit/s that CUBIC reaches at this loss: the larger of its two regions (RFC 9438 section
    5).
    """
    window = np.maximum(1.054 * (rtt / loss) ** 0.75, 1.31 / np.sqrt(loss))
    return window * MSS * 8 / rtt


def _rates(cc_bbr: NDArray[np.bool_], rate: Floats, rtt: Floats, loss: Floats, buffer: Floats) -> Floats:
    cubic = np.minimum(0.96 * rate, cubic_rate(rtt, loss))
    inside = rtt < 0.005
    bbr = rate * np.where(inside, 0.47, 0.92 - 0.012 * np.minimum(buffer, 3.0)) * (1 - np.minimum(loss, 0.2))
    return np.where(cc_bbr, bbr, cubic)


def _start_up(size: Floats, rtt: Floats, rate: Floats) -> Floats:
    """Seconds of slow start beyond the time at full rate: doublings of a window of ten packets."""
    window = np.minimum(size, rate * rtt / 8)
    return rtt * np.log2(np.maximum(window / (10 * MSS), 1.0))


@dataclass(frozen=True)
class _Units:
    network: Ints
    bbr: NDArray[np.bool_]
    bucket: Ints
    identity: NDArray[np.uint64]
    speed: Floats
    loss: Floats


def _units(rng: np.random.Generator, scale: float) -> _Units:
    sizes = [max(2, round(network.units * scale)) for network in NETWORKS]
    count = sum(sizes)
    return _Units(
        np.repeat(np.arange(len(NETWORKS)), sizes),
        rng.random(count) < 0.5,
        rng.integers(0, 100, count),
        rng.integers(0, 2**63, count, dtype=np.uint64),
        np.exp(rng.normal(0, 0.25, count)),
        np.exp(rng.normal(0, 0.60, count)),
    )


def _of_networks(name: str, which: Ints) -> Floats:
    values: Floats = np.array([getattr(network, name) for network in NETWORKS], dtype=np.float64)[which]
    return values


def _incident(countries: NDArray[np.str_], day: Ints) -> NDArray[np.bool_]:
    country, first, last = INCIDENT
    hit: NDArray[np.bool_] = (countries == country) & (day >= first) & (day <= last)
    return hit


def table(seed: int = 1, scale: float = 1.0) -> pa.Table:
    """Flow records in the canonical columns. `scale` multiplies the units; 1 gives about 330,000 rows."""
    rng = np.random.default_rng(seed)
    units = _units(rng, scale)
    responses = rng.poisson(rng.gamma(2.0, 30.0, len(units.bucket)))
    who = np.repeat(np.arange(len(units.bucket)), responses)
    rng.shuffle(who)
    is_player = rng.random(len(who)) < 0.15
    net = units.network[who]
    countries = np.array([network.country for network in NETWORKS])[net]
    is_player &= np.array([network.listener == "public" for network in NETWORKS])[net]

    day = rng.integers(0, DAYS, len(who))
    hour = np.clip(rng.normal(16, 5, len(who)), 0, 23.999)
    evening = np.exp(-(((hour - 20) / 2.5) ** 2))
    bad = _incident(countries, day)
    bbr = units.bbr[who] & (day >= BEFORE)
    noise = np.exp(rng.normal(0, 0.30, len(who)))
    rtt = _of_networks("rtt", net) * np.exp(rng.normal(0, 0.15, len(who)))
    rate = (
        _of_networks("rate", net) * 1e6 * units.speed[who] * noise * np.where(bad, 0.55, 1 - 0.15 * evening)
    )
    loss = _of_networks("loss", net) * units.loss[who] * (1 + 0.8 * evening) + np.where(bad, 0.0018, 0.0)
    loss = np.clip(loss, 1e-7, 0.2)
    buffer = _of_networks("buffer", net)
    got = _rates(bbr, rate, rtt, loss, buffer)
    queue = np.where(bbr, 0.25, 0.75 * (got > 0.9 * rate * 0.96)) * np.minimum(buffer, 2.5)

    size = np.exp(
        rng.choice([10.2, 12.9, 14.6, 15.5, 16.8], len(who), p=[0.28, 0.24, 0.16, 0.20, 0.12])
        + rng.normal(0, 0.25, len(who))
    )
    size = np.where(is_player, 512 * 1024, size)
    busy = size * 8 / got + _start_up(size, rtt, got)
    completion = busy + rtt
    retransmitted = 8 * loss + np.where(bbr, 0.0015 + 0.030 * np.maximum(0.0, 0.9 - buffer), 0.002)
    retransmitted = retransmitted * np.exp(rng.normal(0, 0.3, len(who)))
    aborted = rng.random(len(who)) < np.clip(0.002 + 0.003 * completion / 10, 0, 0.2)
    arm = np.where(units.bbr[who], TREATED, CONTROL)
    cc = np.where(bbr, "bbr", "cubic")
    start = (START.timestamp() + day * 86400 + hour * 3600) * 1e9

    played = np.where(is_player, 180.0, np.nan)
    need = 320e3 * 1.6
    stutters = np.where(is_player, rng.poisson(np.clip(0.9 * np.exp(-1.1 * (got / need) ** 0.4), 0, 6)), 0)
    kept = ~aborted
    ns = 1e9

    def whole(values: Floats, where: NDArray[np.bool_] | None = None) -> pa.Array:
        mask = None if where is None else ~where
        return pa.array(np.nan_to_num(values).astype(np.int64), mask=mask)

    public = ~is_player
    columns: dict[str, pa.Array] = {
        "engine": pa.array(np.where(is_player, "play", "serve")),
        "group": pa.array(np.char.add(f"{EXPERIMENT}/", arm)),
        "cc": pa.array(cc),
        "flow": whole(np.arange(len(who), dtype=np.float64)),
        "start_ns": whole(start - START.timestamp() * ns),
        "completion_ns": whole(completion * ns, kept),
        "first_byte_ns": whole(np.minimum(rtt * (1.02 + 0.2 * queue), 0.98 * completion) * ns),
        "busy_ns": whole(busy * ns),
        "size_bytes": whole(size),
        "bytes_delivered": whole(np.where(kept, size, 0.6 * size)),
        "bytes_acked": whole(size),
        "bytes_sent": whole(size * (1 + retransmitted)),
        "bytes_retransmitted": whole(size * retransmitted),
        "rtt_min_ms": pa.array(rtt * 1e3),
        "rtt_p50_ms": pa.array(rtt * 1e3 * (1 + queue * rng.uniform(0.5, 1.0, len(who)))),
        "rtt_p95_ms": pa.array(rtt * 1e3 * (1 + queue * rng.uniform(1.0, 1.4, len(who)))),
        "playback_startup_ns": whole((completion + 0.05) * ns, is_player),
        "playback_played_ns": whole(played * ns, is_player),
        "playback_stalled_ns": whole(stutters * rng.exponential(1.5, len(who)) * ns, is_player),
        "playback_stutters": whole(stutters.astype(np.float64), is_player),
        "playback_items": whole(np.ones(len(who)), is_player),
        "service_scope": pa.array(np.where(public, "response", ""), mask=is_player),
        "service_start_unix_ns": whole(start),
        "service_protocol": pa.array(np.where(rng.random(len(who)) < 0.7, "h2", "h3")),
        "service_listener": pa.array(np.array([network.listener for network in NETWORKS])[net]),
        "service_asn": whole(_of_networks("asn", net)),
        "service_country": pa.array(countries),
        "service_status": whole(np.full(len(who), 200.0)),
        "service_object_bytes": whole(size),
        "service_responses": whole(np.ones(len(who))),
        "service_broken_off": whole(aborted.astype(np.float64)),
        "service_min_rtt_ns": whole(rtt * ns),
        "choice_policy": pa.array(np.full(len(who), "9f2c61d07be4a530")),
        "choice_rule": pa.array(np.full(len(who), "public clients")),
        "choice_cc": pa.array(cc),
        "arm_experiment": pa.array(np.full(len(who), EXPERIMENT)),
        "arm": pa.array(arm),
        "arm_unit": pa.array(units.identity[who]),
        "arm_bucket": whole(units.bucket[who].astype(np.float64)),
        "arm_propensity": pa.array(np.full(len(who), 0.5)),
    }
    return pa.table(columns)


def write(directory: Path, seed: int = 1, scale: float = 1.0) -> Path:
    """Writes the records as one Parquet file, and returns its path."""
    return write_table(directory / "records.parquet", table(seed, scale))
