"""The decision: rules in the order in which they apply.

The effect over all clients decides for all cells, unless a test shows that cells differ. Then a cell decides
by its own evidence, shrunk towards the others. `keep` needs as much evidence as `enable`: without it a cell
waits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uncork.experiment.decide.case import Case, CellDecision, Decision, Estimate
from uncork.experiment.decide.effect import effect_state, q_values
from uncork.experiment.decide.guardrails import excess, is_acceptable, states_of
from uncork.experiment.decide.heterogeneity import Heterogeneity, heterogeneity
from uncork.experiment.decide.shrink import shrink
from uncork.measure.stats.tails import student_tail

ROOT_SD = 1.0
"""Deviation of the cells' common gain before any data: it may be almost anything."""
TAU_SCALE = 0.1
"""How far cells deviate from it before any data (`learn.tree.PRIOR_TAU`)."""
HARM, NO_VERDICT = 1, 4
"""Exit statuses."""


@dataclass(frozen=True)
class _Evidence:
    """Evidence of a gain in a cell."""

    p_better: float
    """Probability that there is any gain."""
    p_worth: float
    """Probability that the gain is worth a change."""

    @staticmethod
    def of(one: Estimate, worth: float) -> _Evidence:
        half = one.p_value / 2
        beyond = student_tail((math.log1p(worth) - one.gain) / one.error, one.df)
        return _Evidence(1 - half if one.gain > 0 else half, beyond)


def decide(case: Case) -> Decision:
    """The decision over all clients and in each cell."""
    whole_guards, guards = states_of(case)
    judged = _cells(case, guards, any(not is_acceptable(state) for state in whole_guards.values()))
    whole = case.whole.estimate
    state = effect_state(whole, whole.p_value if whole else None, case.alpha, case.worth)
    cells, names = judged.cells, judged.names
    if case.block:
        decision, cells = case.block, _all(cells, "none", case.block)
        # Such records prove nothing, harm included. Equal controllers cannot break a limit: the pipeline
        # does.
        names = {"worse": (), "broken": names["broken"] if case.block == "A/A" else ()}
        differs = state in ("better", "worse") or "broken" in whole_guards.values() or names["broken"]
        status = 0 if case.block == "A/A" and not differs else NO_VERDICT
    elif "broken" in whole_guards.values():
        decision, cells, status = "stop", _all(cells, "keep", "stop"), HARM
    else:
        decision = _decision(case, whole_guards, cells)
        status = HARM if state == "worse" or names["worse"] or names["broken"] else 0
    return Decision(
        decision,
        state,
        enable=_named(cells, "enable"),
        keep=_named(cells, "keep"),
        wait=_named(cells, "wait"),
        worse=names["worse"],
        broken=names["broken"],
        heterogeneous=judged.heterogeneous,
        guardrails=whole_guards,
        cells=cells,
        exit_status=status,
    )


def _decision(case: Case, guards: Mapping[str, str], cells: Sequence[CellDecision]) -> str:
    if case.whole.estimate is None:
        return "wait"
    advices = {cell.advice for cell in cells}
    if not advices:
        is_kept = all(is_acceptable(state) for state in guards.values())
        return _advice(_Evidence.of(case.whole.estimate, case.worth), case.alpha, is_kept)[0]
    if "enable" in advices:
        return "enable" if advices == {"enable"} else "enable some"
    return "wait" if "wait" in advices else "keep"


@dataclass(frozen=True)
class _Cells:
    cells: tuple[CellDecision, ...]
    names: Mapping[str, tuple[str, ...]]
    """Cells with proven harm: `worse` and `broken`."""
    heterogeneous: bool


def _cells(case: Case, guards: Sequence[Mapping[str, str]], is_harmful: bool) -> _Cells:
    """`is_harmful`: a guardrail is likely broken over all clients, so nothing is enabled."""
    estimates = [cell.estimate for cell in case.cells]
    found = heterogeneity(estimates, overlap=sum(cell.share for cell in case.cells))
    evidence = _evidence(case, estimates, found)
    qs = q_values(estimates)
    cells: list[CellDecision] = []
    worse: list[tuple[float, str]] = []
    broken: list[tuple[float, str]] = []
    for n, (cell, states, known) in enumerate(zip(case.cells, guards, evidence, strict=True)):
        state = effect_state(cell.estimate, qs[n], case.alpha, case.worth)
        is_own = found.found and (n in found.outliers or found.rest_differs)
        is_worse = state == "worse" or (is_own and known is not None and known.p_better < case.alpha / 2)
        if is_worse and cell.estimate is not None:
            worse.append((cell.estimate.gain, cell.name))
        if "broken" in states.values():
            broken.append(
                (-max(excess(g) for g in cell.guardrails if states[g.measure] == "broken"), cell.name)
            )
        advice, reason = _cell_advice(known, states, is_worse, is_harmful, case.alpha)
        if case.whole.estimate is None and advice == "enable":
            advice, reason = "wait", "no interval"
        cells.append(CellDecision(cell.name, advice, reason, state, qs[n], is_own, states))
    names = {
        "worse": tuple(name for _, name in sorted(worse)),
        "broken": tuple(name for _, name in sorted(broken)),
    }
    return _Cells(tuple(cells), names, found.found)


def _evidence(
    case: Case, estimates: Sequence[Estimate | None], found: Heterogeneity
) -> list[_Evidence | None]:
    """What decides in each cell; None: nothing does."""
    if not found.found:
        whole = case.whole.estimate
        return [_Evidence.of(whole, case.worth) if whole is not None else None] * len(estimates)
    own = {n: _Evidence.of(one, case.worth) for n in found.outliers if (one := estimates[n]) is not None}
    if not found.rest_differs and found.rest is not None:
        common = _Evidence.of(found.rest, case.worth)
        return [own.get(n, common) for n in range(len(estimates))]
    rest = {n: one for n, one in enumerate(estimates) if one is not None and n not in found.outliers}
    after = shrink(
        [one.gain for one in rest.values()],
        [one.normal_error for one in rest.values()],
        root_sd=ROOT_SD,
        tau_scale=TAU_SCALE,
    )
    pairs = zip(after.above(0.0), after.above(math.log1p(case.worth)), strict=True)
    own |= {n: _Evidence(*pair) for n, pair in zip(rest, pairs, strict=True)}
    return [own.get(n) for n in range(len(estimates))]


def _cell_advice(
    known: _Evidence | None, guards: Mapping[str, str], is_worse: bool, is_harmful: bool, alpha: float
) -> tuple[str, str]:
    if "broken" in guards.values():
        return "keep", "guardrail broken"
    if is_worse:
        return "keep", "worse"
    if known is None:
        return "wait", "no interval"
    is_kept = not is_harmful and all(is_acceptable(state) for state in guards.values())
    return _advice(known, alpha, is_kept)


def _advice(known: _Evidence, alpha: float, is_kept: bool) -> tuple[str, str]:
    """By the gain, and by whether all limits are likely kept."""
    if known.p_better < alpha / 2:
        return "keep", "worse"
    if known.p_worth < alpha / 2:
        return "keep", "no gain left"
    if known.p_better <= 1 - alpha / 2:
        return "wait", "not enough data"
    return ("enable", "better") if is_kept else ("wait", "guardrail likely broken")


def _named(cells: Sequence[CellDecision], advice: str) -> tuple[str, ...]:
    return tuple(cell.name for cell in cells if cell.advice == advice)


def _all(cells: Sequence[CellDecision], advice: str, reason: str) -> tuple[CellDecision, ...]:
    return tuple(
        CellDecision(one.name, advice, reason, one.state, one.q, one.is_own, one.guardrails) for one in cells
    )
