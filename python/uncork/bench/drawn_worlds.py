"""Worlds with a known truth, drawn as evidence: counts by network, day, arm, bucket and bin.

An AS has a kind; its networks deviate from its lift as that kind says. Users belong to a network, come back
from day to day and keep their bucket and arm. A record's throughput is log-normal: the network's level, the
user's, and noise; the treated arm adds the network's lift, so this is the lift of each quantile.

No records are written and no query runs: a month of 2,000 networks takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork.learn.evidence import Counts, Section
from uncork.measure.bins import LN_GAMMA
from uncork.measure.cubes import BUCKETS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_DAY = 20_000
RESENT = 0.01
"""Share of the bytes that the control arm resends."""
BYTES = 5_000_000
"""Of a large object."""


@dataclass(frozen=True)
class Part:
    """Some networks of an AS: how far from its lift they are."""

    weight: float
    offset: float = 0.0
    spread: float = 0.0


@dataclass(frozen=True)
class Kind:
    """Some of the ASes: lift, spread of their lifts, networks, and what the treated arm resends more."""

    weight: float
    lift: float = 0.0
    spread: float = 0.0
    parts: tuple[Part, ...] = (Part(1.0),)
    resent: float = 0.0
    """Points of a share."""


@dataclass(frozen=True)
class World:
    """What a world is drawn from: the true prior."""

    name: str
    networks: int
    systems: int
    kinds: tuple[Kind, ...]
    pareto: float = 1.1
    """Tail index of the networks' traffic."""
    noise: float = 0.8
    """Standard deviation of one record's log throughput; a user's is half of it."""
    heavy: float = 0.0
    """Part of the records with three times the noise."""
    visits: float = 1.0
    """Records of a user in a day."""
    turned: float = 0.0
    """Part of the networks: their lift changes its sign on day `turns`."""
    turns: int = 5
    drift: float = 0.0
    """Standard deviation of the change of an AS's lift in a day."""
    season: float = 0.0
    """Part by which lifts are lower on working days; at the weekend they are higher, the mean stays."""

    def factor(self, day: int) -> float:
        """What the season makes of a lift on a day."""
        return 1 + self.season * (2.5 if day % 7 >= 5 else -1.0)


@dataclass(frozen=True)
class Drawn:
    """A world with its networks. Arrays have the shape (networks,), unless stated otherwise."""

    world: World
    system: Ints
    share: Floats
    lift: Floats
    """On the first day."""
    resent: Floats
    level: Floats
    """Logarithm of a network's throughput, in bytes a second."""
    turns: NDArray[np.bool_]
    walk: Floats
    """Drift of each AS: shape (days, systems)."""

    def lift_on(self, day: int) -> Floats:
        """The true lift of each network on a day, counted from 0."""
        return np.asarray(
            self._sign(day) * (self.lift * self.world.factor(day) + self.walk[day][self.system])
        )

    def lift_of_week(self, day: int) -> Floats:
        """The true lift on a day without the season: what a decision for a week is worth."""
        return np.asarray(self._sign(day) * (self.lift + self.walk[day][self.system]))

    def _sign(self, day: int) -> Floats:
        return np.where(self.turns & (day >= self.world.turns), -1.0, 1.0)

    def names(self) -> NDArray[np.object_]:
        """Client networks, in order."""
        return np.array([f"100.{at // 250}.{at % 250}.0/24" for at in range(self.world.networks)])

    def section(self, metrics: dict[str, Counts], arms: Ints) -> Section:
        """As the evidence of a version has it. Networks of an AS are spread over the names."""
        systems = np.array([f"AS{64_000 + at}" for at in self.system.tolist()], dtype=np.object_)
        return Section(
            name="large",
            of_class="large",
            place="",
            networks=np.array([f"N{at:06d}" for at in range(self.world.networks)], dtype=np.object_),
            system=systems,
            country=np.array([f"{'ABCDE'[at % 5]}X" for at in self.system.tolist()], dtype=np.object_),
            bytes=np.maximum((self.share * 1e12).astype(np.int64), 1),
            arms=arms,
            metrics=metrics,
        )


def draw(world: World, seed: int, days: int = 31) -> Drawn:
    """The networks of a world."""
    rng = np.random.default_rng(seed)
    share = rng.pareto(world.pareto, world.networks) + 1
    share = np.minimum(share / share.sum(), 0.03)
    system = np.concatenate(
        [np.arange(world.systems), rng.integers(0, world.systems, world.networks - world.systems)]
    )
    weights = np.array([kind.weight for kind in world.kinds])
    kind = rng.choice(len(weights), world.systems, p=weights / weights.sum())
    of_system = np.array([world.kinds[at].lift + rng.normal(0, world.kinds[at].spread) for at in kind])
    lift = np.zeros(world.networks)
    for at, one in enumerate(world.kinds):
        rows = np.flatnonzero(kind[system] == at)
        odds = np.array([part.weight for part in one.parts])
        part = rng.choice(len(odds), len(rows), p=odds / odds.sum())
        offset, spread = np.array([(it.offset, it.spread) for it in one.parts]).T
        lift[rows] = of_system[system[rows]] + offset[part] + rng.normal(0, 1, len(rows)) * spread[part]
    resent = np.array([one.resent for one in world.kinds])[kind][system]
    walk = np.cumsum(rng.normal(0, 1, (days, world.systems)) * world.drift, axis=0)
    return Drawn(
        world,
        system,
        share / share.sum(),
        lift,
        resent,
        rng.normal(14, 0.5, world.networks),
        rng.random(world.networks) < world.turned,
        walk,
    )


@dataclass
class Records:
    """Records of all days so far, one row each: evidence is counted from them."""

    drawn: Drawn
    daily: int
    seed: int

    def __post_init__(self) -> None:
        self.parts: list[tuple[Ints, ...]] = []
        people = np.maximum(self.drawn.share * self.daily / self.drawn.world.visits, 3)
        # Each user comes on some days only.
        self.people = np.ceil(2 * people).astype(np.int64)
        self.first = np.concatenate([[0], np.cumsum(self.people)[:-1]])
        rng = np.random.default_rng((self.seed, 1))
        count = int(self.people.sum())
        self.bucket = rng.integers(0, BUCKETS, count)
        self.arm = rng.integers(0, 2, count)
        self.user = rng.normal(0, 0.5 * self.drawn.world.noise, count)

    def day(self, day: int) -> None:
        """Adds the records of a day."""
        world, drawn = self.drawn.world, self.drawn
        rng = np.random.default_rng((self.seed, 2, day))
        records = rng.poisson(drawn.share * self.daily)
        network = np.repeat(np.arange(world.networks), records)
        user = self.first[network] + (rng.random(len(network)) * self.people[network]).astype(np.int64)
        noise = rng.normal(0, world.noise, len(network))
        if world.heavy:
            noise = np.where(rng.random(len(network)) < world.heavy, 3 * noise, noise)
        arm = self.arm[user]
        value = drawn.level[network] + self.user[user] + noise + arm * drawn.lift_on(day)[network]
        bin_ = np.ceil(value / LN_GAMMA).astype(np.int64)
        share = np.maximum(RESENT + arm * drawn.resent[network], 0) * np.exp(
            rng.normal(0, 0.7, len(network)) - 0.245
        )
        resent = np.rint(BYTES * share).astype(np.int64)
        dayish = np.full(len(network), FIRST_DAY + day)
        self.parts.append((network, dayish, arm, self.bucket[user], bin_, resent))

    def section(self, *, of_lift_alone: bool = False) -> Section:
        """The evidence so far."""
        network, day, arm, bucket, bin_, resent = (
            np.concatenate(each) for each in zip(*self.parts, strict=True)
        )
        ones, full = np.ones(len(network), dtype=np.int64), np.full(len(network), 500_000)
        zero = np.zeros(len(network), dtype=np.int64)
        lift = Counts(network, day, full, arm, bucket, bin_, ones, zero, zero)
        arms = np.zeros((self.drawn.world.networks, 2), dtype=np.int64)
        np.add.at(arms, (network, arm), 1)
        if of_lift_alone:
            return self.drawn.section({"throughput": lift}, arms)
        sent = Counts(network, day, full, arm, bucket, zero, zero, resent, ones * BYTES)
        return self.drawn.section({"throughput": lift, "retransmitted": sent}, arms)


LONERS = (Part(0.97, 0.0, 0.03), Part(0.03, -0.25, 0.05))
REVIEW = World(
    "review",
    2_000,
    125,
    (
        Kind(0.50, 0.0, 0.01, LONERS),
        Kind(0.25, 0.30, 0.10, LONERS),
        Kind(0.10, -0.15, 0.05, LONERS),
        Kind(0.08, 0.0, 0.02, (Part(0.5, 0.30, 0.03), Part(0.5, -0.15, 0.03))),
        Kind(0.07, 0.25, 0.05, LONERS, resent=0.045),
    ),
    turned=0.05,
    drift=0.005,
)

TWO_SORTS = World(
    "two sorts",
    600,
    20,
    (
        Kind(0.4, 0.15, 0.10, (Part(1.0, 0.0, 0.15),)),
        Kind(0.6, 0.0, 0.05, (Part(0.6, 0.2, 0.05), Part(0.4, -0.2, 0.05))),
    ),
    pareto=1.5,
    heavy=0.1,
    visits=4.0,
)
"""Few networks in few ASes, which differ within them; noise with heavy tails; users who come often."""
ALIKE = World(
    "alike",
    5_000,
    1_000,
    (Kind(0.7, 0.08, 0.06, (Part(1.0, 0.0, 0.02),)), Kind(0.3, -0.05, 0.05, (Part(1.0, 0.0, 0.02),))),
    pareto=1.3,
)
"""Many small ASes with networks that are alike: little evidence of each, gains of a few per cent."""
SEASON = World(
    "season",
    2_000,
    200,
    (
        Kind(0.6, 0.0, 0.02, LONERS),
        Kind(0.4, 0.20, 0.20, (Part(0.9, 0.0, 0.05), Part(0.1, 0.0, 0.30))),
    ),
    season=0.3,
    drift=0.01,
)
"""A third less of each lift on working days, and lifts of ASes that wander by 5 % in a month."""
TURNING = World(
    "turning",
    1_500,
    60,
    (
        Kind(0.5, 0.25, 0.15, (Part(1.0, 0.0, 0.05),)),
        Kind(0.5, -0.05, 0.10, (Part(1.0, 0.0, 0.05),)),
    ),
    pareto=1.0,
    turned=0.10,
    turns=12,
)
"""A tenth of the networks change their sign on day 12; traffic of few networks is most of all."""
TAILS = World(
    "tails",
    3_000,
    150,
    (
        Kind(0.70, 0.0, 0.03, (Part(1.0, 0.0, 0.01),)),
        Kind(0.20, 0.10, 0.30, (Part(0.8, 0.0, 0.04), Part(0.2, 0.0, 0.20))),
        Kind(0.10, 0.80, 0.50, (Part(0.7, 0.0, 0.10), Part(0.3, -0.5, 0.20))),
    ),
    noise=1.2,
    visits=2.0,
    drift=0.003,
)
"""Lifts of ASes with heavy tails: most nothing, some a factor of two; noisier records."""
DEVELOPED_ON = (REVIEW, TWO_SORTS)
HELD_OUT = (ALIKE, SEASON, TURNING, TAILS)
