//! The listener of the admin endpoint.

use std::io;
use std::net::TcpListener as StdTcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;

use socket2::Type;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use super::AdminAddress;
use crate::error::ServeError;
use crate::unix_socket::{self, SocketFile};

const BACKLOG: u32 = 16;

/// A bound listener of the admin endpoint. Dropping it also removes the file of a Unix socket.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener, Arc<SocketFile>),
}

impl Bound {
    /// Listens on `address`. Rejects an address that other machines can reach, unless `anywhere` is
    /// set. Must be called within tokio's runtime.
    pub(crate) fn listen(address: &AdminAddress, anywhere: bool) -> Result<Self, ServeError> {
        let failed = |error| ServeError::Admin(address.clone(), error);
        match address {
            AdminAddress::Tcp(tcp) if !tcp.ip().is_loopback() && !anywhere => {
                Err(ServeError::AdminExposed(*tcp))
            }
            AdminAddress::Tcp(tcp) => {
                let new = if tcp.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
                let socket = new.map_err(failed)?;
                socket.set_reuseaddr(true).map_err(failed)?;
                socket.bind(*tcp).map_err(failed)?;
                Ok(Self::Tcp(socket.listen(BACKLOG).map_err(failed)?))
            }
            AdminAddress::Unix(path) => {
                let (socket, file) = unix_socket::listen(path, Type::STREAM).map_err(failed)?;
                let listener = UnixListener::from_std(socket.into()).map_err(failed)?;
                Ok(Self::Unix(listener, Arc::new(file)))
            }
        }
    }

    /// Adopts the listener of another process, which was configured with `address`. Must be called
    /// within tokio's runtime.
    pub(crate) fn adopt(address: &AdminAddress, fd: OwnedFd) -> Result<Self, ServeError> {
        let adopted = match address {
            AdminAddress::Tcp(_) => TcpListener::from_std(StdTcpListener::from(fd)).map(Self::Tcp),
            AdminAddress::Unix(path) => SocketFile::of(path).and_then(|file| {
                let listener = UnixListener::from_std(StdUnixListener::from(fd))?;
                Ok(Self::Unix(listener, Arc::new(file)))
            }),
        };
        adopted.map_err(|error| ServeError::Admin(address.clone(), error))
    }

    /// A copy of the descriptor, and the socket file if there is one.
    pub(crate) fn share(&self) -> io::Result<(OwnedFd, Option<Arc<SocketFile>>)> {
        Ok(match self {
            Self::Tcp(listener) => (listener.as_fd().try_clone_to_owned()?, None),
            Self::Unix(listener, file) => {
                (listener.as_fd().try_clone_to_owned()?, Some(Arc::clone(file)))
            }
        })
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> io::Result<AdminAddress> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(AdminAddress::Tcp),
            Self::Unix(_, file) => Ok(AdminAddress::Unix(file.path().to_owned())),
        }
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(listener) => listener.local_addr().is_ok_and(|it| it.ip().is_loopback()),
            Self::Unix(..) => false,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
            Self::Unix(listener, _) => Box::new(listener.accept().await?.0),
        })
    }
}

/// The transport of admin requests.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
