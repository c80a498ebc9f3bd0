//! Client networks behind queues for L4S, queues for each flow, and classic queues that mark: which of them a server's flows
//! recognise, and what errors cost. `docs/evidence/l4s-verdicts.md` has the figures.

mod access;
mod cost;
mod play;
mod watched;

pub use access::{AccessNetwork, RangeSet, Truth};
pub use cost::{ClassicCost, L4sCost, classic_cost, l4s_cost};
pub use play::{FLOWS, Played, play};
