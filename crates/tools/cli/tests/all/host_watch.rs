//! `uncork host watch`, over a recorded session and the live kernel.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::killed::can_kill;
use crate::common::schema::{assert_describes, lines};
use crate::common::{Scratch, can_emulate, command, finish, uncork};
use rustix::process::{Pid, Signal, kill_process};
use uncork_flow::{FlowRecord, read_flows, read_json_lines};
use uncork_testkit::{Capability, not_run, wait_until};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
/// Recorded over emulated paths: a server of BBR and CUBIC.
const SESSION: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../production/watch/tests/sessions/mixed.jsonl");

#[test]
fn replay_file_without_session_refused_by_line() {
    let run = uncork("host watch --replay Cargo.toml");
    assert_eq!(run.status, 2, "{}", run.stderr);
    assert!(run.stderr.contains("'Cargo.toml': line 1: "), "{}", run.stderr);
    let run = uncork("host watch --replay nowhere.jsonl");
    assert!(run.status == 2 && run.stderr.contains("No such file"), "{}", run.stderr);
    for wrong in ["--every 0s", "--by row", "--replay x --record y", "--records out.parquet"] {
        let run = uncork(&format!("host watch {wrong}"));
        assert!(matches!(run.status, 2 | 3) && !run.stderr.is_empty(), "{wrong}: {}", run.status);
    }
}

#[test]
fn recorded_sessions_have_a_schema() {
    assert_describes("host-watch-1", &lines(&fs::read_to_string(SESSION).unwrap()));
}

/// The example in docs/reference/watch.md is what the command prints. `UPDATE_DOCS=1` writes it.
#[test]
fn the_documented_example_is_what_is_printed() {
    let file = format!("{ROOT}/docs/reference/watch.md");
    let text = fs::read_to_string(&file).unwrap();
    let start = "```console\n$ uncork host watch";
    let (before, rest) = text.split_once(start).unwrap();
    let (block, after) = rest.split_once("```").unwrap();
    let (line, _) = block.split_once('\n').unwrap();
    let mut command = command(&format!("host watch{line}"));
    command.current_dir(ROOT);
    let new = format!("{before}{start}{line}\n{}```{after}", finish(command).stdout);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &new).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap() == new,
        "UPDATE_DOCS=1 writes docs/reference/watch.md again"
    );
}

/// All flows in the Parquet files of a directory, and the names of the files.
fn tables(scratch: &Scratch, directory: &str) -> (Vec<String>, Vec<FlowRecord>) {
    let names = scratch.entries(directory);
    let read = |name: &String| fs::read(scratch.path(directory).join(name)).unwrap();
    let flows = names.iter().flat_map(|name| read_flows(read(name)).unwrap()).collect();
    (names, flows)
}

#[test]
fn a_replay_leaves_the_records_of_the_session() {
    let scratch = Scratch::new("host-watch");
    let out = scratch.path("records/");
    let run = uncork(&format!("host watch -q --replay {SESSION} --records {}", out.display()));
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    let (names, flows) = tables(&scratch, "records");
    assert!(names.iter().all(|name| name.starts_with("connections-")), "{names:?}");
    assert!(flows.len() >= 2 && flows.iter().all(|flow| flow.engine == "watch"), "{flows:?}");
    for cc in ["bbr", "cubic"] {
        assert!(flows.iter().any(|flow| flow.cc == cc && flow.bytes_acked > 0), "{cc}");
    }
}

#[test]
fn roll_ups_of_a_watch_are_those_of_its_records() {
    let scratch = Scratch::new("host-watch-rolled");
    let [edge, merged, later] = ["edge/", "merged/", "later/"].map(|name| scratch.path(name));
    let options = format!("--records {} --rollup 5min", edge.display());
    let run = uncork(&format!("host watch -q --replay {SESSION} {options}"));
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    let run = uncork(&format!("records rollup {} -o {}", edge.display(), merged.display()));
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    let names = scratch.entries("edge");
    let records = names.iter().filter(|name| name.starts_with("connections-"));
    let records: Vec<String> = records.map(|name| edge.join(name).display().to_string()).collect();
    let run = uncork(&format!("records rollup {} -o {}", records.join(" "), later.display()));
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains(" records in "), "{}", run.stdout);
    let files = |directory: &str| -> Vec<(String, Vec<u8>)> {
        let names = scratch.entries(directory);
        let read = |name: &String| fs::read(scratch.path(directory).join(name)).unwrap();
        names.iter().map(|name| (name.clone(), read(name))).collect()
    };
    assert!(files("later") == files("merged"));
    assert!(!files("later").is_empty());
}

/// What readers see of the records at `place`: a directory, or lines.
fn recorded(scratch: &Scratch, place: &str) -> Vec<FlowRecord> {
    let read = |name: &str| fs::read(scratch.path(name)).unwrap_or_default();
    if !place.ends_with('/') {
        return read_json_lines(read(place).as_slice()).unwrap();
    }
    let exists = scratch.path(place).exists();
    let names = if exists { scratch.entries(place) } else { Vec::new() };
    let whole = names.iter().filter(|name| !name.starts_with('.'));
    whole.flat_map(|name| read_flows(read(&format!("{place}{name}"))).unwrap()).collect()
}

/// SIGKILL at each step of writing: what has its name can be read, and the next watch adds its records.
#[test]
fn killed_at_any_step_its_records_can_be_read() {
    if !can_kill() {
        return;
    }
    let scratch = Scratch::new("host-watch-kill");
    let watch = |place: &str, strace: &[&str]| {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "calls"]).args(strace).arg(env!("CARGO_BIN_EXE_uncork"));
        command.args(["host", "watch", "-q", "--replay", SESSION, "--records", place]);
        command.current_dir(scratch.path("")).status().unwrap()
    };
    for place in ["records/", "lines.jsonl"] {
        let (mut kills, mut before) = (0, recorded(&scratch, place).len());
        // A table has a hundred small writes.
        for (call, stride) in [("rename", 1), ("fsync", 1), ("write", 8)] {
            for number in (1..).step_by(stride) {
                let inject = format!("inject={call}:signal=KILL:when={number}");
                let status = watch(place, &["-e", &format!("trace={call}"), "-e", &inject]);
                let after = recorded(&scratch, place).len();
                assert!(
                    after == before || after == before + 4,
                    "{place}, {call} {number}: {after}"
                );
                before = after;
                if status.signal() != Some(9) {
                    assert!(status.success(), "{place}, {call} {number}: {status}");
                    break;
                }
                kills += 1;
            }
        }
        assert!(kills >= 1, "{place}: {kills}");
        assert!(watch(place, &["-e", "trace=rename"]).success());
        assert_eq!(recorded(&scratch, place).len(), before + 4, "{place}");
    }
}

/// The live kernel in a namespace of its own: what was recorded is replayed.
#[test]
fn what_is_recorded_is_replayed() {
    if !can_emulate() {
        return;
    }
    let scratch = Scratch::new("host-watch");
    let [tape, out, note] = ["session.jsonl", "lines", "note"].map(|name| scratch.path(name));
    let program = env!("CARGO_BIN_EXE_uncork");
    let watch =
        format!("{program} host watch --every 200ms --for 1min --record {}", tape.display());
    // 1.6 s on the link.
    let server = "import socket
listener = socket.create_server((\"198.18.0.1\", 8080))
connection = listener.accept()[0]
connection.sendall(bytes(800000))";
    let client = "import socket, time
for attempt in range(600):
    try: connection = socket.create_connection((\"198.18.0.1\", 8080))
    except ConnectionRefusedError: time.sleep(0.1)
    else: break
while connection.recv(100000): pass";
    // The connection begins after the first pass, and the watch ends after the connection, however long either takes to start.
    let servers = format!(
        "{watch} > {lines} 2> {note} & watch=$!
        seen() {{ for i in $(seq 600); do grep -q \"$1\" {lines} && return; sleep 0.1; done; }}
        seen ' connections, '; python3 -c '{server}'; seen ', 1 ended;'
        kill -TERM $watch; wait; touch {done}",
        lines = out.display(),
        note = note.display(),
        done = scratch.path("done").display(),
    );
    let mut emu = command("emu -q --rate 4mbit --delay 10ms --server");
    emu.arg(servers).args(["--", "bash", "-c"]);
    let wait = format!("[ -e {} ] && break; sleep 0.1", scratch.path("done").display());
    emu.arg(format!("python3 -c '{client}'; for i in $(seq 600); do {wait}; done"));
    let run = finish(emu);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(fs::read_to_string(note).unwrap(), "");
    let live = fs::read_to_string(out).unwrap();
    assert!(live.contains(" active, 1 ended;"), "{live}");
    assert!(live.contains("198.18.0.1:8080 > 198.19.0.1:"), "{live}");
    assert_eq!(uncork(&format!("host watch --replay {}", tape.display())).stdout, live);
    assert_describes("host-watch-1", &lines(&fs::read_to_string(tape).unwrap())[..3]);
}

/// In a user namespace without a mapping it has no privileges at all, but sees the shortest of connections.
#[test]
fn it_needs_no_privileges() {
    let scratch = Scratch::new("host-watch");
    let records = scratch.path("records.jsonl");
    let mut unprivileged = Command::new("unshare");
    unprivileged.args(["--user", env!("CARGO_BIN_EXE_uncork"), "host", "watch", "--records"]);
    let mut child = unprivileged
        .args([records.as_os_str(), "--every=1h".as_ref(), "--for=1min".as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // After the first and only pass.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    listener.accept().unwrap().0.write_all(&[7; 1234]).unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
    drop(client);
    let read = || fs::read_to_string(&records).unwrap_or_default();
    // Without a line the watch has ended by itself.
    let has_record = || line.is_empty() || read().contains(r#""bytes_acked":1234,"#);
    wait_until("a record of the connection", Duration::from_secs(50), has_record);
    let _ended = kill_process(Pid::from_child(&child), Signal::TERM);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    if stderr.contains("unshare failed") {
        return not_run(Capability::Netns, &stderr);
    }
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    assert!(line.contains(" connections, "), "{line}");
    let records = read();
    let records = read_json_lines(records.as_bytes()).unwrap();
    let listener = |record: &FlowRecord| record.service.as_ref().unwrap().listener.clone();
    let ours: Vec<_> =
        records.iter().filter(|record| listener(record) == address.to_string()).collect();
    assert_eq!(ours.len(), 1, "{records:?}");
    assert_eq!(ours[0].bytes_acked, 1234);
}

fn get(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("{request}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn prometheus_is_answered() {
    let mut watch = command("host watch --listen 127.0.0.1:0 --every 50ms --plain");
    let mut child = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let notes = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let url = notes.into_iter().find_map(|line| Some(line.split_once("http://")?.1.to_owned()));
    let url = url.unwrap();
    let address = url.strip_suffix("/metrics").unwrap();
    // The second pass is there when the first one's connection has been counted.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains(" connections, ") {}
    let text = get(address, "GET /metrics HTTP/1.1");
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("openmetrics-text"), "{text}");
    for part in ["uncork_watch_passes_total ", "uncork_watch_unseen_connections_total "] {
        assert!(text.contains(part) && text.ends_with("# EOF\n"), "{part}: {text}");
    }
    assert!(get(address, "GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
    assert!(get(address, "POST /metrics HTTP/1.1").starts_with("HTTP/1.1 405"));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Keys change the table, and the terminal is left as it was.
#[test]
fn in_a_terminal_the_table_is_live() {
    let script = r#"
import fcntl, os, pty, select, struct, sys, termios
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 150, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
text, keys = b"", [b"g", b"f", b"q"]
wanted = [b"by socket", b"by controller", b"FROZEN"]
while True:
    ready = select.select([terminal], [], [], 30)[0]
    try: more = os.read(terminal, 65536) if ready else b""
    except OSError: more = b""
    if not more: break
    text += more
    if wanted and wanted[0] in text:
        os.write(terminal, keys.pop(0)); wanted.pop(0)
assert not wanted, (wanted, text)
assert text.startswith(b"\x1b[?1049h") and b"\x1b[?1049l" in text, text
assert b"q quit" in text, text
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"#;
    let mut python = Command::new("python3");
    python.args(["-c", script, env!("CARGO_BIN_EXE_uncork"), "host", "watch", "--replay", SESSION]);
    let Ok(output) = python.env("TERM", "xterm").output() else {
        return not_run(Capability::Programs, "python3 cannot be started");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
