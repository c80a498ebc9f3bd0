//! `uncork status`: what of uncork is active on this host. It asks what `host`, `kernel` and `steer` know, and changes nothing.

mod args;
mod document;
mod processes;
mod run;
mod text;

pub(crate) use args::StatusArgs;
pub(crate) use run::run;
