"""Paired links: one of two like links treats most of its traffic, the other little; then they swap (Spang et
al. 2021).

One experiment gives three kinds of numbers: the A/B difference at each share, the spill-over on the control
arm, and the total effect. Periods come in pairs with the links swapped, so that what distinguishes the links
cancels. A coin decides which link is first, and inference turns these coins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncork.measure.stats.effect import SPILL_OVER, TOTAL_EFFECT, NoInterval, Outcome, ab_at_share
from uncork.measure.stats.randomisation import DRAWS, effect_of_logs, sign_flips

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairedLinks:
    """Levels of a metric on two links over an even number of periods."""

    levels: Floats
    """Shape (periods, 2 links, 2 arms), control first: a mean per period, link and arm; above zero."""
    high: NDArray[np.int64]
    """Shape (periods,): the link, 0 or 1, that treats the higher share. Periods 0 and 1 are a pair, and so
    on."""
    shares: tuple[float, float] = (0.05, 0.95)
    """The lower and the higher share of treated traffic."""

    def __post_init__(self) -> None:
        periods = len(self.high)
        if self.levels.shape != (periods, 2, 2) or periods % 2 != 0:
            raise ValueError(f"levels of shape {self.levels.shape} are not (even number of periods, 2, 2)")
        if np.any(self.high[::2] == self.high[1::2]):
            raise ValueError("the links do not swap within each pair of periods")
        if not 0 < self.shares[0] < self.shares[1] < 1:
            raise ValueError(f"shares {self.shares} are not rising between 0 and 1")


def total_effect(
    links: PairedLinks, rng: np.random.Generator, *, level: float = 0.95, draws: int = DRAWS
) -> Outcome:
    """Total effect, from the mean of *all* traffic of each link, both arms together.

    On a full link this mean does not depend on who gets what, so it is right where the arms take from each
    other, and right where they do not. It is extended from the two shares to 0 and 1 on the logarithmic
    scale.
    """
    lower, higher = links.shares
    shares = np.where(np.arange(2)[None, :] == links.high[:, None], higher, lower)
    whole = (1 - shares) * links.levels[:, :, 0] + shares * links.levels[:, :, 1]
    return _between(links, whole, whole, TOTAL_EFFECT, rng, level, draws, extend=1 / (higher - lower))


def spill_over(
    links: PairedLinks, rng: np.random.Generator, *, level: float = 0.95, draws: int = DRAWS
) -> Outcome:
    """What treated traffic does to the control arm: control at the higher share against control at the
    lower."""
    control = links.levels[:, :, 0]
    return _between(links, control, control, SPILL_OVER, rng, level, draws)


def across(
    links: PairedLinks, rng: np.random.Generator, *, level: float = 0.95, draws: int = DRAWS
) -> Outcome:
    """Treated at the higher share against control at the lower: what Spang et al. take for the total effect.

    It leaves the last 5 % on each side out. Where the arms compete, these matter: `total_effect` does
    without.
    """
    estimand = (
        f"treated at share {links.shares[1] * 100:g} % against control at share {links.shares[0] * 100:g} %"
    )
    return _between(links, links.levels[:, :, 1], links.levels[:, :, 0], estimand, rng, level, draws)


def ab_effect(
    links: PairedLinks, rng: np.random.Generator, *, higher: bool, level: float = 0.95, draws: int = DRAWS
) -> Outcome:
    """What a plain A/B test shows on the link with the higher (or lower) share, as the mean over the pairs.

    Clients were assigned by hash; the pairs of periods show how much the difference varies.
    """
    share = links.shares[int(higher)]
    link = links.high if higher else 1 - links.high
    own = links.levels[np.arange(len(link)), link]
    if np.any(~np.isfinite(own)) or np.any(own <= 0):
        return NoInterval("a level is missing or not above zero", estimand=ab_at_share(share))
    logs = np.log(own).reshape(-1, 2, 2).mean(axis=1)
    tested = sign_flips(logs[:, 1] - logs[:, 0], rng, level=level, draws=draws)
    control = math.exp(float(logs[:, 0].mean()))
    return effect_of_logs(tested, control, pairs=len(logs), level=level, estimand=ab_at_share(share))


def _between(
    links: PairedLinks,
    at_high: Floats,
    at_low: Floats,
    estimand: str,
    rng: np.random.Generator,
    level: float,
    draws: int,
    extend: float = 1.0,
) -> Outcome:
    """`at_high` on the link with the higher share against `at_low` on the other; both have shape (periods,
    links)."""
    rows = np.arange(len(links.high))
    values = at_high[rows, links.high], at_low[rows, 1 - links.high]
    if any(np.any(~np.isfinite(value)) or np.any(value <= 0) for value in values):
        return NoInterval("a level is missing or not above zero", estimand=estimand)
    treated, control = (np.log(value).reshape(-1, 2).mean(axis=1) for value in values)
    differences = (treated - control) * extend
    tested = sign_flips(differences, rng, level=level, draws=draws)
    # The control level is what the lower share would be at 0, if the difference is extended.
    base = math.exp(float(control.mean()) - links.shares[0] * float(differences.mean()) * (extend != 1))
    return effect_of_logs(tested, base, pairs=len(differences), level=level, estimand=estimand)
