//! The directories of pins: who may write to a directory decides what the kernel runs, because removing a pin ends what it keeps.
//!
//! The root of a BPF file system is `drwxrwxrwt` by default, so another user may make a directory there first. Each directory is
//! checked from the root downwards: in one that only this user writes to, no other user can exchange what was checked.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Missing};
use crate::host::{FILE_SYSTEM, check_file_system};
use crate::sys;

/// Others may write (inode(7)).
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Only the owner of a file removes or renames it (inode(7)).
const STICKY: u32 = 0o1000;
/// The kind of file in a mode, and two of them (inode(7)).
const KIND: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// Makes `directory` and those above it in a BPF file system, for this user only, with any umask.
///
/// # Errors
///
/// Without a BPF file system, or if another user may write to one of the directories.
pub fn make_pin_directory(directory: &Path) -> Result<(), Error> {
    for part in parts(directory)? {
        match DirBuilder::new().mode(0o700).create(&part) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::step(format!("make {}", part.display()), error));
            }
            _ => check(&part, false)?,
        };
    }
    Ok(())
}

/// Whether `directory` is there, in a BPF file system, and no other user may write to it or one above it.
///
/// # Errors
///
/// Without a BPF file system, or if another user may write to one of the directories.
pub fn has_pin_directory(directory: &Path) -> Result<bool, Error> {
    for part in parts(directory)? {
        if !check(&part, false)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `directory` and those above it, below the root of the file system, which is checked. The first is nearest to the root.
fn parts(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    check_file_system(directory)?;
    let root = Path::new(FILE_SYSTEM);
    check(root, true)?;
    let mut parts: Vec<_> =
        directory.ancestors().take_while(|part| *part != root).map(Path::to_owned).collect();
    parts.reverse();
    Ok(parts)
}

/// Whether a directory is there; if so, it must be safe.
fn check(directory: &Path, is_root: bool) -> Result<bool, Error> {
    let about = match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        about => about.map_err(|error| unsearchable(directory, error))?,
    };
    let entry = DirectoryEntry { owner: about.uid(), mode: about.mode(), is_root };
    match entry.danger(sys::user()) {
        None => Ok(true),
        Some((reason, remedy)) => {
            let directory = directory.display().to_string();
            let remedy = format!("{remedy} {directory}");
            Err(Error::Unsafe { directory, reason, remedy })
        }
    }
}

fn unsearchable(directory: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Missing::Pin(directory.display().to_string()).into();
    }
    Error::step(format!("look at {}", directory.display()), error)
}

/// What decides who may change a directory.
struct DirectoryEntry {
    owner: u32,
    /// With the kind of file (inode(7)).
    mode: u32,
    /// The root of the file system, where others may make directories of their own.
    is_root: bool,
}

impl DirectoryEntry {
    /// Why others than `user` and root decide about what is in it, and the command that ends it.
    fn danger(&self, user: u32) -> Option<(String, &'static str)> {
        let Self { owner, mode, is_root } = *self;
        match mode & KIND {
            LINK => return Some(("it is a link".to_owned(), "rm")),
            DIRECTORY => {}
            _ => return Some(("it is not a directory".to_owned(), "rm")),
        }
        if owner != user && owner != 0 {
            let remedy = if is_root { "umount" } else { "rm -r" };
            let reason = format!("it belongs to user {owner}, not to user {user} or root");
            return Some((reason, remedy));
        }
        let is_safe = mode & WRITABLE_BY_OTHERS == 0 || is_root && mode & STICKY != 0;
        let reason = || format!("others may write to it (mode {:04o})", mode & 0o7777);
        (!is_safe).then(|| (reason(), "chmod 0700"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_that_its_owner_alone_writes_to_is_safe() {
        let (root, own, other) = (0, 1000, 65534);
        for (owner, mode, user, is_root, remedy) in [
            (root, 0o40755, root, false, None),
            (own, 0o40700, own, false, None),
            (root, 0o40700, own, false, None),
            (root, 0o41777, root, true, None),
            (root, 0o41777, root, false, Some("chmod 0700")),
            (root, 0o40777, root, true, Some("chmod 0700")),
            (root, 0o40775, root, false, Some("chmod 0700")),
            (other, 0o40700, root, false, Some("rm -r")),
            (own, 0o40700, root, false, Some("rm -r")),
            (other, 0o41777, root, true, Some("umount")),
            (root, 0o120_777, root, false, Some("rm")),
            (root, 0o100_600, root, false, Some("rm")),
        ] {
            let found = DirectoryEntry { owner, mode, is_root }.danger(user);
            let found = found.map(|(_, remedy)| remedy);
            assert_eq!(found, remedy, "{owner} {mode:o} {user} {is_root}");
        }
    }
}
