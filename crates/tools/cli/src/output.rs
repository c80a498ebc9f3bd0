//! Writes the files of a report: all of them or none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uncork_flow::publish;

/// A file to write: name and content.
pub(crate) type File<'a> = (&'a str, Vec<u8>);

/// Content written by [`probe`]: larger than what file systems store inline with the inode.
const PROBE: [u8; 4096] = [0; 4096];

/// Writes `content` to the file `name` in `directory` atomically, even if the process or the
/// machine stops.
pub(crate) fn replace(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let unfinished = directory.join(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&unfinished, content);
    written.and_then(|()| publish(&unfinished, &directory.join(name))).inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

/// Checks that the files `names` can be written to `directory`, without changing it.
pub(crate) fn probe(directory: &Path, names: &[&str]) -> io::Result<()> {
    let created = create(directory)?;
    let result = refuse_occupied(directory, names).and_then(|()| {
        // A full file system may still have room for a directory.
        let staging = Staging::new(directory)?;
        fs::write(staging.new_file("probe"), PROBE)
    });
    remove_empty(&created);
    result
}

/// `error` with the name of the file that could not be written.
pub(crate) fn of_file(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// Writes `files` to `directory`, which is created if necessary. On failure, `directory` is
/// restored.
pub(crate) fn write(directory: &Path, files: &[File<'_>]) -> io::Result<()> {
    let created = create(directory)?;
    let result = write_existing(directory, files);
    if result.is_err() {
        remove_empty(&created);
    }
    result
}

fn write_existing(directory: &Path, files: &[File<'_>]) -> io::Result<()> {
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    refuse_occupied(directory, &names)?;
    let staging = Staging::new(directory)?;
    for (name, content) in files {
        fs::write(staging.new_file(name), content).map_err(|error| of_file(name, &error))?;
    }
    for (done, name) in names.iter().enumerate() {
        if let Err(error) = staging.put_in_place(name) {
            for done in &names[..done] {
                staging.take_back(done);
            }
            return Err(of_file(name, &error));
        }
    }
    Ok(())
}

/// A temporary directory next to the files, on the same file system, so that renaming puts them in
/// place. Removed on drop.
struct Staging<'a> {
    target: &'a Path,
    path: PathBuf,
}

impl<'a> Staging<'a> {
    fn new(target: &'a Path) -> io::Result<Self> {
        let path = target.join(format!(".uncork-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self { target, path })
    }

    fn new_file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where an earlier file of that name is kept until all new ones are in place.
    fn earlier_file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.earlier"))
    }

    fn put_in_place(&self, name: &str) -> io::Result<()> {
        let target = self.target.join(name);
        let had_earlier = target.symlink_metadata().is_ok();
        if had_earlier {
            fs::rename(&target, self.earlier_file(name))?;
        }
        publish(&self.new_file(name), &target).inspect_err(|_| {
            if had_earlier {
                self.take_back(name);
            }
        })
    }

    /// Undoes [`Self::put_in_place`] as far as possible.
    fn take_back(&self, name: &str) {
        let target = self.target.join(name);
        let _ = match fs::rename(self.earlier_file(name), &target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::remove_file(&target),
            result => result,
        };
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        // If this fails, the leftover is hidden, has the PID in its name, and does not affect
        // results.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Fails if a directory has the name of a file to write, because it must not be moved away.
fn refuse_occupied(directory: &Path, names: &[&str]) -> io::Result<()> {
    let occupied = names.iter().find(|name| directory.join(name).is_dir());
    occupied.map_or(Ok(()), |name| {
        Err(io::Error::new(io::ErrorKind::IsADirectory, format!("{name} in it is a directory")))
    })
}

/// Creates `directory` and its parents; returns the created ones, innermost first.
fn create(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = directory
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && path.symlink_metadata().is_err());
    let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    match fs::create_dir_all(directory) {
        Ok(()) => Ok(missing),
        Err(error) => {
            remove_empty(&missing);
            Err(error)
        }
    }
}

/// Removes the empty ones of `directories`.
fn remove_empty(directories: &[PathBuf]) {
    for directory in directories {
        let _ = fs::remove_dir(directory);
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::Scratch;

    use super::*;

    fn files(content: &str) -> [File<'_>; 2] {
        [("a", content.into()), ("b", content.into())]
    }

    #[test]
    fn all_files_are_written_and_replaced() {
        let scratch = Scratch::new("replace");
        for content in ["one", "two"] {
            write(&scratch.path(""), &files(content)).unwrap();
            assert_eq!(scratch.entries(""), ["a", "b"]);
            assert_eq!(fs::read_to_string(scratch.path("b")).unwrap(), content);
        }
    }

    #[test]
    fn failed_replace_keeps_the_earlier_file() {
        let scratch = Scratch::new("one-file");
        for content in ["one", "two"] {
            replace(&scratch.path(""), "a", content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(scratch.path("a")).unwrap(), content);
        }
        fs::create_dir(scratch.path("b")).unwrap();
        replace(&scratch.path(""), "b", b"three").unwrap_err();
        assert_eq!(scratch.entries(""), ["a", "b"]);
    }

    #[test]
    fn missing_directories_are_created_when_writing_but_not_when_probing() {
        let scratch = Scratch::new("create");
        let deep = scratch.path("x/y/z");
        probe(&deep, &["a", "b"]).unwrap();
        assert_eq!(scratch.entries(""), [""; 0]);
        write(&deep, &files("one")).unwrap();
        assert_eq!(fs::read_to_string(deep.join("a")).unwrap(), "one");
    }

    #[test]
    fn directory_in_place_of_a_file_is_not_changed() {
        let scratch = Scratch::new("occupied");
        write(&scratch.path(""), &[("a", b"one".to_vec())]).unwrap();
        fs::create_dir(scratch.path("b")).unwrap();
        assert_eq!(
            probe(&scratch.path(""), &["a", "b"]).unwrap_err().to_string(),
            "b in it is a directory"
        );
        write(&scratch.path(""), &files("two")).unwrap_err();
        assert_eq!(scratch.entries(""), ["a", "b"]);
        assert_eq!(fs::read_to_string(scratch.path("a")).unwrap(), "one");
    }

    #[test]
    fn partial_failure_restores_everything() {
        let scratch = Scratch::new("undo");
        write(&scratch.path(""), &[("a", b"one".to_vec())]).unwrap();
        let directory = scratch.path("");
        let staging = Staging::new(&directory).unwrap();
        fs::write(staging.new_file("a"), "two").unwrap();
        fs::write(staging.new_file("c"), "two").unwrap();
        staging.put_in_place("a").unwrap();
        staging.put_in_place("c").unwrap();
        staging.put_in_place("never written").unwrap_err();
        staging.take_back("a");
        staging.take_back("c");
        drop(staging);
        assert_eq!(scratch.entries(""), ["a"]);
        assert_eq!(fs::read_to_string(scratch.path("a")).unwrap(), "one");
    }

    #[test]
    fn directories_cannot_be_created_below_a_file() {
        let scratch = Scratch::new("file");
        fs::write(scratch.path("file"), "").unwrap();
        let below = scratch.path("file/x/y");
        probe(&below, &["a"]).unwrap_err();
        write(&below, &files("one")).unwrap_err();
        assert_eq!(scratch.entries(""), ["file"]);
    }
}
