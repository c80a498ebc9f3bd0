//! Files, replaced as a whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use uncork_private_files as private;

use super::super::setting::Value;

/// The size of the largest file that is read: far more than uncork writes.
const MAX_FILE: u64 = 1 << 20;

pub(super) fn read(path: &Path) -> io::Result<Value> {
    found(private::read(path, MAX_FILE, OFlags::empty()).map(|(text, _)| text))
}

pub(super) fn read_link(path: &Path) -> io::Result<Value> {
    found(fs::read_link(path).map(|target| target.to_string_lossy().into_owned()))
}

fn found(read: io::Result<String>) -> io::Result<Value> {
    match read {
        Ok(text) => Ok(Value::Text { text }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Value::Absent),
        Err(error) => Err(error),
    }
}

pub(super) fn write(path: &Path, to: &Value) -> io::Result<()> {
    match to {
        Value::Text { text } => private::replace(path, |new| write_synced(new, text)),
        _ => remove(path),
    }
}

pub(super) fn write_link(path: &Path, to: &Value) -> io::Result<()> {
    match to {
        Value::Text { text } => private::replace(path, |new| std::os::unix::fs::symlink(text, new)),
        _ => remove(path),
    }
}

pub(super) fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A new file that its owner may write and all may read, with any umask.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    Ok(file)
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
