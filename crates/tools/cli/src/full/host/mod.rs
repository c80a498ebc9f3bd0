//! `uncork host`: the congestion control of this host.

mod args;
#[cfg(target_os = "linux")]
mod change;
#[cfg(target_os = "linux")]
mod change_args;
#[cfg(target_os = "linux")]
mod prove;
#[cfg(target_os = "linux")]
mod prove_args;
mod run;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod watch_args;
#[cfg(target_os = "linux")]
mod watch_terminal;

pub(crate) use args::HostArgs;
#[cfg(target_os = "linux")]
pub(crate) use change::{HostLook, look_at_host};
#[cfg(target_os = "linux")]
pub(crate) use change_args::StateArgs;
pub(crate) use run::run;
