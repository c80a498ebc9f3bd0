"""One decision engine: from estimates to a decision. Pure functions of plain numbers.

`analyze` follows these rules. conformance/decisions.json holds this package and the Rust crate uncork-decide
to them.
"""

from uncork.experiment.decide.case import Case, CellDecision, Decision, Estimate, Group, Guardrail
from uncork.experiment.decide.effect import EffectState, effect_state
from uncork.experiment.decide.guardrails import guardrail_state, is_acceptable, probability_kept
from uncork.experiment.decide.rules import decide

__all__ = [
    "Case",
    "CellDecision",
    "Decision",
    "EffectState",
    "Estimate",
    "Group",
    "Guardrail",
    "decide",
    "effect_state",
    "guardrail_state",
    "is_acceptable",
    "probability_kept",
]
