//! Scratch directories of tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A unique directory below `target/tmp`, removed on drop.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty directory. Its name starts with `name`.
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let parent = parent();
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{name}-{}-{count}", std::process::id()));
            match fs::create_dir(&path) {
                // Left over from a killed process.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    return Self(path);
                }
            }
        }
    }

    /// The path of the entry `name`; of the directory itself with `""`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and creates its parent directories. Returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let directory = path.parent().expect("an entry has a directory");
        fs::create_dir_all(directory).expect("a directory");
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Writes a program that can be executed at once. Returns its path.
    pub fn executable(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let source = self.write(&format!("{name}.source"), content);
        let program = self.path(name);
        install(&source, &program);
        fs::remove_file(source).expect("own file");
        program
    }

    /// The sorted names of all entries of the directory `below`, including hidden ones.
    pub fn entries(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(below)).expect("a directory");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies `source` to the program `target`, which any user can execute.
///
/// Another process writes it. A descriptor that is open for writing here would be inherited by the child that another test
/// forks at this moment, and until that child executes its own program, `target` could not be executed: `ETXTBSY`, execve(2).
pub fn install(source: &Path, target: &Path) {
    let installed = Command::new("install").arg("-m755").args([source, target]).status();
    assert!(installed.expect("coreutils").success(), "{}", target.display());
}

/// `target/tmp`, derived from the path of the test binary, `target/debug/deps/…`. It is on a disk;
/// /tmp may be in memory.
fn parent() -> PathBuf {
    let binary = std::env::current_exe().expect("the path of the test binary");
    let target = binary.ancestors().nth(3).map_or_else(std::env::temp_dir, Path::to_owned);
    let parent = target.join("tmp");
    fs::create_dir_all(&parent).expect("a directory for scratch files");
    parent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_is_removed_with_its_files() {
        let [one, other] = ["unit", "unit"].map(Scratch::new);
        let file = one.write("a/b", "text");
        assert_eq!(fs::read(&file).expect("a file"), b"text");
        assert_eq!((one.entries(""), other.entries("")), (vec!["a".to_owned()], Vec::new()));
        let program = one.executable("bin/seven", "#!/bin/sh\nexit 7\n");
        assert_eq!(Command::new(program).status().expect("executed").code(), Some(7));
        assert_eq!(one.entries("bin"), ["seven"]);
        drop(one);
        assert!(!file.exists() && other.path("").exists());
    }
}
