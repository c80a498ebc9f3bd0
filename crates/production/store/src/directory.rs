//! A directory as a store.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Seek as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::{FlockOperation, OFlags, flock};
use uncork_private_files::rename_flushed;

use crate::{Condition, GetResult, Object, Store, StoreError, Tag};

/// A directory, perhaps on a network file system. Objects are files that are written whole and renamed. Writers with a condition
/// lock `.lock`.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// The store in a directory. The directory must exist: one that is not mounted never counts as an empty store.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn away(&self, name: &str, error: &io::Error) -> StoreError {
        if error.kind() == ErrorKind::NotFound && !self.0.is_dir() {
            return StoreError::NoDirectory(self.0.display().to_string());
        }
        let (object, reason) = (self.0.join(name).display().to_string(), error.to_string());
        match error.kind() {
            ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly(object, reason),
            _ => StoreError::Away(object, reason),
        }
    }

    /// Makes the folder of an object, below the directory of the store. Who may look into the store may look into a new folder,
    /// with any umask of its first writer.
    fn make_folder(&self, name: &str) -> io::Result<()> {
        let mode = fs::metadata(&self.0)?.mode();
        let folder = self.0.join(name).parent().unwrap_or(&self.0).to_owned();
        if folder.exists() {
            return Ok(());
        }
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o700 | mode & 0o2055))
    }

    /// Whether an object's folder is the one of this file.
    fn is_folder_of(&self, name: &str, file: &Path) -> io::Result<bool> {
        let at = |path: &Path| -> io::Result<(u64, u64)> {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let metadata = fs::metadata(folder.unwrap_or(Path::new(".")))?;
            Ok((metadata.dev(), metadata.ino()))
        };
        Ok(at(&self.0.join(name))? == at(file)?)
    }

    fn read(&self, name: &str, max: u64, known: Option<&Tag>) -> io::Result<GetResult> {
        // Nothing waits for the other end of a fifo.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = match options.open(self.0.join(name)) {
            // A store that is away has no objects, and says so.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return fs::metadata(&self.0).map(|_| GetResult::Absent);
            }
            opened => opened?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let tag = tag(&metadata);
        if known == Some(&tag) {
            return Ok(GetResult::Unchanged);
        }
        let mut bytes = Vec::new();
        file.take(max + 1).read_to_end(&mut bytes)?;
        let modified_unix_s = u64::try_from(metadata.mtime()).unwrap_or(0);
        Ok(GetResult::Object(Object { bytes, tag, modified_unix_s }))
    }

    /// Writes what the reader has. With `is_shared`, who may look into the folder may read it.
    fn write(&self, name: &str, mut content: impl io::Read, is_shared: bool) -> io::Result<()> {
        let path = self.0.join(name);
        let folder = path.parent().unwrap_or(&self.0);
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let new = folder.join(format!(".{file}.{}.new", process::id()));
        let written = (|| {
            // Hosts share the folder: a link under this name is not followed.
            let _ = fs::remove_file(&new);
            let mut opened = OpenOptions::new().write(true).create_new(true).open(&new)?;
            if is_shared {
                let mode = fs::metadata(folder)?.mode();
                opened.set_permissions(Permissions::from_mode(0o600 | mode & 0o044))?;
            }
            io::copy(&mut content, &mut opened)?;
            opened.sync_all()?;
            rename_flushed(&new, &path)
        })();
        written.inspect_err(|_| {
            // No reader looks for the new file.
            let _ = fs::remove_file(&new);
        })
    }

    /// Locks the store against other writers with a condition.
    fn lock(&self) -> io::Result<File> {
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.0.join(".lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    /// Whether an object has the content of a file.
    fn has(&self, name: &str, file: &File) -> bool {
        let same = |mut other: File, mut file: &File| -> io::Result<bool> {
            if other.metadata()?.len() != file.metadata()?.len() {
                return Ok(false);
            }
            let (mut one, mut two) = (vec![0; 1 << 16], vec![0; 1 << 16]);
            file.rewind()?;
            loop {
                let read = other.read(&mut one)?;
                if read == 0 {
                    return Ok(true);
                }
                file.read_exact(&mut two[..read])?;
                if one[..read] != two[..read] {
                    return Ok(false);
                }
            }
        };
        File::open(self.0.join(name)).and_then(|other| same(other, file)).unwrap_or(false)
    }

    /// Writes what the reader has, if the condition holds.
    fn put_if(
        &self,
        name: &str,
        content: impl io::Read,
        (condition, is_shared): (&Condition, bool),
    ) -> Result<(), StoreError> {
        let away = |error: io::Error| self.away(name, &error);
        self.make_folder(name).map_err(away)?;
        let _lock = match condition {
            Condition::Any => None,
            _ => Some(self.lock().map_err(away)?),
        };
        let holds = match (condition, fs::metadata(self.0.join(name))) {
            (Condition::Any, _) => true,
            (Condition::New, found) => found.is_err(),
            (Condition::Same(expected), found) => found.is_ok_and(|found| tag(&found) == *expected),
        };
        if !holds {
            return Err(StoreError::Conflict(self.0.join(name).display().to_string()));
        }
        self.write(name, content, is_shared).map_err(away)
    }
}

impl Store for Directory {
    fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError> {
        let got = self.read(name, max, known).map_err(|error| self.away(name, &error))?;
        match got {
            GetResult::Object(object) if object.bytes.len() as u64 > max => {
                Err(StoreError::Large(self.0.join(name).display().to_string(), max))
            }
            got => Ok(got),
        }
    }

    fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
        self.put_if(name, bytes, (condition, true))
    }

    fn put_file(&self, name: &str, file: &Path) -> Result<(), StoreError> {
        let unusable = |reason: String| StoreError::File(file.display().to_string(), reason);
        let opened = File::open(file).map_err(|error| unusable(error.to_string()))?;
        if self.is_folder_of(name, file).unwrap_or(false) {
            // Its sender would remove it as shipped.
            return Err(unusable(
                "the store is its own directory; ship to another directory".to_owned(),
            ));
        }
        // Records of clients: their mode is that of the umask.
        match self.put_if(name, &opened, (&Condition::New, false)) {
            Err(StoreError::Conflict(_)) if self.has(name, &opened) => Ok(()),
            put => put,
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let entries = match fs::read_dir(self.0.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.0.is_dir() => {
                return Ok(Vec::new());
            }
            entries => entries.map_err(|error| self.away(folder, &error))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        Ok(names)
    }
}

/// A renamed file has another inode; one that is written in place has another time.
fn tag(metadata: &Metadata) -> Tag {
    let (inode, size) = (metadata.ino(), metadata.size());
    let etag = format!(
        "{inode:x}-{size:x}-{:x}-{:x}-{:x}",
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime_nsec()
    );
    Tag { etag, generation: None }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::Scratch;

    use super::*;

    fn object(store: &Directory, name: &str) -> Object {
        match store.get(name, 100, None).unwrap() {
            GetResult::Object(object) => object,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn object_read_with_its_tag_is_unchanged_until_it_is_written() {
        let scratch = Scratch::new("fleet-store");
        let store = Directory::new(&scratch.path(""));
        store.put("a/b", b"one", &Condition::New).unwrap();
        let one = object(&store, "a/b");
        assert_eq!(one.bytes, b"one");
        assert!(matches!(store.get("a/b", 9, Some(&one.tag)).unwrap(), GetResult::Unchanged));
        store.put("a/b", b"two", &Condition::Any).unwrap();
        assert!(matches!(store.get("a/b", 9, Some(&one.tag)).unwrap(), GetResult::Object(_)));
        assert!(matches!(store.get("a/c", 9, None).unwrap(), GetResult::Absent));
        assert_eq!(store.list("a").unwrap(), ["b"]);
        assert!(store.list("none").unwrap().is_empty());
    }

    #[test]
    fn directory_that_does_not_exist_is_neither_read_nor_written_nor_made() {
        let scratch = Scratch::new("fleet-store-missing");
        let store = Directory::new(&scratch.path("store"));
        let missing = StoreError::NoDirectory(scratch.path("store").display().to_string());
        assert_eq!(store.get("a/b", 9, None).unwrap_err(), missing);
        assert_eq!(store.list("a").unwrap_err(), missing);
        for condition in [Condition::Any, Condition::New] {
            assert_eq!(store.put("a/b", b"one", &condition).unwrap_err(), missing);
        }
        assert!(!scratch.path("store").exists(), "an unmounted store becomes no directory here");
    }

    /// A publisher reads the reports of agents that run with the umask of their unit.
    #[test]
    fn object_is_readable_for_those_who_may_look_into_its_folder() {
        let scratch = Scratch::new("fleet-store-mode");
        let store = Directory::new(&scratch.path(""));
        let mode = |name: &str| fs::metadata(scratch.path(name)).unwrap().mode() & 0o777;
        for (folder, object) in [(0o755, 0o644), (0o750, 0o640), (0o700, 0o600)] {
            fs::set_permissions(scratch.path(""), Permissions::from_mode(folder)).unwrap();
            let name = format!("reports{folder}/a");
            store.put(&name, b"one", &Condition::Any).unwrap();
            assert_eq!((mode(&format!("reports{folder}")), mode(&name)), (folder, object));
        }
    }

    #[test]
    fn link_under_the_name_of_an_unfinished_object_is_not_followed() {
        let scratch = Scratch::new("fleet-store-link");
        let store = Directory::new(&scratch.path(""));
        let target = scratch.path("precious");
        fs::write(&target, "precious").unwrap();
        let new = scratch.path(&format!(".x.{}.new", process::id()));
        std::os::unix::fs::symlink(&target, new).unwrap();
        store.put("x", b"one", &Condition::Any).unwrap();
        assert_eq!(fs::read_to_string(target).unwrap(), "precious");
        assert_eq!(object(&store, "x").bytes, b"one");
    }

    #[test]
    fn write_after_another_writer_is_a_conflict_and_changes_nothing() {
        let scratch = Scratch::new("fleet-store-conflict");
        let store = Directory::new(&scratch.path(""));
        store.put("x", b"one", &Condition::New).unwrap();
        let tag = object(&store, "x").tag;
        store.put("x", b"two", &Condition::Same(tag.clone())).unwrap();
        for condition in [Condition::New, Condition::Same(tag)] {
            let error = store.put("x", b"three", &condition).unwrap_err();
            assert!(matches!(error, StoreError::Conflict(_)), "{error}");
        }
        assert_eq!(object(&store, "x").bytes, b"two");
    }

    #[test]
    fn object_too_large_or_no_file_is_an_error_with_its_name() {
        let scratch = Scratch::new("fleet-store-large");
        let store = Directory::new(&scratch.path(""));
        store.put("x", &[0; 101], &Condition::Any).unwrap();
        fs::create_dir(scratch.path("y")).unwrap();
        for name in ["x", "y"] {
            let error = store.get(name, 100, None).unwrap_err().to_string();
            assert!(error.contains(&format!("/{name}: ")), "{error}");
        }
    }
}
