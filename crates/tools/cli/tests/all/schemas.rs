//! Each JSON document has a schema in `docs/schemas` that describes it. Documents that need a network are checked
//! by the tests that create them: `emu.rs`, `host_change.rs`, `host_prove.rs`, `play.rs`, `serve.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::schema::{assert_describes, directory, lines, read};
use crate::common::{Scratch, finish, lab, stdout};
use serde_json::Value;
use uncork_report::lab::LabDocument;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

#[test]
fn lab_results_have_a_schema() {
    let fixture = include_str!("../../../../lab/report/tests/lab.json");
    let fixture = json(&LabDocument::from_json(fixture).unwrap().to_json());
    let mix = "--cc bbr3+cubic,cubic --flows 2 --duration 2s --start random --loss 0%,1% --seeds 6";
    let compared = json(&stdout(&format!("compare {mix} --format json")));
    assert_describes("lab-2", [&fixture, &compared]);
    let plan = json(&stdout("lab run litespeed-loss --dry-run --format json"));
    assert_describes("dry-run-1", [&plan]);
}

#[test]
fn directories_of_runs_have_a_schema() {
    let scratch = Scratch::new("schemas");
    let scenario = stdout("compare --size 50kB --seeds 2 --cc cubic --scenario");
    let traced = scenario.replace("rate = \"20mbit\"", "trace = \"link.txt\"");
    fs::write(scratch.path("small.toml"), traced).unwrap();
    fs::write(scratch.path("link.txt"), "1\n2\n3\n").unwrap();
    assert_eq!(finish(lab(&scratch, "run small.toml -o out -q")).status, 0);
    let manifest = fs::read_to_string(scratch.path("out/runs/sweep.json")).unwrap();
    assert_describes("sweep-2", [&json(&manifest)]);
    let archive = fs::read_to_string(scratch.path("out/runs/runs.archive")).unwrap();
    let headers: Vec<Value> =
        lines(&archive).into_iter().filter(|line| line.get("schema").is_some()).collect();
    assert_eq!(headers.len(), 2);
    assert_describes("run-5", &headers);
    let flows =
        lines(&archive).into_iter().find_map(|line| line.pointer("/outcome/flows").cloned());
    assert_describes("flow-record", flows.unwrap().as_array().unwrap());
}

#[test]
fn hosts_and_findings_have_a_schema() {
    let healthy =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../production/host/tests/hosts/healthy.json");
    let facts = json(&fs::read_to_string(healthy).unwrap());
    let line = format!("host doctor --expect cubic --format json --facts {healthy}");
    let diagnosis = finish(crate::common::command(&line)).stdout;
    assert_describes("host-doctor-1", [&json(&diagnosis)]);
    assert_describes("host-facts-1", [&facts]);
}

#[test]
fn traces_of_the_conformance_kit_have_a_schema() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/cc/conformance/traces");
    for trace in fs::read_dir(traces).unwrap() {
        let trace = fs::read_to_string(trace.unwrap().path()).unwrap();
        assert_describes("cc-trace-1", &lines(&trace));
    }
}

/// Source files below `crates`, without tests.
fn sources() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut open: Vec<PathBuf> = vec![crates.clone()];
    let mut found = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_str().unwrap();
            if entry.is_dir() && !["tests", "target", "fuzz"].contains(&name) {
                open.push(entry);
            } else if entry.extension().is_some_and(|it| it == "rs") && name != "tests.rs" {
                let text = fs::read_to_string(&entry).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
                let place = entry.strip_prefix(&crates).unwrap().to_str().unwrap();
                found.push((place.to_owned(), text));
            }
        }
    }
    found
}

/// Quoted names such as `uncork.lab/2`, except those of Parquet tables.
#[test]
fn each_schema_name_has_a_file() {
    let sources = sources();
    let is_table = |place: &str| place.contains("/src/parquet");
    let json = sources.iter().filter(|(place, _)| !is_table(place));
    let quoted = json.flat_map(|(_, text)| text.split('"'));
    let names: BTreeSet<&str> = quoted
        .filter(|text| text.starts_with("uncork") && !text.contains(char::is_whitespace))
        .filter(|text| text.rsplit_once('/').is_some_and(|(_, n)| n.parse::<u32>().is_ok()))
        .collect();
    let files = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().file_name());
    let documented: BTreeSet<String> = files
        .map(|file| read(file.to_str().unwrap().trim_end_matches(".json")).to_string())
        .flat_map(|schema| {
            let names = schema.split("{\"const\":\"uncork").skip(1);
            names
                .map(|name| format!("uncork{}", name.split('"').next().unwrap()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(names, documented.iter().map(String::as_str).collect());
    assert!(names.len() >= 9, "{names:?}");
}

/// Every place that writes JSON. For a new one, add a schema and a test that checks a document.
#[test]
fn each_place_that_writes_json_is_known() {
    let sources = sources();
    let calls = ["serde_json::to_", "Serializer::", "print::json", "print::document"];
    let writers = sources.iter().filter(|(_, text)| calls.iter().any(|call| text.contains(call)));
    let writers: BTreeSet<&str> = writers.map(|(place, _)| place.as_str()).collect();
    let known = [
        "core/cc/examples/conformance/record.rs",    // cc-trace-1
        "core/cc/examples/conformance/replay.rs",    // messages of differences
        "tools/cli/src/full/emu/run.rs",             // emu, emu-hosts
        "production/fleet/src/agent.rs",             // fleet-report-1
        "production/fleet/src/bundle.rs",            // read by uncork alone
        "production/fleet/src/disk.rs",              // read by uncork alone
        "production/fleet/src/lease.rs",             // fleet-lease-1
        "production/fleet/src/rollout.rs",           // read by uncork alone
        "tools/cli/src/full/fleet/run.rs",           // fleet-status-1
        "tools/cli/src/full/host/change.rs",         // host-plan-1, host-status-1
        "tools/cli/src/full/host/prove.rs",          // host-prove-1
        "tools/cli/src/full/host/run.rs",            // host-doctor-1, host-facts-1
        "tools/cli/src/full/kernel/run.rs",          // kernel-1
        "tools/cli/src/lab/dry_run.rs",              // dry-run-1
        "tools/cli/src/full/policy/run.rs",          // policy-explain
        "tools/cli/src/full/policy/ecn.rs",          // policy-ecn-1
        "tools/cli/src/print.rs",                    // documents of the commands
        "tools/cli/src/full/status/run.rs",          // status-1
        "tools/cli/src/full/steer/run.rs",           // steer-1, steer-explain-1, steer-move-1
        "core/flow/src/json.rs",                     // flow-record
        "production/host/src/change/linux/state.rs", // host-journal-1
        "production/private-files/src/releases.rs",  // read by uncork alone
        "production/watch/src/tape.rs",              // host-watch-1
        "lab/lab/src/sweep/manifest.rs",             // sweep-2
        "lab/lab/src/sweep/stored.rs",               // run-5
        "lab/report/src/json.rs",                    // lab-2, suite-2, play.get-1, play.audio-1
        "lab/report/src/lab/html/zoom.rs",           // within the page
        "production/steer/src/apply.rs",             // kept in the kernel for `uncork steer`
        "production/steer/src/pins.rs",              // the same
        "production/serve/src/admin/answer.rs",      // serve-status-1
        "production/serve/src/handover/channel.rs",  // between two processes of uncork serve
        "tools/playground/src/options.rs",           // to the playground's page
        "tools/playground/src/race.rs",              // the same
        "tools/playground/src/setup.rs",             // the same
    ];
    let missing: Vec<_> = writers.symmetric_difference(&known.into()).copied().collect();
    assert!(missing.is_empty(), "{missing:?}");
}
