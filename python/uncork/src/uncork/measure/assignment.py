"""Which arm, slot and bucket a unit gets, as `uncork serve --policy` assigns them (docs/reference/policy.md).

conformance/assignments.tsv holds it to the server's own code.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uncork.measure.siphash import siphash24

_SHARED = json.loads(files("uncork.measure").joinpath("policy.json").read_text(encoding="utf-8"))

SLOTS: int = _SHARED["slots"]
"""Slots that units are hashed to, 0.01 % each. Arms own ranges of slots."""

BUCKETS: int = _SHARED["buckets"]
"""Buckets that units are hashed to, in all arms alike."""

MAX_WEIGHT: int = _SHARED["max_weight"]

SETTINGS: list[str] = _SHARED["settings"]
"""Settings of connections in policies."""

FLAGS: list[str] = _SHARED["flags"]
"""Settings that are `true` or `false`, without quotes."""

QUIC_CONTROLLERS: list[str] = _SHARED["quic"]
"""Controllers of `uncork serve`."""


def settings_lines(settings: Mapping[str, str]) -> list[str]:
    """The settings as lines of a policy."""
    return [f"{key} = {value if key in FLAGS else json.dumps(value)}" for key, value in settings.items()]


@dataclass(frozen=True)
class Experiment:
    """An experiment of a policy file. Arms have their order in the file; `share` is in slots of 0.01 %."""

    name: str
    arms: tuple[str, ...]
    share: int = SLOTS
    weights: tuple[int, ...] = ()
    """Weight of each arm; () gives each 1."""
    key: bytes = bytes(16)
    salt: str = ""
    """By default the name."""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= SLOTS:
            raise ValueError(f"a share of {self.share} slots is not between 0 and {SLOTS}")
        if self.weights and len(self.weights) != len(self.arms):
            raise ValueError(f"{len(self.arms)} arms have {len(self.weights)} weights")
        if not all(1 <= weight <= MAX_WEIGHT for weight in self.weights):
            raise ValueError(f"a weight is not between 1 and {MAX_WEIGHT}: {self.weights}")

    def slots(self) -> list[tuple[int, int]]:
        """First slot and number of slots of each arm: of its part by weight, the first `share`."""
        weights = self.weights or (1,) * len(self.arms)
        ends = np.cumsum((0, *weights), dtype=np.int64) * SLOTS // sum(weights)
        return [(int(first), int(end - first) * self.share // SLOTS) for first, end in pairwise(ends)]

    def propensities(self) -> tuple[float, ...]:
        """Share of all units that each arm gets."""
        return tuple(slots / SLOTS for _, slots in self.slots())


@dataclass(frozen=True)
class Assigned:
    """The assignment of units; all arrays have shape (units,)."""

    hash: NDArray[np.uint64]
    slot: NDArray[np.int64]
    bucket: NDArray[np.int64]
    arm: NDArray[np.int64]
    """Index of the arm; -1: does not take part."""
    propensity: NDArray[np.float64]
    """Probability of this arm; 0 where the unit does not take part."""


def client(address: str) -> bytes:
    """The unit `prefix`: the client's /24 of IPv4 or /48 of IPv6. Raises ValueError for what is no
    address."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    return b"4" + parsed.packed[:3] if parsed.version == 4 else b"6" + parsed.packed[:6]


def cookie(value: bytes | str) -> bytes:
    """The unit `cookie:NAME` with this value."""
    return b"c" + _filled(value)


def header(value: bytes | str) -> bytes:
    """The unit `header:NAME` with this value."""
    return b"h" + _filled(value)


def assign(experiment: Experiment, units: Sequence[bytes]) -> Assigned:
    """Assigns units that `client`, `cookie` or `header` made."""
    salt = (experiment.salt or experiment.name).encode() + b"\xff"
    hashes = siphash24(experiment.key, [salt + unit for unit in units])
    slot = ((hashes >> np.uint64(32)) * np.uint64(SLOTS) >> np.uint64(32)).astype(np.int64)
    bucket = ((hashes & np.uint64(0xFFFFFFFF)) * np.uint64(BUCKETS) >> np.uint64(32)).astype(np.int64)
    arm = np.full(len(hashes), -1, dtype=np.int64)
    propensity = np.zeros(len(hashes))
    for index, (first, count) in enumerate(experiment.slots()):
        inside = (slot >= first) & (slot < first + count)
        arm[inside], propensity[inside] = index, count / SLOTS
    return Assigned(hashes, slot, bucket, arm, propensity)


def _filled(value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    if not data:
        raise ValueError("an empty value identifies no unit")
    return data
