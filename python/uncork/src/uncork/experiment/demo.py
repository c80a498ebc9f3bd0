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


@dataclass(frozen=True)
class _Requests:
    """Who asks, from which network, and when."""

    who: Ints
    network: Ints
    is_player: NDArray[np.bool_]
    day: Ints
    hour: Floats
    evening: Floats
    """How much of the evening's load there is, 0 to 1."""

    def of(self, values: NDArray[np.str_]) -> NDArray[np.str_]:
        """The value of each request's network."""
        found: NDArray[np.str_] = values[self.network]
        return found


@dataclass(frozen=True)
class _Paths:
    """What the network does to each request."""

    bbr: NDArray[np.bool_]
    rtt: Floats
    loss: Floats
    buffer: Floats
    got: Floats
    """The rate that the transfer reaches, in bit/s."""
    queue: Floats
    """In bandwidth-delay products."""


@dataclass(frozen=True)
class _Transfers:
    """What each request transfers."""

    size: Floats
    busy: Floats
    completion: Floats
    retransmitted: Floats
    aborted: NDArray[np.bool_]
    stutters: Floats


COUNTRIES = np.array([network.country for network in NETWORKS])
LISTENERS = np.array([network.listener for network in NETWORKS])
NS = 1e9


def _requests(rng: np.random.Generator, units: _Units) -> _Requests:
    responses = rng.poisson(rng.gamma(2.0, 30.0, len(units.bucket)))
    who = np.repeat(np.arange(len(units.bucket)), responses)
    rng.shuffle(who)
    is_player = rng.random(len(who)) < 0.15
    network = units.network[who]
    is_player &= LISTENERS[network] == "public"
    day = rng.integers(0, DAYS, len(who))
    hour = np.clip(rng.normal(16, 5, len(who)), 0, 23.999)
    evening = np.exp(-(((hour - 20) / 2.5) ** 2))
    return _Requests(who, network, is_player, day, hour, evening)


def _paths(rng: np.random.Generator, units: _Units, requests: _Requests) -> _Paths:
    who, network, evening = requests.who, requests.network, requests.evening
    bad = _incident(requests.of(COUNTRIES), requests.day)
    bbr = units.bbr[who] & (requests.day >= BEFORE)
    noise = np.exp(rng.normal(0, 0.30, len(who)))
    rtt = _of_networks("rtt", network) * np.exp(rng.normal(0, 0.15, len(who)))
    load = np.where(bad, 0.55, 1 - 0.15 * evening)
    rate = _of_networks("rate", network) * 1e6 * units.speed[who] * noise * load
    loss = _of_networks("loss", network) * units.loss[who] * (1 + 0.8 * evening) + np.where(bad, 0.0018, 0.0)
    loss = np.clip(loss, 1e-7, 0.2)
    buffer = _of_networks("buffer", network)
    got = _rates(bbr, rate, rtt, loss, buffer)
    queue = np.where(bbr, 0.25, 0.75 * (got > 0.9 * rate * 0.96)) * np.minimum(buffer, 2.5)
    return _Paths(bbr, rtt, loss, buffer, got, queue)


def _transfers(rng: np.random.Generator, requests: _Requests, paths: _Paths) -> _Transfers:
    count, is_player, got = len(requests.who), requests.is_player, paths.got
    size = np.exp(
        rng.choice([10.2, 12.9, 14.6, 15.5, 16.8], count, p=[0.28, 0.24, 0.16, 0.20, 0.12])
        + rng.normal(0, 0.25, count)
    )
    size = np.where(is_player, 512 * 1024, size)
    busy = size * 8 / got + _start_up(size, paths.rtt, got)
    completion = busy + paths.rtt
    shallow = 0.0015 + 0.030 * np.maximum(0.0, 0.9 - paths.buffer)
    retransmitted = 8 * paths.loss + np.where(paths.bbr, shallow, 0.002)
    retransmitted = retransmitted * np.exp(rng.normal(0, 0.3, count))
    aborted = rng.random(count) < np.clip(0.002 + 0.003 * completion / 10, 0, 0.2)
    need = 320e3 * 1.6
    stutters = np.where(is_player, rng.poisson(np.clip(0.9 * np.exp(-1.1 * (got / need) ** 0.4), 0, 6)), 0)
    return _Transfers(size, busy, completion, retransmitted, aborted, stutters)


def _whole(values: Floats, where: NDArray[np.bool_] | None = None) -> pa.Array:
    mask = None if where is None else ~where
    return pa.array(np.nan_to_num(values).astype(np.int64), mask=mask)


def _flow_columns(
    rng: np.random.Generator, requests: _Requests, paths: _Paths, transfers: _Transfers
) -> dict[str, pa.Array]:
    """Times, bytes and round-trip times."""
    count, is_complete, rtt_ms = len(requests.who), ~transfers.aborted, paths.rtt * 1e3
    size, completion = transfers.size, transfers.completion
    first_byte = np.minimum(paths.rtt * (1.02 + 0.2 * paths.queue), 0.98 * completion)
    return {
        "cc": pa.array(np.where(paths.bbr, "bbr", "cubic")),
        "flow": _whole(np.arange(count, dtype=np.float64)),
        "start_ns": _whole(_start_unix_ns(requests) - START.timestamp() * NS),
        "completion_ns": _whole(completion * NS, is_complete),
        "first_byte_ns": _whole(first_byte * NS),
        "busy_ns": _whole(transfers.busy * NS),
        "size_bytes": _whole(size),
        "bytes_delivered": _whole(np.where(is_complete, size, 0.6 * size)),
        "bytes_acked": _whole(size),
        "bytes_sent": _whole(size * (1 + transfers.retransmitted)),
        "bytes_retransmitted": _whole(size * transfers.retransmitted),
        "rtt_min_ms": pa.array(rtt_ms),
        "rtt_p50_ms": pa.array(rtt_ms * (1 + paths.queue * rng.uniform(0.5, 1.0, count))),
        "rtt_p95_ms": pa.array(rtt_ms * (1 + paths.queue * rng.uniform(1.0, 1.4, count))),
    }


def _start_unix_ns(requests: _Requests) -> Floats:
    return (START.timestamp() + requests.day * 86400 + requests.hour * 3600) * 1e9


def _player_columns(
    rng: np.random.Generator, requests: _Requests, transfers: _Transfers
) -> dict[str, pa.Array]:
    count, is_player = len(requests.who), requests.is_player
    stalled = transfers.stutters * rng.exponential(1.5, count)
    return {
        "playback_startup_ns": _whole((transfers.completion + 0.05) * NS, is_player),
        "playback_played_ns": _whole(np.where(is_player, 180.0, np.nan) * NS, is_player),
        "playback_stalled_ns": _whole(stalled * NS, is_player),
        "playback_stutters": _whole(transfers.stutters.astype(np.float64), is_player),
        "playback_items": _whole(np.ones(count), is_player),
    }


def _service_columns(
    rng: np.random.Generator, requests: _Requests, paths: _Paths, transfers: _Transfers
) -> dict[str, pa.Array]:
    count, is_player = len(requests.who), requests.is_player
    return {
        "service_scope": pa.array(np.where(~is_player, "response", ""), mask=is_player),
        "service_start_unix_ns": _whole(_start_unix_ns(requests)),
        "service_protocol": pa.array(np.where(rng.random(count) < 0.7, "h2", "h3")),
        "service_listener": pa.array(requests.of(LISTENERS)),
        "service_asn": _whole(_of_networks("asn", requests.network)),
        "service_country": pa.array(requests.of(COUNTRIES)),
        "service_status": _whole(np.full(count, 200.0)),
        "service_object_bytes": _whole(transfers.size),
        "service_responses": _whole(np.ones(count)),
        "service_broken_off": _whole(transfers.aborted.astype(np.float64)),
        "service_min_rtt_ns": _whole(paths.rtt * NS),
    }


def _arm_columns(
    units: _Units, requests: _Requests, paths: _Paths, arm: NDArray[np.str_]
) -> dict[str, pa.Array]:
    who = requests.who
    return {
        "choice_policy": pa.array(np.full(len(who), "9f2c61d07be4a530")),
        "choice_rule": pa.array(np.full(len(who), "public clients")),
        "choice_cc": pa.array(np.where(paths.bbr, "bbr", "cubic")),
        "arm_experiment": pa.array(np.full(len(who), EXPERIMENT)),
        "arm": pa.array(arm),
        "arm_unit": pa.array(units.identity[who]),
        "arm_bucket": _whole(units.bucket[who].astype(np.float64)),
        "arm_propensity": pa.array(np.full(len(who), 0.5)),
    }


def table(seed: int = 1, scale: float = 1.0) -> pa.Table:
    """Flow records in the canonical columns. `scale` multiplies the units; 1 gives about 330,000 rows.

    The order of the calls is that of the random numbers.
    """
    rng = np.random.default_rng(seed)
    units = _units(rng, scale)
    requests = _requests(rng, units)
    paths = _paths(rng, units, requests)
    transfers = _transfers(rng, requests, paths)
    arm = np.where(units.bbr[requests.who], TREATED, CONTROL)
    columns = {
        "engine": pa.array(np.where(requests.is_player, "play", "serve")),
        "group": pa.array(np.char.add(f"{EXPERIMENT}/", arm)),
        **_flow_columns(rng, requests, paths, transfers),
        **_player_columns(rng, requests, transfers),
        **_service_columns(rng, requests, paths, transfers),
        **_arm_columns(units, requests, paths, arm),
    }
    return pa.table(columns)


def write(directory: Path, seed: int = 1, scale: float = 1.0) -> Path:
    """Writes the records as one Parquet file, and returns its path."""
    return write_table(directory / "records.parquet", table(seed, scale))
