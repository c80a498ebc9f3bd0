//! Kernel modules.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, socket};

use super::super::host::HostError;
use super::super::setting::{LOADED, Value};
use crate::collect::module;
use crate::facts::Module;

/// Disciplines of linux net/sched/sch_generic.c, sch_mq.c and sch_fifo.c, which every kernel with disciplines has.
const ALWAYS_BUILT_IN: [&str; 7] =
    ["bfifo", "mq", "noop", "noqueue", "pfifo", "pfifo_fast", "pfifo_head_drop"];

pub(super) fn read(name: &str) -> Value {
    match module(name) {
        Module::Loaded => Value::text(LOADED),
        Module::BuiltIn => Value::text("built in"),
        Module::File | Module::Absent | Module::Unknown => Value::Absent,
    }
}

/// Whether [`load`] may succeed. Where the files of this kernel's modules are not found, modprobe(8) knows whether it finds them;
/// a module of an algorithm the kernel loads itself, and looks for it outside of a container.
pub(super) fn may_load(name: &str) -> bool {
    match module(name) {
        Module::Absent => false,
        Module::Unknown if !name.starts_with("tcp_") => {
            let mut run = Command::new("modprobe");
            run.args(["--dry-run", "--quiet", "--", name]);
            run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            run.status().is_ok_and(|status| status.success())
        }
        _ => true,
    }
}

/// Whether the kernel may have a queue discipline. The kernel loads its module itself; one that is built in shows by its
/// functions among the kernel's symbols.
pub(super) fn may_have_qdisc(name: &str) -> bool {
    let symbols = || fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    match module(&format!("sch_{name}")) {
        Module::Loaded | Module::BuiltIn | Module::File => true,
        _ if ALWAYS_BUILT_IN.contains(&name) => true,
        Module::Unknown if Path::new("/proc/modules").exists() => true,
        Module::Unknown | Module::Absent => {
            let symbols = symbols();
            symbols.is_empty() || has_qdisc(&symbols, name)
        }
    }
}

/// Whether the functions of a queue discipline are among these symbols (proc_kallsyms(5)).
fn has_qdisc(symbols: &str, name: &str) -> bool {
    // mac80211 has another `fq_init`.
    let function = if name == "fq" {
        "fq_enqueue".to_owned()
    } else {
        format!("{}_init", name.replace('-', "_"))
    };
    symbols.lines().any(|line| line.split_ascii_whitespace().nth(2) == Some(&*function))
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

#[cfg(test)]
mod tests {
    use super::has_qdisc;

    #[test]
    fn a_discipline_that_is_built_in_shows_by_its_functions() {
        let symbols = "ffffffff81f4c870 t tbf_init\n0000000000000000 t fq_init\n0 t fq_codel_init\t[sch_fq_codel]\n";
        assert!(has_qdisc(symbols, "tbf") && has_qdisc(symbols, "fq_codel"));
        assert!(!has_qdisc(symbols, "fq") && !has_qdisc(symbols, "cake"));
    }
}
