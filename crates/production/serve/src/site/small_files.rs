//! Small files in memory: to serve one again takes a single system call, which reports whether it has changed, and none
//! within a moment of the last call.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustix::fs::fstat;
use rustix::io::{ReadWriteFlags, preadv2};

use super::file::{ServedFile, Source, State};
use super::open_files::OpenFiles;

/// Files up to this size are kept.
const SMALL: u64 = 32 * 1024;
/// How much is kept below a root.
const MAX_FILES: usize = 4096;
const MAX_BYTES: u64 = 16 << 20;
/// Two changes within one tick of a file system's clock leave the same times, so that a file that has just
/// changed is not kept. FAT has the longest tick.
const TICK: Duration = Duration::from_secs(2);
/// A file is read again after this time. Writes to memory that a file is mapped to can change it without a new
/// time while its pages are dirty.
const FRESH: Duration = Duration::from_secs(1);
/// How long a file that was found unchanged counts as unchanged. A file with fewer requests is asked for each of them.
const UNCHANGED: Duration = Duration::from_millis(1);

/// Small files below a root, by path.
#[derive(Debug, Default)]
pub(super) struct SmallFiles(RwLock<SmallFilesTable>);

#[derive(Debug, Default)]
struct SmallFilesTable {
    files: HashMap<Box<str>, Arc<CachedFile>>,
    bytes: u64,
}

#[derive(Debug)]
struct CachedFile {
    file: Arc<ServedFile>,
    read: SystemTime,
    /// When it was last found unchanged: nanoseconds after `read`.
    unchanged: AtomicU64,
    was_used: AtomicBool,
}

impl CachedFile {
    fn new(file: &Arc<ServedFile>, read: SystemTime) -> Self {
        let (unchanged, was_used) = (AtomicU64::new(0), AtomicBool::new(true));
        Self { file: Arc::clone(file), read, unchanged, was_used }
    }

    /// The time since it was read, if that is short. A clock that was set back gives an error.
    fn age(&self, now: SystemTime) -> Option<u64> {
        let age = now.duration_since(self.read).ok().filter(|age| *age <= FRESH)?;
        Some(age.as_nanos() as u64)
    }

    /// Whether the file is in the same state at this `age`. `state` asks for that.
    fn is_unchanged(&self, age: u64, state: impl FnOnce() -> Option<State>) -> bool {
        let since = age.checked_sub(self.unchanged.load(Ordering::Relaxed));
        if since.is_some_and(|since| since < UNCHANGED.as_nanos() as u64) {
            return true;
        }
        let is_unchanged = state().as_ref() == Some(self.file.state());
        // A file that has changed stays to be asked for, by all connections.
        if is_unchanged {
            self.unchanged.store(age, Ordering::Relaxed);
        }
        is_unchanged
    }
}

impl SmallFiles {
    /// The file that `path` leads to, if it is kept and in the same state. `state` asks for that.
    pub(super) fn get(
        &self,
        path: &str,
        now: SystemTime,
        state: impl FnOnce() -> Option<State>,
    ) -> Option<Arc<ServedFile>> {
        let kept = self.kept(path)?;
        let age = kept.age(now)?;
        kept.was_used.store(true, Ordering::Relaxed);
        // Without the lock: the answer may wait for a disk.
        kept.is_unchanged(age, state).then(|| Arc::clone(&kept.file))
    }

    fn kept(&self, path: &str) -> Option<Arc<CachedFile>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.files.get(path).map(Arc::clone)
    }

    /// Reads and keeps a file that was just opened in this state, if that is small, old enough, and does not
    /// have to wait for a disk.
    pub(super) fn load(
        &self,
        path: &str,
        files: &Arc<OpenFiles>,
        (descriptor, state): (&OwnedFd, State),
        now: SystemTime,
    ) -> Option<Arc<ServedFile>> {
        if state.len() > SMALL || !state.is_older_than(TICK, now) {
            return None;
        }
        // One more byte would show that it has grown.
        let mut content = vec![0; state.len() as usize + 1];
        let mut slices = [IoSliceMut::new(&mut content)];
        let read = preadv2(descriptor, &mut slices, 0, ReadWriteFlags::NOWAIT).ok()?;
        if read as u64 != state.len() || State::of(&fstat(descriptor).ok()?) != state {
            return None;
        }
        content.truncate(read);
        let file = ServedFile::new(state, (Source::Memory(content.into()), path), files);
        self.keep(path, CachedFile::new(&file, now));
        Some(file)
    }

    fn keep(&self, path: &str, kept: CachedFile) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.bytes += kept.file.len();
        if let Some(before) = table.files.insert(path.into(), Arc::new(kept)) {
            table.bytes -= before.file.len();
        }
        if table.files.len() > MAX_FILES || table.bytes > MAX_BYTES {
            table.forget_unused();
        }
    }
}

impl SmallFilesTable {
    /// Forgets what was not used since the last time; if that is little, everything.
    fn forget_unused(&mut self) {
        self.files.retain(|_, kept| kept.was_used.swap(false, Ordering::Relaxed));
        self.bytes = self.files.values().map(|kept| kept.file.len()).sum();
        if self.files.len() > MAX_FILES / 2 || self.bytes > MAX_BYTES / 2 {
            self.files.clear();
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use uncork_testkit::Scratch;

    use super::super::root::{Found, Root};
    use super::*;
    use crate::clock;

    struct Case {
        scratch: Scratch,
        root: Arc<Root>,
        files: Arc<OpenFiles>,
        /// Long enough after the files were written.
        now: SystemTime,
    }

    impl Case {
        fn new() -> Self {
            let scratch = Scratch::new("small-files");
            scratch.write("file", "text");
            let root = Arc::new(Root::open(&scratch.path("")).unwrap());
            Self { scratch, root, files: Arc::default(), now: clock::today() + 2 * TICK }
        }

        fn found(&self, path: &str) -> Found {
            self.root.find(path, &self.files, self.now).unwrap()
        }

        /// What is in memory of a file.
        fn content(&self, path: &str) -> Option<Vec<u8>> {
            match self.found(path) {
                Found::File(file) => file.content().map(|content| content.to_vec()),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_small_file_is_read_once_while_it_stays_the_same() {
        let case = Case::new();
        assert_eq!(case.content("file").unwrap(), b"text");
        let [one, two] = [case.found("file"), case.found("file")];
        match (one, two) {
            (Found::File(one), Found::File(two)) => assert!(Arc::ptr_eq(&one, &two)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_shows_within_a_millisecond() {
        let mut case = Case::new();
        assert_eq!(case.content("file").unwrap(), b"text");
        case.scratch.write("file", "TEXT");
        case.now += UNCHANGED;
        assert_eq!(case.content("file").unwrap(), b"TEXT", "written in place");
        case.scratch.write("new", "new");
        fs::rename(case.scratch.path("new"), case.scratch.path("file")).unwrap();
        case.now += UNCHANGED;
        assert_eq!(case.content("file").unwrap(), b"new", "renamed");
        fs::remove_file(case.scratch.path("file")).unwrap();
        case.now += UNCHANGED;
        assert!(matches!(case.found("file"), Found::Nothing));
    }

    #[test]
    fn a_file_is_asked_for_once_a_millisecond_unless_it_has_changed() {
        let case = Case::new();
        assert!(case.content("file").is_some());
        let small = case.root.small();
        let same = small.kept("file").map(|kept| *kept.file.state());
        let mut asked = 0;
        let mut get = |after: Duration, state: Option<State>| {
            let answer = || {
                asked += 1;
                state
            };
            let is_there = small.get("file", case.now + after, answer).is_some();
            (is_there, std::mem::take(&mut asked))
        };
        let micros = Duration::from_micros;
        assert_eq!(get(micros(999), same), (true, 0));
        assert_eq!(get(micros(1000), same), (true, 1));
        assert_eq!(get(micros(1999), same), (true, 0));
        // Another thread's time may be a little earlier, and the clock may be set back.
        assert_eq!(get(micros(900), same), (true, 1));
        assert_eq!(get(micros(2000), None), (false, 1));
        assert_eq!(get(micros(2001), None), (false, 1), "a change is not forgotten");
    }

    #[test]
    fn what_has_just_changed_is_not_kept() {
        let case = Case { now: clock::today(), ..Case::new() };
        assert_eq!(case.content("file"), None);
    }

    #[test]
    fn it_is_read_again_after_a_while_and_when_the_clock_was_set_back() {
        let mut case = Case::new();
        let Found::File(before) = case.found("file") else { panic!() };
        let start = case.now;
        for (now, is_same) in [
            (start + FRESH, true),
            (start + FRESH + Duration::from_millis(1), false),
            (start - Duration::from_millis(1), false),
        ] {
            case.now = now;
            let Found::File(file) = case.found("file") else { panic!() };
            assert_eq!(Arc::ptr_eq(&before, &file), is_same, "{now:?}");
        }
    }

    #[test]
    fn a_link_that_leads_out_later_is_not_followed() {
        let mut case = Case::new();
        case.scratch.write("inside/file", "text");
        let outside = Scratch::new("small-files");
        outside.write("file", "secret");
        assert_eq!(case.content("inside/file").unwrap(), b"text");
        fs::remove_dir_all(case.scratch.path("inside")).unwrap();
        symlink(outside.path(""), case.scratch.path("inside")).unwrap();
        case.now += UNCHANGED;
        assert!(matches!(case.found("inside/file"), Found::Nothing));
    }

    #[test]
    fn large_files_are_not_kept_and_many_small_ones_are_forgotten() {
        let case = Case::new();
        case.scratch.write("large", vec![0; SMALL as usize + 1]);
        assert_eq!(case.content("large"), None);
        let bytes = vec![0; SMALL as usize];
        let most = MAX_BYTES / SMALL;
        for number in 0..=most {
            let name = format!("file-{number}");
            case.scratch.write(&name, &bytes);
            assert_eq!(case.content(&name).unwrap().len(), bytes.len());
            let table = case.root.small().0.read().unwrap();
            assert!(table.bytes <= MAX_BYTES);
            let sum: u64 = table.files.values().map(|kept| kept.file.len()).sum();
            assert_eq!(sum, table.bytes);
        }
        assert_eq!(case.root.small().0.read().unwrap().files.len(), 0, "more than half were used");
    }
}
