//! TCP listeners, each with a congestion control.

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::fd::OwnedFd;

use tokio::net::{TcpListener, TcpSocket};
use uncork_cc::CcSpec;

use super::congestion::{active_controller, choose, kernels_default};
use crate::error::ServeError;

/// Maximum number of connections that wait to be accepted; the kernel's own limit is `net.core.somaxconn`.
const BACKLOG: u32 = 4096;

/// The configuration of a listener: its address and congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSpec {
    /// Its name in policies.
    pub name: String,
    /// The address to listen on; port 0 picks a free port.
    pub address: SocketAddr,
    /// The kernel's name of a congestion control for all of its TCP connections, such as `bbr`.
    /// With `None` the policy decides, or the kernel without a policy.
    pub cc: Option<String>,
    /// The controller of its QUIC connections. With `None` the policy decides, or CUBIC is used
    /// without a policy.
    pub quic_cc: Option<CcSpec>,
    /// It has no TLS and sends requests on to HTTPS at the first listener's port, except the challenges of ACME
    /// (RFC 8555 §8.3). Such listeners come behind the others.
    pub to_https: bool,
}

/// A listener of a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Its address.
    pub address: SocketAddr,
    /// The initial congestion control of its connections; `policy` if they may differ.
    pub cc: String,
    /// Whether it uses TLS.
    pub is_tls: bool,
    /// The HTTP versions that it supports, by their ALPN names, separated by commas.
    pub protocols: &'static str,
}

/// A bound TCP listener.
pub(crate) struct Bound {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    /// The controller in effect.
    pub(crate) cc: String,
}

impl ListenerSpec {
    /// A socket with the listener's controller, which its connections inherit.
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

    /// Adopts a listening socket of another process. Its controller does not change until
    /// [`Self::take_over`].
    pub(crate) fn adopt(&self, socket: OwnedFd) -> Result<Bound, ServeError> {
        let failed = |error: io::Error| ServeError::Listen(self.address, error);
        // Fail now if the kernel lacks the controller.
        drop(self.socket()?);
        self.bound(TcpListener::from_std(StdTcpListener::from(socket)).map_err(failed)?)
    }

    /// Sets the controller of an adopted socket, which new connections inherit.
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
        let cc = active_controller(&listener).map_err(failed)?;
        Ok(Bound { listener, address, cc })
    }

    /// Starts listening. Returns the socket and the controller in effect.
    pub(crate) fn listen(&self) -> Result<Bound, ServeError> {
        let failed = |error: io::Error| ServeError::Listen(self.address, error);
        let socket = self.socket()?;
        socket.bind(self.address).map_err(failed)?;
        self.bound(socket.listen(BACKLOG).map_err(failed)?)
    }
}
