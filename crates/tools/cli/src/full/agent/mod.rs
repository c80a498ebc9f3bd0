//! `uncork agent`: one host of a fleet.

mod args;
mod run;

pub(crate) use args::AgentArgs;
pub(crate) use run::run;
