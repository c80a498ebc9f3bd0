//! Secrets that survive a restart, in files that a fleet can share.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::ServeError;

/// A secret, from which keys are derived.
pub(crate) type Secret = [u8; 32];

/// The file with the secret for connection IDs and stateless resets, on one line.
const CONNECTIONS: &str = "connections";
/// The file with the secrets of session tickets, one per line. The first encrypts; all decrypt.
const TICKETS: &str = "tickets";

/// The path of the ticket secrets in a directory of keys.
pub(crate) fn tickets_path(directory: &Path) -> PathBuf {
    directory.join(TICKETS)
}

/// Reads the connection secret in a directory of keys.
pub(crate) fn read_connections(directory: &Path) -> Result<Secret, ServeError> {
    let path = directory.join(CONNECTIONS);
    match read(&path)?[..] {
        [secret] => Ok(secret),
        ref secrets => Err(wrong(&path, format!("it has {} lines instead of one", secrets.len()))),
    }
}

/// Reads the secrets in a file: one line of 64 hexadecimal digits each.
pub(crate) fn read(path: &Path) -> Result<Vec<Secret>, ServeError> {
    let failed = |error: io::Error| wrong(path, error.to_string());
    let mode = fs::metadata(path).map_err(failed)?.mode();
    if mode & 0o007 != 0 {
        return Err(wrong(path, "every user of this machine may read it: chmod 600".to_owned()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let secrets = lines.map(|(number, line)| {
        let problem = || format!("line {}: 64 hexadecimal digits expected", number + 1);
        parse(line.trim()).ok_or_else(|| wrong(path, problem()))
    });
    let secrets = secrets.collect::<Result<Vec<_>, _>>()?;
    if secrets.is_empty() {
        return Err(wrong(path, "it has no line with a key".to_owned()));
    }
    Ok(secrets)
}

/// Creates the directory and missing files. If several processes do so at the same time, the files
/// of one of them remain.
pub(crate) fn create_missing(directory: &Path) -> Result<(), ServeError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| wrong(directory, error.to_string()))?;
    for name in [CONNECTIONS, TICKETS] {
        let path = directory.join(name);
        if !path.exists() {
            let text = format!("{}\n", text(&random()?));
            create(&path, &text).map_err(|error| wrong(&path, error.to_string()))?;
        }
    }
    Ok(())
}

/// A new random secret.
pub(crate) fn random() -> Result<Secret, ServeError> {
    let mut secret = [0; 32];
    let failed = |_| ServeError::System("make keys", io::Error::other("no random numbers"));
    SystemRandom::new().fill(&mut secret).map_err(failed)?;
    Ok(secret)
}

/// Creates a file atomically: it is complete when it gets its name. An existing file is not
/// changed.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension(format!("part-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let linked = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&part, path));
    fs::remove_file(&part)?;
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// Encodes bytes as hexadecimal digits.
pub(crate) fn text(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// Decodes 64 hexadecimal digits.
pub(crate) fn parse(text: &str) -> Option<Secret> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

fn wrong(path: &Path, problem: String) -> ServeError {
    ServeError::Keys(path.to_owned(), problem)
}

#[cfg(test)]
mod tests {
    use uncork_testkit::Scratch;

    use super::*;

    #[test]
    fn keys_are_created_once_with_owner_only_permissions() {
        let scratch = Scratch::new("keys");
        let directory = scratch.path("keys");
        create_missing(&directory).expect("made");
        let secret = read_connections(&directory).expect("read");
        let tickets = read(&tickets_path(&directory)).expect("read");
        assert_eq!((tickets.len(), tickets.contains(&secret)), (1, false));
        create_missing(&directory).expect("nothing to make");
        assert_eq!(read_connections(&directory).expect("read"), secret);
        let names: Vec<_> = fs::read_dir(&directory).expect("read").collect();
        assert_eq!(names.len(), 2, "nothing else is left behind: {names:?}");
        for name in [CONNECTIONS, TICKETS] {
            let mode = fs::metadata(directory.join(name)).expect("there").mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn invalid_key_files_are_rejected_with_path_and_line() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new("keys");
        let path = scratch.path("tickets");
        let (good, mode) = (text(&[0xa5; 32]), |mode| fs::Permissions::from_mode(mode));
        for (lines, problem) in [
            (String::new(), "it has no line with a key"),
            (format!("{good}\n\n{good}0\n"), "line 3: 64 hexadecimal digits expected"),
            (format!("+{}\n", &good[1..]), "line 1: 64 hexadecimal digits expected"),
            ("ä".repeat(32), "line 1: 64 hexadecimal digits expected"),
        ] {
            fs::write(&path, lines).expect("written");
            fs::set_permissions(&path, mode(0o600)).expect("set");
            let error = read(&path).expect_err("refused").to_string();
            assert!(error.contains(problem), "{error}");
        }
        fs::write(&path, format!("{good}\n")).expect("written");
        assert_eq!(read(&path).expect("good"), [[0xa5; 32]]);
        fs::set_permissions(&path, mode(0o604)).expect("set");
        let error = read(&path).expect_err("refused").to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
}
