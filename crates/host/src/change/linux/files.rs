//! Files, replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::super::knob::Value;

pub(super) fn read(path: &Path) -> io::Result<Value> {
    found(fs::read_to_string(path))
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
        Value::Text { text } => replace(path, |new| write_synced(new, text)),
        _ => remove(path),
    }
}

pub(super) fn write_link(path: &Path, to: &Value) -> io::Result<()> {
    match to {
        Value::Text { text } => replace(path, |new| std::os::unix::fs::symlink(text, new)),
        _ => remove(path),
    }
}

/// Makes a new file beside `path` and gives it that name. After a crash there is the old one or the new one.
pub(super) fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory)?;
    let mut new = path.as_os_str().to_owned();
    // Readers of these directories ignore other endings than `.conf` and `.service`.
    new.push(".uncork-new");
    let new = PathBuf::from(new);
    if let Err(error) = fs::remove_file(&new)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    make(&new)?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

pub(super) fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
