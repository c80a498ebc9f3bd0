//! `uncork experiment` and `uncork learn`: programs of the Python package `uncork-experiment`, as git and cargo run
//! their external subcommands.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::failure::Failure;

const PACKAGE: &str = "python/uncork";
/// The variable that names the `uncork` which the package runs for the laboratory.
const OWN_PATH: &str = "UNCORK";

/// Becomes the program. Returns only if it cannot be started.
pub(crate) fn run(program: &str, arguments: &[OsString]) -> Result<(), Failure> {
    let mut command = Command::new(program);
    if let (None, Ok(own)) = (env::var_os(OWN_PATH), env::current_exe()) {
        command.env(OWN_PATH, own);
    }
    let error = command.args(arguments).exec();
    Err(Failure::Environment(match error.kind() {
        ErrorKind::NotFound => format!(
            "`{program}` is not on PATH: install the Python package, from a checkout with: \
             pip install {PACKAGE}"
        ),
        _ => format!("cannot run `{program}`: {error}"),
    }))
}
