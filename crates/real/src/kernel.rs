//! The kernel's controllers, and settings of a namespace.

use std::fs;
use std::io;

use uncork_cc::{Algorithm, CcSpec};

use crate::error::RealError;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Settings of each namespace: buffers that only limit if a scenario asks for it, and no state
/// shared between connections.
const SETTINGS: [(&str, &str); 5] = [
    ("/proc/sys/net/ipv4/tcp_wmem", "4096 131072 268435456"),
    ("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 268435456"),
    ("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"),
    ("/proc/sys/net/ipv4/tcp_no_ssthresh_metrics_save", "1"),
    ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
];

/// The kernel's name of the equivalent controller, if any: mainline's BBR is version 1.
pub fn kernel_name(cc: CcSpec) -> Option<&'static str> {
    match cc.algorithm() {
        Algorithm::Reno => Some("reno"),
        Algorithm::Cubic => Some("cubic"),
        Algorithm::Bbr1 => Some("bbr"),
        _ => None,
    }
}

/// The kernel's name of `cc`, if available.
pub(crate) fn controller(cc: CcSpec, available: &str) -> Result<&'static str, RealError> {
    let known = kernel_name(cc).filter(|name| available.split_whitespace().any(|one| one == *name));
    known.ok_or_else(|| {
        let hint = match kernel_name(cc) {
            Some(name) => format!("load it with `modprobe tcp_{name}`"),
            None => "its own are reno, cubic and bbr1".to_owned(),
        };
        RealError::Controller(format!(
            "this kernel has no {cc}: it has {}; {hint}",
            available.split_whitespace().collect::<Vec<_>>().join(", ")
        ))
    })
}

/// The controllers available to the calling thread's namespace.
pub(crate) fn available() -> io::Result<String> {
    fs::read_to_string(AVAILABLE)
}

/// Enables ECN (RFC 3168) for outgoing connections of the calling thread's namespace. Kernels
/// accept ECN by default for incoming ones.
pub(crate) fn ask_for_ecn() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")
}

/// Applies the settings to the calling thread's namespace.
pub(crate) fn settle() -> io::Result<()> {
    SETTINGS.iter().try_for_each(|(path, value)| match fs::write(path, value) {
        // Some kernels lack some of them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(cc: &str) -> Result<&'static str, String> {
        let cc = cc.parse().expect("a controller");
        controller(cc, "reno bbr\n").map_err(|error| error.to_string())
    }

    #[test]
    fn controllers_have_their_kernel_names() {
        assert_eq!(named("bbr1"), Ok("bbr"));
        assert_eq!(named("reno"), Ok("reno"));
        let missing =
            "this kernel has no cubic: it has reno, bbr; load it with `modprobe tcp_cubic`";
        assert_eq!(named("cubic"), Err(missing.into()));
        let unknown = "this kernel has no bbr3: it has reno, bbr; its own are reno, cubic and bbr1";
        assert_eq!(named("bbr3"), Err(unknown.into()));
    }
}
