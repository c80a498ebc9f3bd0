"""Experiments with a known truth, for the truth table of verdicts (verdicts.py).

Same seed, same records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOISE = 0.5
"""Standard deviation of the logarithm of a download's rate, of one client."""
SIZE = 5_000_000
"""Bytes of each download: above the limit of "large"."""
MAX_REQUESTS = 200
START_NS = 1_793_000_000_000_000_000
DAYS = 7
LIMITS = {"retransmitted": 0.02, "aborted": 0.005}
"""The default guardrails, in points."""

EFFECTS = ("none", "equal", "mixed", "one broken")
GUARDRAILS = ("kept", "broken", "one broken", "from zero")


@dataclass(frozen=True)
class World:
    """One experiment and its truth. Arrays by cell have shape (cells,)."""

    seed: int
    units: int
    """Of both arms together."""
    effects: str
    guardrails: str
    is_fair: bool
    has_time: bool
    """Whether records have the time at which they began: checks and figures by day need it."""
    is_simpson: bool
    """Slow clients of the treated arm come more often because they became faster."""
    tail: float
    """Index of the Pareto distribution of requests per client."""
    spread: float
    """Standard deviation of the logarithm of clients' rates."""
    share: Floats
    """Of the clients, by cell."""
    level: Floats
    """Mean logarithm of the rate in bit/s, by cell."""
    lift: Floats
    """True effect on the logarithm of the rate, by cell."""
    resent: Floats
    """Share of bytes sent again in the control arm, by cell."""
    resent_more: Floats
    """What the treated arm adds to that share, by cell."""
    aborted_more: float

    def names(self) -> list[str]:
        return [f"R{at:03d}" for at in range(len(self.share))]

    def true_lift(self) -> float:
        """The effect on the median over all clients, each counted once, as a logarithm."""
        return self._median(self.level + self.lift) - self._median(self.level)

    def _median(self, level: Floats) -> float:
        deviation = math.hypot(self.spread, NOISE)
        return float(
            brentq(
                lambda at: float(self.share @ ndtr((at - level) / deviation)) - 0.5,
                float(level.min()) - 5,
                float(level.max()) + 5,
            )
        )

    def true_harm(self) -> dict[str, float]:
        """Points that the treated arm adds over all clients, by guardrail."""
        return {"retransmitted": float(self.share @ self.resent_more), "aborted": self.aborted_more}

    def is_limit_kept(self) -> bool:
        """Whether all limits are kept over all clients."""
        return all(harm <= LIMITS[name] for name, harm in self.true_harm().items())

    def broken_cell(self) -> int | None:
        """The one cell that is much worse than all others."""
        if self.effects == "one broken":
            return int(np.argmin(self.lift))
        if self.guardrails == "one broken":
            return int(np.argmax(self.resent_more))
        return None


def draw(seed: int) -> World:
    """A world by its number."""
    rng = np.random.default_rng([20261127, seed])
    units = int(math.exp(rng.uniform(math.log(20), math.log(20_000))))
    cells = max(1, min(int(math.exp(rng.uniform(0, math.log(200)))), units // 4))
    share = (1 + np.arange(cells)) ** -rng.uniform(0, 1.2)
    effects = str(rng.choice(EFFECTS))
    guardrails = str(rng.choice(GUARDRAILS, p=(0.7, 0.1, 0.1, 0.1)))
    return World(
        seed=seed,
        units=units,
        effects=effects,
        guardrails=guardrails,
        is_fair=bool(rng.random() < 0.85),
        has_time=bool(rng.random() < 0.2),
        is_simpson=bool(rng.random() < 0.25),
        tail=float(rng.choice((1.3, 1.8, 2.5))),
        spread=float(rng.choice((0.4, 0.8))),
        share=share / share.sum(),
        level=rng.normal(math.log(2e7), 0.5, cells),
        lift=_lift(effects, cells, rng),
        resent=rng.uniform(0.005, 0.03, cells),
        resent_more=_resent_more(guardrails, cells, rng),
        aborted_more=float(rng.uniform(0.04, 0.12)) if guardrails == "from zero" else 0.0,
    )


def _lift(effects: str, cells: int, rng: np.random.Generator) -> Floats:
    base = float(rng.uniform(-0.2, 0.3))
    if effects == "none":
        return np.zeros(cells)
    if effects == "equal":
        return np.full(cells, math.log1p(base))
    if effects == "mixed":
        return np.log1p(np.clip(base + rng.normal(0, 0.15, cells), -0.5, 1.0))
    lift = np.full(cells, math.log1p(float(rng.uniform(0, 0.3))))
    lift[rng.integers(cells)] = math.log1p(-float(rng.uniform(0.2, 0.85)))
    return lift


def _resent_more(guardrails: str, cells: int, rng: np.random.Generator) -> Floats:
    more = np.full(cells, float(rng.uniform(0, 0.005)))
    if guardrails == "broken":
        return more + float(rng.uniform(0.03, 0.08))
    if guardrails == "one broken":
        more[rng.integers(cells)] += float(rng.uniform(0.04, 0.1))
    return more


def records(world: World) -> pa.Table:
    """The records of the experiment, as an importer or a server writes them."""
    rng = np.random.default_rng([20261128, world.seed])
    cell = rng.choice(len(world.share), world.units, p=world.share)
    arm = rng.permutation(np.arange(world.units) % 2)
    if not world.is_fair:
        # Treated clients are lost until the share is off by five points: 45 of 100.
        lost = (arm == 1) & (rng.random(world.units) < 1 - 9 / 11)
        cell, arm = cell[~lost], arm[~lost]
    unit = rng.integers(0, 2**62, len(cell))
    level = world.level[cell] + world.lift[cell] * arm + rng.normal(0, world.spread, len(cell))
    requests = np.minimum(np.ceil((rng.pareto(world.tail, len(cell)) + 1) * 2), MAX_REQUESTS)
    if world.is_simpson:
        is_slow = world.level[cell] < np.median(world.level)
        requests = np.where(is_slow & (arm == 1), np.ceil(requests * 1.8), requests)
    return _table(
        world, rng, np.repeat(np.arange(len(cell)), requests.astype(np.int64)), cell, arm, unit, level
    )


def _table(
    world: World, rng: np.random.Generator, of: Ints, cell: Ints, arm: Ints, unit: Ints, level: Floats
) -> pa.Table:
    count = len(of)
    rate = np.exp(level[of] + rng.normal(0, NOISE, count))
    share = world.resent[cell[of]] + world.resent_more[cell[of]] * arm[of]
    # Losses come in bursts: a download has its own share.
    resent = np.minimum(share * rng.gamma(0.5, 2.0, count), 0.9)
    names = np.array(world.names(), dtype=np.object_)
    arms: Sequence[str] = ("control", "treated")
    controllers: Sequence[str] = ("cubic", "bbr")
    is_aborted = (arm[of] == 1) & (rng.random(count) < world.aborted_more)
    table = pa.table(
        {
            "engine": np.full(count, "serve"),
            "source": np.full(count, "acked"),
            "service_scope": np.full(count, "response"),
            "arm": np.array(arms)[arm[of]],
            "cc": np.array(controllers)[arm[of]],
            "arm_experiment": np.full(count, "truth"),
            "arm_propensity": np.full(count, 0.5),
            "arm_unit": unit[of],
            "arm_bucket": ((unit[of] & 0xFFFFFFFF) * 100 >> 32).astype(np.int64),
            "place": pa.array(names[cell[of]].tolist()),
            "service_start_unix_ns": START_NS + rng.integers(0, DAYS * 86_400 * 10**9, count),
            "service_responses": np.ones(count, dtype=np.int64),
            "service_broken_off": is_aborted.astype(np.int64),
            "size_bytes": np.full(count, SIZE),
            "bytes_delivered": np.full(count, SIZE),
            "bytes_acked": np.full(count, SIZE),
            "busy_ns": (SIZE * 8e9 / rate).astype(np.int64),
            "completion_ns": (SIZE * 8e9 / rate).astype(np.int64),
            "bytes_sent": (SIZE / (1 - resent)).astype(np.int64),
            "bytes_retransmitted": (SIZE / (1 - resent) * resent).astype(np.int64),
        }
    )
    return table if world.has_time else table.drop_columns("service_start_unix_ns")
