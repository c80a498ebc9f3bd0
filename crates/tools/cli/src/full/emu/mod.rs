//! `uncork emu`: commands behind a path, in real time.

mod args;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod specification;
#[cfg(target_os = "linux")]
mod wait;

pub(crate) use args::EmuArgs;

#[cfg(target_os = "linux")]
pub(crate) use run::run;

/// Emulation is not supported on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &EmuArgs, _: &clap::ArgMatches) -> Result<(), crate::failure::Failure> {
    let message = "paths are emulated between network namespaces, which only Linux has; \
                   `uncork lab run` simulates them here";
    Err(crate::failure::Failure::Environment(message.to_owned()))
}
