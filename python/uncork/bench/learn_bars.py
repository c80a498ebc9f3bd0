"""Does `learn` decide as well as one who knows the true prior, and is its harm what it claims?

    python bench/learn_bars.py --page ../../docs/evidence/learn.md

Worlds are drawn as evidence with a known truth (drawn_worlds.py); evidence grows by a day at a time, and
`learn` plans. The reference (learn_reference.py) has the same estimates and the same bound of harm. Same
numbers in, same page out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from drawn_worlds import DEVELOPED_ON, FIRST_DAY, HELD_OUT, Kind, Records, World, draw
from learn_reference import Reference
from numpy.typing import NDArray

from uncork.learn.budget import BOUNDS, come_in
from uncork.learn.calibration import calibrated
from uncork.learn.decide import decide
from uncork.learn.decisions import Decisions
from uncork.learn.entries import PreviousArms, View
from uncork.learn.guardrails import Guardrails
from uncork.learn.lift import Lifts
from uncork.learn.mixture import Belief, beliefs
from uncork.learn.settings import Overrides, Settings

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SETTINGS = Settings(
    experiment="explore", control="control", treated="bbr", arms={}, as_of=FIRST_DAY, key="0" * 32
)
DAYS = (*range(1, 11), 12, 14, 16, 19, 22, 26, 30)
"""On which `learn` plans; daily while evidence is thin."""
BAR_DAYS = (3, 7, 10, 30)
CURVE_DAY = 7
RATES = (10_000, 25_000, 250_000)
"""Random records a day."""
AIMED_AT = 25_000
"""Random records a day from which on `learn` should do as well as the reference."""
NO_GAIN = World("A/A", 2_000, 125, (Kind(1.0),))
HARM = float(np.log1p(-SETTINGS.tolerated))
BAR = 0.85
FURTHER = "\n## A tenth of all networks fakes gains\n"
"""The heading of what another command adds to the page."""


@dataclass(frozen=True)
class Day:
    """A plan, held to the truth. Gains are parts of the oracle's, which knows all lifts."""

    world: str
    rate: int
    seed: int
    day: int
    gain: float
    reference: float
    ruled: float
    """Of the true prior by the rules of `learn`, day by day."""
    z: float
    """Standard deviation of (belief - truth) / error over networks."""
    z_reference: float
    on: int
    left: int
    """Networks that were switched off although they gain."""
    stayed: float
    """Network-days of networks that gain and were on."""
    harm_said: float
    """Traffic that is on and worse by more than 2 %, by the probabilities and truly."""
    harm_true: float
    widening: float
    deciles: Floats
    """Traffic of all networks, what of it is harmed by the probabilities, and truly: shape (3, 10)."""
    curve: tuple[float, ...]
    """Gain by bound of harm, decided afresh; empty on other days."""


def play(world: World, rate: int, seed: int, days: Sequence[int] = DAYS) -> list[Day]:
    """All plans of a world."""
    drawn = draw(world, seed)
    records, before, ruled, found = Records(drawn, rate, seed), PreviousArms({}), PreviousArms({}), []
    was_on, last = np.zeros(world.networks, dtype=np.bool_), 0
    for day in range(1, max(days) + 1):
        records.day(day - 1)
        if day not in days:
            continue
        settings = replace(SETTINGS, as_of=FIRST_DAY + day)
        section = records.section(of_lift_alone=True)
        known = calibrated(section, settings)
        assert known is not None
        view = View(replace(section, metrics={}), known, Guardrails({}, {}))
        allowance = min(settings.changed * (day - last), 1.0)
        decisions = decide([view], settings, Overrides(), before, allowance)
        before = PreviousArms.from_decisions(decisions)
        reference = _reference(world, day, settings, known)
        with_prior = _by_rules(view, settings, ruled, allowance, reference)
        ruled = PreviousArms.from_decisions(with_prior)
        networks, by_rules = (one.where(one.level == "network") for one in (decisions, with_prior))
        truth = drawn.lift_of_week(day - 1)
        found.append(
            _day(
                (world.name, rate, seed, day),
                networks,
                by_rules,
                truth,
                drawn.share,
                was_on,
                reference,
                known,
                day - last,
            )
        )
        was_on, last = networks.arm == "bbr", day
    return found


def _reference(world: World, day: int, settings: Settings, known: Lifts) -> Belief:
    """What the true prior says of each network."""
    of = Reference(world, day - 1, settings.half_life, known.hierarchy)
    return of.beliefs(known.raw, known.rests[0], (0.0, HARM))


def _by_rules(
    view: View, settings: Settings, before: PreviousArms, allowance: float, of: Belief
) -> Decisions:
    """What `learn` would decide if it believed this of networks: what the rules alone cost."""
    said = replace(beliefs(view.lifts, (0.0, HARM)), network=of)
    with patch("uncork.learn.entries.beliefs", return_value=said):
        known = replace(view, lifts=replace(view.lifts, widening=1.0))
        return decide([known], settings, Overrides(), before, allowance)


def _afresh(share: Floats, lift: Floats, p_safe: Floats, bound: float) -> Bools:
    nothing = np.zeros(len(share), dtype=np.bool_)
    may = (lift >= np.log1p(SETTINGS.worth)) & (p_safe >= SETTINGS.sure)
    return come_in(share, lift, p_safe, nothing, may, bound, SETTINGS.sure)


def _day(
    case: tuple[str, int, int, int],
    of: Decisions,
    by_rules: Decisions,
    truth: Floats,
    share: Floats,
    was_on: Bools,
    reference: Belief,
    known: Lifts,
    days: int,
) -> Day:
    on, gains = of.arm == "bbr", truth > 0
    best = float((share * np.maximum(truth, 0)).sum()) or 1.0
    harm, is_harmed = 1 - of.p_safe, truth < HARM
    decile = np.minimum((harm * 10).astype(np.int64), 9)
    sums = [np.bincount(decile, share * one, 10) for one in (np.ones(len(share)), harm, is_harmed)]
    # Afresh, so nothing holds the reference back but the bound of harm.
    afresh = _afresh(share, reference.mean, reference.above[1], SETTINGS.harmed)
    curve = (
        tuple(
            float((share * truth)[_afresh(share, of.lift, of.p_safe, bound)].sum()) / best
            for bound in (*BOUNDS, 1.0)
        )
        if case[-1] == CURVE_DAY
        else ()
    )
    return Day(
        *case,
        gain=float((share * truth)[on].sum()) / best,
        reference=float((share * truth)[afresh].sum()) / best,
        ruled=float((share * truth)[by_rules.arm == "bbr"].sum()) / best,
        z=float(np.std((of.lift - truth) / of.sd)),
        z_reference=float(np.std((reference.mean - truth) / np.maximum(reference.sd, 1e-9))),
        on=int(on.sum()),
        left=int((was_on & ~on & gains).sum()),
        stayed=float((was_on & gains).sum()) * days,
        harm_said=float((share * harm)[on].sum()),
        harm_true=float(share[on & is_harmed].sum()),
        widening=known.widening,
        deciles=np.array(sums),
        curve=curve,
    )


def _played(job: tuple[World, int, int]) -> list[Day]:
    found = play(*job)
    print(f"{job[0].name}, {job[1]} records a day, seed {job[2]}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    options = _options()
    worlds = (*DEVELOPED_ON, *HELD_OUT)
    rates = [rate for rate in RATES if rate <= options.most]
    jobs = [(world, rate, seed) for rate in rates for world in worlds for seed in _seeds(rate, options.seeds)]
    jobs += [(NO_GAIN, rate, seed) for rate in (10_000, 25_000) for seed in (1, 2)]
    with ProcessPoolExecutor(options.jobs) as pool:
        days = [day for found in pool.map(_played, jobs) for day in found]
    from learn_bars_page import page

    text = page(days, [world.name for world in DEVELOPED_ON], NO_GAIN.name, options.seeds)
    if options.page:
        before = options.page.read_text("utf-8") if options.page.exists() else ""
        # What follows on the page is of learn_faked.py.
        options.page.write_text(text + "".join(before.partition(FURTHER)[1:]), encoding="utf-8")
    print(text)


def _seeds(rate: int, seeds: int) -> range:
    """One of the largest rate, as it takes ten times as long."""
    return range(11, 12 if rate > 100_000 else 11 + seeds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="`learn` in drawn worlds, compared with the true prior.")
    parser.add_argument("--seeds", type=int, default=1, help="of each world [default: 1]")
    parser.add_argument("--most", type=int, default=RATES[-1], help="largest rate [default: 250000]")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
