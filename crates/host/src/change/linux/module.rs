//! Kernel modules.

use std::process::{Command, Stdio};

use super::super::host::HostError;
use super::super::knob::Value;
use crate::collect::module;
use crate::facts::Module;

pub(super) fn read(name: &str) -> Value {
    match module(name) {
        Module::Loaded | Module::BuiltIn => Value::text("loaded"),
        Module::File | Module::Absent | Module::Unknown => Value::Absent,
    }
}

/// Loads a module with modprobe(8), which knows dependencies and aliases.
pub(super) fn load(name: &str) -> Result<(), HostError> {
    let run = Command::new("modprobe").args(["--", name]).stdin(Stdio::null()).output();
    let reason = match run {
        Ok(run) if run.status.success() => return Ok(()),
        Ok(run) => String::from_utf8_lossy(&run.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(HostError(format!(
        "cannot load module {name}: modprobe: {reason}; it needs CAP_SYS_MODULE: load it as root, or leave it out of \
         `modules`"
    )))
}
