//! `--on quic-sim`: scenarios on real QUIC endpoints in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;

use crate::common::{Scratch, finish};
use serde_json::Value;

const SCENARIO: &str = r#"title = "Over QUIC"
[run]
seeds = 2
end = "30s"
[path]
rate = "20mbit"
rtt = "40ms"
[flow.main]
transfer = "500kB"
cc = "bbr3"
[matrix]
"path.loss" = ["0%", "1%"]
"#;

fn lab(scratch: &Scratch, arguments: &str) -> crate::common::Finished {
    fs::write(scratch.path("quic.toml"), SCENARIO).unwrap();
    finish(crate::common::lab(scratch, arguments))
}

#[test]
fn quic_endpoints_give_the_same_results_each_time() {
    let scratch = Scratch::new("quic-sim");
    let run = |jobs: &str, directory: &str| {
        lab(
            &scratch,
            &format!("run quic.toml --on quic-sim --jobs {jobs} -o {directory} --format json"),
        )
    };
    let (one, two) = (run("1", "one"), run("2", "two"));
    assert_eq!((one.status, two.status), (0, 0), "{}", one.stderr);
    let document: Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!(document["engine"]["name"], "quic-sim");
    assert_eq!(document["command"], "uncork lab run quic.toml --on quic-sim");
    let file = |directory: &str| fs::read(scratch.path(directory).join("flows.parquet")).unwrap();
    assert_eq!(file("one"), file("two"));
    let again = lab(&scratch, "run quic.toml --resume -o one");
    assert_eq!(again.status, 2);
    assert!(again.stderr.contains("by quic-sim, not by sim"), "{}", again.stderr);
}

#[test]
fn quic_endpoints_are_compared_with_segments() {
    let scratch = Scratch::new("quic-agree");
    let agree = "agree quic.toml --on quic-sim --tolerance 20% -o out --format json";
    let run = lab(&scratch, agree);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["axes"][1]["values"], serde_json::json!(["sim", "quic-sim"]));
    assert_eq!(document["command"], "uncork lab agree quic.toml --on quic-sim --tolerance 20%");
    let strict = lab(&scratch, "agree quic.toml --on quic-sim --tolerance 0% -o out --resume");
    assert_eq!(strict.status, 1, "{}", strict.stderr);
}

#[test]
fn quic_sim_rejects_unsupported_scenarios() {
    let scratch = Scratch::new("quic-cannot");
    let late = lab(&scratch, "run quic.toml --on quic-sim --set flow.main.ack_delay=9s");
    assert_eq!(late.status, 2, "{}", late.stderr);
    assert!(late.stderr.contains("ack_delay"), "{}", late.stderr);
    let command = lab(&scratch, "agree quic.toml --on sim");
    assert_eq!(command.status, 2, "{}", command.stderr);
    assert!(command.stderr.contains("netns, quic-sim"), "{}", command.stderr);
}
