//! `uncork lab run --on netns`: scenarios over this machine's kernel. Tests that lack privileges
//! are skipped with a message.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;

use serde_json::Value;

use crate::common::{Finished, Scratch, finish};
use uncork_testkit::{Capability, not_run};

const SCENARIO: &str = r#"title = "Two controllers of the kernel"
[run]
seeds = 1
end = "20s"

[path]
rate = "20mbit"
rtt = "20ms"

[flow.main]
cc = "cubic"
transfer = "300kB"

[matrix]
"flow.main.cc" = ["cubic", "bbr1"]

[[threshold]]
metric = "completion.p50"
max = "5s"

[[threshold]]
metric = "queue_delay.p95"
min = "1ms"
max = "21ms"
"#;

fn lab(scratch: &Scratch, text: &str, arguments: &str) -> Finished {
    fs::write(scratch.path("real.toml"), text).unwrap();
    finish(crate::common::lab(scratch, &format!("run real.toml --on netns {arguments}")))
}

/// The result of the run, unless this machine does not support it.
fn played(finished: Finished) -> Option<Finished> {
    if finished.status == 3 {
        not_run(Capability::Netns, &finished.stderr);
        return None;
    }
    Some(finished)
}

#[test]
fn scenario_runs_on_the_kernel() {
    let scratch = Scratch::new("netns");
    let Some(run) = played(lab(&scratch, SCENARIO, "--format json -o out")) else { return };
    assert_eq!(run.status, 0, "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["engine"]["name"], "netns");
    assert_eq!(document["command"], "uncork lab run real.toml --on netns");
    let measured = |cell: usize| document["thresholds"][cell]["measured"].as_f64().unwrap();
    // 300 kB take 0.125 s on the link.
    assert!((0.125..5.0).contains(&measured(0)) && (0.125..5.0).contains(&measured(1)));
    // One BDP of queue plus a packet in transmission is 20.6 ms.
    assert!((0.001..0.021).contains(&measured(2)) && (0.001..0.021).contains(&measured(3)));

    let again = lab(&scratch, SCENARIO, "--resume -o out");
    assert!(again.stderr.contains("2 of 2 runs are there already"), "{}", again.stderr);
    let other = finish(crate::common::lab(&scratch, "run real.toml --resume -o out"));
    assert_eq!(other.status, 2);
    assert!(other.stderr.contains("by netns, not by sim"), "{}", other.stderr);
}

#[test]
fn netns_rejects_unsupported_scenarios() {
    let scratch = Scratch::new("netns-cannot");
    let bbr3 = lab(&scratch, &SCENARIO.replace("bbr1", "bbr3"), "--seeds 1");
    assert_eq!(bbr3.status, 3, "{}", bbr3.stderr);
    assert!(bbr3.stderr.contains("this kernel has no bbr3") || bbr3.stderr.contains("cannot"));
    let absent = finish(crate::common::lab(&scratch, "run real.toml --on bpf --seeds 1 -o absent"));
    assert_eq!(absent.status, 3, "{}", absent.stderr);
    let hint = "load it with `uncork kernel load uncork_";
    assert!(absent.stderr.contains(hint) || absent.stderr.contains("cannot"), "{}", absent.stderr);
    let unknown = finish(crate::common::lab(&scratch, "run real.toml --on ns3"));
    assert_eq!(unknown.status, 2);
    assert!(unknown.stderr.contains("sim, quic-sim, netns and bpf"), "{}", unknown.stderr);
}

/// Kernel and simulator on a path with few differences; a factor of two allows for the load of this
/// machine.
#[test]
fn engines_agree() {
    let scratch = Scratch::new("netns-agree");
    fs::write(scratch.path("real.toml"), SCENARIO).unwrap();
    let agree = "agree real.toml --tolerance 50% -o out --format json";
    let Some(run) = played(finish(crate::common::lab(&scratch, agree))) else { return };
    assert_eq!(run.status, 0, "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["engine"]["name"], "netns and sim");
    assert_eq!(document["axes"][1]["values"], serde_json::json!(["sim", "netns"]));
    assert_eq!(document["thresholds"].as_array().unwrap().len(), 4, "two cells, two bounds");
    assert_eq!(document["command"], "uncork lab agree real.toml --tolerance 50%");
    for file in ["report.html", "sim/runs/sweep.json", "netns/runs/sweep.json"] {
        assert!(scratch.path("out").join(file).exists(), "{file}");
    }
    let again = finish(crate::common::lab(&scratch, &format!("{agree} --resume")));
    assert!(again.stderr.contains("2 of 2 runs are there already"), "{}", again.stderr);
    // With zero tolerance they disagree.
    let strict =
        finish(crate::common::lab(&scratch, "agree real.toml --tolerance 0% -o out --resume"));
    assert_eq!(strict.status, 1, "{}", strict.stderr);
}

/// A built-in scenario with classes of different RTTs over one path, 10 and 50 ms. The buffer
/// holds 4 ms, so the measurement consists mainly of the RTT.
#[test]
fn classes_may_have_different_rtts() {
    let scratch = Scratch::new("netns-rtt");
    let mut arguments = "run bbr-queue --on netns --seeds 1 --format json".to_owned();
    for set in [
        "run.end=2s",
        "run.warmup=0s",
        "path.rate=20mbit",
        "path.buffer=10kB",
        r#"matrix."flow.near.cc,flow.far.cc"=[["bbr1","cubic"]]"#,
        r#"matrix."flow.near.count,flow.far.count"=[[1,1]]"#,
        r#"matrix."flow.near.rtt,flow.far.rtt"=[["10ms","50ms"]]"#,
    ] {
        arguments.extend([" --set ", set]);
    }
    let Some(run) = played(finish(crate::common::lab(&scratch, &arguments))) else { return };
    assert_eq!(run.status, 0, "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let rtt_ms = |class: usize| {
        let metrics = document["cells"][0]["classes"][class]["metrics"].as_array().unwrap();
        let median = metrics.iter().find(|metric| metric["name"] == "rtt_time_p50").unwrap();
        1e3 * median["estimate"]["value"].as_f64().unwrap()
    };
    let difference = rtt_ms(1) - rtt_ms(0);
    assert!((25.0..55.0).contains(&difference), "{} and {} ms", rtt_ms(0), rtt_ms(1));
}
