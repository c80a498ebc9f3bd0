"""Guardrails answer two questions: is the limit broken for sure, and is it likely kept?

`broken` stops at once, so before the last look it needs a bound that holds at every look. At the last
planned look the fixed interval counts, with Bonferroni's correction for all guardrails that could have given
the alarm, in the cells of all keys. Enabling needs the other question: the limit is more likely kept than
not, by an estimate that is shrunk as `learn` does, and the fixed interval does not lie beyond the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from uncork.experiment.decide.case import Case, Group, Guardrail
from uncork.experiment.decide.shrink import shrink
from uncork.measure.stats.tails import normal_quantile, student_quantile, student_tail

ROOT_SD = 2.0
"""Before any evidence harm is this many limits around none (`learn.harm`, `learn.tree.ROOT`)."""
BROAD_SD = 20.0
"""As ROOT_SD, of harm that a defect does: it is many limits large."""
BROAD_SHARE = 0.2
"""Before any evidence, the probability that harm is a defect's. With one normal prior alone, the harm of a
small group would be shrunk the more, the larger it is beyond the limit.
"""
TAU_SCALE = 1.0
"""Before any evidence cells differ by about one limit (`learn.harm`)."""
MIN_LIMIT = 1e-4
"""A limit of nothing counts as this much: no estimate is exact."""
MIN_ERROR = 1e-9
MIN_KEPT = 0.5
"""Probability from which a limit counts as likely kept."""
STATES = ("holds", "likely holds", "open", "likely broken", "broken")
"""The best first."""


def guardrail_state(one: Guardrail, kept: float | None, *, is_final: bool, level: float, tests: int) -> str:
    """`holds`, `likely holds`, `open` (no estimate), `likely broken` or `broken`.

    `kept`: probability that the limit is kept, by the shrunk estimate. `tests`: guardrails that could give
    the alarm.
    """
    if one.valid_low is not None and one.valid_low > one.limit:
        return "broken"
    if is_final and _p_beyond(one, level) * max(tests, 1) < (1 - level) / 2:
        return "broken"
    if (kept is not None and kept < MIN_KEPT) or (one.low is not None and one.low > one.limit):
        return "likely broken"
    high = one.high if is_final else one.valid_high
    if high is not None and high < one.limit:
        return "holds"
    return "open" if kept is None else "likely holds"


def is_acceptable(state: str) -> bool:
    """Whether the treated arm may be enabled as far as this guardrail goes."""
    return state not in ("broken", "likely broken")


def probability_kept(guards: Sequence[Guardrail], level: float) -> list[float | None]:
    """Of one measure in several groups: the probability that each keeps the limit.

    The other groups can make harm in a group more likely, but not less: where one of many is broken, they
    say nothing of it.
    """
    scaled = [in_limits(one, level) for one in guards if one.is_known]
    broken = [_alone(mean, error) for mean, error in scaled]
    if len(scaled) > 1:
        means, errors = zip(*scaled, strict=True)
        together = shrink(means, errors, root_sd=ROOT_SD, tau_scale=TAU_SCALE).above(1.0)
        broken = list(map(max, broken, together))
    kept = iter(1 - p for p in broken)
    return [next(kept) if one.is_known else None for one in guards]


def _alone(mean: float, error: float) -> float:
    """Probability that the limit is broken, by the group's own estimate in limits.

    The prior is a mixture of two normals around none.
    """
    prior = np.square([ROOT_SD, BROAD_SD])
    total = prior + error**2
    fit = np.log([1 - BROAD_SHARE, BROAD_SHARE]) - 0.5 * (np.log(total) + mean**2 / total)
    keep = prior / total
    beyond = special.ndtr((keep * mean - 1) / (np.sqrt(keep) * error))
    return float(special.softmax(fit) @ beyond)


def states_of(case: Case) -> tuple[dict[str, str], list[dict[str, str]]]:
    """States by measure: of the whole, and of each cell."""
    whole = _states(case, [case.whole], {}, 0)[0]
    beyond = {one.measure: probability_kept([one], case.level)[0] for one in case.whole.guardrails}
    return whole, _states(case, case.cells, beyond, case.other_tests)


def _states(
    case: Case, groups: Sequence[Group], otherwise: Mapping[str, float | None], other_tests: int
) -> list[dict[str, str]]:
    """`otherwise`: probability of a group without an estimate of its own. `other_tests`: guardrails of cells
    that are not among the groups.
    """
    tests = other_tests + sum(one.is_known for group in groups for one in group.guardrails)
    states: list[dict[str, str]] = [{} for _ in groups]
    for measure in dict.fromkeys(one.measure for group in groups for one in group.guardrails):
        places = [
            (n, one) for n, group in enumerate(groups) for one in group.guardrails if one.measure == measure
        ]
        kept = probability_kept([one for _, one in places], case.level)
        for (n, one), p in zip(places, kept, strict=True):
            p = otherwise.get(measure) if p is None else p
            state = guardrail_state(one, p, is_final=case.is_final, level=case.level, tests=tests)
            # Of two limits on one measure, the state further from keeping counts.
            states[n][measure] = max(state, states[n].get(measure, state), key=STATES.index)
    return states


def in_limits(one: Guardrail, level: float) -> tuple[float, float]:
    """Harm and its error in limits. The error is that of the side towards the limit: intervals of rare events
    are not symmetric.
    """
    assert one.harm is not None
    scale = max(one.limit, MIN_LIMIT)
    return one.harm / scale, max(_half(one) / normal_quantile(0.5 + level / 2) / scale, MIN_ERROR)


def _half(one: Guardrail) -> float:
    assert one.harm is not None
    assert one.low is not None
    assert one.high is not None
    return one.harm - one.low if one.harm > one.limit else one.high - one.harm


def _p_beyond(one: Guardrail, level: float) -> float:
    """One-sided p-value of the limit being kept; 1 without an estimate."""
    if not one.is_known or (one.harm or 0.0) <= one.limit:
        return 1.0
    if one.p is not None:
        return one.p
    assert one.harm is not None
    error = max(_half(one) / student_quantile(0.5 + level / 2, one.df), MIN_ERROR)
    return student_tail((one.harm - one.limit) / error, one.df)


def excess(one: Guardrail) -> float:
    """How far beyond the limit, in limits."""
    return (one.harm or 0.0) / max(one.limit, MIN_LIMIT) - 1
