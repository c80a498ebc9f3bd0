//! Listening for operators.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use super::AdminAddress;
use crate::error::ServeError;

const BACKLOG: i32 = 16;

/// A listener for operators. The file of a Unix socket goes with it.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket, as long as it is the one that was made here.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Bound {
    /// Listens on `address`; beyond this machine only if that is wanted (`anywhere`). On tokio's runtime.
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
                Ok(Self::Tcp(socket.listen(BACKLOG.cast_unsigned()).map_err(failed)?))
            }
            AdminAddress::Unix(path) => {
                let (listener, file) = unix(path).map_err(failed)?;
                Ok(Self::Unix(listener, file))
            }
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<AdminAddress> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(AdminAddress::Tcp),
            Self::Unix(_, file) => Ok(AdminAddress::Unix(file.path.clone())),
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

/// What an operator's request comes by.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A socket that only its owner can use: the mode is set before it listens. Replaces a stale socket file, on
/// which nothing listens.
fn unix(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    let address = SockAddr::unix(path)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            fs::remove_file(path)?;
            socket.bind(&address)?;
        }
        bound => bound?,
    }
    let file = SocketFile { path: path.to_owned(), inode: fs::symlink_metadata(path)?.ino() };
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    Ok((UnixListener::from_std(socket.into())?, file))
}

fn is_stale(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let connected = || UnixStream::connect(path);
    is_socket && connected().is_err_and(|it| it.kind() == io::ErrorKind::ConnectionRefused)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|it| it.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
