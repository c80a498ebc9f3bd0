//! The latest signed policy that was accepted from each key: an older one is refused.
//!
//! ```text
//! STATE/accepted/KEY.json        the release, mode 0600 in a directory of mode 0700
//! STATE/accepted/accepted.lock   held while a release is written
//! ```
//!
//! A file that cannot be read refuses every policy of its key: it may have said that this one is old. A file that cannot be
//! written refuses none, so that a full disk keeps no newer policy out, such as that of a kill switch.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use thiserror::Error;
use uncork_policy::Release;

use crate::lock::{Lock, PATIENCE};
use crate::private;

/// The state directory of root.
const ROOTS: &str = "/var/lib/uncork";
/// The size of the largest file that is read.
const MAX_FILE: u64 = 4096;
/// The mode of the directory.
const MODE: u32 = 0o700;

/// The releases that this user's programs have accepted.
#[derive(Clone, Debug)]
pub struct Releases {
    directory: Option<PathBuf>,
    /// What this process has accepted last: it counts where the file cannot be read or written.
    active: Option<Release>,
}

/// Why a signed policy is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReleaseError {
    /// A later one of the same key was accepted.
    #[error(
        "{found} is older than {accepted}, which was accepted before; to return to its rules, sign them as a new version: \
         `uncork learn rollback DIR N --sign learn.key`; to accept older ones again, remove {}", .file.display()
    )]
    Older {
        /// The refused policy.
        found: Release,
        /// The latest that was accepted.
        accepted: Release,
        /// Where that is kept.
        file: PathBuf,
    },
    /// What was accepted before cannot be found out.
    #[error("cannot find out which policy was accepted before: {}: {reason}; if it is damaged, remove it", .file.display())]
    Unknown {
        /// The file or directory.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl Releases {
    /// Those of this user: in the state directory that systemd gives the service ($`STATE_DIRECTORY`), else in
    /// `/var/lib/uncork` for root, else in $`XDG_STATE_HOME/uncork` or `~/.local/state/uncork`.
    pub fn of_user() -> Self {
        Self { directory: state_directory().map(|state| state.join("accepted")), active: None }
    }

    /// Those in this directory.
    pub fn in_directory(directory: &Path) -> Self {
        Self { directory: Some(directory.to_owned()), active: None }
    }

    /// Refuses a release that is older than the latest one of its key.
    ///
    /// # Errors
    ///
    /// It is older, or that cannot be found out.
    pub fn check(&self, release: &Release) -> Result<(), ReleaseError> {
        let file = self.file(release);
        let active = self.active.as_ref().filter(|active| active.key == release.key);
        let noted = match (self.latest(release), active) {
            (Err(error), None) => {
                return Err(ReleaseError::Unknown { file, reason: error.to_string() });
            }
            (noted, _) => noted.ok().flatten(),
        };
        let accepted = active.into_iter().chain(&noted).max_by_key(|accepted| accepted.serial);
        match accepted.filter(|accepted| release.is_older_than(accepted)).cloned() {
            Some(accepted) => Err(ReleaseError::Older { found: release.clone(), accepted, file }),
            None => Ok(()),
        }
    }

    /// Notes that a release is active, once its signature was checked. Never lowers what is noted.
    ///
    /// # Errors
    ///
    /// Why it cannot be noted, with what that means and the remedy. The release may be active nevertheless.
    pub fn accept(&mut self, release: &Release) -> Result<(), String> {
        self.active = Some(release.clone());
        self.note(release).map_err(|error| {
            format!(
                "{release} is active, but an older policy of the same key will be accepted after a restart: it cannot be noted \
                 which is the latest: {error}"
            )
        })
    }

    fn note(&self, release: &Release) -> io::Result<()> {
        let Some(directory) = &self.directory else {
            return Err(io::Error::other(
                "this user has no state directory; set STATE_DIRECTORY to a directory of this user",
            ));
        };
        private::directory(directory, MODE)?;
        let lock = Lock::take(directory, "accepted", PATIENCE, |_| ());
        let _lock = lock.map_err(|error| io::Error::other(error.to_string()))?;
        match self.latest(release)? {
            Some(accepted) if !accepted.is_older_than(release) => Ok(()),
            _ => {
                let text = serde_json::to_string(release)? + "\n";
                private::replace(&self.file(release), |new| {
                    write(new, &text).inspect_err(|_| {
                        // Of no use; the next one removes it, too.
                        let _ = fs::remove_file(new);
                    })
                })
            }
        }
    }

    /// Where the latest release of the same key is.
    fn file(&self, release: &Release) -> PathBuf {
        let directory = self.directory.as_deref().unwrap_or(Path::new(""));
        directory.join(format!("{}.json", release.key))
    }

    /// The latest of the same key that was accepted; `None` if the directory or the file does not exist.
    fn latest(&self, release: &Release) -> io::Result<Option<Release>> {
        let Some(directory) = &self.directory else { return Ok(None) };
        match fs::symlink_metadata(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        private::directory(directory, MODE)?;
        let read = private::read(&self.file(release), MAX_FILE, OFlags::NOFOLLOW);
        let (text, stat) = match read {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        if let Some(reason) = private::not_private(&stat, 0o600) {
            return Err(io::Error::new(ErrorKind::PermissionDenied, reason));
        }
        Ok(Some(serde_json::from_str(&text)?))
    }
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()
}

fn state_directory() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(given) = set("STATE_DIRECTORY") {
        // Several are separated by colons (systemd.exec(5)).
        return env::split_paths(&given).next();
    }
    if geteuid().is_root() {
        return Some(ROOTS.into());
    }
    if let Some(given) = set("XDG_STATE_HOME") {
        return Some(PathBuf::from(given).join("uncork"));
    }
    // A program that root started for another user has the home of root.
    let home = PathBuf::from(set("HOME")?);
    let is_own = fs::metadata(&home).is_ok_and(|it| it.uid() == geteuid().as_raw());
    is_own.then(|| home.join(".local/state/uncork"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use uncork_testkit::Scratch;

    fn release(key: &str, serial: u64) -> Release {
        Release { key: key.to_owned(), serial, version: Some(serial) }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn an_older_release_is_refused_by_every_process_and_the_error_names_both() {
        let scratch = Scratch::new("releases");
        let directory = scratch.path("state/accepted");
        let mut releases = Releases::in_directory(&directory);
        releases.check(&release("a", 1)).unwrap();
        assert!(!directory.exists(), "only what is accepted is noted");
        for serial in [3, 2] {
            // The lower one never replaces the higher one.
            releases.accept(&release("a", serial)).unwrap();
        }
        assert_eq!((mode(&directory), mode(&directory.join("a.json"))), (0o700, 0o600));
        let again = Releases::in_directory(&directory);
        let error = again.check(&release("a", 2)).unwrap_err().to_string();
        for words in ["version 2 is older than version 3", "learn rollback", "a.json"] {
            assert!(error.contains(words), "{error}");
        }
        again.check(&release("a", 3)).unwrap();
        again.check(&release("a", 4)).unwrap();
        again.check(&release("b", 1)).unwrap();
    }

    #[test]
    fn what_cannot_be_trusted_refuses_and_is_named() {
        let scratch = Scratch::new("releases-odd");
        let directory = scratch.path("accepted");
        let mut releases = Releases::in_directory(&directory);
        let accepted = directory.join("a.json");
        let refused = |words: &str| {
            let error =
                Releases::in_directory(&directory).check(&release("a", 9)).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("a.json"), "{error}");
        };
        releases.accept(&release("a", 1)).unwrap();
        fs::set_permissions(&accepted, fs::Permissions::from_mode(0o644)).unwrap();
        refused("others have rights to it");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        refused("others have rights to it");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&accepted, "{\"key\"").unwrap();
        fs::set_permissions(&accepted, fs::Permissions::from_mode(0o600)).unwrap();
        refused("remove it");
        fs::remove_file(&accepted).unwrap();
        symlink("/dev/zero", &accepted).unwrap();
        refused("symbolic link");
        assert!(releases.accept(&release("a", 9)).is_err(), "nothing is written over it");
        fs::remove_file(&accepted).unwrap();
        releases.check(&release("a", 9)).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_a_warning_that_says_what_follows() {
        let scratch = Scratch::new("releases-unwritable");
        fs::write(scratch.path("file"), "").unwrap();
        let nowhere = Releases { directory: None, active: None };
        for mut releases in [nowhere, Releases::in_directory(&scratch.path("file/accepted"))] {
            releases.check(&release("a", 1)).unwrap_or_default();
            let warning = releases.accept(&release("a", 2)).unwrap_err();
            assert!(warning.contains("will be accepted after a restart"), "{warning}");
            // This process knows it nevertheless, and takes the next one.
            releases.check(&release("a", 1)).unwrap_err();
            releases.check(&release("a", 3)).unwrap();
        }
    }
}
