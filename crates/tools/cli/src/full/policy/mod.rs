//! `uncork policy`: policies, read and explained.

mod args;
mod ecn;
mod read;
mod run;

pub(crate) use args::PolicyArgs;
pub(crate) use read::{origins, read};
pub(crate) use run::run;
