"""From an analysis to the decision engine (`decide`), and back into its cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from uncork.experiment.decide import (
    Case,
    CellDecision,
    Decision,
    Estimate,
    Group,
    decide,
)
from uncork.experiment.facts import controllers_relation
from uncork.experiment.guard import guardrail
from uncork.experiment.result import Analysis, Cell, Facts, Guarded, Row
from uncork.experiment.rows import Settings
from uncork.measure.stats import power, sequential
from uncork.measure.stats.tails import normal_quantile, normal_tail

REFUSED_SOURCES = ("log",)
TIMED = frozenset({"throughput", "completion", "bandwidth"})
"""Metrics that a plain log measures up to the last write: the send buffer, not the network."""
WATCHED_Z = 4.0
"""Boundary at looks without a plan: crossed by chance in less than 1 % of experiments (Haybittle 1971)."""

WHY = {
    "better": "{row} is better",
    "worse": "{row} is worse",
    "no gain left": "no gain of {worth:g} % or more is left to be found",
    "guardrail broken": "guardrail broken{broken}",
    "guardrail likely broken": "guardrail likely broken{broken}",
    "not enough data": "the interval is too wide",
    "no interval": "no interval here",
    "stop": "a guardrail is broken over all clients",
    "blocked": "no verdict from these records",
    "refused": "no verdict from a plain log",
    "A/A": "both arms run the same",
}


def first_key(analysis: Analysis) -> str:
    """The key that decides."""
    return next((cell.key for cell in analysis.cells), "")


def primary_row(analysis: Analysis) -> Row | None:
    return next((row for row in analysis.scorecard if row.role == "primary"), None)


def block_of(analysis: Analysis) -> str:
    """Why these records give no verdict; empty if they may."""
    if any(finding.severity == "blocks" for finding in analysis.health):
        return "blocked"
    row = primary_row(analysis)
    if row is not None and row.measure.metric in TIMED and row.source in REFUSED_SOURCES:
        return "refused"
    return "A/A" if _runs_the_same(analysis.facts) else ""


def _runs_the_same(facts: Facts) -> bool:
    """Whether both arms have the same controller, and initial windows that are not known to differ."""
    first, second = facts.windows
    differs = first is not None and second is not None and first != second
    return controllers_relation(*facts.controllers) == "equal" and not differs


def decision_of(analysis: Analysis, settings: Settings, key: str) -> Decision:
    """The decision by the cells of one key."""
    cells = [cell for cell in analysis.cells if cell.key == key]
    others = [cell for cell in analysis.cells if cell.key != key]
    return decide(
        Case(
            Group("", 1.0, _estimate(primary_row(analysis)), tuple(map(guardrail, analysis.guardrails))),
            tuple(
                Group(cell.value, cell.share, _estimate(cell.primary), tuple(map(guardrail, cell.guardrails)))
                for cell in cells
            ),
            worth=settings.worth,
            level=settings.level,
            alpha=alpha_of(settings),
            is_final=is_final(settings),
            other_tests=sum(guardrail(one).is_known for cell in others for one in cell.guardrails),
            block=block_of(analysis),
        )
    )


def is_final(settings: Settings) -> bool:
    """Whether guardrails' fixed intervals count: at one planned look, or the last of several."""
    return not settings.is_watched and (settings.look is None or settings.look[0] == settings.look[1])


def alpha_of(settings: Settings) -> float:
    """The p-value below which the primary measure is decided at this look."""
    if settings.is_watched:
        return float(2 * normal_tail(WATCHED_Z))
    if settings.look is None:
        return 1 - settings.level
    k, n = settings.look
    return float(2 * normal_tail(sequential.obrien_fleming(n, 1 - settings.level)[k - 1]))


def ratio_interval(row: Row, settings: Settings) -> tuple[float, float]:
    """Of treated over control, at the level that decides at this look."""
    estimate = _estimate(row)
    if estimate is None:
        return 0.0, math.inf
    low, high = (math.exp(end) for end in estimate.interval(alpha_of(settings)))
    return (low, high) if row.better == "higher" else (1 / high, 1 / low)


def decided(
    analysis: Analysis,
    settings: Settings,
    days_more: Callable[[Cell], int | None] = lambda cell: cell.days_more,
) -> Analysis:
    """The analysis with the states of its guardrails and the advice in its cells.

    `days_more`: days until a change would be found in a cell; asked only of cells that wait for more data.
    """
    cells: list[Cell] = []
    states: Mapping[str, str] = {}
    for key in dict.fromkeys(cell.key for cell in analysis.cells) or [""]:
        found = decision_of(analysis, settings, key)
        states = found.guardrails
        some = [cell for cell in analysis.cells if cell.key == key]
        pairs = zip(some, found.cells, strict=True)
        is_alone = len(some) == 1
        for cell, one in pairs:
            advised = _advised(cell, one, found.heterogeneous, is_alone, settings)
            days = days_more(cell) if _waits_for_data(one, is_alone) else None
            cells.append(replace(advised, days_more=days))
    guards = _stated(analysis.guardrails, states, sum(analysis.facts.units))
    return replace(analysis, cells=tuple(cells), guardrails=guards)


def _advised(cell: Cell, found: CellDecision, is_mixed: bool, is_alone: bool, settings: Settings) -> Cell:
    guards = _stated(cell.guardrails, found.guardrails, sum(cell.units))
    bad = "broken" if found.reason == "guardrail broken" else "likely broken"
    names = ", ".join(one.row.name for one in guards if one.state == bad)
    broken = f": {names}" if names else " over all clients"
    row = cell.primary.name if cell.primary else "the primary measure"
    why = WHY[found.reason].format(row=row, broken=broken, worth=100 * settings.worth)
    if found.reason in ("better", "worse", "no gain left", "not enough data") and not (
        found.is_own or is_alone
    ):
        is_proven = found.reason == "worse" and found.state == "worse"
        why += "" if is_proven else " over all clients, and this differs by no more than chance"
        why = why if not is_mixed or is_proven else f"{why.partition(' over all')[0]} in all but the outliers"
    primary = replace(cell.primary, q_value=found.q, verdict=found.state) if cell.primary else None
    return replace(
        cell,
        primary=primary,
        guardrails=guards,
        advice=found.advice,
        why=why,
        reason=found.reason,
        is_own=found.is_own,
        units_more=_units_more(cell, settings) if _waits_for_data(found, is_alone) else None,
    )


def _waits_for_data(found: CellDecision, is_alone: bool) -> bool:
    """Where the whole decides, more data in this cell would not answer."""
    return found.advice == "wait" and found.reason == "not enough data" and (found.is_own or is_alone)


def _units_more(cell: Cell, settings: Settings) -> int | None:
    """Units beyond those here that would find a change of `detect`."""
    if cell.primary is None or cell.primary.effect is None:
        return None
    more = power.data_needed(cell.primary.effect, aimed(cell.primary, settings.detect)) - 1
    return two_digits(more * sum(cell.units)) if more > 0 else None


def aimed(row: Row, change: float) -> float:
    return change if row.better == "higher" else -change


def two_digits(value: float) -> int:
    """Rounded up to two significant digits."""
    step = 10 ** max(math.floor(math.log10(max(value, 1.0))) - 1, 0)
    return int(math.ceil(value / step) * step)


def _stated(guards: Sequence[Guarded], states: Mapping[str, str], units: int) -> tuple[Guarded, ...]:
    return tuple(
        replace(one, state=state, units_more=_until_known(one, state, units))
        for one in guards
        if (state := states.get(str(one.row.measure), one.state))
    )


def _until_known(one: Guarded, state: str, units: int) -> int | None:
    """Units of both arms beyond those here until the interval has one side of the limit, with power 80 %."""
    if state not in ("likely holds", "likely broken") or one.harm is None or one.low is None:
        return None
    assert one.high is not None
    half = one.harm - one.low if one.harm > one.limit_amount else one.high - one.harm
    apart = abs(one.limit_amount - one.harm)
    if apart <= 0 or half <= 0:
        return None
    more = (half * power.reach() / normal_quantile(0.975) / apart) ** 2 - 1
    return two_digits(more * units) if 0 < more < 1e6 else None


def _estimate(row: Row | None) -> Estimate | None:
    if row is None or row.effect is None:
        return None
    effect = row.effect
    error = power.log_error(effect) if effect.ratio_low > 0 else math.inf
    if not (math.isfinite(error) and error > 0):
        return None
    gain = math.log(effect.ratio) if row.better == "higher" else -math.log(effect.ratio)
    return Estimate(gain, error, effect.degrees_of_freedom, effect.p_value)
