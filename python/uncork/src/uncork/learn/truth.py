"""What a simulated Internet knows: the true lift of each network (`uncork lab internet oracle`), and what a
table makes of it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uncork.learn.decisions import Decisions
from uncork.learn.defaults import CLASSES
from uncork.learn.lift import NORMAL
from uncork.measure.errors import InputError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MADE_BY = "give the file of uncork lab internet oracle"
HARM = 0.02
"""Traffic with a lift below minus this is made worse."""
RESENT = 0.02
"""Most that the treated arm may add to the share of bytes that are sent again: `learn`'s usual guardrail."""


@dataclass(frozen=True)
class Score:
    """What a rule makes of one class of objects, outside of the random share."""

    gain: float
    """As a part of the oracle's."""
    harmed: float
    """Part of the traffic that is made more than 2 % worse, by the truth as it was simulated."""
    surely: float
    """Part of the traffic that the truth's 95 % interval confirms as worse."""
    over: float
    """Part of the traffic that breaks the guardrail on bytes sent again."""

    def mixed(self, other: Score, part: float) -> Score:
        """A rule that does as the other for a part of its traffic."""
        mine, others = astuple(self), astuple(other)
        return Score(*((1 - part) * one + part * two for one, two in zip(mine, others, strict=True)))


Scores = Mapping[str, Score]
"""By class of objects."""


@dataclass(frozen=True)
class Truth:
    """One class of objects: each network's share of the traffic, and its true lift as a logarithm."""

    network: tuple[str, ...]
    system: tuple[str, ...]
    country: tuple[str, ...]
    kind: tuple[str, ...]
    group: tuple[str, ...]
    """AS and profile, such as `AS64512:1`: networks of a group have the same lift."""
    share: Floats
    lift: Floats
    error: Floats
    alone: Floats
    """The lift of a client if its neighbours keep the control arm: what an A/B test sees."""
    resent: Floats
    """What the treated arm adds to the share of bytes that are sent again."""

    def oracle(self) -> Flags:
        """Whom an oracle gives the treated arm, which keeps the guardrail on bytes sent again, too."""
        return (self.lift > 0) & (self.resent <= RESENT)

    def near_the_limit(self, on: Flags, errors: float) -> list[str]:
        """The groups with any of these networks less than this number of errors above harm."""
        is_near = on & (self.lift + HARM < errors * self.error)
        return sorted({self.group[at] for at in np.flatnonzero(is_near)})

    def mended(self, again: Truth) -> Truth:
        """With lifts and errors of the groups that were looked at again."""
        found = dict(zip(again.group, zip(again.lift, again.error, strict=True), strict=True))
        mine = zip(self.group, self.lift, self.error, strict=True)
        lift, error = np.array([found.get(group, (lift, error)) for group, lift, error in mine]).T
        return replace(self, lift=lift, error=error)

    def mean_lift(self, on: Flags) -> float:
        """The mean lift of all traffic if these networks have the treated arm."""
        return float((self.share * np.where(on, self.lift, 0)).sum())

    def score(self, on: Flags) -> Score:
        """What a choice brings. The part of the gain is NaN if no network can gain."""
        best = self.mean_lift(self.oracle())
        return Score(
            self.mean_lift(on) / best if best else math.nan,
            float(self.share[on & (self.lift < -HARM)].sum()),
            float(self.share[on & (self.lift + NORMAL * self.error < -HARM)].sum()),
            float(self.share[on & (self.resent > RESENT)].sum()),
        )


@dataclass(frozen=True)
class Oracle:
    """The truth by class of objects."""

    truths: Mapping[str, Truth]

    @staticmethod
    def load(path: Path) -> Oracle:
        """Of the file that `uncork lab internet oracle` wrote."""
        try:
            with path.open(encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            found = {name: _truth([row for row in rows if row["class"] == name]) for name in CLASSES}
        except OSError as error:
            raise InputError(str(path), error.strerror or str(error), MADE_BY) from None
        except KeyError as error:
            raise InputError(str(path), f"has no column {error}", MADE_BY) from None
        except (ValueError, csv.Error) as error:
            raise InputError(str(path), str(error), MADE_BY) from None
        if not all(truth.network for truth in found.values()):
            raise InputError(str(path), "has no networks", MADE_BY)
        return Oracle(found)


def _truth(rows: list[dict[str, str]]) -> Truth:
    def texts(name: str) -> tuple[str, ...]:
        return tuple(row[name] for row in rows)

    def numbers(name: str) -> Floats:
        return np.array([float(row[name]) for row in rows])

    return Truth(
        network=texts("network"),
        system=texts("asn"),
        country=texts("country"),
        kind=texts("kind"),
        group=tuple(f"{row['asn']}:{row['profile']}" for row in rows),
        share=numbers("share"),
        lift=numbers("lift"),
        error=numbers("error"),
        alone=numbers("alone"),
        resent=numbers("resent"),
    )


Choice = Mapping[str, Flags]
"""Of each class, which networks have the treated arm."""


def learned(decisions: Decisions, oracle: Oracle, treated: str) -> Choice:
    """What the table gives each network: its own entry, or that of its AS, its country, or of all clients."""
    arms = {(one.section, one.key): one.arm for one in decisions}

    def of(name: str, truth: Truth) -> Flags:
        keys = zip(truth.network, truth.system, truth.country, strict=True)
        found = (next((arms[name, key] for key in (*own, "*") if (name, key) in arms), "") for own in keys)
        return np.array([arm == treated for arm in found])

    return {name: of(name, truth) for name, truth in oracle.truths.items()}
