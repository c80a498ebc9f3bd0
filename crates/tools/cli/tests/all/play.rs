//! `uncork play` with `uncork serve`, as shown in the documentation.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]
#[path = "../../../../production/serve/tests/common/content.rs"]
mod content;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::schema::{assert_describes, lines};
use crate::common::{Finished, Scratch, can_emulate, command, finish};
use content::content;
use serde_json::Value;
use uncork_testkit::wait_until;

/// A server that is stopped at the end of the test.
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

/// The document of a command that succeeds.
fn document(scratch: &Scratch, arguments: &str) -> Value {
    let done = play(scratch, &format!("{arguments} --format json"));
    assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{arguments}");
    serde_json::from_str(&done.stdout).unwrap()
}

/// The SHA-256 computed by `sha256sum`.
fn sha256(path: &Path) -> String {
    let output = std::process::Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// Every HTTP version, with and without TLS, whole files and ranges.
#[test]
fn served_files_arrive() {
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
        (&secret, "--insecure --http 3", "3"),
    ] {
        let url = &server.url;
        let all = document(&scratch, &format!("get {url}/large {flags} --sha256"));
        assert_describes("play.get-1", [&all]);
        let figures = &all["transfers"][0];
        assert_eq!(figures["http"], http, "{flags}");
        assert_eq!(figures["sha256"], digest.as_str());
        assert_eq!(
            (figures["bytes"].as_u64(), figures["status"].as_u64()),
            (Some(LARGE as u64), Some(200))
        );
        // Over QUIC it is part of connecting.
        assert_eq!(
            figures["tls_ms"].is_number(),
            url.starts_with("https") && http != "3",
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
fn one_connection_carries_parallel_downloads() {
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

/// The first address accepts datagrams but never answers: the second is tried after 250 ms (RFC
/// 8305).
#[test]
fn get_over_quic_does_not_wait_for_a_dead_address() {
    let scratch = public("play-dead-address");
    let server = Server::start(&scratch, "--self-signed");
    let dead = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (first, second) =
        (dead.local_addr().unwrap(), server.url.strip_prefix("https://").unwrap());
    let url = &server.url;
    let connect = format!("--connect {first} --connect {second}");
    let all = document(&scratch, &format!("get {url}/small --insecure --http 3 {connect}"));
    let took = all["transfers"][0]["connect_ms"].as_f64().unwrap();
    assert!((250.0..5000.0).contains(&took), "{took} ms");
}

/// A server that is killed during a response, and one that is gone.
#[test]
fn aborted_responses_are_failures() {
    let scratch = public("play-killed");
    let huge = fs::File::create(scratch.path("public/huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for flags in ["--http 1.1", "--http 2", "--http 3 --timeout 5s"] {
        let server = Server::start(&scratch, "--self-signed");
        let url = server.url.clone();
        let line = format!("play get {url}/huge --insecure {flags} -q --format json -o huge");
        let mut get = command(&line);
        get.current_dir(scratch.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let get = get.spawn().unwrap();
        let has_begun = |name: &String| {
            name != "public" && fs::metadata(scratch.path(name)).is_ok_and(|file| file.len() > 0)
        };
        wait_until("bytes arrive", Duration::from_mins(1), || {
            scratch.entries("").iter().any(has_begun)
        });
        drop(server);
        let output = get.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        // Over QUIC a killed server sends nothing; at most the kernel reports an unreachable port.
        let is_quic = flags.contains("--http 3");
        let reports = |error: &str, problem: &str| {
            error.contains(problem) || is_quic && error.contains("nothing came for 5s")
        };
        assert!(reports(&error, "the connection failed after"), "{error}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let figures = &document["transfers"][0];
        assert!(figures["bytes"].as_u64() > Some(0) && figures["goodput_bps"].is_null());
        let gone = play(&scratch, &format!("get {url}/huge --insecure {flags}"));
        assert_eq!(gone.status, 1);
        let problem = if is_quic { "no QUIC with 127.0.0.1" } else { "Connection refused" };
        assert!(reports(&gone.stderr, problem), "{}", gone.stderr);
    }
}

/// Many listeners over each HTTP version; all output formats agree.
#[test]
fn listeners_play_songs_to_their_end() {
    let scratch = public("play-audio");
    let (plain, secret) = (Server::start(&scratch, ""), Server::start(&scratch, "--self-signed"));
    // 3 MB at 24 Mbit/s, so that a song lasts one second.
    let player =
        "--bitrate 24mbit --start-threshold 100ms --listeners 8 --spread 300ms --records r";
    for (server, flags, http) in [
        (&plain, "", "1.1"),
        (&plain, "--http 2 --cmcd query", "2"),
        (&secret, "--insecure --http 3", "3"),
    ] {
        let url = &server.url;
        let _none = fs::remove_file(scratch.path("r"));
        let all = document(&scratch, &format!("audio {url}/large {player} {flags}"));
        assert_describes("play.audio-1", [&all]);
        let listeners = all["listeners"].as_array().unwrap();
        assert_eq!(listeners.len(), 8);
        for listener in listeners {
            assert_eq!((&listener["http"], &listener["songs_finished"]), (&http.into(), &1.into()));
            assert_eq!(listener["bytes"], LARGE);
            let played = listener["played_s"].as_f64().unwrap();
            assert!((played - LARGE as f64 * 8.0 / 24e6).abs() < 1e-5, "{played}");
        }
        let records = fs::read_to_string(scratch.path("r")).unwrap();
        // Six chunks plus the listener.
        let records_read = lines(&records);
        assert_eq!(records_read.len(), 8 * 7);
        assert_describes("flow-record", &records_read);
        assert_eq!(records.matches("\"playback\":{").count(), 8);
    }
    let csv = play(&scratch, &format!("audio {}/large --bitrate 24mbit --format csv", plain.url));
    assert_eq!((csv.status, csv.stdout.lines().count()), (0, 2), "{}", csv.stderr);
    let gone = play(&scratch, &format!("audio {}/gone --duration 1s --listeners 2", plain.url));
    assert_eq!(gone.status, 1);
    assert!(gone.stderr.contains("404"), "{}", gone.stderr);
    assert!(gone.stdout.contains("2 heard nothing"), "{}", gone.stdout);
}

/// A song of 1 Mbit/s over a path of 500 kbit/s. HTTP gets 1448 of 1500 bytes of it: 0.4827 s of
/// music arrive per second. The first second has arrived after 2.07 s and plays for 1/(1 - 0.4827)
/// = 1.93 s until the buffer is dry. The two seconds needed to resume take another 4.14 s, and by
/// the time they have been played the rest has arrived. So there is exactly one stutter.
#[test]
fn slow_path_causes_the_calculated_stutters() {
    if !can_emulate() {
        return;
    }
    let scratch = public("play-slow");
    // Five seconds.
    fs::write(scratch.path("public/song"), content(625_000)).unwrap();
    let program = env!("CARGO_BIN_EXE_uncork");
    let serve =
        format!("exec '{program}' serve -q --root public --plain --listen $UNCORK_FAR:8080");
    let play = "play audio http://198.18.0.1:8080/song --duration 5s --bitrate 1mbit --chunk 125kB";
    let mut emu = command("emu -q --rate 500kbit --delay 10ms --buffer 50p --server");
    emu.arg(serve).arg("--").arg(program).args(play.split(' ')).args(["--format", "json"]);
    emu.current_dir(scratch.path(""));
    let done = finish(emu);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let all: Value = serde_json::from_str(&done.stdout).unwrap();
    let listener = &all["listeners"][0];
    let share = 1448.0 / 1500.0 * 0.5;
    let near = |name: &str, expected: f64| {
        let value = listener[name].as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 0.1, "{name}: {value} s, not {expected} s");
    };
    near("playback_latency_s", 1.0 / share);
    assert_eq!(listener["stutters"], 1, "{listener}");
    near("stalled_s", 2.0 / share);
    near("played_s", 5.0);
    near("bandwidth_bps", 1e6 * share);
}

/// The commands of the page in order.
#[test]
fn commands_of_the_documentation_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/play.md");
    let page = fs::read_to_string(page).unwrap();
    let scratch = public("play-documented");
    fs::write(scratch.path("public/song.ogg"), content(40_000)).unwrap();
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
    assert_eq!(count, 8);
    let heard = fs::read_to_string(scratch.path("listeners.jsonl")).unwrap();
    assert_eq!(heard.matches("\"group\":\"listener\"").count(), 5);
    assert_eq!(fs::read(scratch.path("part")).unwrap(), content(LARGE)[..512_000]);
    let records = fs::read_to_string(scratch.path("downloads.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 5);
}

/// The files of the page are scenarios. A short run of each measures requests and playback.
#[test]
fn scenarios_of_the_page_measure_client_records() {
    if !can_emulate() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = fs::read_to_string(root.join("docs/reference/play.md")).unwrap();
    let lines = page.lines().filter_map(|line| line.strip_prefix("uncork lab run "));
    let files: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
    let latency =
        r#"--set run.end="12s" --set flow.large.cc="bbr1" --set flow.large.command.for="9s""#;
    let streaming = r#"--set run.end="8s" --set matrix."path.rate,path.rtt,path.loss"=[["1mbit","50ms","0%"]] --set flow.listener.cc="bbr1""#;
    let short = [
        ("first_byte_p50", r#"--set matrix."path.loss"=["0%"]"#),
        ("first_byte_p50", r#"--set path.loss="0%" --set flow.download.cc="bbr1""#),
        ("bandwidth_p50", latency),
        ("bandwidth_p50", latency),
        ("stutters_mean", streaming),
        ("stutters_mean", streaming),
    ];
    assert_eq!(files.len(), short.len());
    thread::scope(|scope| {
        for (file, (metric, set)) in files.into_iter().zip(short) {
            let path = root.join(file);
            scope.spawn(move || measures(&path, metric, set));
        }
    });
}

fn measures(path: &Path, metric: &str, set: &str) {
    let file = path.display();
    let scratch = Scratch::new("play-scenario");
    let mut lab = command(&format!("lab run {file} --on netns --seeds 1 -q -o out {set}"));
    lab.current_dir(scratch.path(""));
    let done = finish(lab);
    assert!(done.status <= 1, "{file}: {}", done.stderr);
    let cells = fs::read_to_string(scratch.path("out/cells.csv")).unwrap();
    let row = cells.lines().find(|line| line.contains(&format!(",{metric},")));
    assert!(row.is_some_and(|line| !line.contains(",inf")), "{file}: {cells}");
    let summary = fs::read_to_string(scratch.path("out/summary.json")).unwrap();
    assert!(!summary.contains("left no records"), "{file}");
}

/// Invalid options are reported without a server.
#[test]
fn impossible_options_exit_with_their_status() {
    let scratch = public("play-refused");
    let url = "http://127.0.0.1:9/";
    for (line, status, reason) in [
        ("get https://127.0.0.1:9/ --ca missing", 2, "'missing'"),
        ("get https://127.0.0.1:9/ --ca public/small", 2, "'public/small'"),
        ("get http://127.0.0.1:9/ --http 3", 2, "https"),
        ("get http://127.0.0.1:9/", 1, "127.0.0.1:9"),
    ] {
        let done = play(&scratch, line);
        assert_eq!(done.status, status, "{line}: {}", done.stderr);
        assert!(done.stderr.contains(reason), "{line}: {}", done.stderr);
        assert!(status == 1 || done.stdout.is_empty());
    }
    let table = play(&scratch, &format!("get {url}")).stdout;
    assert!(table.contains("0 B"), "{table}");
}
