//! From estimates to a decision. Pure functions of plain numbers.
//!
//! The rules are those of the Python package `uncork.experiment.decide`. `conformance/decisions.json` holds both to them, and
//! `conformance/README.md` lists them. `host prove` decides by [`decide`]; comparisons of the laboratory take the state of an
//! effect from [`interval_state`].
#![forbid(unsafe_code)]

mod case;
mod distribution;
mod effect;
mod guardrails;
mod heterogeneity;
mod rules;
mod shrink;

pub use case::{Block, Case, Estimate, Group, Guardrail, Harm};
pub use effect::{EffectState, effect_state, interval_state};
pub use guardrails::GuardrailState;
pub use rules::{Action, Advice, CellDecision, Decision, Reason, decide};
