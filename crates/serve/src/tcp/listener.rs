//! Sockets that listen, each with a congestion control.

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::fd::OwnedFd;

use tokio::net::{TcpListener, TcpSocket};
use uncork_cc::CcSpec;

use super::congestion::{choose, in_force, kernels_default};
use crate::error::ServeError;

/// Connections that may wait to be accepted; the kernel's own limit is `net.core.somaxconn`.
const BACKLOG: u32 = 4096;

/// Where to listen, and how what is accepted there shall be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSpec {
    /// What policies call it.
    pub name: String,
    /// Where; port 0 is any that is free.
    pub address: SocketAddr,
    /// The kernel's name of a congestion control, such as `bbr`, for all of its connections; `None`
    /// leaves the choice to the policy, and without one to the kernel.
    pub cc: Option<String>,
    /// The controller of its connections over QUIC; `None` leaves the choice to the policy, and without
    /// one it is CUBIC.
    pub quic_cc: Option<CcSpec>,
}

/// A listener that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    /// The congestion control that its connections begin with; `policy` if they may differ.
    pub cc: String,
    /// Whether it talks TLS.
    pub is_tls: bool,
    /// The versions of HTTP that it talks, as TLS calls them, with commas between them.
    pub protocols: &'static str,
}

/// A socket that listens.
pub(crate) struct Bound {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    /// The controller in force.
    pub(crate) cc: String,
}

impl ListenerSpec {
    /// The socket, with its controller, which connections inherit.
    pub(crate) fn socket(&self) -> Result<TcpSocket, ServeError> {
        let failed = |error| ServeError::Listen(self.address, error);
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(failed)?;
        socket.set_reuseaddr(true).map_err(failed)?;
        if let Some(cc) = &self.cc {
            choose(&socket, cc)?;
        }
        Ok(socket)
    }

    /// Takes over a socket that listens. Its controller stays as it is until [`Self::take_over`].
    pub(crate) fn adopt(&self, socket: OwnedFd) -> Result<Bound, ServeError> {
        let failed = |error: io::Error| ServeError::Listen(self.address, error);
        // Refuses a controller that the kernel lacks.
        drop(self.socket()?);
        self.bound(TcpListener::from_std(StdTcpListener::from(socket)).map_err(failed)?)
    }

    /// The socket is that of this process now: connections inherit the controller that it chooses.
    pub(crate) fn take_over(&self, bound: &mut Bound) -> Result<(), ServeError> {
        if let Some(cc) = self.cc.clone().or_else(kernels_default) {
            choose(&bound.listener, &cc)?;
            bound.cc = cc;
        }
        Ok(())
    }

    fn bound(&self, listener: TcpListener) -> Result<Bound, ServeError> {
        let failed = |error: io::Error| ServeError::Listen(self.address, error);
        let address = listener.local_addr().map_err(failed)?;
        let cc = in_force(&listener).map_err(failed)?;
        Ok(Bound { listener, address, cc })
    }

    /// Listens, and tells the controller that the kernel has put in force.
    pub(crate) fn listen(&self) -> Result<Bound, ServeError> {
        let failed = |error: io::Error| ServeError::Listen(self.address, error);
        let socket = self.socket()?;
        socket.bind(self.address).map_err(failed)?;
        self.bound(socket.listen(BACKLOG).map_err(failed)?)
    }
}
