//! Runs a headless browser once with a time limit, without leaving anything behind.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) use uncork_testkit::Scratch;
use uncork_testkit::{Capability, holds_within, not_run};

const NAMES: [&str; 4] = ["chromium-headless-shell", "chromium", "google-chrome", "chrome"];

/// Time limit of a run.
const LIMIT: Duration = Duration::from_mins(5);

/// A browser that can be started.
pub(crate) struct Browser(PathBuf);

/// Output of a run.
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Browser {
    /// The browser of this machine; `None`, with a message, if there is none.
    pub(crate) fn find() -> Option<Self> {
        let named = std::env::var_os("UNCORK_CHROMIUM").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut candidates = std::env::split_paths(&path)
            .flat_map(|directory| NAMES.map(|name| directory.join(name)));
        let found = named.or_else(|| candidates.find(|candidate| candidate.is_file()));
        if found.is_none() {
            let remedy = "`apt-get install chromium-headless-shell`, or set UNCORK_CHROMIUM";
            not_run(Capability::Browser, remedy);
        }
        found.map(Self)
    }

    /// Opens the file `page` with `flags` in addition to those always needed.
    pub(crate) fn run(&self, scratch: &Scratch, flags: &[&str], page: &Path) -> Run {
        self.open(scratch, flags, &format!("file://{}", page.display()))
    }

    /// The same for `url`.
    pub(crate) fn open(&self, scratch: &Scratch, flags: &[&str], url: &str) -> Run {
        let output = |name| scratch.path(name);
        let mut child = Group(
            Command::new(&self.0)
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
                .args([
                    "--no-first-run",
                    "--enable-logging=stderr",
                    "--force-device-scale-factor=1",
                ])
                .arg(format!("--user-data-dir={}", output("profile").display()))
                .args(flags)
                .arg(url)
                .stdin(Stdio::null())
                .stdout(File::create(output("stdout")).unwrap())
                .stderr(File::create(output("stderr")).unwrap())
                .process_group(0)
                .spawn()
                .unwrap(),
        );
        let ended = holds_within(LIMIT, || child.0.try_wait().unwrap().is_some());
        drop(child);
        let read = |name| String::from_utf8_lossy(&fs::read(output(name)).unwrap()).into_owned();
        let run = Run { stdout: read("stdout"), stderr: read("stderr") };
        assert!(ended, "the browser did not end in {LIMIT:?}:\n{}", run.stderr);
        run
    }
}

/// A process and its children, all killed on drop.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}
