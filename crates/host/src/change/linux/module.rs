//! Kernel modules.

use std::io;
use std::process::{Command, Stdio};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, socket};

use super::super::host::HostError;
use super::super::knob::{LOADED, Value};
use crate::collect::module;
use crate::facts::Module;

pub(super) fn read(name: &str) -> Value {
    match module(name) {
        Module::Loaded => Value::text(LOADED),
        Module::BuiltIn => Value::text("built in"),
        Module::File | Module::Absent | Module::Unknown => Value::Absent,
    }
}

/// Loads a module. The kernel loads that of an algorithm itself for a socket, which needs CAP_NET_ADMIN only (linux
/// net/ipv4/tcp_cong.c, `tcp_ca_find_autoload`). modprobe(8) knows dependencies and aliases of others.
pub(super) fn load(name: &str) -> Result<(), HostError> {
    if name.strip_prefix("tcp_").is_some_and(|algorithm| load_algorithm(algorithm).is_ok()) {
        return Ok(());
    }
    let run = Command::new("modprobe").args(["--", name]).stdin(Stdio::null()).output();
    let reason = match run {
        Ok(run) if run.status.success() => return Ok(()),
        Ok(run) => String::from_utf8_lossy(&run.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(HostError(format!(
        "cannot load module {name}: modprobe: {reason}; this kernel may not have it, and it needs CAP_SYS_MODULE: \
         load it as root"
    )))
}

/// Has the kernel load an algorithm, if it is not there.
pub(super) fn load_algorithm(name: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    Ok(set_tcp_congestion(&socket, name)?)
}
