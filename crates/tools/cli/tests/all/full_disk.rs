//! A disk that fills up: a single error that names the file, no partial results, and complete
//! results once there is room. The disk is a tmpfs visible only to the test; the test is skipped
//! with a message if it cannot be mounted.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Finished, Scratch, assert_same, command, finish};
use uncork_testkit::{Capability, not_run, wait_until};

/// Allocation unit of a tmpfs.
const PAGE: u64 = 4096;
/// The file that fills the disk.
const BALLAST: &str = "ballast";
const FULL: &str = "No space left on device (os error 28)";
const GO_ON: &str = "once that is solved, continue with: ";
const MAKE_ROOM: &str = "make room there, or choose another directory";

/// Two cells of four seeds; a run takes about a page.
const SMALL: &str = r#"title = "A small one"
[run]
seeds = 4
[path]
rate = "20mbit"
rtt = "20ms"
loss = "1%"
[flow.main]
cc = "cubic"
transfer = "100kB"
[matrix]
"flow.main.cc" = ["cubic", "bbr1"]
"#;

/// A file system of 4 MB mounted in a separate process's mount namespace, which others access
/// through `/proc`.
struct Disk {
    path: PathBuf,
    keeper: Child,
    scratch: Scratch,
}

impl Disk {
    fn mounted(name: &str) -> Option<Self> {
        let scratch = Scratch::new(name);
        let mut unshare = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            unshare.args(["--user", "--map-root-user"]);
        }
        let script = "mount -t tmpfs -o size=4m uncork-test \"$0\" && echo mounted && read -r end";
        unshare.args(["--mount", "sh", "-c", script]).arg(scratch.path(""));
        let mut keeper = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(keeper.stdout.take().unwrap()).lines().next();
        if said.is_none() {
            keeper.wait().unwrap();
            not_run(Capability::Mount, "a tmpfs needs root or unprivileged user namespaces");
            return None;
        }
        let inside = scratch.path("").strip_prefix("/").unwrap().to_path_buf();
        let path = PathBuf::from(format!("/proc/{}/root", keeper.id())).join(inside);
        let disk = Self { path, keeper, scratch };
        disk.write("small.toml", SMALL);
        Some(disk)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path.join(name), text).unwrap();
    }

    /// Leaves room for `pages` pages.
    fn fill(&self, pages: u64) {
        let mut ballast = File::create(self.path.join(BALLAST)).unwrap();
        let mut size = 0;
        while let Ok(written) = ballast.write(&[0; PAGE as usize]) {
            size += written as u64;
        }
        ballast.set_len(size - pages * PAGE).unwrap();
    }

    fn make_room(&self) {
        fs::remove_file(self.path.join(BALLAST)).unwrap();
    }

    /// `uncork` with the arguments of `line`, in that directory.
    fn command(&self, line: &str) -> Command {
        let mut command = command(line);
        command.current_dir(&self.path).env("UNCORK_TEST_MARK", self.mark());
        command
    }

    fn uncork(&self, line: &str) -> Finished {
        finish(self.command(line))
    }

    /// The names of all entries, including hidden ones.
    fn entries(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path.join(below)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn mark(&self) -> String {
        format!("full-disk-{}", self.keeper.id())
    }

    /// Asserts that no process started by a command on this disk is running, so no namespace is
    /// left.
    fn assert_all_processes_ended(&self) {
        let mark = self.mark();
        let is_marked = |pid: &fs::DirEntry| {
            let environment = fs::read(pid.path().join("environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|part| part == mark.as_bytes())
        };
        let left = || fs::read_dir("/proc").unwrap().flatten().filter(is_marked).count();
        wait_until("no process is left", Duration::from_mins(1), || left() == 0);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ended = self.keeper.wait();
    }
}

/// The error of a command that fails because the disk is full, without printing results.
fn refusal(command: Command) -> String {
    let Finished { status, stdout, stderr } = finish(command);
    assert_eq!((status, stdout.as_str()), (3, ""), "{stderr}");
    let errors: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors.len(), 1, "{stderr}");
    assert!(!stderr.contains("panic"), "{stderr}");
    errors[0].to_owned()
}

/// Asserts that the error says that `file` (or its prefix) cannot be written to `directory`, and
/// why.
fn assert_no_room(error: &str, directory: &str, file: &str, remedy: &str) {
    assert_starts(
        error,
        &format!("error: cannot write to '{directory}' of '--output <DIR>': {file}"),
    );
    assert!(error.ends_with(&format!("{FULL}; {remedy}")), "{error}\nhas no {remedy}");
}

/// Number of runs in an archive: two lines each, possibly followed by a partial one.
fn whole_runs(archive: &str) -> usize {
    archive.matches('\n').count() / 2
}

fn assert_starts(text: &str, start: &str) {
    assert!(text.starts_with(start), "{text}\nis not\n{start}");
}

#[test]
fn full_disk_is_detected_before_the_run() {
    let Some(disk) = Disk::mounted("full-before") else { return };
    disk.fill(0);
    // If they were run, these would take many minutes.
    for line in [
        "compare --rate 100mbit --duration 30000s -o out",
        "lab run small.toml --set flow.main.transfer=1GB --seeds 100 -o out",
        "lab agree small.toml --set flow.main.transfer=1GB --seeds 100 -o out",
        "emu -o out -- sleep 1000",
    ] {
        let error = refusal(disk.command(line));
        assert_no_room(&error, "out", FULL, MAKE_ROOM);
        assert_eq!(disk.entries(""), [BALLAST, "small.toml"], "{line}");
    }
    disk.assert_all_processes_ended();
}

#[test]
fn failed_comparison_keeps_the_earlier_files() {
    let Some(disk) = Disk::mounted("full-compare") else { return };
    let compare = |cc: &str| format!("compare --size 100kB --seeds 2 --cc {cc} -o out");
    assert_eq!(disk.uncork(&compare("cubic")).status, 0);
    let read = |name: &str| fs::read(disk.path.join("out").join(name)).unwrap();
    let files = disk.entries("out");
    let before: Vec<_> = files.iter().map(|name| read(name)).collect();
    for pages in [1, 4, 8] {
        disk.fill(pages);
        let error = refusal(disk.command(&compare("reno")));
        assert_no_room(&error, "out", "", MAKE_ROOM);
        assert!(files.iter().any(|name| error.contains(&format!("': {name}: {FULL}"))), "{error}");
        assert_eq!(disk.entries("out"), files);
        assert!(files.iter().map(|name| read(name)).eq(before.iter().cloned()), "{pages}");
        disk.make_room();
    }
    assert_eq!(disk.uncork(&compare("reno")).status, 0);
    assert!(String::from_utf8(read("summary.json")).unwrap().contains("\"reno\""));
}

/// Room for no runs, for some (with one and two jobs), and for everything except the report. The
/// manifest takes a page, and a page of the archive holds about five runs.
#[test]
fn sweep_continues_when_there_is_room() {
    let Some(disk) = Disk::mounted("full-sweep") else { return };
    fs::write(disk.scratch.path("small.toml"), SMALL).unwrap();
    let whole = finish(crate::common::lab(&disk.scratch, "run small.toml -o whole"));
    assert_eq!(whole.status, 0, "{}", whole.stderr);
    for (jobs, pages, room) in [(1, 1, 0..1), (1, 2, 1..8), (2, 2, 1..8), (2, 12, 8..9)] {
        let out = format!("out-{jobs}-{pages}");
        disk.fill(pages);
        let error = refusal(disk.command(&format!("lab run small.toml --jobs {jobs} -o {out}")));
        let archive = fs::read_to_string(disk.path.join(&out).join("runs/runs.archive"));
        assert_eq!(archive.is_ok() && pages > 1, pages > 1, "{error}");
        let runs = archive.map_or(0, |text| whole_runs(&text));
        assert!(room.contains(&runs), "{runs} runs stored in {pages} pages: {error}");
        assert_eq!(disk.entries(&out), ["runs"]);
        if runs < 8 {
            let again = format!("{GO_ON}uncork lab run small.toml --resume -o {out}");
            assert_no_room(&error, &out, "runs/runs.archive", &again);
            let merged = disk.uncork(&format!("lab merge {out}"));
            assert_eq!(merged.status, 2);
            let missing = format!("error: {} of 8 runs of 'small' are missing", 8 - runs);
            assert_starts(&merged.stderr, &missing);
        } else {
            assert_no_room(&error, &out, "", MAKE_ROOM);
        }
        disk.make_room();
        let resumed = disk.uncork(&format!("lab run small.toml --resume -o {out}"));
        assert_eq!(resumed.status, 0, "{}", resumed.stderr);
        let note = format!("note: {runs} of 8 runs are there already\n");
        let note = if runs == 0 { "" } else { &note };
        let end = format!("{note}wrote {out}/report.html\n");
        assert!(resumed.stderr.ends_with(&end), "{}", resumed.stderr);
        assert_same(&disk.scratch.path("whole"), &disk.path.join(out));
    }
}

#[test]
fn merged_results_are_written_atomically() {
    let Some(disk) = Disk::mounted("full-merge") else { return };
    assert_eq!(disk.uncork("lab run small.toml -o out").status, 0);
    disk.fill(6);
    let error = refusal(disk.command("lab merge out -o merged"));
    assert_no_room(&error, "merged", "", MAKE_ROOM);
    assert_eq!(disk.entries(""), [BALLAST, "out", "small.toml"]);
    disk.make_room();
    assert_eq!(disk.uncork("lab merge out -o merged").status, 0);
    assert_same(&disk.path.join("out"), &disk.path.join("merged"));
}

/// Whether this machine allows `command` to emulate paths.
fn can(disk: &Disk) -> bool {
    let Finished { status, stderr, .. } = disk.uncork("emu -q -- true");
    if status == 3 {
        not_run(Capability::Netns, &stderr);
    }
    status != 3
}

#[test]
fn runs_over_the_kernel_continue_when_there_is_room() {
    let Some(disk) = Disk::mounted("full-netns").filter(can) else { return };
    let run = "lab run small.toml --on netns --seeds 5 --jobs 1";
    // One page for the manifest, and one for about five of the ten runs.
    disk.fill(2);
    let error = refusal(disk.command(&format!("{run} -o out")));
    let again = format!("{GO_ON}uncork lab run small.toml --on netns --seeds 5 --resume -o out");
    assert_no_room(&error, "out", "runs/runs.archive", &again);
    assert_eq!(disk.entries("out"), ["runs"]);
    let archive = fs::read_to_string(disk.path.join("out/runs/runs.archive")).unwrap();
    let kept = whole_runs(&archive);
    assert!((1..10).contains(&kept), "{kept} runs stored");
    disk.assert_all_processes_ended();
    disk.make_room();
    let resumed = disk.uncork(&format!("{run} --resume -o out"));
    assert_eq!(resumed.status, 0, "{}", resumed.stderr);
    assert_starts(&resumed.stderr, &format!("note: {kept} of 10 runs are there already\n"));
    disk.assert_all_processes_ended();
}

/// The command itself fills the disk and leaves a process running.
#[test]
fn full_disk_ends_the_emulation_and_all_its_processes() {
    let Some(disk) = Disk::mounted("full-emu").filter(can) else { return };
    let mut emu = disk.command("emu -o out");
    let script = format!("sleep 1000 & cat /dev/zero > {BALLAST}; exit 7");
    emu.args(["--", "sh", "-c", &script]);
    let error = refusal(emu);
    assert_no_room(&error, "out", "summary.json: ", MAKE_ROOM);
    assert_eq!(disk.entries(""), [BALLAST, "small.toml"]);
    disk.assert_all_processes_ended();
    disk.make_room();
    assert_eq!(disk.uncork("emu -q -o out -- true").status, 0);
    assert_eq!(disk.entries("out"), ["summary.json"]);
}

#[test]
fn kept_path_ends_with_its_names() {
    let Some(disk) = Disk::mounted("full-up").filter(can) else { return };
    let mut up = disk.command("emu -q --up -o out");
    let mut child = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(2);
    let name = |line: String| line.split_whitespace().nth(1).unwrap().to_owned();
    let names: Vec<_> =
        lines.map(|line| PathBuf::from("/run/netns").join(name(line.unwrap()))).collect();
    assert!(names.len() == 2 && names.iter().all(|name| fs::metadata(name).is_ok()), "{names:?}");
    disk.fill(0);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_no_room(stderr.trim_end(), "out", "summary.json: ", MAKE_ROOM);
    assert!(names.iter().all(|name| fs::symlink_metadata(name).is_err()), "{names:?}");
    assert_eq!(disk.entries(""), [BALLAST, "small.toml"]);
    disk.assert_all_processes_ended();
}

/// A server that cannot write records keeps serving, reports it once, and resumes recording when
/// there is room.
#[test]
fn server_keeps_serving_without_its_records() {
    let Some(disk) = Disk::mounted("full-disk-serve") else { return };
    fs::create_dir(disk.path.join("public")).unwrap();
    disk.write("public/file", "fine");
    let mut serve = disk.command(
        "serve --root public --listen 127.0.0.1:0 --records responses.jsonl --admin unix:./admin",
    );
    let mut serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(serve.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let url = format!("{}/file", said.split(' ').next().unwrap());
    let mut notes = BufReader::new(serve.stderr.take().unwrap()).lines().map(Result::unwrap);
    let note = notes.next().unwrap();
    assert!(note.ends_with(" unix:./admin"), "{note}");
    let get = || {
        let curl = Command::new("curl").args(["-sS", &url]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&curl.stdout), "fine");
    };
    disk.fill(0);
    get();
    let warned = notes.next().unwrap();
    assert!(warned.starts_with("warning: ") && warned.contains("'responses.jsonl': "), "{warned}");
    assert!(warned.contains(FULL), "{warned}");
    (0..3).for_each(|_| get());
    // For four responses, and for the connection of each.
    wait_until("eight records are lost", Duration::from_mins(1), || {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "http://admin/metrics", "--unix-socket"]).arg(disk.path.join("admin"));
        let metrics = curl.output().unwrap().stdout;
        String::from_utf8(metrics).unwrap().contains("records_total{result=\"lost\"} 8\n")
    });
    disk.make_room();
    get();
    kill_process(Pid::from_child(&serve), Signal::TERM).unwrap();
    assert!(serve.wait().unwrap().success());
    let left: Vec<String> = notes.collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[1].contains("the disk was full"), "{left:?}");
    let lines = fs::read(disk.path.join("responses.jsonl")).unwrap();
    let records = uncork_flow::read_json_lines(lines.as_slice()).unwrap();
    assert!(
        (1..=2).contains(&records.len()),
        "complete lines of everything recorded while there was room"
    );
    disk.assert_all_processes_ended();
}
