"""The budget of harm: which entries come in while the traffic that may be harmed stays within a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from uncork.learn.decisions import Bools, Decisions, Floats
from uncork.learn.settings import Settings

AT_RISK = "deferred: budget of harm used"
TOO_RISKY = "switched off, its risk alone exceeds the budget of harm"
WAITS = "deferred: daily change budget used"
MIN_GAIN = 1e-6
"""Of an entry that is expected to gain nothing."""
BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Shares of the traffic that a person may choose from."""


def exceeds(share: Floats, p_safe: Floats, bound: float, sure: float) -> Bools:
    """Which entries are a risk beyond `bound`, each as if it were on alone. Shapes: (entries,).

    One that is as sure as it must be to come in is none: large networks would else go on and off.
    """
    p_harm = 1 - p_safe
    reach = share * (p_harm + float(ndtri(sure)) * np.sqrt(p_harm * p_safe))
    return np.asarray((reach > bound) & (p_safe < sure))


def come_in(
    share: Floats, lift: Floats, p_safe: Floats, stays: Bools, may: Bools, bound: float, sure: float
) -> Bools:
    """Which of `may` come in, given the entries that stay: first the largest expected gain for the risk.
    With the probability `sure`, at most `bound` of the traffic is harmed then. Shapes: (entries,).
    """
    p_harm = 1 - p_safe
    risk, spread = share * p_harm, share**2 * p_harm * (1 - p_harm)
    expected, variance = float(risk[stays].sum()), float(spread[stays].sum())
    found = may & ~stays & (risk <= 0)
    rows = np.flatnonzero(may & ~stays & (risk > 0))
    gain = share[rows] * np.maximum(lift[rows], MIN_GAIN)
    rows = rows[np.argsort(risk[rows] / gain, kind="stable")]
    sigmas = float(ndtri(sure))
    for row, more, its in zip(rows.tolist(), risk[rows].tolist(), spread[rows].tolist(), strict=True):
        if expected + more + sigmas * math.sqrt(variance + its) <= bound:
            expected, variance = expected + more, variance + its
            found[row] = True
    return found


@dataclass(frozen=True)
class Choice:
    """What a bound of harm would bring, if the daily change budget held nothing back."""

    harmed: float
    """The bound: share of the traffic."""
    networks: int
    """That would be on."""
    share: float
    """Their part of the bytes."""
    gain: float
    """Mean log lift that is expected over all bytes."""


def choices(decisions: Decisions, settings: Settings, bounds: Sequence[float] = BOUNDS) -> list[Choice]:
    """By bound, the one of the settings among them: with networks that are on and stay, and networks that the
    evidence wants on. Sections are summed, as each has its own budget.
    """
    is_network = decisions.level == "network"
    is_on = is_network & (decisions.arm != settings.control)
    is_new = decisions.reason == "switched on"
    stays = is_on & ~is_new
    may = is_network & (is_new | (decisions.reason == AT_RISK) | (decisions.reason == WAITS)) & ~stays
    may &= decisions.lift > 0
    found = []
    for bound in sorted({*bounds, settings.harmed}):
        on = stays.copy()
        for name in sorted(set(decisions.section.tolist())):
            rows = np.flatnonzero(decisions.section == name)
            share = decisions.share[rows]
            on[rows] |= come_in(
                share,
                decisions.lift[rows],
                decisions.p_safe[rows],
                stays[rows],
                may[rows],
                bound * float(share.sum()),
                settings.sure,
            )
        share = decisions.share[on]
        gain = math.fsum((share * decisions.lift[on]).tolist())
        found.append(Choice(bound, int(on.sum()), math.fsum(share.tolist()), gain))
    return found
