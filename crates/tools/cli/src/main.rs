//! The program `uncork`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    uncork::main()
}
