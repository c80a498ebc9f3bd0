//! The congestion controls of the kernel.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use socket2::{Domain, Socket, Type};
use uncork_cc::Missing;
use uncork_policy::Policy;

use crate::error::ServeError;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Sets the socket's congestion control to `cc`.
pub(super) fn choose(socket: impl AsFd, cc: &str) -> Result<(), ServeError> {
    set_tcp_congestion(socket, cc)
        .map_err(|errno| ServeError::Congestion { policy: None, problem: refused(cc, errno) })
}

/// The kernel's default congestion control.
pub(super) fn kernels_default() -> Option<String> {
    let name = fs::read_to_string(DEFAULT).ok()?;
    Some(name.trim().to_owned())
}

/// The congestion control in effect.
pub(super) fn active_controller(socket: impl AsFd) -> io::Result<String> {
    Ok(tcp_congestion(socket)?)
}

/// Sets the congestion control to `wanted` on a connection that uses `actual`. Returns the one in
/// effect afterwards: a route may lock its own choice.
pub(super) fn settle(socket: impl AsFd, wanted: &str, actual: &str) -> String {
    let socket = socket.as_fd();
    if wanted != actual && set_tcp_congestion(socket, wanted).is_ok() {
        // Trust the kernel's answer.
        return tcp_congestion(socket).unwrap_or_else(|_| wanted.to_owned());
    }
    actual.to_owned()
}

/// Checks that the kernel supports all congestion controls of `policy`.
pub(crate) fn has_all_of(policy: &Policy) -> Result<(), ServeError> {
    let failed = |error| ServeError::System("open a socket", error);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).map_err(failed)?;
    for cc in policy.settings().filter_map(|settings| settings.kernel_name()) {
        set_tcp_congestion(&socket, cc).map_err(|errno| ServeError::Congestion {
            policy: Some(policy.name().to_owned()),
            problem: refused(cc, errno),
        })?;
    }
    Ok(())
}

fn refused(cc: &str, errno: Errno) -> String {
    let list = |path| {
        let names = fs::read_to_string(path).unwrap_or_default();
        names.split_whitespace().collect::<Vec<_>>().join(", ")
    };
    match errno {
        Errno::PERM => format!(
            "this kernel lets only root choose '{cc}': others may choose {}; add it to \
             net.ipv4.tcp_allowed_congestion_control",
            list(ALLOWED)
        ),
        Errno::NOENT | Errno::INVAL | Errno::NAMETOOLONG => format!(
            "this kernel has no congestion control '{cc}': it has {}; {}",
            list(AVAILABLE),
            match cc {
                "bbr1" => "its bbr is BBRv1".to_owned(),
                "bbr2" | "bbr3" => format!(
                    "its bbr is BBRv1; {}; `--quic-cc {cc}` gives {cc} to connections over HTTP/3",
                    Missing(cc)
                ),
                _ => Missing(cc).to_string(),
            }
        ),
        errno => format!("cannot choose the congestion control '{cc}': {errno}"),
    }
}
