"""Which treated arm the rules are asked about, where an entry may have one of several.

The rules (decide.py) know two arms: control, and one treated arm. With several treated arms, each entry asks
them about one: the arm that it has, or the arm that it is to get. So there is one set of rules for any number
of arms, and with one treated arm nothing is chosen here.

An entry leaves its arm for another treated arm only if that passes every rule over control, and is expected
to gain more, as a change must: the same least gain, and the same certainty that the move itself does not
lose. The two lifts share the control arm, so their difference is known better than is assumed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from uncork.learn.decisions import ABSENT, NAMES, Bools, Decisions, Ints, Texts
from uncork.learn.settings import Settings


@dataclass(frozen=True)
class Known:
    """Today's evidence of one treated arm, for all entries of a section: arrays of shape (entries,)."""

    now: Decisions
    why_broken: Texts
    """The guardrail that is broken, or None."""
    why_likely: Texts
    """The guardrail that is likely broken, or None."""
    is_beyond_chance: Bools
    """Whether the gain of any entry is significant."""

    def is_likely(self, settings: Settings) -> Bools:
        return np.asarray((self.why_likely != None) & settings.likely)  # noqa: E711

    def is_broken(self) -> Bools:
        return np.asarray(self.why_broken != None)  # noqa: E711

    def is_worth(self, settings: Settings) -> Bools:
        """Whether the gain is worth a change, and a loss unlikely enough."""
        gains = self.now.lift >= math.log1p(settings.worth)
        return np.asarray(gains & (self.now.p_safe >= settings.sure))

    def is_kept(self, settings: Settings) -> Bools:
        """Whether the limits are likely kept."""
        return np.asarray((self.now.p_kept >= settings.doubt) & ~self.is_likely(settings))

    def may_come(self, settings: Settings) -> Bools:
        """Whether the evidence allows to switch the arm on, were there no budget."""
        allowed = self.is_worth(settings) & self.is_kept(settings) & ~self.is_broken()
        return np.asarray(allowed & self.is_beyond_chance)

    def may_stay(self, settings: Settings) -> Bools:
        """Whether the evidence allows that the arm stays on."""
        gains = self.now.p_gain >= settings.doubt
        return np.asarray(gains & self.is_kept(settings) & ~self.is_broken())


def asked(
    known: Sequence[Known], settings: Settings, pinned: Texts | None = None, frozen: Bools | None = None
) -> Ints:
    """Of each entry, the index of the treated arm that the rules are asked about. `pinned`: the arm that a
    person gave it, or None; `frozen`: whether it is to change no more.
    """
    if len(known) == 1:
        return np.zeros(len(known[0].now), dtype=np.int64)
    lift = np.stack([one.now.lift for one in known])
    may = np.stack([one.may_come(settings) for one in known])
    best = np.argmax(np.where(may, lift, -np.inf), axis=0)
    # If none may come in: the arm that is nearest to it.
    broken = np.stack([one.is_broken() for one in known])
    nearest = np.argmax(np.where(broken, lift - 1e3, lift), axis=0)
    best = np.where(may.any(axis=0), best, nearest)
    current = index_of(known[0].now.arm, settings)
    is_on = current != ABSENT
    stays = np.stack([one.may_stay(settings) for one in known])
    leaves = may.any(axis=0) & _is_better(known, best, current, settings)
    leaves &= _at(stays, current)
    found = np.where(is_on & ~leaves, current, best)
    if frozen is not None:
        found = np.where(is_on & frozen, current, found)
    if pinned is not None:
        by_person = index_of(pinned, settings)
        found = np.where(by_person != ABSENT, by_person, found)
    return np.asarray(found, dtype=np.int64)


def _is_better(known: Sequence[Known], best: Ints, current: Ints, settings: Settings) -> Bools:
    """Whether a move from the current arm to the best one is worth it, and surely no loss."""
    lift, sd = (np.stack([getattr(one.now, name) for one in known]) for name in ("lift", "sd"))
    gain = _at(lift, best) - _at(lift, current)
    error = np.hypot(_at(sd, best), _at(sd, current))
    is_sure = ndtr((gain - math.log1p(-settings.tolerated)) / error) >= settings.sure
    return np.asarray((best != current) & (gain >= math.log1p(settings.worth)) & is_sure)


def _at(values: NDArray[Any], index: Ints) -> NDArray[Any]:
    """Of each entry the value of one arm; that of the last arm where there is none."""
    return np.asarray(values[index, np.arange(values.shape[1])])


def index_of(arm: Texts, settings: Settings) -> Ints:
    """The place of each arm among the treated arms; `ABSENT`: it is none of them."""
    found = np.full(len(arm), ABSENT, dtype=np.int64)
    for at, name in enumerate(settings.candidates):
        found[arm == name] = at
    return found


def picked(known: Sequence[Known], index: Ints) -> Known:
    """Of each entry the evidence of one treated arm."""
    if len(known) == 1:
        return known[0]
    return Known(
        figures([one.now for one in known], index),
        *(
            _at(np.stack([getattr(one, name) for one in known]), index)
            for name in ("why_broken", "why_likely", "is_beyond_chance")
        ),
    )


def figures(each: Sequence[Decisions], index: Ints) -> Decisions:
    """Of each entry the row of one treated arm."""
    columns = (np.stack([getattr(one, name) for one in each]) for name in NAMES)
    return Decisions(*(_at(column, index) for column in columns))


def of_arms(decided: Decisions, each: Sequence[Decisions], settings: Settings) -> Decisions:
    """The decisions with the figures of the arm that each entry gets. An entry with the control arm keeps
    those of the arm that it was about.
    """
    index = index_of(decided.arm, settings)
    index = np.where(index == ABSENT, index_of(decided.about, settings), index)
    found = figures(each, index)
    return replace(found, arm=decided.arm, since=decided.since, reason=decided.reason)
