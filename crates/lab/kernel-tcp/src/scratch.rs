//! A directory for files of programs, deleted after the run.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A run's directory, with a subdirectory for each flow that needs one.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("uncork-run-{}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            // An existing directory may belong to another user.
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(path)),
            }
        }
    }

    /// The directory of a flow.
    pub(crate) fn of(&self, flow: u32) -> PathBuf {
        self.0.join(flow.to_string())
    }

    /// The file for the records of a flow's client.
    pub(crate) fn records_of(&self, flow: u32) -> PathBuf {
        self.of(flow).join("records.jsonl")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftover files do not change results.
        let _ = fs::remove_dir_all(&self.0);
    }
}
