//! One process at a time changes the policies, and one reads a ring.
//!
//! flock(2) needs no right to write, so that what is locked is a directory that its owner alone may open: that of the pins. It goes
//! with the last policy, so who has waited for it looks whether it is still there.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use uncork_private_files::lock::holder;

use crate::error::Error;

/// How often a command looks whether another one has ended: for ten seconds, as that takes seconds with a table of a million
/// networks.
const TURNS: u32 = 200;
const TURN: Duration = Duration::from_millis(50);

/// Locks a directory of the pins while the result is open. `None` if the directory does not exist. If `waits`, waits ten seconds for
/// another process. `busy` makes the error from the number of the process that holds the lock, if it is visible.
pub(crate) fn lock(
    path: &Path,
    waits: bool,
    busy: impl Fn(Option<u32>) -> Error,
) -> Result<Option<File>, Error> {
    let failed = |error| Error::step(format!("lock {}", path.display()))(error);
    let mut turns = if waits { TURNS } else { 0 };
    loop {
        let Some(directory) = open(path).map_err(failed)? else { return Ok(None) };
        match directory.try_lock() {
            Ok(()) if is_at(&directory, path) => return Ok(Some(directory)),
            // Removed by the process that had it.
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if turns > 0 => {
                turns -= 1;
                thread::sleep(TURN);
            }
            Err(TryLockError::WouldBlock) => return Err(busy(holder(path))),
        }
    }
}

/// Opens a directory of this user's for this user alone: earlier versions left it to the umask.
fn open(path: &Path) -> io::Result<Option<File>> {
    let directory = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if directory.metadata()?.mode() & 0o077 != 0 {
        // Another user with CAP_DAC_OVERRIDE may lock it, but not close it to others.
        let _ = directory.set_permissions(Permissions::from_mode(0o700));
    }
    Ok(Some(directory))
}

fn is_at(directory: &File, path: &Path) -> bool {
    let number = |about: io::Result<fs::Metadata>| about.ok().map(|it| (it.dev(), it.ino()));
    let held = number(directory.metadata());
    held.is_some() && held == number(fs::symlink_metadata(path))
}
