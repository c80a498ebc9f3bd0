//! Checks whether files can be written, and leaves none behind.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Whether files can be created in `directory`, which exists.
pub fn takes_files(directory: &Path) -> io::Result<()> {
    let trial = directory.join(format!(".uncork-{}", std::process::id()));
    File::create(&trial)?;
    fs::remove_file(&trial)
}

/// Whether files can be created in `directory`, or the directory itself if it is missing.
pub fn directory(directory: &Path) -> io::Result<()> {
    let mut existing = directory;
    while let Err(error) = existing.metadata() {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        existing = parent(existing);
    }
    takes_files(existing)
}

/// Whether `file` can be appended to, or created if it is missing.
pub fn file(file: &Path) -> io::Result<()> {
    match OpenOptions::new().append(true).open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => takes_files(parent(file)),
        opened => opened.map(drop),
    }
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(if path.is_absolute() { "/" } else { "." }))
}
