//! `uncork serve`: a file server with a choice of congestion control.

mod args;
#[cfg(target_os = "linux")]
mod config;
#[cfg(target_os = "linux")]
mod run;

pub(crate) use args::ServeArgs;

#[cfg(target_os = "linux")]
pub(crate) use run::run;

/// Other systems have no sockets with a choice of congestion control.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &ServeArgs, _: &clap::ArgMatches) -> Result<(), crate::failure::Failure> {
    let message = "`uncork serve` runs on Linux only: programs choose the congestion control of sockets there";
    Err(crate::failure::Failure::Environment(message.to_owned()))
}
