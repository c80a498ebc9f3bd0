"""Many repetitions of each design against the truth: its error, and how often its interval holds.

Nothing is drawn twice: each repetition has runs of its own, each run a seed of its own. The truth comes from
further runs, in which the same users have CUBIC once and BBR once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uncork.experiment.laboratory import designs
from uncork.experiment.laboratory.designs import RUNS, SHARES, Repetition, repetition
from uncork.experiment.laboratory.worlds import CELLS, Laboratory, World, treated_users
from uncork.measure.stats.effect import Effect, Outcome

Floats = NDArray[np.float64]

NAMES = {
    "ab": "A/B test, 50 % treated",
    "ab_low": "A/B test, 5 % treated",
    "ab_high": "A/B test, 95 % treated",
    "switchback": "switchback",
    "links": "paired links",
    "across": "paired links: across the links",
    "spill_over": "paired links: control arm",
}
"""The fields of a repetition in words."""
TOTAL = ("switchback", "links")
"""Designs that claim to estimate the total effect."""
OTHER_QUANTITY = ("spill_over",)
"""Designs with another estimand than the total effect."""
SEEDS = 1_000_000
"""Seeds between the first ones of two seeds of the whole: more than a world needs."""


@dataclass(frozen=True)
class Design:
    """What a design said in all repetitions."""

    key: str
    estimand: str
    ratios: Floats
    low: Floats
    high: Floats
    missing: int
    """Repetitions without an interval."""

    @property
    def name(self) -> str:
        return NAMES[self.key]

    @property
    def is_of_total(self) -> bool:
        """Whether it estimates the total effect."""
        return self.key not in OTHER_QUANTITY

    @property
    def middle(self) -> float:
        """Geometric mean of the estimates."""
        return float(np.exp(np.log(self.ratios).mean())) if len(self.ratios) else math.nan

    @property
    def repetitions(self) -> int:
        return len(self.ratios) + self.missing

    def covers(self, truth: float) -> NDArray[np.bool_]:
        """Whether each interval has the truth."""
        return np.asarray((self.low <= truth) & (truth <= self.high), dtype=np.bool_)

    def covered(self, truth: float) -> int:
        """How many intervals have the truth; a missing one has not."""
        return int(np.count_nonzero(self.covers(truth)))


@dataclass(frozen=True)
class Truth:
    """Total effect on the mean throughput of a user."""

    ratio: float
    error: float
    """Standard error of its logarithm, from the runs."""
    control: float
    """Mbit/s with everyone on CUBIC."""
    treated: float
    runs: int
    """Runs with either controller."""


@dataclass(frozen=True)
class Level:
    """Mean throughput at a share of treated users, in Mbit/s; None where an arm is empty."""

    share: float
    control: float | None
    treated: float | None
    everyone: float


@dataclass(frozen=True)
class Proof:
    """One world."""

    world: World
    truth: Truth
    designs: tuple[Design, ...]
    levels: tuple[Level, ...]

    def design(self, key: str) -> Design:
        return next(design for design in self.designs if design.key == key)


@dataclass(frozen=True)
class Plan:
    """How much is simulated of each world."""

    repetitions: int
    seed: int

    @property
    def truth(self) -> int:
        """Runs of each cell for the truth: enough that its error is small compared with a design's."""
        return max(25, 5 * self.repetitions // 4)

    @property
    def more_shares(self) -> int:
        """Runs of each cell at shares that only the picture needs."""
        return max(10, self.repetitions // 4)

    @property
    def runs(self) -> int:
        """All runs of a world."""
        of_cell = self.repetitions * RUNS * len(SHARES) + 2 * self.truth + 2 * self.more_shares
        return len(CELLS) * of_cell


class _Seeds:
    """Hands out seeds, each once."""

    def __init__(self, first: int) -> None:
        self.next = first

    def take(self, count: int) -> int:
        first, self.next = self.next, self.next + count
        return first


def prove(uncork: Path, world: World, plan: Plan, progress: Callable[[str], None] = lambda _: None) -> Proof:
    """Simulates a world and carries out the designs. Equal plans give equal results."""
    laboratory, seeds = Laboratory(uncork, world), _Seeds(plan.seed * SEEDS)
    done = 0

    def play(share: float, runs: int, first: int | None = None) -> list[Floats]:
        """The runs of all cells, in the order of `CELLS`."""
        nonlocal done
        found: list[Floats] = []
        for cell in CELLS:
            progress(f"{world.name}: {done:,} of {plan.runs:,} runs, {100 * share:g} % treated")
            at = seeds.take(runs) if first is None else first + runs * len(found)
            found.append(laboratory.play(cell, share, runs, at))
            done += runs
        return found

    stock = {share: play(share, plan.repetitions * RUNS) for share in SHARES}
    same = seeds.take(len(CELLS) * plan.truth)
    truth = _truth(*(play(share, plan.truth, same) for share in (0.0, 1.0)))
    between = {share: play(share, plan.more_shares) for share in (0.25, 0.75)}
    levels = [_level(share, runs) for share, runs in sorted((stock | between).items())]
    progress(f"{world.name}: analysing")
    return Proof(world, truth, tuple(_designs(stock, plan)), tuple(levels))


def _truth(control: list[Floats], treated: list[Floats]) -> Truth:
    """The ratio of the means. Its error: the same runs make both, so they are compared run by run."""
    before, after = (np.concatenate([cell.mean(axis=1) for cell in side]) for side in (control, treated))
    linear = after / after.mean() - before / before.mean()
    # Cells are strata: differences between them are none of chance.
    strata = linear.reshape(len(CELLS), -1)
    error = math.sqrt(float(strata.var(axis=1, ddof=1).mean()) / linear.size)
    return Truth(
        float(after.mean() / before.mean()), error, float(before.mean()), float(after.mean()), linear.size
    )


def _level(share: float, runs: list[Floats]) -> Level:
    users, treated = np.concatenate(runs), treated_users(share)
    control, changed = users[:, treated:], users[:, :treated]
    return Level(
        share,
        float(control.mean()) if control.size else None,
        float(changed.mean()) if changed.size else None,
        float(users.mean()),
    )


def _designs(stock: dict[float, list[Floats]], plan: Plan) -> Iterator[Design]:
    children = np.random.SeedSequence(plan.seed).spawn(plan.repetitions)
    repetitions = []
    for n, child in enumerate(children):
        own = {
            (share, cell): runs[n * RUNS : (n + 1) * RUNS]
            for share, of_cells in stock.items()
            for cell, runs in zip(CELLS, of_cells, strict=True)
        }
        repetitions.append(repetition(own, np.random.default_rng(child)))
    for field in fields(Repetition):
        yield _design(field.name, [getattr(one, field.name) for one in repetitions])


def _design(key: str, outcomes: list[Outcome]) -> Design:
    effects = [outcome for outcome in outcomes if isinstance(outcome, Effect)]
    columns = np.array([[effect.ratio, effect.ratio_low, effect.ratio_high] for effect in effects])
    ratios, low, high = columns.reshape(-1, 3).T
    return Design(key, outcomes[0].estimand, ratios, low, high, len(outcomes) - len(effects))


def share_with_interval(hits: int, of: int) -> tuple[float, float, float]:
    """A share of repetitions with its exact 95 % interval (Clopper and Pearson 1934)."""
    from scipy import stats  # here, because its import takes longer than most commands

    found = stats.binomtest(hits, of).proportion_ci(method="exact")
    return hits / of, float(found.low), float(found.high)


def document(proofs: tuple[Proof, ...], plan: Plan) -> dict[str, object]:
    """The numbers as plain data."""
    return {
        "schema": "experiment-interference-lab-1",
        "seed": plan.seed,
        "repetitions": plan.repetitions,
        "days": designs.DAYS,
        "worlds": [_world(proof) for proof in proofs],
    }


def _world(proof: Proof) -> dict[str, object]:
    truth = proof.truth
    return {
        "world": proof.world.name,
        "true_total_effect": truth.ratio,
        "standard_error_of_its_logarithm": truth.error,
        "throughput_mbit": {"control": truth.control, "treated": truth.treated},
        "runs_for_the_truth": truth.runs,
        "levels_mbit": [
            {"share": at.share, "control": at.control, "treated": at.treated, "everyone": at.everyone}
            for at in proof.levels
        ],
        "designs": [_design_document(design, truth.ratio) for design in proof.designs],
    }


def _design_document(design: Design, truth: float) -> dict[str, object]:
    found: dict[str, object] = {
        "design": design.name,
        "estimand": design.estimand,
        "without_interval": design.missing,
        "intervals": [
            {"ratio": ratio, "low": low, "high": high}
            for ratio, low, high in zip(
                design.ratios.tolist(), design.low.tolist(), design.high.tolist(), strict=True
            )
        ],
    }
    if len(design.ratios):
        found["mean_ratio"] = design.middle
    if design.is_of_total:
        found["covers_total_effect"] = design.covered(truth)
    return found
