//! Programs in scenarios: `uncork lab run --on netns`. Tests that lack privileges are skipped with
//! a message.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Finished, Scratch, can_emulate, finish};
use serde_json::Value;
use uncork_testkit::{Capability, not_run, wait_until};

const SCENARIO: &str = r#"title = "A server and a client"
[run]
seeds = 2
end = "20s"

[path]
rate = "20mbit"
rtt = "20ms"

[flow.web]
cc = "bbr1"
command = { server = 'SERVER', client = "bash -c 'wc -c < /dev/tcp/$UNCORK_FAR/$UNCORK_PORT'" }

[matrix]
"flow.web.cc" = ["reno", "bbr1"]

[[threshold]]
metric = "completion.p50"
max = "5s"

[[threshold]]
metric = "goodput.mean"
min = "1mbit"
"#;

/// Not a test: acts as a server that sends 300 kB to each client when this program is run as one.
#[test]
fn plays_the_server() {
    if std::env::var_os("UNCORK_TEST_SERVER").is_some() {
        let port = std::env::var("UNCORK_PORT").unwrap();
        for stream in TcpListener::bind(format!("0.0.0.0:{port}")).unwrap().incoming() {
            stream.unwrap().write_all(&vec![0; 300_000]).unwrap();
            println!("served");
        }
    }
}

/// The scenario with [`plays_the_server`] as its server.
fn scenario() -> String {
    let program = std::env::current_exe().unwrap();
    let program = format!(
        "exec \"{}\" --exact netns_commands::plays_the_server --nocapture",
        program.display()
    );
    SCENARIO.replace("'SERVER'", &format!("'UNCORK_TEST_SERVER=1 {program}'"))
}

fn lab(scratch: &Scratch, text: &str, arguments: &str) -> Finished {
    fs::write(scratch.path("web.toml"), text).unwrap();
    finish(crate::common::lab(scratch, arguments))
}

/// Ignores lateness, which depends on the load of this machine.
fn assert_no_program_failed(document: &Value) {
    let doubts = document["doubts"].to_string();
    assert!(!doubts.contains("failed"), "{doubts}");
}

#[test]
fn output_of_commands_is_stored() {
    if !can_emulate() {
        return;
    }
    let scratch = Scratch::new("commands");
    let run = lab(&scratch, &scenario(), "run web.toml --on netns --format json -o out");
    assert_eq!(run.status, 0, "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    // 300 kB take 0.12 s on the link, plus round trips.
    for cell in 0..2 {
        let measured = document["thresholds"][cell]["measured"].as_f64().unwrap();
        assert!((0.12..5.0).contains(&measured), "{measured} s");
    }
    assert_no_program_failed(&document);
    let names = || scratch.entries("out/commands");
    let expected: Vec<String> = (0..8)
        .map(|nth| {
            let (cell, seed) = (nth / 4 + 1, nth / 2 % 2 + 1);
            let side = ["client", "server"][nth % 2];
            format!("cell-000{cell}-seed-{seed}-web-1-{side}.txt")
        })
        .collect();
    assert_eq!(names(), expected);
    let read = |name: &str| fs::read_to_string(scratch.path("out/commands").join(name)).unwrap();
    assert_eq!(read(&expected[0]), "300000\n");
    assert!(read(&expected[1]).contains("served\n"), "{}", read(&expected[1]));

    // The stored runs are sufficient to write it again, in place and elsewhere.
    fs::remove_dir_all(scratch.path("out/commands")).unwrap();
    let again = lab(&scratch, &scenario(), "run web.toml --on netns --resume -o out");
    assert!(again.stderr.contains("4 of 4 runs are there already"), "{}", again.stderr);
    assert_eq!(names(), expected);
    let merged = lab(&scratch, &scenario(), "merge out -o merged");
    assert_eq!(merged.status, 0, "{}", merged.stderr);
    assert_eq!(scratch.entries("merged/commands"), expected);
    let copy = fs::read_to_string(scratch.path("merged/commands").join(&expected[0])).unwrap();
    assert_eq!(copy, "300000\n");
}

#[test]
fn simulator_rejects_programs() {
    let scratch = Scratch::new("commands-sim");
    for arguments in ["run web.toml", "agree web.toml"] {
        let refused = lab(&scratch, SCENARIO, arguments);
        assert_eq!(refused.status, 2, "{}", refused.stderr);
        let words = "the class 'web' is a command, and the simulator runs no programs";
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
        assert!(refused.stderr.contains("--on netns"), "{}", refused.stderr);
    }
}

#[test]
fn failing_commands_are_reported() {
    if !can_emulate() {
        return;
    }
    let scratch = Scratch::new("commands-fail");
    let one = SCENARIO.replace("seeds = 2", "seeds = 1");
    let refused =
        lab(&scratch, &one.replace("SERVER", "no-such-server"), "run web.toml --on netns");
    assert_eq!(refused.status, 3, "{}", refused.stderr);
    let words = "the server of web ended with status 127 before it listened: ";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    assert!(refused.stderr.contains("no-such-server"), "{}", refused.stderr);
    // No server is listening: the client's connection is refused in both cells.
    let failed = lab(&scratch, &one.replace("SERVER", "true"), "run web.toml --on netns");
    assert_eq!(failed.status, 1, "{}", failed.stderr);
    let words = "Unreliable: 2 of 2 runs had commands that failed (seed 1, the client of web ended with \
                 status 1: ";
    let reported = failed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(reported.contains(words), "{}", failed.stdout);
}

#[test]
fn ctrl_c_leaves_no_program_running() {
    if !can_emulate() {
        return;
    }
    let scratch = Scratch::new("commands-stop");
    let before = SCENARIO.split("command = ").next().unwrap();
    let text = format!("{before}command = {{ client = \"touch started; exec sleep 1000\" }}\n");
    fs::write(scratch.path("web.toml"), text).unwrap();
    let mut lab = crate::common::lab(&scratch, "run web.toml --on netns -q");
    let lab = lab.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the command has started", Duration::from_mins(1), || {
        scratch.path("started").exists()
    });
    let interrupted = Command::new("kill").args(["-INT", &lab.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let ended = lab.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    let found = finish(crate::common::command("emu --cleanup"));
    assert!(!found.stdout.contains("killed"), "{}", found.stdout);
}

/// The example of the reference, if iperf3 is installed.
#[test]
fn example_of_the_reference_runs() {
    let iperf3 = Command::new("iperf3").arg("--version").stdout(Stdio::null()).status();
    if !iperf3.is_ok_and(|status| status.success()) {
        return not_run(
            Capability::Programs,
            "iperf3, for the example of docs/reference/scenario.md",
        );
    }
    if !can_emulate() {
        return;
    }
    let reference = include_str!("../../../../../docs/reference/scenario.md");
    let mut blocks = reference.split("```toml\n").filter_map(|block| block.split("```").next());
    let example = blocks.find(|block| block.contains("iperf3")).unwrap();
    let scratch = Scratch::new("commands-iperf3");
    let run = lab(&scratch, example, "run web.toml --on netns --seeds 1 --format json -o out");
    assert_eq!(run.status, 0, "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_no_program_failed(&document);
    for name in scratch.entries("out/commands") {
        let printed = fs::read_to_string(scratch.path("out/commands").join(&name)).unwrap();
        assert!(printed.contains("sender") || printed.contains("receiver"), "{name}: {printed}");
    }
}
