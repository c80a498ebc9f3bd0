//! `uncork serve`: a file server whose congestion control is chosen.

mod args;
#[cfg(target_os = "linux")]
mod config;
#[cfg(target_os = "linux")]
mod run;

pub(crate) use args::ServeArgs;
pub(crate) const EXAMPLES: &str = args::EXAMPLES;
pub(crate) const AFTER: &str = args::AFTER;

#[cfg(target_os = "linux")]
pub(crate) use run::serve;

/// There are no sockets whose congestion control could be chosen.
#[cfg(not(target_os = "linux"))]
pub(crate) fn serve(_: &ServeArgs, _: &clap::ArgMatches) -> Result<(), crate::failure::Failure> {
    let message =
        "`uncork serve` takes Linux, whose sockets let a program choose the congestion control";
    Err(crate::failure::Failure::Environment(message.to_owned()))
}
