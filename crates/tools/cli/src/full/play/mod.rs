//! `uncork play`: downloads and listeners over real sockets.

mod args;
mod audio;
mod get;
mod measure;
mod run;
mod watch;

pub(crate) use args::PlayArgs;
pub(crate) use run::run;
