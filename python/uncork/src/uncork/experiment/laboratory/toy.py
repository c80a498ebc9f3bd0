"""Worlds of known truth, in which A/B tests of congestion control lie.

The links are full, and two controllers divide each by weights: a flow of the treated arm gets `weight` times
what a flow of the control arm gets. If all are treated, no flow gains: the total effect of a full link is
nothing. In a mixed world part of the users have an access line of their own instead, where the treated arm
truly gains.

Truth is the throughput of the same world with all users treated, over its throughput with none treated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats import paired, switchback
from uncork.measure.stats.effect import Outcome, ab_at_share
from uncork.measure.stats.interference import Interference, control_level
from uncork.measure.stats.jackknife import ratio_effect

Floats = NDArray[np.float64]
HOURS = 24


@dataclass(frozen=True)
class World:
    """A place with many links in the hours of a day. Throughputs are in Mbit/s."""

    name: str = "a full link"
    weight: float = 2.0
    """Part of a full link that a treated flow gets, for 1 of a control flow."""
    full: float = 1.0
    """Share of the users behind a full link that they share."""
    gain: float = 0.0
    """Relative gain of treated users on lines of their own."""
    users: int = 400
    """Mean number of active users per hour."""
    capacity: float = 2_000.0
    """Capacity of the full links together."""
    line: float = 12.0
    """Median throughput on a line of one's own."""


FULL_LINK = World()
MIXED = World("a mix of networks", full=0.4, gain=0.15)
NO_SHARING = World("lines of one's own", full=0.0, gain=0.15)


@dataclass(frozen=True)
class Hour:
    """Active users of one hour, before anyone is treated. Arrays have shape (users,)."""

    on_full_link: NDArray[np.bool_]
    appetite: Floats
    """How much more or less than others a user gets of what there is."""
    bucket: NDArray[np.int64]
    capacity: float


def hour(world: World, time: int, rng: np.random.Generator, *, links: float = 1.0) -> Hour:
    """The users of hour `time`: more in the evening, with chance from hour to hour; `links` scales the
    capacity."""
    load = 1 + 0.5 * np.sin((time % HOURS - 14) / HOURS * 2 * np.pi)
    count = int(rng.poisson(world.users * load * np.exp(rng.normal(0, 0.1)))) + 2
    on_full_link = rng.random(count) < world.full
    appetite = np.exp(rng.normal(0, 0.6, count))
    capacity = world.capacity * links * float(np.exp(rng.normal(0, 0.05)))
    return Hour(on_full_link, appetite, rng.integers(0, 100, count), capacity)


def throughput(world: World, users: Hour, treated: NDArray[np.bool_]) -> Floats:
    """Throughput of each user, if these are treated."""
    parts = users.appetite * np.where(treated, world.weight, 1.0)
    shared = parts * users.capacity / max(float(parts[users.on_full_link].sum()), 1e-9)
    alone = world.line * users.appetite * np.where(treated, 1 + world.gain, 1.0)
    return np.asarray(np.where(users.on_full_link, shared, alone), dtype=np.float64)


def means(world: World, hours: list[Hour], treated: bool) -> Floats:
    """Mean throughput of each hour with all users treated, or none."""
    return np.array([throughput(world, users, np.full(len(users.bucket), treated)).mean() for users in hours])


def true_ratio(world: World, hours: list[Hour]) -> float:
    """The total effect as a ratio of the mean throughput of all users of these hours."""
    counts = np.array([len(users.bucket) for users in hours])
    return float(counts @ means(world, hours, True) / (counts @ means(world, hours, False)))


@dataclass(frozen=True)
class ToyTest:
    """The truth of a world, and a design's outcome."""

    truth: float
    outcome: Outcome


def ab_test(world: World, share: float, rng: np.random.Generator, *, days: int = 7) -> ToyTest:
    """A plain A/B test on all links, `share` of the users treated, analysed by the jackknife over users."""
    hours = [hour(world, time, rng) for time in range(days * HOURS)]
    sums = np.zeros((2, 2, 100))
    for users in hours:
        treated = rng.random(len(users.bucket)) < share
        values = throughput(world, users, treated)
        for arm, chosen in enumerate((~treated, treated)):
            sums[arm, 0] += np.bincount(users.bucket[chosen], values[chosen], 100)
            sums[arm, 1] += np.bincount(users.bucket[chosen], minlength=100)
    outcome = ratio_effect(*sums[0], *sums[1], estimand=ab_at_share(share))
    return ToyTest(true_ratio(world, hours), outcome)


def switchback_test(world: World, rng: np.random.Generator, *, weeks: int = 2, draws: int = 999) -> ToyTest:
    """A switchback of the whole place in blocks of an hour, paired by hour of the week."""
    schedule = switchback.paired_schedule(0, block=3600, periods=weeks, rng=rng)
    hours = [hour(world, time, rng) for time in range(len(schedule.start))]
    counts = np.array([float(len(users.bucket)) for users in hours])
    seen = np.where(schedule.treated, means(world, hours, True), means(world, hours, False))
    outcome = switchback.total_effect(schedule, seen * counts, counts, rng, draws=draws)
    return ToyTest(true_ratio(world, hours), outcome)


@dataclass(frozen=True)
class LinksTest:
    """The truth of a world, and the outcomes of paired links."""

    truth: float
    total_effect: Outcome
    across: Outcome
    spill_over: Outcome
    ab_low: Outcome
    ab_high: Outcome


def paired_test(world: World, rng: np.random.Generator, *, days: int = 20, draws: int = 999) -> LinksTest:
    """Two links, one with a tenth more capacity: 95 % treated on one and 5 % on the other, swapped by
    coins."""
    first = rng.integers(0, 2, days // 2)
    high = np.stack([first, 1 - first], axis=1).ravel()
    levels, everything = np.zeros((days, 2, 2)), []
    for day in range(days):
        common = float(np.exp(rng.normal(0, 0.1)))
        for link in (0, 1):
            share, totals = (0.95 if high[day] == link else 0.05), np.zeros((2, 2))
            for time in range(0, HOURS, 4):
                users = hour(world, time, rng, links=common * (1.1 if link else 1.0))
                everything.append(users)
                treated = rng.random(len(users.bucket)) < share
                values = throughput(world, users, treated)
                for arm, chosen in enumerate((~treated, treated)):
                    totals[arm] += values[chosen].sum(), np.count_nonzero(chosen)
            levels[day, link] = totals[:, 0] / totals[:, 1]
    links = paired.PairedLinks(levels, high)
    return LinksTest(
        truth=true_ratio(world, everything),
        total_effect=paired.total_effect(links, rng, draws=draws),
        across=paired.across(links, rng, draws=draws),
        spill_over=paired.spill_over(links, rng, draws=draws),
        ab_low=paired.ab_effect(links, rng, higher=False, draws=draws),
        ab_high=paired.ab_effect(links, rng, higher=True, draws=draws),
    )


def control_against_share(
    world: World, rng: np.random.Generator, *, steps: tuple[float, ...] = (0.05, 0.5, 0.95), places: int = 12
) -> Interference:
    """Steps of the share in drawn order at several places, a day each, and what the control arm shows."""
    names, shares, levels = [], [], []
    for place in range(places):
        links = float(np.exp(rng.normal(0, 0.3)))
        for share in rng.permutation(steps):
            control = []
            for time in range(0, HOURS, 4):
                users = hour(world, time, rng, links=links)
                treated = rng.random(len(users.bucket)) < share
                control.append(throughput(world, users, treated)[~treated])
            names.append(f"place {place + 1}")
            shares.append(float(share))
            levels.append(float(np.concatenate(control).mean()))
    return control_level(names, np.array(shares), np.array(levels), rng, draws=999)


@dataclass(frozen=True)
class WorldOutcomes:
    """One world: the truth, and the outcome of each design."""

    world: World
    truth: float
    ab: tuple[tuple[float, Outcome], ...]
    """By share of treated traffic."""
    control: Interference
    switchback: Outcome
    links: LinksTest


def show(
    world: World, rng: np.random.Generator, *, shares: tuple[float, ...] = (0.05, 0.5, 0.95)
) -> WorldOutcomes:
    """All designs in one world. `truth` is that of the switchback's hours."""
    test = switchback_test(world, rng)
    return WorldOutcomes(
        world=world,
        truth=test.truth,
        ab=tuple((share, ab_test(world, share, rng).outcome) for share in shares),
        control=control_against_share(world, rng),
        switchback=test.outcome,
        links=paired_test(world, rng),
    )
