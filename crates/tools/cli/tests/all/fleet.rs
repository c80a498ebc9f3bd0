//! `uncork fleet` and `uncork agent`, as processes over one store.

#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::exporter::{Running, metrics_at};
use crate::common::schema::assert_describes;
use crate::common::{Finished, Scratch, command, finish};
use serde_json::Value;
use uncork_testkit::{Capability, not_run, wait_for};

/// On a busy machine: an agent polls each second.
const LIMIT: Duration = Duration::from_mins(1);

/// Runs a command line in a directory. Its status is as expected.
#[track_caller]
fn run(scratch: &Scratch, line: &str, expected: i32) -> String {
    let mut command = command(line);
    command.current_dir(scratch.path(""));
    let Finished { status, stdout, stderr } = finish(command);
    assert_eq!(status, expected, "{line}\n{stdout}{stderr}");
    stdout + &stderr
}

fn agent(scratch: &Scratch, host: &str, expected: i32) -> String {
    let line = format!("agent store -o {host} --host {host} --public-key fleet.key.pub --once");
    run(scratch, &line, expected)
}

#[test]
fn policy_goes_to_hosts_by_stages_and_back_by_one_command() {
    let scratch = Scratch::new("fleet-commands");
    scratch.write("one.toml", "[default]\ntcp = \"cubic\"\n");
    scratch.write("two.toml", "[default]\ntcp = \"reno\"\n");
    run(&scratch, "fleet keygen fleet.key", 0);
    run(&scratch, "fleet keygen fleet.key", 2);
    // A store that does not exist is away, and not empty.
    for line in [
        "fleet publish store one.toml --key fleet.key",
        "fleet publish store --key fleet.key",
        "fleet rollback store --key fleet.key",
        "fleet freeze store --key fleet.key",
        "fleet plan store --public-key fleet.key.pub",
        "fleet status store --public-key fleet.key.pub",
        "fleet lease store",
        "fleet lease store --holder a",
    ] {
        let error = run(&scratch, line, 3);
        assert!(
            error.contains("help: make or mount the directory of the store"),
            "{line}: {error}"
        );
    }
    agent(&scratch, "edge1", 1);
    assert!(!scratch.path("store").exists());
    fs::create_dir(scratch.path("store")).unwrap();
    run(&scratch, "fleet publish store one.toml --key fleet.key --hold 0s --stages 100%", 0);
    assert!(agent(&scratch, "edge1", 0).contains("version 1 is active"));
    run(&scratch, "fleet publish store --key fleet.key", 0);
    run(&scratch, "fleet publish store two.toml --key fleet.key --hold 1h --stages 100%", 0);
    assert!(agent(&scratch, "edge1", 0).contains("version 2 is active"));
    let policy = || fs::read_to_string(scratch.path("edge1/current/policy.toml")).unwrap();
    assert!(policy().contains("reno"));
    assert!(run(&scratch, "fleet publish store --key fleet.key", 0).contains("is held for"));
    run(&scratch, "fleet publish store one.toml --key fleet.key", 1);
    run(&scratch, "fleet publish store one.toml --key fleet.key --at-once", 0);
    assert!(agent(&scratch, "edge1", 0).contains("version 3 is active"));
    run(&scratch, "fleet publish store --key fleet.key", 0);
    run(&scratch, "fleet publish store two.toml --key fleet.key --hold 1h --stages 100%", 0);
    assert!(agent(&scratch, "edge1", 0).contains("version 4 is active"));
    run(&scratch, "fleet rollback store --key fleet.key", 0);
    agent(&scratch, "edge1", 0);
    assert!(policy().contains("cubic"));
    let status = run(&scratch, "fleet status store --public-key fleet.key.pub --format json", 0);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["versions"]["3"], 1);
    assert_describes("fleet-status-1", [&status]);
    let report = fs::read(scratch.path("store/reports/edge1.json")).unwrap();
    assert_describes("fleet-report-1", [&serde_json::from_slice(&report).unwrap()]);
}

#[test]
fn agent_with_metrics_shows_its_version_and_a_store_that_is_away() {
    let scratch = Scratch::new("fleet-agent-metrics");
    fs::create_dir(scratch.path("store")).unwrap();
    scratch.write("one.toml", "[default]\ntcp = \"cubic\"\n");
    run(&scratch, "fleet keygen fleet.key", 0);
    run(&scratch, "fleet publish store one.toml --key fleet.key --hold 0s --stages 100%", 0);
    let line = "agent store -o edge1 --host edge1 --public-key fleet.key.pub --every 1s";
    for (address, says) in [("0.0.0.0:0", "use 127.0.0.1"), ("9466", "such as 127.0.0.1:9466")] {
        assert!(run(&scratch, &format!("{line} --metrics {address}"), 2).contains(says));
    }
    let mut agent =
        Running::start(&format!("{line} --metrics 127.0.0.1:0"), scratch.path("").as_path());
    let address = agent.address();
    let has = |wanted: &str| {
        let metrics = metrics_at(&address);
        metrics.lines().any(|line| line == wanted).then_some(metrics)
    };
    let metrics = wait_for("version 1", LIMIT, || has("uncork_agent_active_version 1"));
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(has("uncork_agent_state{state=\"active\"} 1").is_some());
    assert_promtool_accepts(metrics.split_once("\r\n\r\n").unwrap().1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = taken.local_addr().unwrap();
    let other = line.replace("edge1", "edge2");
    let refused = run(&scratch, &format!("{other} --metrics {busy}"), 3);
    assert!(refused.contains(&format!("cannot listen on '{busy}'")), "{refused}");
    fs::rename(scratch.path("store"), scratch.path("away")).unwrap();
    wait_for("away", LIMIT, || has("uncork_agent_state{state=\"away\"} 1"));
    assert!(has("uncork_agent_active_version 1").is_some());
    fs::rename(scratch.path("away"), scratch.path("store")).unwrap();
    run(&scratch, "fleet rollback store --key fleet.key", 0);
    wait_for("default", LIMIT, || has("uncork_agent_active_version 0"));
}

/// Without promtool, a skipped part.
fn assert_promtool_accepts(metrics: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut checking) = promtool.stderr(Stdio::piped()).spawn() else {
        not_run(Capability::Promtool, "promtool is not installed");
        return;
    };
    checking.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let checked = checking.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn rollback_twice_and_a_copy_that_cannot_be_written_say_so() {
    let scratch = Scratch::new("fleet-notes");
    fs::create_dir(scratch.path("store")).unwrap();
    scratch.write("one.toml", "[default]\ntcp = \"cubic\"\n");
    run(&scratch, "fleet keygen fleet.key", 0);
    run(&scratch, "fleet publish store one.toml --key fleet.key", 0);
    let waits = run(&scratch, "fleet publish store --key fleet.key", 0);
    assert!(waits.contains("not yet: no host has reported"), "{waits}");
    run(&scratch, "fleet rollback store --key fleet.key", 0);
    let again = run(&scratch, "fleet rollback store --key fleet.key", 1);
    assert!(again.contains("nothing to roll back"), "{again}");
    fs::remove_dir_all(scratch.path("store/rollouts")).unwrap();
    scratch.write("store/rollouts", "");
    let frozen = run(&scratch, "fleet freeze store --key fleet.key", 0);
    assert!(frozen.contains("note: ") && frozen.contains("is active"), "{frozen}");
    scratch.write("store/reports", "");
    assert!(agent(&scratch, "edge1", 0).contains("; report not written: "));
}

#[test]
fn two_planners_one_publishes_and_the_other_learns_until_when() {
    let scratch = Scratch::new("fleet-planners");
    fs::create_dir(scratch.path("store")).unwrap();
    scratch.write("one.toml", "[default]\ntcp = \"cubic\"\n");
    scratch.write("two.toml", "[default]\ntcp = \"reno\"\n");
    run(&scratch, "fleet keygen fleet.key", 0);
    let publish = |policy: &str, holder: &str, expected| {
        let line = format!("fleet publish store {policy} --key fleet.key --hold 0s --stages 100%");
        run(&scratch, &format!("{line} --holder {holder}"), expected)
    };
    assert!(publish("one.toml", "a", 1).contains("a does not hold the lease"));
    assert!(run(&scratch, "fleet lease store", 0).contains("no planner holds the lease"));
    let held = run(&scratch, "fleet lease store --holder a --for 1h", 0);
    let until = held.trim().strip_prefix("a holds the lease until ").unwrap();
    let other = run(&scratch, "fleet lease store --holder b", 1);
    assert!(other.contains(&format!("a holds the lease until {until}")), "{other}");
    assert!(publish("two.toml", "b", 1).contains(until));
    assert!(publish("one.toml", "a", 0).contains("version 1 at stage 100%"));
    assert!(publish("one.toml", "a", 0).contains("the fleet has this policy"));
    let lease = fs::read(scratch.path("store/lease")).unwrap();
    assert_describes("fleet-lease-1", [&serde_json::from_slice(&lease).unwrap()]);
    run(&scratch, "fleet lease store --holder a --release", 0);
    run(&scratch, "fleet lease store --holder b", 0);
    assert!(publish("one.toml", "a", 1).contains("b holds the lease until"));
}

#[test]
fn verdict_that_says_stop_rolls_the_version_back() {
    let scratch = Scratch::new("fleet-verdict");
    fs::create_dir(scratch.path("store")).unwrap();
    scratch.write("one.toml", "[default]\ntcp = \"cubic\"\n");
    run(&scratch, "fleet keygen fleet.key", 0);
    run(&scratch, "fleet publish store one.toml --key fleet.key --hold 0s --stages 100%", 0);
    agent(&scratch, "edge1", 0);
    let verdict = |stop: bool| {
        let text = format!(
            "{{\"schema\": \"uncork.fleet-gate/1\", \"version\": 1, \"unix_s\": 1, \"stop\": {stop}, \"reason\": \"retransmissions\"}}"
        );
        assert_describes("fleet-gate-1", [&serde_json::from_str(&text).unwrap()]);
        scratch.write("verdict.json", text);
    };
    let line = "fleet publish store --key fleet.key --stop-if verdict.json --rollback";
    verdict(false);
    assert!(run(&scratch, line, 0).contains("before this stage began"));
    verdict(true);
    // The option of before is an alias.
    assert!(
        run(&scratch, &line.replace("--rollback", "--roll-back"), 1).contains("retransmissions")
    );
    assert!(agent(&scratch, "edge1", 0).contains("the default is active"));
}

#[test]
fn publisher_that_asks_for_something_wrong_learns_it_before_hosts_do() {
    let scratch = Scratch::new("fleet-wrong");
    fs::create_dir(scratch.path("store")).unwrap();
    scratch.write("one.toml", "[default]\ntcp = \"cubic\"\n");
    scratch.write("fleet.key.pub", "of another key");
    run(&scratch, "fleet keygen fleet.key", 2);
    assert!(!scratch.path("fleet.key").exists(), "a private key without its public one");
    fs::remove_file(scratch.path("fleet.key.pub")).unwrap();
    run(&scratch, "fleet keygen fleet.key", 0);
    let publish = "fleet publish store one.toml --key fleet.key --hold 0s --stages";
    let order = run(&scratch, &format!("{publish} 50%,10%,100%"), 2);
    assert!(order.contains("stage 10% adds no host to 50%"), "{order}");
    let typo = run(&scratch, &format!("{publish} place:far1,100%"), 0);
    assert!(typo.contains("note: no host has reported from place:far1"), "{typo}");
    assert!(!typo.contains("chmod"), "{typo}");
    fs::set_permissions(scratch.path("fleet.key"), Permissions::from_mode(0o640)).unwrap();
    let shared = run(&scratch, "fleet rollback store --key fleet.key", 0);
    assert!(shared.contains("chmod 600 fleet.key"), "{shared}");
    agent(&scratch, "edge1", 0);
    let plan = run(&scratch, "fleet plan store --public-key fleet.key.pub --stages 100%", 0);
    assert!(plan.contains("stage 100%: 1 host: edge1\n"), "{plan}");
    let status = "fleet status store --public-key fleet.key.pub";
    assert!(run(&scratch, status, 0).contains("rolled back  version 1\n"));
    let metrics = run(&scratch, &format!("{status} --metrics one.toml/fleet.prom"), 3);
    assert!(metrics.contains("of '--metrics <FILE>'"), "{metrics}");
    run(&scratch, "fleet lease store --holder a --for 0s", 2);
    run(&scratch, "fleet lease store --holder a", 0);
    assert!(run(&scratch, "fleet lease store --holder b --release", 1).contains("a holds the"));
}

#[test]
fn agent_with_a_wrong_default_or_pause_does_not_start() {
    let scratch = Scratch::new("fleet-agent-wrong");
    fs::create_dir(scratch.path("store")).unwrap();
    scratch.write("one.toml", "[default]\ntcp = \"cubic\"\n");
    scratch.write("broken.toml", "quic = \"nonsense");
    run(&scratch, "fleet keygen fleet.key", 0);
    run(&scratch, "fleet publish store one.toml --key fleet.key --hold 0s --stages 100%", 0);
    let line = "agent store -o edge1 --host edge1 --public-key fleet.key.pub --once";
    let broken = run(&scratch, &format!("{line} --default broken.toml"), 2);
    assert!(broken.contains("broken.toml"), "{broken}");
    let busy = run(&scratch, &format!("{line} --every 0s"), 2);
    assert!(busy.contains("expected at least 1s"), "{busy}");
    // A host that polls every two hours is not unknown in between.
    run(&scratch, &format!("{line} --every 2h"), 0);
    let report = fs::read(scratch.path("store/reports/edge1.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert!(report["every_s"].as_u64().unwrap() > 6000, "{report}");
    let fails = run(&scratch, &format!("{line} --apply false"), 1);
    assert!(fails.contains("version 1 is waiting: `false` ended with exit status: 1"), "{fails}");
    // What it shall run is not known before the store was read.
    fs::rename(scratch.path("store"), scratch.path("away")).unwrap();
    let away = run(&scratch, line, 1);
    assert!(away.contains("version 1 is active: "), "{away}");
}
