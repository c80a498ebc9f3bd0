"""How often each design covers the truth of a toy world."""

from __future__ import annotations

import numpy as np

from uncork.experiment.laboratory import toy
from uncork.measure.stats.effect import Effect, Outcome


def _covers(outcome: Outcome, truth: float) -> bool:
    assert isinstance(outcome, Effect), outcome
    return outcome.ratio_low <= truth <= outcome.ratio_high


def coverage(world: toy.World, repetitions: int, rng: np.random.Generator) -> dict[str, float]:
    """Share of repetitions in which each design's interval has the true total effect."""
    hits = {
        "A/B at share 50 %": 0,
        "switchback": 0,
        "paired links": 0,
        "treated against control across links": 0,
    }
    for _ in range(repetitions):
        test = toy.ab_test(world, 0.5, rng, days=1)
        hits["A/B at share 50 %"] += _covers(test.outcome, test.truth)
        test = toy.switchback_test(world, rng, draws=499)
        hits["switchback"] += _covers(test.outcome, test.truth)
        links = toy.paired_test(world, rng, draws=499)
        hits["paired links"] += _covers(links.total_effect, links.truth)
        hits["treated against control across links"] += _covers(links.across, links.truth)
    return {name: hit / repetitions for name, hit in hits.items()}
