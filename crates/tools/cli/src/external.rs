//! `uncork experiment` and `uncork learn`: the Python part of the installation. A wheel has both: its entry point
//! [`PYTHON_PART`] is in the directory of this program, wherever an installer puts programs.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;

/// Runs `python -m uncork`, with the Python that the package was installed for.
const PYTHON_PART: &str = "uncork-python";
/// The variable that names the `uncork` which the package runs for the laboratory.
const OWN_PATH: &str = "UNCORK";

/// Becomes the Python part. Returns only if it cannot be started.
pub(crate) fn run(subcommand: &str, arguments: &[OsString]) -> Result<(), Failure> {
    // Links are followed: pipx and uv link programs into a directory of the PATH.
    let own = env::current_exe().and_then(fs::canonicalize).ok();
    let installed: Option<PathBuf> =
        own.as_ref().map(|path| path.with_file_name(PYTHON_PART)).filter(|path| path.exists());
    let mut command = Command::new(installed.unwrap_or_else(|| PYTHON_PART.into()));
    if let (None, Some(own)) = (env::var_os(OWN_PATH), own) {
        command.env(OWN_PATH, own);
    }
    let error = command.arg(subcommand).args(arguments).exec();
    let program = PathBuf::from(command.get_program());
    Err(Failure::Environment(match error.kind() {
        ErrorKind::NotFound if program.is_relative() => format!(
            "`uncork {subcommand}` needs the Python package, which is not installed: `{PYTHON_PART}` is neither next to this \
             program nor on PATH\nhelp: pip install 'uncork[analysis]', or in a checkout: pip install '.[analysis]'"
        ),
        _ => format!("cannot run `{}`: {error}", program.display()),
    }))
}
