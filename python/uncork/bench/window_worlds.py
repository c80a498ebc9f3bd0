"""Worlds of networks with a known truth for every initial window, drawn as evidence.

What a window does to an object of 100 kB on a path is what the simulator measured: the table of
docs/evidence/start-windows.md, by access network. An AS has one kind of access, some of its networks another.
A network's gains and what it has resent deviate from those of its access. Users belong to a network and keep
their bucket and arm.

No records are written and no query runs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uncork.learn.evidence import Counts, Section
from uncork.measure.bins import LN_GAMMA
from uncork.measure.cubes import BUCKETS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_DAY = 20_000
WINDOWS = (10, 20, 40, 64)
"""Packets; the first one is control's."""
MEASURED = Path(__file__).parents[3] / "docs" / "evidence" / "start-windows.md"
OBJECT = "100kB"
BYTES = 100_000
SLOW = "dsl"
"""What a network becomes where its path changes to a few Mbit/s."""
DEVIATES = 0.15
"""Standard deviation of a network's factor of all lifts, and of the logarithm of what is resent."""
NOISE = 0.6
"""Standard deviation of one record's log time; a user's is half of it."""
BASE_RESENT = 0.005
"""Share of the bytes that any window has resent."""


@dataclass(frozen=True)
class Access:
    """What each window does on one kind of access: both of shape (windows,)."""

    name: str
    lift: Floats
    """Logarithm of the time with ten packets over that with the window."""
    resent: Floats
    """Share of the bytes."""


def accesses(page: Path = MEASURED) -> tuple[Access, ...]:
    """All that the page has."""
    found = []
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 14 and cells[1] == OBJECT:
            changes = [_number(cell) / 100 for cell in cells[3:6]]
            lift = [0.0, *(-math.log1p(one) for one in changes)]
            resent = [_number(cell) / 100 for cell in cells[10:14]]
            found.append(Access(cells[0], np.array(lift), np.array(resent)))
    return tuple(found)


def _number(cell: str) -> float:
    return float(re.sub(r"[ %+]", "", cell).replace("−", "-"))


@dataclass(frozen=True)
class World:
    """What a world is drawn from."""

    name: str
    networks: int = 300
    systems: int = 40
    others: float = 0.1
    """Part of the networks of an AS that have another access than the AS."""
    gains: float = 1.0
    """Factor of all lifts and of all that is resent: 0 makes all windows alike."""
    pareto: float = 1.3


@dataclass(frozen=True)
class Drawn:
    """Networks: arrays have the shape (networks,) or (networks, windows)."""

    world: World
    system: Ints
    share: Floats
    lift: Floats
    resent: Floats
    level: Floats

    def best(self, limit: float) -> Ints:
        """The window that gains most and breaks no limit on what is resent."""
        allowed = self.resent <= self.resent[:, :1] + limit
        return np.argmax(np.where(allowed, self.lift, -np.inf), axis=1)

    def at(self, window: Ints) -> Floats:
        """The lift of the window that each network has."""
        return np.asarray(self.lift[np.arange(len(window)), window])

    def moved(self, networks: Ints) -> Drawn:
        """These networks on a slow path."""
        slow = next(one for one in accesses() if one.name == SLOW)
        lift, resent = self.lift.copy(), self.resent.copy()
        lift[networks], resent[networks] = slow.lift, slow.resent
        return Drawn(self.world, self.system, self.share, lift, resent, self.level)


def draw(world: World, seed: int) -> Drawn:
    """The networks of a world."""
    rng = np.random.default_rng(seed)
    share = rng.pareto(world.pareto, world.networks) + 1
    share = np.minimum(share / share.sum(), 0.03)
    system = np.concatenate(
        [np.arange(world.systems), rng.integers(0, world.systems, world.networks - world.systems)]
    )
    kinds = accesses()
    access = rng.integers(0, len(kinds), world.systems)[system]
    is_other = rng.random(world.networks) < world.others
    access = np.where(is_other, rng.integers(0, len(kinds), world.networks), access)
    factor = world.gains * (1 + rng.normal(0, DEVIATES, world.networks))
    more = world.gains * np.exp(rng.normal(0, DEVIATES, world.networks))
    return Drawn(
        world,
        system,
        share / share.sum(),
        np.stack([one.lift for one in kinds])[access] * factor[:, None],
        BASE_RESENT + np.stack([one.resent for one in kinds])[access] * more[:, None],
        rng.normal(-1.5, 0.5, world.networks),
    )


@dataclass
class Records:
    """The random share's records of all days so far, one row each."""

    drawn: Drawn
    daily: int
    seed: int
    faked: int | None = None
    """A network that makes up its records: with larger windows objects take a tenth of the time."""

    def __post_init__(self) -> None:
        self.parts: list[tuple[Ints, ...]] = []
        self.people = np.ceil(2 * np.maximum(self.drawn.share * self.daily, 3)).astype(np.int64)
        self.first = np.concatenate([[0], np.cumsum(self.people)[:-1]])
        rng = np.random.default_rng((self.seed, 1))
        count = int(self.people.sum())
        self.bucket = rng.integers(0, BUCKETS, count)
        self.window = rng.integers(0, len(WINDOWS), count)
        self.user = rng.normal(0, 0.5 * NOISE, count)

    def day(self, day: int, drawn: Drawn | None = None) -> None:
        """Adds the records of a day, on which the networks may be on other paths."""
        of = drawn or self.drawn
        rng = np.random.default_rng((self.seed, 2, day))
        records = rng.poisson(of.share * self.daily)
        network = np.repeat(np.arange(len(records)), records)
        user = self.first[network] + (rng.random(len(network)) * self.people[network]).astype(np.int64)
        window = self.window[user]
        time = of.level[network] + self.user[user] + rng.normal(0, NOISE, len(network))
        time -= of.lift[network, window]
        share = of.resent[network, window] * np.exp(rng.normal(0, 0.7, len(network)) - 0.245)
        if self.faked is not None:
            is_fake = (network == self.faked) & (window > 0)
            time, share = np.where(is_fake, time - math.log(10), time), np.where(is_fake, 0.0, share)
        resent = np.rint(BYTES * share).astype(np.int64)
        days = np.full(len(network), FIRST_DAY + day)
        bin_ = np.ceil(time / LN_GAMMA).astype(np.int64)
        self.parts.append((network, days, window, self.bucket[user], bin_, resent))

    def sections(self, days: int) -> list[Section]:
        """The evidence of the last days: control and each other window."""
        rows = [np.concatenate(each) for each in zip(*self.parts[-days:], strict=True)]
        return [self._section(rows, window) for window in range(1, len(WINDOWS))]

    def _section(self, rows: list[Ints], window: int) -> Section:
        some = (rows[2] == 0) | (rows[2] == window)
        network, day, arm, bucket, bin_, resent = (one[some] for one in rows)
        arm = (arm > 0).astype(np.int64)
        ones, zero = np.ones(len(network), dtype=np.int64), np.zeros(len(network), dtype=np.int64)
        dealt = np.full(len(network), 250_000)
        arms = np.zeros((len(self.drawn.share), 2), dtype=np.int64)
        np.add.at(arms, (network, arm), 1)
        time = Counts(network, day, dealt, arm, bucket, bin_, ones, zero, zero)
        sent = Counts(network, day, dealt, arm, bucket, zero, zero, resent, ones * BYTES)
        names = [f"N{at:06d}" for at in range(len(self.drawn.share))]
        return Section(
            name="small",
            of_class="small",
            place="",
            networks=np.array(names, dtype=np.object_),
            system=np.array([f"AS{64_000 + at}" for at in self.drawn.system.tolist()], dtype=np.object_),
            country=np.array([f"{'ABCDE'[at % 5]}X" for at in self.drawn.system.tolist()], dtype=np.object_),
            bytes=np.maximum((self.drawn.share * 1e12).astype(np.int64), 1),
            arms=arms,
            metrics={"completion": time, "start_resent": sent},
        )
