//! Served files. Each is open once for all clients, and the number of open files is limited.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::file::{ServedFile, Source, State};
use super::root::Root;
use crate::descriptors;

/// What responses under way are read from.
#[derive(Debug)]
pub(super) struct OpenFiles {
    table: Mutex<OpenFilesTable>,
    most: usize,
}

#[derive(Debug, Default)]
struct OpenFilesTable {
    /// The file of each state that is being served.
    shared: HashMap<State, Weak<ServedFile>>,
    /// Open files, and some that are closed, in the order of opening.
    open: VecDeque<Weak<ServedFile>>,
}

/// As many as the process's limit allows.
impl Default for OpenFiles {
    fn default() -> Self {
        Self::with_room_for(descriptors::for_files())
    }
}

impl OpenFiles {
    fn with_room_for(most: usize) -> Self {
        Self { table: Mutex::default(), most }
    }

    /// Shares the file that has just been opened as `path`: if other responses read the same file already, returns theirs.
    pub(super) fn share(
        self: &Arc<Self>,
        (root, path): (&Arc<Root>, &str),
        descriptor: OwnedFd,
        state: State,
    ) -> Arc<ServedFile> {
        let known = self.table().shared.get(&state).and_then(Weak::upgrade);
        let file = known.unwrap_or_else(|| {
            let new = ServedFile::new(state, (Source::Disk(Arc::clone(root)), path), self);
            self.table().shared.insert(state, Arc::downgrade(&new));
            new
        });
        if file.open_with(descriptor) {
            self.opened(&file);
        }
        file
    }

    /// A file is open from now on. Those are closed for it that have not been read for long: they are opened again
    /// when they are.
    pub(super) fn opened(&self, file: &Arc<ServedFile>) {
        // Dropped without the lock, which their end takes.
        let mut looked_at = Vec::new();
        let mut table = self.table();
        for _ in 0..2 * self.most {
            if table.open.len() < self.most {
                break;
            }
            let Some(oldest) = table.open.pop_front().and_then(|it| it.upgrade()) else { continue };
            if oldest.was_read() {
                table.open.push_back(Arc::downgrade(&oldest));
            } else {
                oldest.close();
            }
            looked_at.push(oldest);
        }
        table.open.push_back(Arc::downgrade(file));
        drop(table);
        drop(looked_at);
    }

    /// Removes the file of this state once no response reads it.
    pub(super) fn forget(&self, state: &State) {
        let mut table = self.table();
        if table.shared.get(state).is_some_and(|file| file.strong_count() == 0) {
            table.shared.remove(state);
        }
    }

    fn table(&self) -> MutexGuard<'_, OpenFilesTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use uncork_testkit::Scratch;

    use super::super::root::Found;
    use super::*;

    fn descriptors(of: &Scratch) -> usize {
        let open = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|it| it.ok()?.path().read_link().ok());
        open.filter(|path| path.starts_with(of.path("")) && path.is_file()).count()
    }

    fn find(files: &Arc<OpenFiles>, root: &Arc<Root>, path: &str) -> Arc<ServedFile> {
        match root.find(path, files, SystemTime::UNIX_EPOCH).unwrap() {
            Found::File(file) => file,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_is_sent_the_same_shares_a_descriptor() {
        let scratch = Scratch::new("open-files");
        scratch.write("file", "text");
        let root = Arc::new(Root::open(&scratch.path("")).unwrap());
        let files = Arc::new(OpenFiles::with_room_for(8));
        let all: Vec<_> = (0..50).map(|_| find(&files, &root, "file")).collect();
        assert_eq!(descriptors(&scratch), 1);
        drop(all);
        assert_eq!((descriptors(&scratch), files.table().shared.len()), (0, 0));
    }

    #[test]
    fn files_beyond_the_limit_are_closed_and_read_all_the_same() {
        let scratch = Scratch::new("open-files");
        let root = Arc::new(Root::open(&scratch.path("")).unwrap());
        let files = Arc::new(OpenFiles::with_room_for(8));
        let name = |number| format!("file-{number}");
        for number in 0..50 {
            scratch.write(&name(number), name(number));
        }
        let all: Vec<_> = (0..50).map(|number| find(&files, &root, &name(number))).collect();
        assert_eq!(descriptors(&scratch), 8);
        for (number, file) in all.iter().enumerate() {
            assert_eq!(file.read(0, 100).unwrap(), name(number));
            assert!(descriptors(&scratch) <= 8);
        }
        // What was closed and is another file now is not mixed with what it was.
        scratch.write("new", name(0));
        fs::rename(scratch.path("new"), scratch.path(&name(0))).unwrap();
        assert!(all[0].read(0, 100).is_err());
    }
}
