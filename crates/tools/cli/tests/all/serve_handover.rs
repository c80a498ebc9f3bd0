//! A rolling restart of the real server, under load over all versions of HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Scratch, command};
use rustix::process::{Pid, Signal, kill_process};
use uncork_testkit::{pause, wait_for};

const VERSIONS: [&str; 3] = ["1.1", "2", "3"];

/// Ends with the test.
struct Server(Child);

impl Server {
    /// Starts a server; takes over from the one before.
    fn start(scratch: &Scratch, port: u16) -> Self {
        let mut serve = command(&format!(
            "serve --root public --self-signed --listen 127.0.0.1:{port} --policy policy.toml \
             --keys keys --handover handover.sock --admin unix:admin.sock --grace 60s \
             --records records.jsonl"
        ));
        serve.current_dir(scratch.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = serve.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines: Vec<String> = lines.take(2).collect::<Result<_, _>>().unwrap();
        assert_eq!(lines.len(), 2, "a line for TCP, one for QUIC");
        Self(child)
    }

    /// Waits for its end and returns what it said.
    fn end(mut self) -> String {
        wait_for("the end of a server", Duration::from_mins(2), || self.0.try_wait().unwrap());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
        std::io::read_to_string(self.0.stderr.take().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `uncork play get` of a file, which checks the length of each response.
fn client(port: u16, version: &str, file: &str, more: &str) -> Child {
    let url = format!("https://127.0.0.1:{port}/{file}");
    let mut get =
        command(&format!("play get --http {version} --insecure {more} --format json {url}"));
    get.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The sum of the bytes of all responses; each was answered with 200.
fn assert_complete(client: Child, what: &str, size: u64, count: usize) {
    let done = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{what}: {said}");
    let document: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let transfers = document["transfers"].as_array().unwrap();
    let whole = |it: &&serde_json::Value| it["status"] == 200 && it["bytes"] == size;
    assert_eq!((transfers.len(), transfers.iter().filter(whole).count()), (count, count), "{what}");
}

fn health(scratch: &Scratch) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--unix-socket", "admin.sock", "http://localhost/healthz"]);
    let said = curl.current_dir(scratch.path("")).output().unwrap();
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// Small requests without a pause on kept and on new connections, and downloads of five seconds, while the server is
/// restarted twice. The first one still has downloads when the third one starts.
#[test]
fn a_rolling_restart_under_load_fails_no_request() {
    let scratch = Scratch::new("serve-handover");
    fs::create_dir(scratch.path("public")).unwrap();
    fs::write(scratch.path("public/small"), vec![1; 1000]).unwrap();
    fs::write(scratch.path("public/large"), vec![2; 5_000_000]).unwrap();
    let policy = "[[rule]]\npath = \"/large\"\nuse = { pacing_cap = \"8mbit\" }\n";
    fs::write(scratch.path("policy.toml"), policy).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let first = Server::start(&scratch, port);
    let mut clients = Vec::new();
    for version in VERSIONS {
        for (how, count) in [("kept", 400), ("each", 100)] {
            // For four seconds.
            let gap = 4000 / count;
            let more = format!("--connections {how} --repeat {count} --gap {gap}ms --parallel 4");
            clients.push((client(port, version, "small", &more), version, how, 1000, count));
        }
        clients.push((client(port, version, "large", ""), version, "large", 5_000_000, 1));
    }
    pause(Duration::from_millis(1500), "the first server serves");
    let second = Server::start(&scratch, port);
    pause(Duration::from_secs(1), "the second server serves");
    let third = Server::start(&scratch, port);
    assert_eq!(health(&scratch).trim(), "serving", "of the third");
    for (client, version, how, size, count) in clients {
        assert_complete(client, &format!("HTTP/{version}, {how}"), size, count);
    }
    for old in [first, second] {
        let said = old.end();
        assert!(said.contains("has taken over"), "{said}");
    }
    kill_process(Pid::from_child(&third.0), Signal::TERM).unwrap();
    third.end();
    let sockets = ["handover.sock", "admin.sock"].map(|name| scratch.path(name).exists());
    assert_eq!(sockets, [false; 2], "the last server removes its sockets");
    let records = fs::read_to_string(scratch.path("records.jsonl")).unwrap();
    let broken: Vec<_> = records.lines().filter(|it| it.contains("\"broken_off\":1")).collect();
    assert_eq!(broken, Vec::<&str>::new(), "no record says that a response was broken off");
}
