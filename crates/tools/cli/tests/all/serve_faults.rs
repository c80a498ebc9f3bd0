//! `uncork serve` as a process: ended at full load, on a disk that fails, with a clock that jumps, with too
//! few files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::Scratch;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Pid, Signal, kill_process};
use uncork_play::{
    ClientError, ConnectSpec, Connections, Fetched, GetSpec, Tally, Trust, Version, get,
};
use uncork_testkit::wait_until;
use uncork_units::TimeDelta;

const MINUTE: Duration = Duration::from_mins(1);

const ALL: [Version; 3] = [Version::Http1, Version::Http2, Version::Http3];

/// A server that is gone at the end of the test.
struct Server {
    child: Child,
    /// Host and port of its only listener.
    address: String,
}

impl Server {
    /// `starter` is what starts `uncork`, if not the test itself.
    fn start(
        scratch: &Scratch,
        starter: &[&str],
        arguments: &str,
        environment: &[(&str, &Path)],
    ) -> Self {
        let serve = format!("serve --root files --listen 127.0.0.1:0 {arguments}");
        let words = starter.iter().copied().chain([env!("CARGO_BIN_EXE_uncork")]);
        let mut words = words.chain(serve.split_whitespace());
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).current_dir(scratch.path("")).envs(environment.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("an address");
        let address = line.split(['/', ' ']).nth(2).expect("an address").to_owned();
        Self { child, address }
    }

    /// A server that records on a disk with the fault `failing` of the shim.
    fn on_bad_disk(scratch: &Scratch, failing: &str) -> Self {
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shims/bad_disk.py");
        let starter = ["python3", shim.to_str().expect("text"), failing];
        Self::start(scratch, &starter, "--self-signed --records r.jsonl", &[])
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// How many of something it has: `fd`, `task`.
    fn count(&self, what: &str) -> usize {
        let path = format!("/proc/{}/{what}", self.child.id());
        fs::read_dir(path).expect("it lives").count()
    }

    /// What becomes of `times` downloads of a file, 8 at a time.
    fn fetch(&self, version: Version, file: &str, times: usize) -> Vec<Fetched> {
        let never = Arc::new(AtomicBool::new(false));
        self.fetch_until(&never, version, file, times)
    }

    fn fetch_until(
        &self,
        stop: &Arc<AtomicBool>,
        version: Version,
        file: &str,
        times: usize,
    ) -> Vec<Fetched> {
        let target = format!("https://{}/{file}", self.address).parse().expect("a URL");
        let patience = TimeDelta::from_secs(20);
        let connect =
            ConnectSpec { version: Some(version), trust: Trust::Anybody, to: Vec::new(), patience };
        let connections = Connections::Kept;
        let spec = GetSpec {
            connect,
            repeat: times,
            parallel: 8,
            connections,
            digest: true,
            ..GetSpec::of(vec![target])
        };
        get(&spec, stop, &Arc::new(Tally::default())).expect("begun")
    }

    fn terminate(&self) {
        kill_process(self.pid(), Signal::TERM).expect("signalled");
    }

    fn end(mut self) {
        self.terminate();
        assert_eq!(self.child.wait().expect("ends").code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory with files of these sizes.
fn files(name: &str, sizes: &[(&str, usize)]) -> Scratch {
    let scratch = Scratch::new(name);
    fs::create_dir(scratch.path("files")).expect("a directory");
    for (file, size) in sizes {
        let bytes: Vec<u8> = (0..*size).map(|at| (at * at / 7 + at) as u8).collect();
        fs::write(scratch.path("files").join(file), bytes).expect("a file");
    }
    scratch
}

/// The digest of a file, from an independent program.
fn digest(scratch: &Scratch, file: &str) -> String {
    let sum = Command::new("sha256sum").arg(scratch.path("files").join(file)).output();
    let sum = String::from_utf8(sum.expect("sha256sum runs").stdout).expect("text");
    sum.split(' ').next().expect("a digest").to_owned()
}

#[test]
fn sigterm_at_full_load_breaks_no_response_off() {
    let scratch = files("serve-load-ends", &[("file", 300_000)]);
    let whole = digest(&scratch, "file");
    for version in ALL {
        let mut server =
            Server::start(&scratch, &[], "--self-signed --grace 10s --records r.jsonl", &[]);
        let alive = format!("/proc/{}/status", server.child.id());
        let stop = Arc::new(AtomicBool::new(false));
        let fetched = thread::scope(|scope| {
            let load = scope.spawn(|| server.fetch_until(&stop, version, "file", 20_000));
            wait_until("100 records", MINUTE, || {
                let records = fs::read_to_string(scratch.path("r.jsonl")).unwrap_or_default();
                records.lines().count() >= 100
            });
            server.terminate();
            wait_until("the server has ended", MINUTE, || {
                fs::read_to_string(&alive).is_ok_and(|state| state.contains("State:\tZ"))
            });
            stop.store(true, Ordering::Relaxed);
            load.join().expect("no panic")
        });
        assert_eq!(server.child.wait().expect("ends").code(), Some(0), "{version}");
        let ended =
            fetched.iter().filter(|it| it.sha256.as_deref() == Some(whole.as_str())).count();
        assert!(ended > 50 && ended < 20_000, "{version}: {ended} downloads before the end");
        for it in &fetched {
            let is_whole = it.sha256.as_deref() == Some(whole.as_str());
            // Nothing that was begun is broken off: there was time for all of it.
            assert!(is_whole || it.status.is_none(), "{version}: {it:?}");
            assert_eq!(is_whole, it.problem.is_none(), "{version}: {it:?}");
        }
        let records = fs::read_to_string(scratch.path("r.jsonl")).expect("records");
        let responses = records.matches("\"scope\":\"response\"").count();
        assert_eq!(responses, ended, "{version}: a record for each");
        fs::remove_file(scratch.path("r.jsonl")).expect("removed");
    }
}

#[test]
fn a_load_that_is_abandoned_leaves_no_open_file_and_no_thread() {
    let scratch = files("serve-load-left", &[("large", 20_000_000), ("file", 1000)]);
    let server = Server::start(&scratch, &[], "--self-signed", &[]);
    let idle = server.count("fd");
    for version in ALL {
        server.fetch(version, "file", 1);
    }
    let counts = || (server.count("fd"), server.count("task"));
    wait_until("connections that are over are closed", MINUTE, || server.count("fd") <= idle);
    let before = counts();
    for version in ["1.1", "2", "3"] {
        let mut clients: Vec<Child> = (0..4)
            .map(|_| {
                let mut client = crate::common::command(
                    "play get --insecure --parallel 8 --repeat 100 --connections kept --quiet",
                );
                client.args(["--http", version]).arg(format!("https://{}/large", server.address));
                client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
            })
            .collect();
        let what = format!("load over HTTP/{version}");
        wait_until(&what, MINUTE, || counts().0 > before.0);
        // Without a farewell.
        for client in &mut clients {
            client.kill().expect("killed");
            client.wait().expect("ends");
        }
    }
    // Over QUIC no message says that the clients are gone: they stall.
    wait_until("all files are closed", MINUTE, || counts().0 <= before.0);
    // Threads that have waited for a disk end after 10 s of doing nothing.
    wait_until("all threads have ended", MINUTE, || counts().1 <= before.1);
    server.end();
}

#[test]
fn a_disk_that_fails_cuts_responses_and_nothing_else() {
    // Reads that begin below 1 MiB succeed; one takes 128 KiB at most.
    const GOOD: u64 = (1 << 20) + (128 << 10);
    let scratch = files("serve-disk", &[("large", 3_000_000), ("small", 100_000)]);
    let server = Server::on_bad_disk(&scratch, "reads");
    let small = digest(&scratch, "small");
    for version in ALL {
        for it in server.fetch(version, "large", 16) {
            assert_eq!((it.status, it.size), (Some(200), Some(3_000_000)), "{it:?}");
            assert!(it.received <= GOOD, "{it:?}");
            assert!(matches!(it.problem, Some(ClientError::Broken { .. })), "{it:?}");
            if version == Version::Http3 {
                let problem = it.problem.as_ref().expect("one").to_string();
                assert!(problem.contains("0x102") || problem.contains("INTERNAL"), "{problem}");
            }
        }
        for it in server.fetch(version, "small", 16) {
            assert_eq!(it.sha256.as_ref(), Some(&small), "{it:?}");
        }
    }
    server.end();
    let records = fs::read_to_string(scratch.path("r.jsonl")).expect("records");
    let responses = records.lines().filter(|line| line.contains("\"scope\":\"response\""));
    let broken = responses.filter(|line| line.contains("\"broken_off\":1")).count();
    assert_eq!(broken, 48, "each is in the records");
}

#[test]
fn a_disk_without_inodes_is_the_servers_fault_and_no_end() {
    let scratch = files("serve-inodes", &[("file", 1000)]);
    let server = Server::on_bad_disk(&scratch, "inodes");
    for version in ALL {
        for it in server.fetch(version, "file", 16) {
            assert_eq!(it.status, Some(500), "{version}: {it:?}");
        }
    }
    server.end();
    let records = fs::read_to_string(scratch.path("r.jsonl")).expect("records");
    assert_eq!(records.matches("\"status\":500").count(), 48, "each is in the records");
}

/// The shim for clocks, as a library.
fn clock_shim(scratch: &Scratch) -> std::path::PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shims/clock_step.c");
    let library = scratch.path("clock_step.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(cc.status().expect("cc runs, as it must for the TLS library").success());
    library
}

fn unix_now() -> i64 {
    let date = Command::new("date").arg("+%s").output().expect("date runs");
    String::from_utf8_lossy(&date.stdout).trim().parse().expect("seconds")
}

/// The date in the head of a response, in seconds since 1970.
fn date_of(head: &str) -> i64 {
    let lines = head.lines().map(|line| line.split_once(": ").unwrap_or_default());
    let dates: Vec<_> = lines.filter(|(name, _)| name.eq_ignore_ascii_case("date")).collect();
    let &[(_, date)] = dates.as_slice() else { panic!("one date: {head}") };
    let unix = Command::new("date").args(["+%s", "-d", date]).output().expect("date runs");
    String::from_utf8_lossy(&unix.stdout).trim().parse().expect("seconds")
}

/// A head over an open connection of HTTP/1.1 without TLS.
fn head(client: &mut BufReader<TcpStream>) -> String {
    client.get_mut().write_all(b"HEAD /file HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(client.read_line(&mut head).expect("a line") > 0, "the connection was closed");
    }
    head
}

const HOUR: i64 = 3600;

/// By hours, to and fro: no connection ends of it, each date is that of the clock, and what was measured
/// knows nothing of it.
#[test]
fn a_wall_clock_that_jumps_ends_nothing_and_spoils_no_figure() {
    let scratch = files("serve-clock", &[("file", 1000), ("large", 40_000_000)]);
    let shim = clock_shim(&scratch);
    fs::write(scratch.path("step"), 0_i64.to_ne_bytes()).expect("written");
    let step = fs::File::options().write(true).open(scratch.path("step")).expect("the file");
    let environment = [("LD_PRELOAD", &*shim), ("CLOCK_STEP", &*scratch.path("step"))];
    let secured = Server::start(&scratch, &[], "--self-signed --records r.jsonl", &environment);
    let plain = Server::start(&scratch, &[], "", &environment);
    let mut kept = BufReader::new(TcpStream::connect(&plain.address).expect("a connection"));
    let mut begun = TcpStream::connect(&plain.address).expect("a connection");
    begun.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    for hours in [0, 2, -3, 24 * 365, -24 * 365] {
        step.write_all_at(&(hours * HOUR).to_ne_bytes(), 0).expect("written");
        // A date is kept for a second.
        wait_until(&format!("the date follows a step of {hours} h"), MINUTE, || {
            (date_of(&head(&mut kept)) - unix_now() - hours * HOUR).abs() <= 2
        });
        for version in ALL {
            for it in secured.fetch(version, "file", 8) {
                assert!(it.problem.is_none(), "{version} after a step of {hours} h: {it:?}");
            }
        }
    }
    let mut rest = Vec::new();
    let mut one = vec![0; 1 << 16];
    while rest.len() < 40_000_000 {
        let length = begun.read(&mut one).expect("the rest");
        assert!(length > 0, "a response was broken off after {}", rest.len());
        rest.extend_from_slice(&one[..length]);
    }
    plain.end();
    secured.end();
    let records = fs::File::open(scratch.path("r.jsonl")).expect("records");
    let records = uncork_flow::read_json_lines(BufReader::new(records)).expect("records");
    assert!(records.len() > 120, "{}", records.len());
    let mut hours = BTreeMap::new();
    for record in &records {
        let service = record.service.as_ref().expect("whom it served");
        let since_start =
            record.start_ns.max(record.completion_ns.unwrap_or(0)).max(record.busy_ns);
        assert!(since_start < 60_000_000_000, "{record:?}");
        assert!(record.rtt_ms.is_none_or(|rtt| rtt.p95 < 10_000.0), "{record:?}");
        // Records have the time of the wall clock, even if it is wrong.
        let shift = service.start_unix_ns as i64 / 1_000_000_000 - unix_now();
        *hours.entry((shift as f64 / HOUR as f64).round() as i64).or_insert(0) += 1;
    }
    assert_eq!(hours.into_keys().collect::<Vec<_>>(), [-8760, -3, 0, 2, 8760]);
}

/// A connection from another network than that of the other clients.
fn connect_from_elsewhere(host: SocketAddr) -> OwnedFd {
    let client = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&client, &SocketAddr::from(([127, 0, 0, 2], 0))).expect("an address of loopback");
    connect(&client, &host).expect("a connection");
    client
}

/// More clients than the limit of open files: they wait or are refused, and the server recovers when they are gone.
#[test]
fn too_few_open_files_are_no_end() {
    let scratch = files("serve-files", &[("file", 1000), ("large", 5_000_000)]);
    let starter = ["sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\""];
    let server = Server::start(&scratch, &starter, "--self-signed --network-share 100", &[]);
    let (whole, large) = (digest(&scratch, "file"), digest(&scratch, "large"));
    let host: SocketAddr = server.address.parse().expect("an address");
    let idle: Vec<_> = (0..200).map(|_| connect_from_elsewhere(host)).collect();
    // There are descriptors left for files.
    for it in server.fetch(Version::Http3, "file", 100) {
        assert_eq!(it.sha256.as_ref(), Some(&whole), "{it:?}");
    }
    assert!(server.count("fd") < 64);
    drop(idle);
    for version in ALL {
        for it in server.fetch(version, "large", 24) {
            assert_eq!(it.sha256.as_ref(), Some(&large), "{version}: {it:?}");
        }
    }
    server.end();
}
