"""The lesson about interference: worlds of known truth, and what each design reports of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uncork.experiment.laboratory import toy
from uncork.measure.stats.effect import Effect, Outcome

WORLDS = (toy.FULL_LINK, toy.MIXED, toy.NO_SHARING)


@dataclass(frozen=True)
class DesignResult:
    """The outcome of one design. `kind` is that of its estimand: `A/B`, `spill-over` or `total`."""

    design: str
    kind: str
    outcome: Outcome

    def covers(self, truth: float) -> bool | None:
        """Whether the interval holds the true total effect; None of a spill-over, which is another
        quantity.
        """
        if self.kind == "spill-over" or not isinstance(self.outcome, Effect):
            return None
        return self.outcome.ratio_low <= truth <= self.outcome.ratio_high


@dataclass(frozen=True)
class Lesson:
    """One world."""

    world: toy.World
    truth: float
    results: tuple[DesignResult, ...]
    control: str
    """What the control arm showed, in words."""


def lessons(seed: int, progress: Callable[[str], None] = lambda _: None) -> tuple[Lesson, ...]:
    """All worlds; the same seed gives the same numbers."""
    found = []
    for world, child in zip(WORLDS, np.random.SeedSequence(seed).spawn(len(WORLDS)), strict=True):
        progress(world.name)
        shown = toy.show(world, np.random.default_rng(child))
        results = [
            DesignResult(f"A/B test, {100 * share:g} % treated", "A/B", outcome)
            for share, outcome in shown.ab
        ]
        results += [
            DesignResult("steps of the share: control arm", "spill-over", shown.control.spill_over),
            DesignResult("switchback", "total", shown.switchback),
            DesignResult("paired links", "total", shown.links.total_effect),
        ]
        found.append(Lesson(shown.world, shown.truth, tuple(results), shown.control.sentence))
    return tuple(found)


def by_share(world: toy.World, share: float) -> tuple[float, float]:
    """Mean throughput (Mbit/s) of control and treated users at this share, without chance: the arithmetic
    behind it.

    A full link of capacity C and n users gives a user of weight v the part v / sum of weights.
    """
    crowd = world.users * world.full
    whole = crowd * (1 - share + world.weight * share)
    fair = world.capacity / whole if whole else 0.0
    control = world.full * fair + (1 - world.full) * world.line
    treated = world.full * fair * world.weight + (1 - world.full) * world.line * (1 + world.gain)
    return control, treated


def document(some: tuple[Lesson, ...], seed: int) -> dict[str, object]:
    """The numbers as plain data: for each world the truth, and each design's estimate with its estimand."""
    return {
        "schema": "experiment-interference-1",
        "seed": seed,
        "worlds": [
            {
                "world": lesson.world.name,
                "true_total_effect": lesson.truth,
                "control_arm": lesson.control,
                "designs": [_design(result, lesson.truth) for result in lesson.results],
            }
            for lesson in some
        ],
    }


def _design(result: DesignResult, truth: float) -> dict[str, object]:
    head: dict[str, object] = {"design": result.design, "estimand": result.outcome.estimand}
    if not isinstance(result.outcome, Effect):
        return head | {"reason": result.outcome.reason}
    effect = result.outcome
    return head | {
        "ratio": effect.ratio,
        "low": effect.ratio_low,
        "high": effect.ratio_high,
        "covers_total_effect": result.covers(truth),
    }
