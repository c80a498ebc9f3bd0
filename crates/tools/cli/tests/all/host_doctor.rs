//! `uncork host doctor` on live faults, each in a network namespace of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{Finished, Scratch, finish, uncork};
use serde_json::Value;
use uncork_testkit::{Capability, not_run};

/// Runs `script` as a shell in a new network namespace with loopback up. `$DOCTOR` is the command with JSON,
/// `$OTHER` an algorithm other than reno that a namespace may have as its default.
fn in_namespace(script: &str) -> Option<Finished> {
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let Some(other) = allowed.split_whitespace().find(|name| *name != "reno") else {
        not_run(Capability::Bbr, "reno is the only algorithm allowed");
        return None;
    };
    let probe = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        not_run(Capability::Netns, "unshare --net fails");
        return None;
    }
    let mut shell = Command::new("unshare");
    let script = format!("set -e; ip link set lo up; {script}");
    shell.args(["--net", "--mount", "sh", "-c", &script]).stdin(Stdio::null());
    let doctor = concat!(env!("CARGO_BIN_EXE_uncork"), " host doctor --format json");
    Some(finish({
        shell.env("DOCTOR", doctor).env("OTHER", other);
        shell
    }))
}

fn findings(run: &Finished) -> Vec<String> {
    let json: Value = serde_json::from_str(&run.stdout).expect(&run.stderr);
    assert_eq!(json["schema"], "uncork.host-doctor/1");
    let findings = json["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["id"].as_str().unwrap().to_owned()).collect()
}

/// Two addresses on loopback, `reno` as the default, and a connection between them, held by Python.
const CONNECTED: &str = r#"
    ip address add 192.0.2.1/32 dev lo; ip address add 192.0.2.2/32 dev lo
    echo reno > /proc/sys/net/ipv4/tcp_congestion_control
    hold() { python3 -c '
import socket, subprocess, sys
listener = socket.create_server(("192.0.2.1", 8080))
client = socket.create_connection(("192.0.2.1", 8080), source_address=("192.0.2.2", 0))
server = listener.accept()[0]
sys.exit(subprocess.call(sys.argv[1], shell=True))' "$1"; }
"#;

#[test]
fn live_faults_are_found() {
    let cases = [
        (
            "not-default",
            "echo reno > /proc/sys/net/ipv4/tcp_congestion_control; $DOCTOR --expect $OTHER",
        ),
        ("algorithm-missing", "$DOCTOR --expect vegas2"),
        ("tcp-feature-off", "sysctl -qw net.ipv4.tcp_sack=0; $DOCTOR"),
        ("loss-recovery-off", "sysctl -qw net.ipv4.tcp_recovery=0; $DOCTOR"),
        ("malformed-triple", "sysctl -qw net.ipv4.tcp_wmem=16777216; $DOCTOR"),
        ("send-buffer-too-small", "sysctl -qw net.ipv4.tcp_wmem='4096 16384 20000'; $DOCTOR"),
        ("receive-buffer-too-small", "sysctl -qw net.ipv4.tcp_rmem='4096 16000 16000'; $DOCTOR"),
        ("route-limits", "ip route add 198.51.100.0/24 dev lo initcwnd 1 window 8000; $DOCTOR"),
        ("mtu-small", "ip link add e0 type veth peer name e1; ip link set e0 mtu 300 up; $DOCTOR"),
        (
            "route-overrides",
            "ip route add 198.51.100.0/24 dev lo congctl reno; $DOCTOR --expect $OTHER",
        ),
        (
            "route-locks",
            "ip route add 198.51.100.0/24 dev lo congctl lock reno; $DOCTOR --expect $OTHER",
        ),
        (
            "route-overrides",
            "ip -6 route add 2001:db8::/32 dev lo congctl reno; $DOCTOR --expect $OTHER",
        ),
        (
            "pod-has-own-default",
            "export KUBERNETES_SERVICE_HOST=192.0.2.1; $DOCTOR --expect $OTHER",
        ),
        (
            "pod-paces-itself",
            "ip link add eth0 type veth peer name node0; ip link set eth0 up; mount -t tmpfs tmpfs /run; \
             mkdir -p /run/secrets/kubernetes.io/serviceaccount; $DOCTOR --expect bbr",
        ),
        (
            "namespace-differs",
            "echo $OTHER > /proc/sys/net/ipv4/tcp_congestion_control; unshare --net sh -c \
             'echo reno > /proc/sys/net/ipv4/tcp_congestion_control; exec sleep 60' & \
             until [ $(readlink /proc/$!/ns/net) != $(readlink /proc/$$/ns/net) ] && \
             [ $(cat /proc/$!/comm) = sleep ]; do :; done; $DOCTOR || status=$?; kill $!; exit $status",
        ),
    ];
    for (id, script) in cases {
        let Some(run) = in_namespace(script) else { return };
        let found = findings(&run);
        assert!(found.iter().any(|found| found == id), "{id}: {found:?} {}", run.stderr);
    }
}

/// The remedy is run: what the doctor says of the next boot afterwards is what was wanted. The link stays a link.
#[test]
fn the_remedy_for_the_next_boot_works() {
    let script = r#"
        mount -t tmpfs none /etc/sysctl.d; mount -t tmpfs none /run; mkdir -p /run/systemd/system /run/s
        printf '# a comment\nnet.ipv4.tcp_congestion_control = cubic # fast\n' > /run/s/sysctl.conf
        touch /etc/sysctl.conf; mount --bind /run/s/sysctl.conf /etc/sysctl.conf
        remedy() { $DOCTOR --expect reno | python3 -c '
import json, sys
found = {it["id"]: it for it in json.load(sys.stdin)["findings"]}
print("; ".join(found[sys.argv[1]]["remedy"][:1]))' $1; }
        remedy file-not-read
        ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf
        sh -c "$(remedy lost-at-boot)" 2> /dev/null
        readlink /etc/sysctl.d/99-sysctl.conf; tail -1 /etc/sysctl.conf
        $DOCTOR --expect reno | grep -c lost-at-boot || true"#;
    let probe = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return not_run(Capability::Netns, "unshare --mount fails");
    }
    let mut shell = Command::new("unshare");
    let doctor = concat!(env!("CARGO_BIN_EXE_uncork"), " host doctor --format json");
    shell.args(["--mount", "sh", "-c", script]).env("DOCTOR", doctor).stdin(Stdio::null());
    let run = finish(shell);
    let expected = "If it is meant: ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf\n\
                    ../sysctl.conf\nnet.ipv4.tcp_congestion_control = reno\n0\n";
    assert_eq!(run.stdout, expected, "{}", run.stderr);
}

#[test]
fn connections_that_are_older_than_the_default_are_counted() {
    let script = "hold 'echo $OTHER > /proc/sys/net/ipv4/tcp_congestion_control; $DOCTOR'";
    let Some(run) = in_namespace(&format!("{CONNECTED}{script}")) else { return };
    let found = findings(&run);
    assert!(found.iter().any(|id| id == "old-sockets"), "{found:?}");
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(json["summary"]["connections"], 2, "both ends");
    assert_eq!(run.status, 1);
}

/// The listener that was opened before keeps its name, but what it accepts follows the default.
#[test]
fn a_listener_older_than_the_default_needs_no_restart() {
    let script = r#"python3 -c '
import socket, subprocess, sys
listener = socket.create_server(("192.0.2.1", 8080))
open("/proc/sys/net/ipv4/tcp_congestion_control", "w").write(sys.argv[2])
client = socket.create_connection(("192.0.2.1", 8080), source_address=("192.0.2.2", 0))
server = listener.accept()[0]
sys.exit(subprocess.call(sys.argv[1], shell=True))' "$DOCTOR" $OTHER"#;
    let Some(run) = in_namespace(&format!("{CONNECTED}{script}")) else { return };
    let found = findings(&run);
    assert!(found.iter().any(|id| id == "listener-older-than-default"), "{found:?}");
    assert!(!found.iter().any(|id| id == "old-sockets"), "{found:?}");
}

/// In a user namespace without a mapping it has no privileges at all.
#[test]
fn it_needs_no_privileges_and_says_what_it_could_not_see() {
    let mut unprivileged = Command::new("unshare");
    unprivileged.args([
        "--user",
        env!("CARGO_BIN_EXE_uncork"),
        "host",
        "doctor",
        "--format",
        "json",
    ]);
    let run = finish(unprivileged);
    if run.stderr.contains("unshare failed") {
        return not_run(Capability::Netns, &run.stderr);
    }
    assert!(matches!(run.status, 0 | 1), "{}", run.stderr);
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    let read = |file: &str| fs::read_to_string(file).unwrap().trim().to_owned();
    let summary = &json["summary"];
    assert_eq!(summary["default"], read("/proc/sys/net/ipv4/tcp_congestion_control"));
    assert_eq!(summary["kernel"], read("/proc/sys/kernel/osrelease"));
    assert!(findings(&run).iter().any(|id| id == "namespaces-not-examined"), "{}", run.stdout);
}

#[test]
fn saved_facts_give_the_same_diagnosis() {
    let scratch = Scratch::new("host-doctor");
    let file = scratch.path("facts.json");
    let live = uncork(&format!("host doctor --format json --save-facts {}", file.display()));
    let saved = uncork(&format!("host doctor --format json --facts {}", file.display()));
    assert_eq!((live.status, &live.stdout), (saved.status, &saved.stdout));
}

#[test]
fn invalid_facts_are_refused_by_place() {
    let scratch = Scratch::new("host-facts");
    for (text, part) in [("{}", "kernel"), ("[", "line 1"), (r#"{"schema":"x","#, "line 1")] {
        scratch.write("facts.json", text);
        let file = scratch.path("facts.json");
        let run = uncork(&format!("host doctor --facts {}", file.display()));
        assert_eq!(run.status, 2, "{}", run.stderr);
        assert!(
            run.stderr.contains("--facts") && !run.stderr.contains("panicked"),
            "{part} {}",
            run.stderr
        );
    }
    let file = scratch.write("facts.json", r#"{"schema": "uncork.host-facts/9", "kernel": 1}"#);
    let run = uncork(&format!("host doctor --facts {}", file.display()));
    let reason = "schema is uncork.host-facts/9, expected uncork.host-facts/1";
    assert!(run.status == 2 && run.stderr.contains(reason), "{}", run.stderr);
    assert_eq!(uncork("host doctor --expect=").status, 2);
    let run = uncork("host doctor --facts nowhere.json");
    assert!(run.status == 2 && run.stderr.contains("no such file"), "{}", run.stderr);
}

/// The example in docs/reference/host.md is what the command prints. `UPDATE_DOCS=1` writes it.
#[test]
fn the_documented_example_is_what_is_printed() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
    let file = format!("{root}/docs/reference/host.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once("```console\n$ uncork ").unwrap();
    let (block, after) = rest.split_once("```").unwrap();
    let (line, _) = block.split_once('\n').unwrap();
    let mut command = crate::common::command(line);
    command.current_dir(root);
    let new = format!("{before}```console\n$ uncork {line}\n{}```{after}", finish(command).stdout);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &new).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap() == new,
        "UPDATE_DOCS=1 writes docs/reference/host.md again"
    );
}
