"""Worlds of networks, and what policies make of them: estimates are drawn, not measured.

Each day, a network's estimate is normal around its true lift, with the error that its records of that day
allow. This tests shrinkage and decisions; connections are not simulated.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from uncork.learn.decide import decide
from uncork.learn.decisions import Decisions
from uncork.learn.entries import PreviousArms, View
from uncork.learn.evidence import Section
from uncork.learn.guardrails import Guardrails
from uncork.learn.lift import MIN_TAIL, Estimate, Hierarchy, Rest, hierarchy, shrink
from uncork.learn.settings import Overrides, Settings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_RECORDS = 10 * MIN_TAIL
"""Minimum records of each arm for an estimate of a network's own: `MIN_TAIL` users are below p10."""

SETTINGS = Settings(
    experiment="explore", control="control", treated="bbr", arms={}, as_of=20_000, key="0" * 32, changed=1.0
)


@dataclass(frozen=True)
class World:
    """Networks with their share of the traffic and their true lift."""

    section: Section
    share: Floats
    lift: Floats
    noise: float
    """Standard deviation of one record's log throughput, as a quantile's error counts it."""
    daily: int
    """Records of the random share in a day, both arms together."""

    @property
    def tree(self) -> Hierarchy:
        return hierarchy(self.section)


def world(
    networks: int = 20_000,
    systems: int = 300,
    seed: int = 1,
    mean: float = 0.05,
    of_systems: float = 0.10,
    of_networks: float = 0.05,
    daily: int = 2_000_000,
    noise: float = 1.5,
) -> World:
    """Zipf networks in ASes, both in random order; ten countries that differ in nothing but name."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, networks + 1)
    share = rng.permutation(share / share.sum())
    system = rng.integers(0, systems, networks)
    lift = mean + rng.normal(0, of_systems, systems)[system] + rng.normal(0, of_networks, networks)
    names = tuple(sorted(f"10.{at // 250}.{at % 250}.0/24" for at in range(networks)))
    section = Section(
        name="large",
        of_class="large",
        place="",
        networks=names,
        system=tuple(f"AS{64_000 + at}" for at in system.tolist()),
        country=tuple("ABCDEFGHIJ"[at % 10] * 2 for at in system.tolist()),
        bytes=np.maximum((share * 1e12).astype(np.int64), 1),
        arms=np.zeros((networks, 2), dtype=np.int64),
        metrics={},
    )
    return World(section, share, lift, noise, daily)


@dataclass
class Evidence:
    """Discounted sums of all days, by network: records, records times estimate, and the estimate's variance,
    in which the discount counts twice.
    """

    world: World
    half_life: float = SETTINGS.half_life
    records: Floats = field(init=False)
    squares: Floats = field(init=False)
    sums: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.records = np.zeros(len(self.world.share))
        self.squares = np.zeros(len(self.world.share))
        self.sums = np.zeros(len(self.world.share))

    def day(self, rng: np.random.Generator, lift: Floats) -> None:
        """Adds a day on which the networks have these lifts."""
        decay = 0.5 ** (1 / self.half_life)
        records = rng.poisson(self.world.share * self.world.daily).astype(np.float64)
        error = np.where(records > 0, 2 * self.world.noise / np.sqrt(np.maximum(records, 1)), 0.0)
        self.records = self.records * decay + records
        self.squares = self.squares * decay**2 + records
        self.sums = self.sums * decay + records * (lift + rng.normal(0, 1, len(lift)) * error)

    def _of(self, members: Ints | NDArray[np.bool_]) -> Estimate | None:
        records = float(self.records[members].sum())
        if records < 2 * MIN_RECORDS:
            return None
        error = 2 * self.world.noise * float(self.squares[members].sum()) ** 0.5 / records
        return Estimate(float(self.sums[members].sum()) / records, error)

    def raw(self) -> tuple[Floats, Floats]:
        """Estimate and error of each network, however little it has."""
        records = np.maximum(self.records, 1e-9)
        return self.sums / records, 2 * self.world.noise * np.sqrt(np.maximum(self.squares, 1e-9)) / records

    def estimates(self) -> tuple[dict[int, Estimate], tuple[dict[int, Rest], dict[int, Rest], Rest | None]]:
        """Those of networks with enough records, and of the rests of ASes."""
        found: dict[int, Estimate] = {}
        for at in np.flatnonzero(self.records >= 2 * MIN_RECORDS).tolist():
            one = self._of(np.array([at]))
            assert one is not None
            found[at] = one
        thin = self.records < 2 * MIN_RECORDS
        rests = {}
        tree = self.world.tree
        for system in range(len(tree.systems)):
            members = thin & (tree.system == system)
            if (one := self._of(members)) is not None:
                share = self.world.share[members] / self.world.share[members].sum()
                rests[system] = Rest(one, float((share**2).sum()))
        return found, (rests, {}, None)


def planned(
    evidence: Evidence,
    day: int,
    before: Decisions,
    settings: Settings = SETTINGS,
    guardrails: Guardrails | None = None,
) -> Decisions:
    """One plan, a day after the one before."""
    from dataclasses import replace

    world_ = evidence.world
    view = View(world_.section, shrink(world_.tree, *evidence.estimates()), guardrails or Guardrails({}, {}))
    today = replace(settings, as_of=settings.as_of + day)
    return decide([view], today, Overrides(), PreviousArms.from_decisions(before), settings.changed)


def is_on(decisions: Decisions, world_: World) -> NDArray[np.bool_]:
    """Which networks have the treated arm."""
    arms = {one.key: one.arm == "bbr" for one in decisions if one.level == "network"}
    return np.array([arms[name] for name in world_.section.networks])


def gain(on: NDArray[np.bool_], world_: World) -> float:
    """Part of the oracle's gain."""
    best = float((world_.share * np.maximum(world_.lift, 0)).sum())
    return float((world_.share * np.where(on, world_.lift, 0)).sum()) / best


def harmed(on: NDArray[np.bool_], world_: World, by: float = 0.02) -> float:
    """Part of the traffic that is made worse by more than this."""
    return float(world_.share[on & (world_.lift < -by)].sum())
