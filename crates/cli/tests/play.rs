//! `uncork play` against `uncork serve`, as the documentation shows it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]
mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use common::{Finished, Scratch, command, finish};
use serde_json::Value;

/// Ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts `uncork serve` on a free port, in the directory of `scratch`.
    fn start(scratch: &Scratch, arguments: &str) -> Self {
        let mut serve =
            command(&format!("serve --quiet --root public --listen 127.0.0.1:0 {arguments}"));
        serve.current_dir(scratch.path("")).stdout(Stdio::piped());
        let mut child = serve.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split(' ').next().unwrap().to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes of which no two stretches are alike.
fn content(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

const LARGE: usize = 3_000_001;

fn public(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::create_dir(scratch.path("public")).unwrap();
    fs::write(scratch.path("public/large"), content(LARGE)).unwrap();
    fs::write(scratch.path("public/small"), "fine").unwrap();
    scratch
}

fn play(scratch: &Scratch, arguments: &str) -> Finished {
    let mut play = command(&format!("play {arguments}"));
    play.current_dir(scratch.path(""));
    finish(play)
}

/// The document of a command that does what it should.
fn document(scratch: &Scratch, arguments: &str) -> Value {
    let done = play(scratch, &format!("{arguments} --format json"));
    assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{arguments}");
    serde_json::from_str(&done.stdout).unwrap()
}

/// As `sha256sum` tells it.
fn sha256(path: &Path) -> String {
    let told = std::process::Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(told.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// Every version, with and without TLS, all of it and a part.
#[test]
fn what_is_served_arrives() {
    let scratch = public("play-get");
    let (plain, secret) = (Server::start(&scratch, ""), Server::start(&scratch, "--self-signed"));
    let digest = sha256(&scratch.path("public/large"));
    let part = content(LARGE)[1000..=2_000_000].to_vec();
    for (server, flags, http) in [
        (&plain, "", "1.1"),
        (&plain, "--http 1.1", "1.1"),
        (&plain, "--http 2", "2"),
        (&secret, "--insecure", "2"),
        (&secret, "--insecure --http 1.1", "1.1"),
        (&secret, "--insecure --http 2", "2"),
    ] {
        let url = &server.url;
        let all = document(&scratch, &format!("get {url}/large {flags} --sha256"));
        assert_eq!(all["schema"], "uncork.play.get/1");
        let figures = &all["transfers"][0];
        assert_eq!(figures["http"], http, "{flags}");
        assert_eq!(figures["sha256"], digest.as_str());
        assert_eq!(
            (figures["bytes"].as_u64(), figures["status"].as_u64()),
            (Some(LARGE as u64), Some(200))
        );
        assert_eq!(
            figures["tls_ms"].is_number(),
            std::ptr::eq(server, &raw const secret),
            "{flags}"
        );
        assert!(!figures["cc"].as_str().unwrap().is_empty());
        let file = scratch.path("kept");
        let kept = format!("get {url}/large {flags} --range 1000-2000000 -o kept");
        assert_eq!(document(&scratch, &kept)["transfers"][0]["status"], 206);
        assert!(fs::read(&file).unwrap() == part, "{flags}");
    }
    let refused = play(&scratch, &format!("get {}/large", secret.url));
    assert_eq!(refused.status, 1);
    assert!(refused.stderr.contains("no TLS with '127.0.0.1': "), "{}", refused.stderr);
    assert!(refused.stderr.contains("certificate"), "{}", refused.stderr);
}

#[test]
fn one_connection_carries_all_at_the_same_time() {
    let scratch = public("play-one");
    let server = Server::start(&scratch, "");
    let url = &server.url;
    let line = format!(
        "get {url}/large {url}/small --repeat 20 --parallel 10 --http 2 --connections one --records r"
    );
    let all = document(&scratch, &line);
    let transfers = all["transfers"].as_array().unwrap();
    assert_eq!(transfers.len(), 40);
    assert_eq!(transfers.iter().filter(|one| one["connect_ms"].is_number()).count(), 1);
    let records = fs::read_to_string(scratch.path("r")).unwrap();
    assert_eq!(records.lines().count(), 40);
    let record: Value = serde_json::from_str(records.lines().nth(39).unwrap()).unwrap();
    assert_eq!((&record["engine"], &record["flow"]), (&"play".into(), &39.into()));
    assert_eq!((&record["size_bytes"], &record["bytes_delivered"]), (&4.into(), &4.into()));
}

/// A server that is killed in the midst of it, and one that is not there any more.
#[test]
fn what_is_broken_off_has_failed() {
    let scratch = public("play-killed");
    let huge = fs::File::create(scratch.path("public/huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for flags in ["--http 1.1", "--http 2"] {
        let server = Server::start(&scratch, "--self-signed");
        let url = server.url.clone();
        let mut get = command(&format!("play get {url}/huge --insecure {flags} -q --format json"));
        get.stdout(Stdio::piped()).stderr(Stdio::piped());
        let get = get.spawn().unwrap();
        thread::sleep(Duration::from_millis(500));
        drop(server);
        let output = get.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("the connection failed after"), "{error}");
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let figures = &told["transfers"][0];
        assert!(figures["bytes"].as_u64() > Some(0) && figures["goodput_bps"].is_null());
        let gone = play(&scratch, &format!("get {url}/huge --insecure {flags}"));
        assert_eq!(gone.status, 1);
        assert!(gone.stderr.contains("Connection refused"), "{}", gone.stderr);
    }
}

/// The commands of the page, in its order.
#[test]
fn the_documentation_plays() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/play.md");
    let page = fs::read_to_string(page).unwrap();
    let scratch = public("play-documented");
    let (plain, secret) = (Server::start(&scratch, ""), Server::start(&scratch, "--self-signed"));
    let mut count = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("uncork play ")) {
        let line = line.split('#').next().unwrap_or_default();
        let line = line.replace("http://127.0.0.1:8080", &plain.url);
        let line = line.replace("https://127.0.0.1:8443", &secret.url);
        let done = play(&scratch, &line);
        assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{line}");
        count += 1;
    }
    assert_eq!(count, 5);
    assert_eq!(fs::read(scratch.path("part")).unwrap(), content(LARGE)[..512_000]);
    let records = fs::read_to_string(scratch.path("downloads.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 5);
}

/// Those of the command line have no server to answer.
#[test]
fn what_cannot_be_is_said_with_its_status() {
    let scratch = public("play-refused");
    let url = "http://127.0.0.1:9/";
    for (line, status, reason) in [
        (
            "get nowhere",
            2,
            "error: invalid value 'nowhere' for '<URL>...': it has no scheme; write https://",
        ),
        ("get http://127.0.0.1:9/ --range 5-4", 2, "the last byte comes before the first"),
        ("get http://127.0.0.1:9/ --parallel 0", 2, "for '--parallel <N>': give 1 to 1000000"),
        ("get http://127.0.0.1:9/ -o x --repeat 2", 2, "2 downloads cannot be kept in one file"),
        ("get http://127.0.0.1:9/ --connections one", 2, "HTTP/1.1 carries one download at a time"),
        (
            "get http://127.0.0.1:9/ http://127.0.0.1:7/ --connections one --http 2",
            2,
            "different servers",
        ),
        ("get https://127.0.0.1:9/ --ca missing", 2, "cannot take certificates from 'missing'"),
        ("get https://127.0.0.1:9/ --ca public/small", 2, "give a file with certificates in PEM"),
        ("get http://127.0.0.1:9/ --records no/where", 3, "cannot write records to 'no/where'"),
        ("get http://127.0.0.1:9/", 1, "cannot connect to 127.0.0.1:9: Connection refused"),
    ] {
        let done = play(&scratch, line);
        assert_eq!(done.status, status, "{line}: {}", done.stderr);
        assert!(done.stderr.contains(reason), "{line}: {}", done.stderr);
        assert!(status == 1 || done.stdout.is_empty());
    }
    let table = play(&scratch, &format!("get {url}")).stdout;
    assert!(table.contains("0 B"), "{table}");
}
