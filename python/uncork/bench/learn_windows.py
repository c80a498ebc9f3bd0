"""Does `learn` give each network the initial window that its path carries?

    python bench/learn_windows.py --page ../../docs/evidence/learn-windows.md

Worlds are drawn as evidence with a known truth for every window (window_worlds.py); evidence grows by a day
at a time, and `learn` plans every other day. Same numbers in, same page out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from window_worlds import FIRST_DAY, WINDOWS, Drawn, Records, World, draw

from uncork.learn import guardrails, harm, monotone
from uncork.learn.calibration import calibrated
from uncork.learn.decide import decide
from uncork.learn.decisions import Decisions
from uncork.learn.entries import PreviousArms, View
from uncork.learn.evidence import Section
from uncork.learn.settings import Overrides, Settings

Ints = NDArray[np.int64]

NAMES = tuple(f"w{packets}" for packets in WINDOWS)
SETTINGS = Settings(
    experiment="explore",
    control=NAMES[0],
    treated=NAMES[1],
    others=NAMES[2:],
    arms={
        name: {"tcp": "cubic", "initial_window": f"{packets}p"}
        for name, packets in zip(NAMES, WINDOWS, strict=True)
    },
    as_of=FIRST_DAY,
    key="0" * 32,
    guardrails=("start_resent=2pp",),
)
LIMIT = 0.02
"""Of the guardrail: what a window may have resent more."""
RATES = (25_000, 100_000)
"""Random records a day."""
DAYS = (1, 3, 5, 7)
"""On which `learn` plans; then paths change."""
WORLD = World("an access for each AS")
MIXED = World("all accesses in each AS", others=1.0)
NO_GAIN = World("A/A", gains=0.0)
CHANGED = 0.05
"""Part of the networks that get a slow path."""


@dataclass(frozen=True)
class Day:
    """A plan, held to the truth of its day."""

    world: str
    rate: int
    seed: int
    day: int
    gain: float
    """Part of what an oracle gains that keeps the guardrail."""
    right: float
    """Share of the traffic with the oracle's window."""
    worse: float
    """Share of the traffic that is more than 2 % worse."""
    beyond: float
    """Share of the traffic that has more resent than the limit allows."""
    on: int


def views(records: Records, settings: Settings) -> list[View]:
    """As a version has them: each window next to control."""
    found = [
        _view(section, settings.of(arm), arm)
        for section, arm in zip(records.sections(settings.window), settings.candidates, strict=True)
    ]
    return monotone.with_smaller(found, settings)


def _view(section: Section, settings: Settings, arm: str) -> View:
    known = calibrated(section, settings)
    assert known is not None
    tree = known.hierarchy
    return View(
        replace(section, metrics={}),
        known,
        guardrails.of_section(section, settings, tree),
        harm.margins(section, settings, tree),
        arm=arm,
    )


def planned(records: Records, day: int, before: PreviousArms, days: int = 1) -> Decisions:
    """The plan on the morning of a day, `days` after the one before."""
    settings = replace(SETTINGS, as_of=FIRST_DAY + day)
    allowance = min(settings.changed * days, 1.0)
    return decide(views(records, settings), settings, Overrides(), before, allowance)


def windows_of(decisions: Decisions) -> Ints:
    """Of each network the index of its window."""
    arm = decisions.networks.arm
    return np.asarray(np.argmax(np.stack([arm == name for name in NAMES]), axis=0))


def play(world: World, rate: int, seed: int) -> Iterator[tuple[Drawn, int, Decisions]]:
    """All plans."""
    drawn = draw(world, seed)
    for day, decisions in _plans(Records(drawn, rate, seed)):
        yield drawn, day, decisions


def _plans(records: Records) -> Iterator[tuple[int, Decisions]]:
    before, last = PreviousArms({}), 0
    for day in range(1, max(DAYS) + 1):
        records.day(day - 1)
        if day in DAYS:
            decisions = planned(records, day, before, day - last)
            before, last = PreviousArms.from_decisions(decisions), day
            yield day, decisions


def held(case: tuple[str, int, int], drawn: Drawn, day: int, decisions: Decisions) -> Day:
    """A plan next to the truth."""
    window, best = windows_of(decisions), drawn.best(LIMIT)
    gains = float((drawn.share * drawn.at(best)).sum())
    more = drawn.resent[np.arange(len(window)), window] - drawn.resent[:, 0]
    return Day(
        *case,
        day,
        gain=float((drawn.share * drawn.at(window)).sum()) / (gains or 1.0),
        right=float(drawn.share[window == best].sum()),
        worse=float(drawn.share[drawn.at(window) < np.log1p(-SETTINGS.tolerated)].sum()),
        beyond=float(drawn.share[more > LIMIT].sum()),
        on=int((window > 0).sum()),
    )


@dataclass(frozen=True)
class Change:
    """Networks with a larger window before their path became slow, and each day after."""

    rate: int
    seed: int
    networks: int
    seen: int
    """Of these, networks with enough records of the day for an interval of their own."""
    still: tuple[int, ...]
    """How many still have a larger window than ten by the plan 1, 2 and 3 days after."""
    still_seen: tuple[int, ...]
    """The same, of the networks that were seen."""
    share: float
    """Of the traffic that had a larger window than ten, and a path that cannot carry it, 1 day after."""


ENOUGH = 40
"""Records of a day in each arm."""


def change(world: World, rate: int, seed: int, decisions: Decisions) -> Change:
    """Some networks get a slow path after the last day, on which these were the decisions."""
    drawn, window = draw(world, seed), windows_of(decisions)
    rng = np.random.default_rng((seed, 9))
    chosen = np.flatnonzero((window > 0) & (rng.random(len(window)) < CHANGED))
    slow = drawn.moved(chosen)
    records, before = Records(drawn, rate, seed), PreviousArms.from_decisions(decisions)
    for day in range(max(DAYS)):
        records.day(day)
    still, shares = [], []
    is_seen = drawn.share[chosen] * rate / len(WINDOWS) >= ENOUGH
    for day in range(max(DAYS), max(DAYS) + 3):
        records.day(day, slow)
        found = planned(records, day + 1, before)
        before = PreviousArms.from_decisions(found)
        still.append(windows_of(found)[chosen] > 0)
        shares.append(float(drawn.share[chosen][still[-1]].sum()))
    return Change(
        rate,
        seed,
        len(chosen),
        int(is_seen.sum()),
        tuple(int(one.sum()) for one in still),
        tuple(int(one[is_seen].sum()) for one in still),
        shares[0],
    )


@dataclass(frozen=True)
class Faked:
    """What one network that makes up good starts changes, by all plans."""

    rate: int
    seed: int
    network: str
    share: float
    own: str
    """Its window on the last day."""
    others: int
    """Other networks with another window than without it, by any plan."""
    moved: float
    """Their share of the traffic on the day with most of it."""
    worse: float
    """Share of others' traffic that is more than 2 % worse and was not without it, on that day."""


def faked(world: World, rate: int, seed: int, honest: Sequence[Decisions]) -> Faked:
    """A network of a slow access that has much traffic fakes that larger windows are fast. `honest`: all
    decisions without it.
    """
    drawn = draw(world, seed)
    loses = drawn.lift[:, -1] < 0
    liar = int(np.argmax(np.where(loses, drawn.share, 0)))
    lying = _plans(Records(drawn, rate, seed, faked=liar))
    moved, worse, ever = 0.0, 0.0, np.zeros(len(drawn.share), dtype=np.bool_)
    own = 0
    for without, (_, decisions) in zip(honest, lying, strict=True):
        found = [windows_of(without), windows_of(decisions)]
        differs = found[0] != found[1]
        own, differs[liar] = int(found[1][liar]), False
        ever |= differs
        harmed = [drawn.at(one) < np.log1p(-SETTINGS.tolerated) for one in found]
        moved = max(moved, float(drawn.share[differs].sum()))
        worse = max(worse, float(drawn.share[differs & harmed[1] & ~harmed[0]].sum()))
    return Faked(
        rate, seed, f"N{liar:06d}", float(drawn.share[liar]), NAMES[own], int(ever.sum()), moved, worse
    )


Story = tuple[list[Day], list[Change], list[Faked]]


def _played(job: tuple[World, int, int]) -> Story:
    """A world, and in the first one what follows from a change of paths and from a fake."""
    world, rate, seed = job
    plans = list(play(world, rate, seed))
    days = [held((world.name, rate, seed), *one) for one in plans]
    decisions = [one for _, _, one in plans]
    changes = [change(world, rate, seed, decisions[-1])] if world == WORLD else []
    fakes = [faked(world, rate, seed, decisions)] if world == WORLD else []
    print(days[-1], changes, fakes, file=sys.stderr, flush=True)
    return days, changes, fakes


def main() -> None:
    options = _options()
    few, many = RATES
    seeds = range(11, 11 + options.seeds)
    jobs = [(world, few, seed) for world in (WORLD, MIXED, NO_GAIN) for seed in seeds]
    # The larger rate takes ten times as long.
    jobs.append((WORLD, many, seeds[0]))
    with ProcessPoolExecutor(options.jobs) as pool:
        stories = list(pool.map(_played, jobs))
    days = [one for story in stories for one in story[0]]
    changes = [one for story in stories for one in story[1]]
    fakes = [one for story in stories for one in story[2]]
    from learn_windows_page import page

    text = page(days, changes, fakes, options.seeds)
    if options.page:
        options.page.write_text(text, encoding="utf-8")
    print(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learned initial windows in drawn worlds.")
    parser.add_argument("--seeds", type=int, default=2, help="of each world [default: 2]")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
