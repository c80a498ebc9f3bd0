//! From a directory to a store: finished files, each once.
//!
//! A file is removed when the store has acknowledged it. What ends in between ends with the file in both: the next pass finds that
//! the store has it, and removes it. While the store is away, the spool has a limit. Above it the oldest files are dropped, records
//! before roll-ups, and counted. Nothing is dropped that could have been shipped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::{Store, StoreError};

/// A directory with files for a store.
#[derive(Clone, Debug)]
pub struct Spool {
    directory: PathBuf,
    /// Files with names that begin so go first, and are dropped last.
    first: &'static str,
    max_bytes: u64,
}

/// How a pass ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// What the store has now.
    pub shipped: Amount,
    /// The names that were removed although the store does not have them.
    pub dropped_names: Vec<String>,
    /// How much that is.
    pub dropped: Amount,
    /// What the directory still has.
    pub waiting: Amount,
    /// Why a file was not shipped.
    pub problem: Option<StoreError>,
}

/// Files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// A finished file. Their order is that in which they are shipped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finished {
    is_later: bool,
    modified: SystemTime,
    name: String,
    bytes: u64,
    /// Why it can never be shipped.
    flaw: Option<&'static str>,
}

impl Spool {
    /// The files in `directory`. Names that begin with `first` go first, and are dropped last.
    pub fn new(directory: &Path, first: &'static str, max_bytes: u64) -> Self {
        Self { directory: directory.to_owned(), first, max_bytes }
    }

    /// While it lives, no other process ships this directory.
    ///
    /// # Errors
    ///
    /// Another one does, or the directory cannot be written.
    pub fn lock(&self) -> io::Result<File> {
        // Who may write the directory must not have another file emptied by a link.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let lock = options.open(self.directory.join(".ship.lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(lock)
    }

    /// Ships what is finished, the oldest first, until the store is away; then drops what is above the limit. A file that a store
    /// in reach did not take stays. `stops` is asked before each file.
    ///
    /// # Errors
    ///
    /// The directory cannot be read or written.
    pub fn pass(&self, store: &dyn Store, stops: impl Fn() -> bool) -> io::Result<Pass> {
        let mut pass = Pass::default();
        let mut waiting = Vec::new();
        let mut is_away = false;
        let (files, flawed): (Vec<_>, Vec<_>) =
            self.finished()?.into_iter().partition(|file| file.flaw.is_none());
        for file in files {
            if is_away || stops() {
                waiting.push(file);
                continue;
            }
            match store.put_file(&file.name, &self.directory.join(&file.name)) {
                Ok(()) => {
                    self.remove(&file)?;
                    pass.shipped.add(file.bytes);
                }
                Err(error) => {
                    is_away = error.is_away();
                    pass.problem.get_or_insert(error);
                    if is_away {
                        waiting.push(file);
                    } else {
                        pass.waiting.add(file.bytes);
                    }
                }
            }
        }
        for file in flawed {
            let flaw = file.flaw.unwrap_or_default().to_owned();
            pass.problem.get_or_insert(StoreError::File(file.name, flaw));
            pass.waiting.add(file.bytes);
        }
        let max_bytes = if is_away { self.max_bytes } else { u64::MAX };
        self.drop_oldest(waiting, max_bytes, &mut pass)?;
        Ok(pass)
    }

    /// Finished files, in the order in which they are shipped. Files that are not have names that begin with a dot.
    fn finished(&self) -> io::Result<Vec<Finished>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let is_text = entry.file_name().to_str().is_some();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || !name.ends_with(".parquet") {
                continue;
            }
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            let flaw = match (metadata.is_file(), is_text) {
                (true, true) => None,
                (false, _) => Some("it is not a regular file; remove it"),
                (_, false) => Some("its name is not UTF-8; rename it"),
            };
            let is_later = !name.starts_with(self.first);
            let (modified, bytes) = (metadata.modified()?, metadata.len());
            files.push(Finished { is_later, modified, name, bytes, flaw });
        }
        files.sort();
        Ok(files)
    }

    /// Removes files until the others fit: of the kind that is shipped last, the oldest first.
    fn drop_oldest(
        &self,
        mut waiting: Vec<Finished>,
        max_bytes: u64,
        pass: &mut Pass,
    ) -> io::Result<()> {
        waiting.sort_by_key(|file| (!file.is_later, file.modified));
        let mut left: u64 = waiting.iter().map(|file| file.bytes).sum();
        for file in waiting {
            if left > max_bytes {
                self.remove(&file)?;
                left -= file.bytes;
                pass.dropped.add(file.bytes);
                pass.dropped_names.push(file.name);
            } else {
                pass.waiting.add(file.bytes);
            }
        }
        Ok(())
    }

    fn remove(&self, file: &Finished) -> io::Result<()> {
        match fs::remove_file(self.directory.join(&file.name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ffi::OsStr;
    use std::fs::FileTimes;
    use std::os::unix::ffi::OsStrExt as _;
    use std::time::Duration;

    use uncork_testkit::Scratch;

    use super::*;
    use crate::{Condition, Directory, GetResult, Tag};

    /// A store that can be away.
    struct Link(Directory, Cell<bool>);

    impl Store for Link {
        fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError> {
            self.0.get(name, max, known)
        }

        fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
            self.0.put(name, bytes, condition)
        }

        fn put_file(&self, name: &str, file: &Path) -> Result<(), StoreError> {
            if self.1.get() {
                return Err(StoreError::Away(name.to_owned(), "timed out".to_owned()));
            }
            self.0.put_file(name, file)
        }

        fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
            self.0.list(folder)
        }
    }

    struct World {
        scratch: Scratch,
        link: Link,
    }

    impl World {
        fn new(name: &str) -> Self {
            let scratch = Scratch::new(name);
            fs::create_dir(scratch.path("spool")).unwrap();
            fs::create_dir(scratch.path("store")).unwrap();
            let link = Link(Directory::new(&scratch.path("store")), Cell::new(false));
            Self { scratch, link }
        }

        /// A file of a hundred bytes.
        fn write(&self, name: &str, age: u64) {
            let path = self.scratch.path("spool").join(name);
            fs::write(&path, [0; 100]).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
            let times = FileTimes::new().set_modified(time);
            File::options().write(true).open(path).unwrap().set_times(times).unwrap();
        }

        fn pass(&self, max_bytes: u64) -> Pass {
            let spool = Spool::new(&self.scratch.path("spool"), "rollup-", max_bytes);
            spool.pass(&self.link, || false).unwrap()
        }

        fn shipped(&self) -> Vec<String> {
            self.link.list("").unwrap()
        }
    }

    #[test]
    fn finished_files_are_in_the_store_and_then_gone() {
        let world = World::new("spool-ship");
        for name in ["rollup-a.parquet", "responses-b.parquet", ".rollup-c.parquet.part", "notes"] {
            world.write(name, 1);
        }
        let pass = world.pass(0);
        assert_eq!(pass.shipped, Amount { files: 2, bytes: 200 });
        assert_eq!((pass.dropped, pass.waiting), Default::default());
        assert_eq!(world.shipped(), ["responses-b.parquet", "rollup-a.parquet"]);
        assert_eq!(world.pass(0), Pass::default(), "nothing is shipped twice");
    }

    #[test]
    fn store_away_drops_the_oldest_records_first_and_counts_them() {
        let world = World::new("spool-limit");
        world.link.1.set(true);
        for (name, age) in [
            ("rollup-old.parquet", 9),
            ("rollup-new.parquet", 1),
            ("responses-old.parquet", 8),
            ("responses-new.parquet", 2),
        ] {
            world.write(name, age);
        }
        let pass = world.pass(400);
        assert!(matches!(pass.problem, Some(StoreError::Away(..))));
        assert_eq!((pass.dropped.files, pass.waiting.files), (0, 4));
        assert_eq!(world.pass(399).dropped_names, ["responses-old.parquet"]);
        let names = ["responses-new.parquet", "rollup-old.parquet"];
        let pass = world.pass(199);
        assert_eq!(pass.dropped_names, names);
        assert_eq!(pass.dropped, Amount { files: 2, bytes: 200 });
        world.link.1.set(false);
        assert_eq!(world.pass(0).shipped.files, 1);
        assert_eq!(world.shipped(), ["rollup-new.parquet"]);
    }

    #[test]
    fn other_file_of_the_same_name_in_the_store_stays_and_others_go_on() {
        let world = World::new("spool-conflict");
        world.write("responses-a.parquet", 2);
        world.write("responses-b.parquet", 1);
        fs::write(world.scratch.path("store").join("responses-a.parquet"), "other").unwrap();
        let pass = world.pass(1000);
        assert!(matches!(pass.problem, Some(StoreError::Conflict(_))));
        assert_eq!((pass.shipped.files, pass.waiting.files), (1, 1));
        // The same content: a process that died after the store had it.
        fs::write(world.scratch.path("store").join("responses-a.parquet"), [0; 100]).unwrap();
        let pass = world.pass(1000);
        assert_eq!((pass.shipped.files, pass.problem), (1, None));
    }

    /// The store takes a backlog above the limit when the next process asks.
    #[test]
    fn file_that_the_store_could_have_taken_is_never_dropped() {
        let world = World::new("spool-keeps");
        for (name, age) in [("rollup-a.parquet", 3), ("rollup-b.parquet", 2), ("notes.parquet", 1)]
        {
            world.write(name, age);
        }
        fs::write(world.scratch.path("store").join("rollup-a.parquet"), "other").unwrap();
        let spool = Spool::new(&world.scratch.path("spool"), "rollup-", 0);
        let asked = Cell::new(0);
        let pass = spool.pass(&world.link, || asked.replace(asked.get() + 1) == 2).unwrap();
        assert_eq!((pass.dropped, pass.shipped.files), (Amount::default(), 1));
        assert_eq!(pass.waiting, Amount { files: 2, bytes: 200 }, "a conflict, and the end");
    }

    #[test]
    fn directory_that_is_its_own_store_loses_nothing() {
        let world = World::new("spool-self");
        world.write("rollup-a.parquet", 1);
        let spool = world.scratch.path("spool");
        std::os::unix::fs::symlink(&spool, world.scratch.path("link")).unwrap();
        for store in [spool.clone(), world.scratch.path("link")] {
            let pass = Spool::new(&spool, "", 0).pass(&Directory::new(&store), || false).unwrap();
            let problem = pass.problem.unwrap().to_string();
            assert!(problem.contains("ship to another directory"), "{problem}");
            assert_eq!((pass.shipped.files, pass.waiting.files), (0, 1));
        }
        assert!(spool.join("rollup-a.parquet").exists());
    }

    #[test]
    fn lock_that_is_a_link_is_refused_and_its_target_stays() {
        let world = World::new("spool-link");
        let target = world.scratch.path("precious");
        fs::write(&target, "precious").unwrap();
        let lock = world.scratch.path("spool").join(".ship.lock");
        std::os::unix::fs::symlink(&target, lock).unwrap();
        Spool::new(&world.scratch.path("spool"), "", 0).lock().unwrap_err();
        assert_eq!(fs::read_to_string(target).unwrap(), "precious");
    }

    #[test]
    fn file_that_can_never_be_shipped_is_named_and_others_go_on() {
        let world = World::new("spool-flaw");
        let spool = world.scratch.path("spool");
        std::os::unix::fs::symlink("/dev/zero", spool.join("rollup-a.parquet")).unwrap();
        world.write("rollup-b.parquet", 1);
        let pass = world.pass(0);
        assert_eq!((pass.shipped.files, pass.waiting.files), (1, 1));
        let problem = pass.problem.unwrap().to_string();
        assert_eq!(problem, "rollup-a.parquet: it is not a regular file; remove it");
        fs::remove_file(spool.join("rollup-a.parquet")).unwrap();
        fs::write(spool.join(OsStr::from_bytes(b"\xff.parquet")), "").unwrap();
        let problem = world.pass(0).problem.unwrap().to_string();
        assert!(problem.contains("not UTF-8; rename it"), "{problem}");
    }

    #[test]
    fn one_process_ships_a_directory() {
        let world = World::new("spool-lock");
        let spool = Spool::new(&world.scratch.path("spool"), "rollup-", 0);
        let lock = spool.lock().unwrap();
        assert_eq!(spool.lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(lock);
        spool.lock().unwrap();
    }
}
