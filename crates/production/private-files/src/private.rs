//! Directories that none but their owner can change.
//!
//! What lies below a directory that another user may write is his: he renames it and puts his own there. So each
//! component of a path must belong to root or to this user, and others may add to it only where they cannot rename
//! what is not theirs (the sticky bit, inode(7)).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, chmodat, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

/// The mode of directories above a private one.
const PUBLIC: u32 = 0o755;
/// What users of other namespaces look like (user_namespaces(7)).
const OVERFLOW_UID: u32 = 65_534;

/// Makes a directory, and those above it, where they do not exist; none has rights beyond `mode`, with any umask.
///
/// # Errors
///
/// It cannot be made, it is a link, or others than its owner may change it. The message names the path and the remedy.
pub fn directory(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let path = resolved(path)?;
    let last = path.components().count();
    let (mut at, mut here) = (open("/", OPEN, Mode::empty())?, PathBuf::from("/"));
    for (place, name) in path.components().enumerate() {
        let Component::Normal(name) = name else { continue };
        here.push(name);
        let is_last = place + 1 == last;
        let failed = |error: Errno| {
            let reason = match error {
                Errno::NOTDIR | Errno::LOOP => "it is a link, or not a directory".to_owned(),
                error => error.to_string(),
            };
            io::Error::new(error.kind(), format!("{}: {reason}", here.display()))
        };
        at = entered(&at, name, if is_last { mode } else { PUBLIC }).map_err(failed)?;
        let stat = fstat(&at).map_err(failed)?;
        let wrong = if is_last { not_private(&stat, mode) } else { not_trusted(&stat) };
        if let Some(wrong) = wrong {
            let kind = io::ErrorKind::PermissionDenied;
            return Err(io::Error::new(kind, format!("{}: {wrong}", here.display())));
        }
    }
    Ok(at)
}

/// Makes a new file next to `path` and gives it that name. After a crash there is the old one or the new one.
pub fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    // Links that root has made are followed.
    let directory = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    self::directory(&directory, PUBLIC)?;
    let mut new = path.as_os_str().to_owned();
    // Readers of these directories ignore other endings than `.conf` and `.service`.
    new.push(".uncork-new");
    let new = PathBuf::from(new);
    match fs::remove_file(&new) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            return Err(io::Error::other(format!("{} is a directory; remove it", new.display())));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    make(&new)?;
    rename_flushed(&new, path)
}

/// Renames a file or a directory within its directory. After a crash, the new name is still there: the directory is flushed.
///
/// # Errors
///
/// It cannot be renamed, or the directory cannot be flushed; then the new name may be lost in a crash.
pub fn rename_flushed(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    let directory = to.parent().filter(|above| !above.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

const OPEN: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory below another one, made if it does not exist.
fn entered(at: &OwnedFd, name: &OsStr, mode: u32) -> Result<OwnedFd, Errno> {
    match openat(at, name, OPEN, Mode::empty()) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    match mkdirat(at, name, Mode::from_raw_mode(mode)) {
        // The umask may have taken rights away.
        Ok(()) => chmodat(at, name, Mode::from_raw_mode(mode), AtFlags::empty())?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    openat(at, name, OPEN, Mode::empty())
}

/// The path with the links above its last component resolved: `/var` may be one.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for above in path.ancestors().skip(1) {
        match fs::canonicalize(above) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => {
                let below = path.strip_prefix(above).map_err(io::Error::other)?;
                return found.map(|found| found.join(below)).map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", above.display()))
                });
            }
        }
    }
    Ok(path)
}

/// Reads a regular file of at most `max` bytes; `flags` are added. A fifo may never end, and a device never does.
///
/// # Errors
///
/// It cannot be read, or it is another kind of file ([`io::ErrorKind::InvalidData`]).
pub fn read(path: &Path, max: u64, flags: OFlags) -> io::Result<(String, Stat)> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match open(path, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Err(invalid("it is a symbolic link".to_owned())),
        opened => File::from(opened?),
    };
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(invalid("it is not a regular file".to_owned()));
    }
    let mut text = String::new();
    file.take(max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max {
        return Err(invalid(format!("it has more than {max} bytes")));
    }
    Ok((text, stat))
}

/// Why others may change a file, or what lies in a directory, and the remedy.
pub fn not_trusted(stat: &Stat) -> Option<String> {
    let mode = stat.st_mode & 0o7777;
    if !is_trusted(stat.st_uid) {
        return Some(format!("it belongs to user {}; use a directory of root", stat.st_uid));
    }
    let is_sticky = mode & 0o1000 != 0;
    let own_group = [0, getegid().as_raw()].contains(&stat.st_gid);
    let is_open = mode & 0o002 != 0 || (mode & 0o020 != 0 && !own_group);
    (is_open && !is_sticky)
        .then(|| format!("others may write to it (mode {mode:o}); run chmod go-w on it"))
}

/// Why others have rights to a directory or file beyond `mode`, and the remedy.
pub fn not_private(stat: &Stat, mode: u32) -> Option<String> {
    if let Some(reason) = not_owned(stat.st_uid, geteuid().as_raw()) {
        return Some(reason);
    }
    let found = stat.st_mode & 0o777;
    (found & 0o077 & !mode != 0)
        .then(|| format!("others have rights to it (mode {found:o}); run chmod {mode:o} on it"))
}

/// Why something of user `owner` is not for user `own`, and the remedy. It may hold what a rollback needs: never to remove it.
fn not_owned(owner: u32, own: u32) -> Option<String> {
    let remedy = match (owner, own) {
        (owner, own) if owner == own => return None,
        (0, _) => "run this with sudo".to_owned(),
        (_, 0) => format!("choose another directory, or run chown {own} on it"),
        _ => format!("choose another directory, or run this as user {owner}"),
    };
    Some(format!("it belongs to user {owner}, not to {own}; {remedy}"))
}

/// Whether this user may do no more to us than we can.
pub fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw() || (user == OVERFLOW_UID && is_user_namespace())
}

/// Whether the caller is in a user namespace: there, the root of the host is a stranger.
fn is_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    !map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;
    use uncork_testkit::Scratch;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn who_forgot_sudo_is_not_advised_to_remove_what_root_keeps() {
        let expected = "it belongs to user 0, not to 65534; run this with sudo";
        assert_eq!(not_owned(0, 65_534).as_deref(), Some(expected));
        assert_eq!(not_owned(1000, 1000), None);
        for (owner, own) in [(0, 1000), (1000, 0), (1000, 1001)] {
            let reason = not_owned(owner, own).unwrap();
            assert!(!reason.contains("remove"), "{reason}");
        }
    }

    #[test]
    fn a_new_directory_has_its_mode() {
        let scratch = Scratch::new("private-new");
        let path = scratch.path("above/below");
        directory(&path, 0o700).unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o755, 0o700));
        directory(&path, 0o700).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_change_is_refused_with_its_name() {
        let scratch = Scratch::new("private-open");
        let (above, path) = (scratch.path("above"), scratch.path("above/below"));
        directory(&path, 0o700).unwrap();
        for (place, open, remedy) in [(&path, 0o755, "chmod 700"), (&above, 0o777, "chmod go-w")] {
            let before = mode(place);
            allow(place, open);
            let error = directory(&path, 0o700).unwrap_err().to_string();
            assert!(error.contains(&place.display().to_string()), "{error}");
            assert!(error.contains(remedy), "{error}");
            allow(place, before);
        }
        // Others may add to it, but not rename existing files.
        allow(&above, 0o1777);
        directory(&path, 0o700).unwrap();
    }

    #[test]
    fn a_link_is_followed_above_the_last_component_only() {
        let scratch = Scratch::new("private-link");
        let (real, link) = (scratch.path("real"), scratch.path("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        directory(&link.join("below"), 0o700).unwrap();
        assert_eq!(mode(&real.join("below")), 0o700);
        directory(&link, 0o755).unwrap_err();
    }
}
