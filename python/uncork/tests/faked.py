"""A tenth of all networks fake gains: what becomes of the others?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from learn_worlds import Evidence, World, is_on, planned
from uncork.learn.decisions import Decisions

Bools = NDArray[np.bool_]

PART = 10
DAYS = 7


@dataclass(frozen=True)
class Faked:
    """Parts of the other networks' traffic."""

    on: float
    """With BBR only because others lie."""
    off: float
    """Without BBR only because others lie."""
    worse: float
    """With BBR, and worse by more than 2 %."""
    worse_before: float
    """Likewise if none lies."""
    own: float
    """Part of the liars' traffic that gets BBR."""


def faked(one: World, evil: Bools, fake: float, seed: int, calm: Bools) -> Faked:
    """A plan after a week in which the ``evil`` networks report a lift of ``fake`` (log units). ``calm``: the
    networks that are on if none lies.
    """
    moved = decided(replace(one, lift=np.where(evil, fake, one.lift)), seed)
    total = one.share[~evil].sum()

    def part(of: Bools) -> float:
        return float(one.share[~evil & of].sum() / total)

    is_worse = one.lift < np.log(0.98)
    own = float(one.share[evil & moved].sum() / one.share[evil].sum())
    return Faked(part(moved & ~calm), part(calm & ~moved), part(moved & is_worse), part(calm & is_worse), own)


def liars(one: World, choice: str, seed: int) -> Bools:
    """A tenth of all networks: ``any``, or the ``largest`` of each AS."""
    count = len(one.share) // PART
    evil = np.zeros(len(one.share), dtype=np.bool_)
    if choice == "any":
        evil[np.random.default_rng(seed).choice(len(evil), count, replace=False)] = True
        return evil
    for system in range(len(one.tree.systems)):
        members = np.flatnonzero(one.tree.system == system)
        evil[members[np.argsort(-one.share[members])][: len(members) // PART]] = True
    return evil


def decided(reported: World, seed: int) -> Bools:
    """The networks that are on after a week of what they report."""
    evidence = Evidence(reported)
    for day in range(DAYS):
        evidence.day(np.random.default_rng([seed, day]), reported.lift)
    return is_on(planned(evidence, DAYS, Decisions.concat([])), reported)
