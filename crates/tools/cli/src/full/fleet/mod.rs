//! `uncork fleet`: policies for many hosts.

mod args;
mod files;
mod run;

pub(crate) use args::FleetArgs;
pub(crate) use files::public_keys;
pub(crate) use run::run;
