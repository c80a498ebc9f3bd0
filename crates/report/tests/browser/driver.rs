//! Runs a headless browser once, bounded in time, and leaves nothing behind.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const NAMES: [&str; 4] = ["chromium-headless-shell", "chromium", "google-chrome", "chrome"];

/// How long a run may take: polls of [`POLL`].
const POLLS: u32 = 600;
const POLL: Duration = Duration::from_millis(50);

/// A browser that can be started.
pub(crate) struct Browser(PathBuf);

/// What a run printed.
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Browser {
    /// The browser of this machine. Without one the test fails, unless that is on purpose.
    pub(crate) fn find() -> Option<Self> {
        if std::env::var_os("UNCORK_NO_BROWSER").is_some_and(|value| value == "1") {
            // Not `eprintln`, which the test harness keeps to itself.
            let said =
                "\n*** NOT TESTED: UNCORK_NO_BROWSER=1, no page is opened in a browser ***\n";
            std::io::stderr().write_all(said.as_bytes()).unwrap();
            return None;
        }
        let named = std::env::var_os("UNCORK_CHROMIUM").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut candidates = std::env::split_paths(&path)
            .flat_map(|directory| NAMES.map(|name| directory.join(name)));
        let found = named.or_else(|| candidates.find(|candidate| candidate.is_file()));
        let hint = "no browser found: `apt-get install chromium-headless-shell`, or name one with \
                    UNCORK_CHROMIUM, or skip with UNCORK_NO_BROWSER=1";
        Some(Self(found.expect(hint)))
    }

    /// Opens the file `page` with `flags` on top of those that every run needs.
    pub(crate) fn run(&self, scratch: &Scratch, flags: &[&str], page: &Path) -> Run {
        self.open(scratch, flags, &format!("file://{}", page.display()))
    }

    /// The same with what is at `url`.
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
        let ended = (0..POLLS).any(|_| {
            std::thread::sleep(POLL);
            child.0.try_wait().unwrap().is_some()
        });
        drop(child);
        let read = |name| String::from_utf8_lossy(&fs::read(output(name)).unwrap()).into_owned();
        let run = Run { stdout: read("stdout"), stderr: read("stderr") };
        assert!(ended, "the browser did not end in {:?}:\n{}", POLL * POLLS, run.stderr);
        run
    }
}

/// A process and all that it started, which end with it.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

/// A directory that goes when the test does.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("uncork-report-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
