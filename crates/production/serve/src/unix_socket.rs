//! Unix sockets that only their owner can use.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, SockAddr, Socket, Type};

const BACKLOG: i32 = 16;

/// The file of a Unix socket. Dropping this removes the file, unless another process owns it by
/// then.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: u64,
    is_own: AtomicBool,
}

impl SocketFile {
    /// The file at `path`, which another process owns until [`Self::own`] is called.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let inode = fs::symlink_metadata(path)?.ino();
        Ok(Self { path: path.to_owned(), inode, is_own: AtomicBool::new(false) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes ownership of the file from another process.
    pub(crate) fn own(&self) {
        self.is_own.store(true, Ordering::Relaxed);
    }

    /// Leaves ownership of the file to another process.
    pub(crate) fn disown(&self) {
        self.is_own.store(false, Ordering::Relaxed);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_there = || fs::symlink_metadata(&self.path).is_ok_and(|it| it.ino() == self.inode);
        if self.is_own.load(Ordering::Relaxed) && is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates a non-blocking listener at `path`. The mode is set before it listens. Replaces a stale
/// socket file, on which no process listens.
pub(crate) fn listen(path: &Path, kind: Type) -> io::Result<(Socket, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, kind.nonblocking(), None)?;
    let address = SockAddr::unix(path)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            fs::remove_file(path)?;
            socket.bind(&address)?;
        }
        bound => bound?,
    }
    let file = SocketFile::of(path)?;
    file.own();
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    Ok((socket, file))
}

fn is_stale(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    // A socket of another type that is in use fails with another error.
    let connected = || UnixStream::connect(path);
    is_socket && connected().is_err_and(|it| it.kind() == io::ErrorKind::ConnectionRefused)
}
