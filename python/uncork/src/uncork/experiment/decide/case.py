"""What the engine reads and returns. The JSON of conformance/decisions.json has the same names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from uncork.measure.stats.tails import normal_quantile, student_quantile, student_tail

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Estimate:
    """An effect on the primary measure, on the logarithmic scale."""

    gain: float
    """Logarithm of the ratio, with the sign turned so that positive is better."""
    error: float
    """Standard error of `gain`, above zero."""
    df: float = math.inf
    """Degrees of freedom of `error`; infinite: normal. null in JSON."""
    p: float | None = None
    """Two-sided p-value of no effect; None: by Student's t."""

    @property
    def p_value(self) -> float:
        return self.p if self.p is not None else 2 * student_tail(abs(self.gain) / self.error, self.df)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Two-sided interval at level 1 - alpha."""
        half = student_quantile(1 - alpha / 2, self.df) * self.error
        return self.gain - half, self.gain + half

    @property
    def normal_error(self) -> float:
        """Standard deviation of a normal with a 95 % interval as wide as that of Student's t."""
        return self.error * student_quantile(0.975, self.df) / NORMAL

    @staticmethod
    def from_json(value: Json) -> Estimate | None:
        if value.get("gain") is None:
            return None
        return Estimate(value["gain"], value["error"], _df(value), value.get("p"))


@dataclass(frozen=True)
class Guardrail:
    """One limit in one group. All numbers are in the limit's unit; positive is worse."""

    measure: str
    limit: float
    """How much worse the measure may get: a part of the control's value, or points of a share."""
    harm: float | None = None
    """How much worse it got; None: no estimate."""
    low: float | None = None
    high: float | None = None
    """Two-sided interval at the case's level, for one planned look."""
    valid_low: float | None = None
    valid_high: float | None = None
    """Interval that holds at every look (a confidence sequence)."""
    df: float = math.inf
    p: float | None = None
    """One-sided p-value of the limit being kept; None: by Student's t from `low`."""

    @property
    def is_known(self) -> bool:
        """Whether there is an estimate."""
        return self.harm is not None and self.low is not None and self.high is not None

    @staticmethod
    def from_json(value: Json) -> Guardrail:
        names = {field.name for field in fields(Guardrail)} - {"df"}
        return Guardrail(**{name: value[name] for name in names if name in value}, df=_df(value))


@dataclass(frozen=True)
class Group:
    """All clients, or one cell such as a region."""

    name: str
    share: float = 1.0
    """Of all units. Shares of overlapping cells add up to more than 1."""
    estimate: Estimate | None = None
    guardrails: tuple[Guardrail, ...] = ()

    @staticmethod
    def from_json(value: Json) -> Group:
        guards = tuple(Guardrail.from_json(one) for one in value.get("guardrails", ()))
        return Group(value.get("name", ""), value.get("share", 1.0), Estimate.from_json(value), guards)


@dataclass(frozen=True)
class Case:
    """All that a decision depends on."""

    whole: Group
    """All clients."""
    cells: tuple[Group, ...] = ()
    """The values of the key that decides."""
    worth: float = 0.01
    """Smallest relative gain that is worth a change."""
    level: float = 0.95
    """Confidence level of guardrails' intervals."""
    alpha: float = 0.05
    """Two-sided p-value below which the primary measure counts as decided at this look."""
    is_final: bool = True
    """Whether this is the last planned look: then guardrails' fixed intervals count."""
    other_tests: int = 0
    """Guardrails with an estimate in the cells of other keys: any of them could give the alarm, too."""
    block: str = ""
    """`blocked`, `refused` or `A/A`: why these records give no verdict."""

    @staticmethod
    def from_json(value: Json) -> Case:
        names = ("worth", "level", "alpha", "is_final", "other_tests", "block")
        return Case(
            Group.from_json(value["whole"]),
            tuple(Group.from_json(cell) for cell in value.get("cells", ())),
            **{name: value[name] for name in names if name in value},
        )


@dataclass(frozen=True)
class CellDecision:
    """What to do in one cell, and why."""

    name: str
    advice: str
    """`enable`, `keep`, `wait`, or `none` where the records give no verdict."""
    reason: str
    """`better`, `worse`, `no gain left`, `guardrail broken`, `guardrail likely broken`, `not enough data`,
    `no interval`, `stop`, or the block.
    """
    state: str
    """By the cell's own records: `better`, `worse`, `equivalent`, `inconclusive` or `no interval`."""
    q: float | None
    """p-value adjusted for all cells (Benjamini and Hochberg 1995)."""
    is_own: bool
    """Whether the cell differs from the whole, so that its own evidence decides."""
    guardrails: Mapping[str, str]
    """State by measure."""


@dataclass(frozen=True)
class Decision:
    """What to do where."""

    decision: str
    """`enable`, `enable some`, `keep`, `wait`, `stop`, or the block."""
    state: str
    """Of the whole: `better`, `worse`, `equivalent`, `inconclusive` or `no interval`."""
    enable: tuple[str, ...]
    keep: tuple[str, ...]
    wait: tuple[str, ...]
    worse: tuple[str, ...]
    """Cells with a proven loss, the largest first."""
    broken: tuple[str, ...]
    """Cells with a broken guardrail, the furthest beyond its limit first."""
    heterogeneous: bool
    """Whether the cells differ by more than chance."""
    guardrails: Mapping[str, str]
    """State by measure, over all clients."""
    cells: tuple[CellDecision, ...]
    exit_status: int
    """1: harm is proven somewhere; 4: no verdict; else 0."""


NORMAL = normal_quantile(0.975)


def _df(value: Json) -> float:
    df = value.get("df")
    return math.inf if df is None else float(df)
