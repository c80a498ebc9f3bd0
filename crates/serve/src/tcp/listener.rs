//! Sockets that listen, each with a congestion control.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use tokio::net::{TcpListener, TcpSocket};

use crate::error::ServeError;

/// Connections that may wait to be accepted; the kernel's own limit is `net.core.somaxconn`.
const BACKLOG: u32 = 4096;
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Where to listen, and how what is accepted there shall be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSpec {
    /// Where; port 0 is any that is free.
    pub address: SocketAddr,
    /// The kernel's name of a congestion control, such as `bbr`; `None` leaves the choice to it.
    pub cc: Option<String>,
}

/// A listener that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    /// The congestion control that its connections begin with.
    pub cc: String,
    /// Whether it talks TLS.
    pub is_tls: bool,
}

impl ListenerSpec {
    /// The socket, with its controller, which connections inherit.
    pub(crate) fn socket(&self) -> Result<TcpSocket, ServeError> {
        let failed = |error| ServeError::Listen(self.address, error);
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(failed)?;
        socket.set_reuseaddr(true).map_err(failed)?;
        if let Some(cc) = &self.cc {
            set_tcp_congestion(&socket, cc).map_err(|errno| refused(cc, errno))?;
        }
        Ok(socket)
    }

    /// Listens, and tells the controller that the kernel has put in force.
    pub(crate) fn listen(&self) -> Result<(TcpListener, SocketAddr, String), ServeError> {
        let failed = |error: io::Error| ServeError::Listen(self.address, error);
        let socket = self.socket()?;
        socket.bind(self.address).map_err(failed)?;
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let cc = tcp_congestion(&listener).map_err(|errno| failed(errno.into()))?;
        Ok((listener, address, cc))
    }
}

/// The controller of an accepted connection. A route with `congctl` takes precedence over the listener's
/// choice, but not over one that is made now.
pub(super) fn settle(connection: impl AsFd, wanted: Option<&str>) -> Result<String, Errno> {
    let fd = connection.as_fd();
    let actual = tcp_congestion(fd)?;
    match wanted {
        Some(wanted) if wanted != actual => {
            set_tcp_congestion(fd, wanted)?;
            tcp_congestion(fd)
        }
        _ => Ok(actual),
    }
}

fn refused(cc: &str, errno: Errno) -> ServeError {
    let list = |path| {
        let names = fs::read_to_string(path).unwrap_or_default();
        names.split_whitespace().collect::<Vec<_>>().join(", ")
    };
    ServeError::Congestion(match errno {
        Errno::PERM => format!(
            "this kernel lets only root choose '{cc}': others may choose {}; add it to \
             net.ipv4.tcp_allowed_congestion_control",
            list(ALLOWED)
        ),
        Errno::NOENT | Errno::INVAL | Errno::NAMETOOLONG => format!(
            "this kernel has no congestion control '{cc}': it has {}; load others with `modprobe tcp_NAME`",
            list(AVAILABLE)
        ),
        errno => format!("cannot choose the congestion control '{cc}': {errno}"),
    })
}
