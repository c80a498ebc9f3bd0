//! A hash of source files by name and content.

use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use twox_hash::XxHash64;

/// Hashes the files in each of `sources`, a name with a file or a directory (recursively). Their
/// location and modification time do not matter.
pub(crate) fn digest(sources: &[(String, PathBuf)]) -> io::Result<String> {
    let mut files = Vec::new();
    for (name, path) in sources {
        collect(name, path, &mut files)?;
    }
    files.sort();
    let mut hash = XxHash64::with_seed(0);
    for (name, path) in files {
        let content = fs::read(path)?;
        for part in [name.as_bytes(), &content] {
            hash.write(&(part.len() as u64).to_le_bytes());
            hash.write(part);
        }
    }
    Ok(format!("{:016x}", hash.finish()))
}

fn collect(name: &str, path: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    if !path.is_dir() {
        files.push((name.to_owned(), path.to_path_buf()));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        collect(&name, &entry.path(), files)?;
    }
    Ok(())
}
