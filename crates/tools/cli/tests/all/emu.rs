//! `uncork emu`: commands behind a path. Tests that lack privileges are skipped with a message.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::schema::assert_describes;
use crate::common::{Finished, Scratch, can_emulate, command, finish, uncork};
use serde_json::Value;
use uncork_testkit::{Capability, install, not_run, wait_until};

/// `uncork emu` with `options` and a shell that runs `script`.
fn emu(options: &str, script: &str) -> Command {
    let mut emu = command(&format!("emu {options}"));
    emu.args(["--", "bash", "-c", script]);
    emu
}

fn eventually(what: &str, condition: impl FnMut() -> bool) {
    wait_until(what, Duration::from_mins(1), condition);
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[test]
fn status_is_that_of_the_command() {
    if !can_emulate() {
        return;
    }
    for (script, status) in [("true", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let finished = finish(emu("-q", script));
        assert_eq!((finished.status, finished.stderr.as_str()), (status, ""), "{script}");
    }
    let Finished { status, stderr, .. } = uncork("emu -q -- /nowhere/to/be/found");
    assert_eq!(status, 127);
    assert!(stderr.contains(" /nowhere/to/be/found: "), "{stderr}");
}

/// Not a test: acts as a server when this program is run as one, because bash cannot listen.
#[test]
fn plays_the_server() {
    if std::env::var_os("UNCORK_TEST_SERVER").is_some() {
        let socket = std::net::UdpSocket::bind("198.18.0.1:7").unwrap();
        let mut buffer = [0; 100];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&buffer[..length], from).unwrap();
        }
    }
}

/// The argument of `--server` that runs [`plays_the_server`].
fn server() -> String {
    let program = std::env::current_exe().unwrap();
    format!("UNCORK_TEST_SERVER=1 exec '{}' --exact emu::plays_the_server", program.display())
}

#[test]
fn commands_know_the_addresses_and_connect_over_the_path() {
    if !can_emulate() {
        return;
    }
    let scratch = Scratch::new("emu");
    let out = scratch.path("out");
    let script = "exec 3<>/dev/udp/$UNCORK_FAR/7; echo hi >&3; dd bs=99 count=1 <&3 >&2; \
                  wc -l < /proc/net/dev >&2";
    let mut emu = command("emu --delay 20ms --rate 8mbit --format json -o");
    emu.arg(&out).args(["--server", &server(), "--", "bash", "-c", script]);
    let Finished { status, stdout, stderr } = finish(emu);
    assert_eq!(status, 0, "{stderr}");
    let document: Value = serde_json::from_str(&stdout).unwrap();
    for direction in ["up", "down"] {
        assert_eq!(document[direction]["delivered_packets"], 1, "{stdout}");
        let delay = document[direction]["delay_ms"]["min"].as_f64().unwrap();
        assert!((20.0..25.0).contains(&delay), "{delay}");
    }
    assert_eq!(document["status"], 0);
    assert_describes("emu", [&document]);
    let command = document["command"].as_str().unwrap();
    assert!(command.starts_with("uncork emu --delay 20ms --rate 8mbit"), "{command}");
    assert_eq!(fs::read_to_string(out.join("summary.json")).unwrap(), stdout);
    // Two header lines, lo and uncork0: the machine's own devices are not visible.
    let said: Vec<&str> = stderr.lines().collect();
    assert!(said.contains(&"hi") && said.contains(&"4"), "{stderr}");
    assert!(stderr.contains("note: the far side is 198.18.0.1"), "{stderr}");
}

#[test]
fn machines_own_network_is_not_changed() {
    if !can_emulate() {
        return;
    }
    let devices = || fs::read_to_string("/proc/self/net/dev").unwrap().lines().count();
    let routes = || fs::read_to_string("/proc/self/net/route").unwrap();
    let before = (devices(), routes());
    let mut child = emu("-q", "read").stdin(Stdio::piped()).spawn().unwrap();
    eventually("the command runs", || children(child.id()).len() == 1);
    assert_eq!((devices(), routes()), before);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!((devices(), routes()), before);
}

/// Child processes of `parent`.
fn children(parent: u32) -> Vec<String> {
    let mut all = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(children.split_whitespace().map(str::to_owned));
    }
    all
}

/// `uncork emu --up`, and the lines it printed, one per host.
fn up(options: &str, hosts: usize) -> (Child, Vec<String>) {
    let mut up = command(&format!("emu -q --up {options}"));
    let mut child = up.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(hosts);
    (child, lines.map(Result::unwrap).collect())
}

/// The names in these lines.
fn names(lines: &[String]) -> Vec<PathBuf> {
    let name = |line: &String| line.split_whitespace().nth(1).unwrap().to_owned();
    lines.iter().map(|line| Path::new("/run/netns").join(name(line))).collect()
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

#[test]
fn path_stays_up_until_a_signal_arrives() {
    if !can_emulate() {
        return;
    }
    let scratch = Scratch::new("emu-up");
    let scenario = scratch.path("two.toml");
    let text = "title = \"Two\"\nabout = \"Two paths.\"\n[link.up]\nrate = \"50mbit\"\nbuffer = \"1bdp\"\n\
                [path.a]\nrate = \"5mbit\"\nrtt = \"20ms\"\nvia = [\"up\"]\n\
                [path.b]\nrate = \"9mbit\"\nrtt = \"40ms\"\nvia = [\"up\"]\n\
                [flow.a]\npath = \"a\"\ncc = \"cubic\"\ntransfer = \"1MB\"\n\
                [flow.b]\npath = \"b\"\ncc = \"cubic\"\ntransfer = \"1MB\"\n\
                [flow.c]\npath = \"b\"\ncc = \"cubic\"\ntransfer = \"1MB\"\nrtt = \"70ms\"\n\
                [flow.d]\npath = \"b\"\ncc = \"cubic\"\ntransfer = \"1MB\"\nrtt = \"40ms\"\n";
    fs::write(&scenario, text).unwrap();
    for signal_sent in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let (mut child, lines) = up(&scenario.to_string_lossy(), 4);
        let names = names(&lines);
        assert_eq!(names.len(), 4, "the far side, one of a, two of b");
        let ways: Vec<&str> =
            lines.iter().map(|line| line.rsplit("  ").next().unwrap().trim()).collect();
        assert_eq!(
            ways[1..],
            [
                "path 0, round trip 20 ms: a",
                "path 1, round trip 40 ms: b, d",
                "path 1, round trip 70 ms: c"
            ]
        );
        assert!(names.iter().all(|name| fs::metadata(name).is_ok()), "{names:?}");
        signal(&child, signal_sent);
        assert!(child.wait().unwrap().success());
        assert!(names.iter().all(|name| fs::symlink_metadata(name).is_err()), "{names:?}");
    }
}

#[test]
fn leftovers_of_a_killed_emulator_are_found() {
    if !can_emulate() {
        return;
    }
    let (mut keeper, kept) = up("", 2);
    let (mut json, hosts) = up("--format json", 1);
    assert_describes("emu-hosts", [&serde_json::from_str(&hosts[0]).unwrap()]);
    signal(&json, rustix::process::Signal::TERM);
    json.wait().unwrap();
    let (mut other, at_work) = up("", 2);
    let (names, at_work) = (names(&kept), names(&at_work));
    let mut runner =
        emu("-q", "sleep 1000 & echo $!; wait").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(runner.stdout.take().unwrap()).lines();
    let grandchild = lines.next().unwrap().unwrap();
    let child = children(runner.id()).pop().unwrap();
    for killed in [&mut keeper, &mut runner] {
        signal(killed, rustix::process::Signal::KILL);
        killed.wait().unwrap();
    }
    // The command itself ends with the emulator; its child processes do not.
    eventually("the command is gone", || !is_alive(&child));
    assert!(is_alive(&grandchild));
    assert!(names.iter().all(|name| fs::symlink_metadata(name).is_ok()));
    let Finished { status, stdout, .. } = uncork("emu --cleanup");
    assert_eq!(status, 0);
    for name in &names {
        assert!(stdout.contains(&format!("removed {}", name.display())), "{stdout}");
        assert!(fs::symlink_metadata(name).is_err());
    }
    assert!(stdout.contains(&format!("killed process {grandchild}")), "{stdout}");
    eventually("what it had started is gone", || !is_alive(&grandchild));
    // A running emulation is not affected.
    assert!(at_work.iter().all(|name| fs::metadata(name).is_ok()));
    signal(&other, rustix::process::Signal::TERM);
    assert!(other.wait().unwrap().success());
}

/// SIGTERM from a batch system is forwarded to the command, and the emulator ends with it.
#[test]
fn sigterm_is_forwarded_to_the_command() {
    if !can_emulate() {
        return;
    }
    let mut emu = emu("-q", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done");
    let mut child = emu.stdout(Stdio::piped()).spawn().unwrap();
    let ready = BufReader::new(child.stdout.take().unwrap()).lines().next();
    assert_eq!(ready.unwrap().unwrap(), "ready");
    signal(&child, rustix::process::Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn processes_of_commands_end_with_the_path() {
    if !can_emulate() {
        return;
    }
    let mut emu = command("emu -q");
    let servers = format!("sleep 1000 & echo $! >&2; {}", server());
    emu.args(["--server", &servers, "--", "sh", "-c", "sleep 1000 >&- & echo $! >&2"]);
    let Finished { status, stderr, .. } = finish(emu);
    assert_eq!(status, 0, "{stderr}");
    let pids: Vec<&str> = stderr.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!(pids.len(), 2, "{stderr}");
    for pid in pids {
        eventually("it is gone", || !is_alive(pid));
    }
}

/// COMMAND is not started if the server fails or the user stops waiting for it.
#[test]
fn command_is_not_started_without_its_server() {
    if !can_emulate() {
        return;
    }
    let with = |server: &str| {
        let mut emu = command("emu -q");
        emu.args(["--server", server, "--", "echo", "started"]);
        emu
    };
    let Finished { status, stdout, stderr } = finish(with("echo no such port >&2; exit 4"));
    assert_eq!((status, stdout.as_str()), (3, ""), "{stderr}");
    let words = "no such port\nerror: the command of '--server' ended before it listened: exit";
    assert!(stderr.contains(words), "{stderr}");
    let mut emu = with("echo begun >&2; exec sleep 1000");
    let mut child = emu.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    signal(&child, rustix::process::Signal::INT);
    assert!(lines.next().unwrap().unwrap().starts_with("interrupted: before"));
    let finished = child.wait_with_output().unwrap();
    assert_eq!((finished.status.code(), finished.stdout.as_slice()), (Some(130), &b""[..]));
}

/// If the device is removed, the command ends, and so does a kept path.
#[test]
fn everything_ends_without_the_path() {
    if !can_emulate() {
        return;
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return not_run(Capability::Programs, "ip, to remove a device");
    }
    let finished = finish(emu("-q", "ip link del uncork0; sleep 1000; echo never"));
    assert_eq!((finished.status, finished.stdout.as_str()), (3, ""), "{}", finished.stderr);
    assert!(finished.stderr.contains("leave the devices uncork0"), "{}", finished.stderr);
    let (mut child, lines) = up("", 2);
    let name = names(&lines).remove(1);
    let mut remove = Command::new("nsenter");
    remove.arg(format!("--net={}", name.display())).args(["ip", "link", "del", "uncork0"]);
    assert!(remove.status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

/// Without privileges, the error names the missing ones and how to get them.
#[test]
fn missing_privileges_are_named() {
    if !rustix::process::geteuid().is_root() {
        return not_run(Capability::Netns, "needs root, to run without its rights");
    }
    // A location where any user can execute it.
    let program = std::env::temp_dir().join(format!("uncork-emu-{}", std::process::id()));
    install(Path::new(env!("CARGO_BIN_EXE_uncork")), &program);
    let mut command = Command::new(&program);
    command.args(["emu", "-q", "--", "true"]).uid(65534).gid(65534);
    let finished = finish(command);
    fs::remove_file(&program).unwrap();
    assert_eq!(finished.status, 3, "{}", finished.stderr);
    assert!(finished.stderr.contains("CAP_SYS_ADMIN: run as root, or"), "{}", finished.stderr);
}
