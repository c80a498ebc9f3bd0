"""What the confirmed ASes gained as a whole, by their switchbacks.

A gain over the holdback compares clients side by side. Where these share a bottleneck, the holdback itself
gets more or less than it would without the table. A switchback changes all clients, so its effect is the
total one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from uncork.learn.confirm import CONFIRMED, Trial, Trials
from uncork.learn.decisions import Decisions


@dataclass(frozen=True)
class Total:
    """The mean effect of the confirmed ASes of a section, by bytes."""

    systems: int
    share: float
    """Of all bytes."""
    ratio: float
    """Of what all clients of these ASes get, to what they get without; above 1 is better."""
    low: float
    high: float
    """As if the errors of all went together: the widest that the interval can be."""


def totals(trials: Trials, networks: Decisions) -> Mapping[str, Total]:
    """By section; those without a confirmed AS are left out. `networks`: the entries of networks."""
    confirmed: dict[str, list[tuple[float, Trial]]] = defaultdict(list)
    for (section, name), trial in trials.items():
        own = (networks.section == section) & (networks.parent == name)
        share = math.fsum(networks.share[own].tolist())
        if trial.verdict == CONFIRMED and share > 0:
            confirmed[section].append((share, trial))
    return {section: _total(found) for section, found in sorted(confirmed.items())}


def _total(found: list[tuple[float, Trial]]) -> Total:
    share = np.array([one for one, _ in found])
    # A confirmed trial has all three.
    ends = np.array([[trial.ratio, trial.low, trial.high] for _, trial in found], dtype=np.float64)
    ratio, low, high = np.exp(share @ np.log(ends) / share.sum()).tolist()
    return Total(len(found), float(share.sum()), ratio, low, high)
