//! `docs/reference/from-logs.md`: its commands print what it shows, and its scenario is close to the truth.
//!
//! `UPDATE_DOCS=1 cargo test -p uncork-twin --test twin from_logs` simulates the example records
//! again and updates the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use uncork_cc::{Algorithm, CcSpec};
use uncork_flow::{FlowRecord, Scope, Service, read_json_lines, write_json_lines};
use uncork_lab::Scenario;
use uncork_path::PathSpec;
use uncork_twin::{Twin, TwinSpec};

use crate::scenario;

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(docs(name)).expect(name)
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

/// The record as written by `uncork serve`.
pub(crate) fn served(flow: FlowRecord) -> FlowRecord {
    let start_unix_ns = 1_780_000_000_000_000_000 + flow.start_ns;
    let service = Service {
        host: Some("files.example".into()),
        client: Some(format!("2001:db8:{:x}::/48", flow.flow).into()),
        asn: flow.group.strip_prefix("as").and_then(|asn| asn.parse().ok()),
        status: Some(200),
        object_bytes: flow.size_bytes,
        responses: 1,
        min_rtt_ns: flow.rtt_ms.map(|rtt| (rtt.min * 1e6) as u64),
        rwnd_limited_ns: Some(0),
        sndbuf_limited_ns: Some(0),
        app_limited_ns: Some(0),
        ..Service::blank(Scope::Response, start_unix_ns, "h1", "main")
    };
    FlowRecord { engine: "serve".into(), service: Some(service), lab: None, ..flow }
}

/// The records of a server with the clients of `truth`.
fn simulate(truth: &Scenario) -> Vec<u8> {
    let instance = truth.instance(0, 1);
    let mut records = uncork_sim::run(&instance.run).flows;
    for (record, class) in records.iter_mut().zip(&instance.class_of_flow) {
        record.group = truth.cells[0].classes[*class as usize].name.as_str().into();
    }
    let records: Vec<FlowRecord> = records.into_iter().map(served).collect();
    let mut lines = Vec::new();
    write_json_lines(&mut lines, &records).expect("records in memory");
    lines
}

/// The output of `command` in a shell, in the directory of the example logs.
fn run(command: &str) -> String {
    let mut shell = Command::new("sh");
    let output =
        shell.args(["-ec", command]).current_dir(docs("from-logs")).output().expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

/// The page with the output of each `console` command (except `uncork`'s) below it.
fn with_output(page: &str) -> String {
    let mut out = String::new();
    let mut in_block = false;
    let mut is_ours = false;
    for line in page.lines() {
        if in_block && line == "```" || !in_block && line == "```console" {
            in_block = !in_block;
            is_ours = false;
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) {
            is_ours = !command.starts_with("uncork ");
            out.extend([line, "\n"]);
            if is_ours {
                out += &run(command);
            }
            continue;
        } else if in_block && is_ours {
            continue;
        }
        out.extend([line, "\n"]);
    }
    out
}

/// Median rate and RTT of a class's paths, its loss and buffer.
fn figures(scenario: &Scenario, class: &str) -> [f64; 4] {
    let instance = scenario.instance(0, 1);
    let class = scenario.cells[0].classes.iter().position(|known| known.name == class);
    let flows = instance.run.flows.iter().zip(&instance.class_of_flow);
    let of_class = flows.filter(|(_, of)| Some(**of as usize) == class);
    let paths: Vec<&PathSpec> = of_class.map(|(flow, _)| &instance.run.paths[flow.path]).collect();
    let median = |value: fn(&PathSpec) -> f64| {
        let mut values: Vec<f64> = paths.iter().map(|path| value(path)).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    [
        median(|path| path.link.nominal_rate().bits_per_sec() as f64 / 1e6),
        median(|path| path.rtt.as_millis_f64()),
        median(|path| path.loss.mean() * 100.0),
        median(|path| path.buffer_bytes(1500) as f64 / 1e3),
    ]
}

fn classes(scenario: &Scenario) -> impl Iterator<Item = &str> {
    scenario.cells[0].classes.iter().map(|class| class.name.as_str())
}

/// Median completion time of 10 MB with BBRv3 relative to CUBIC, over the paths of each class.
fn gains(scenario: &Scenario) -> BTreeMap<String, f64> {
    let names: Vec<&str> = classes(scenario).collect();
    let set = |name: &&str| {
        let of = |place: &str, value: &str| format!("flow.{name}.{place}={value}");
        [of("cc", "[\"cubic\", \"bbr3\"]"), of("transfer", "10MB"), of("paired", "true")]
    };
    let set: Vec<String> = names.iter().flat_map(set).collect();
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let scenario = self::scenario(&scenario.text, &set);
    let instance = scenario.instance(0, 1);
    let flows = uncork_sim::run(&instance.run).flows;
    let median = |class: usize, cc: &str| {
        let of_class = flows.iter().zip(&instance.class_of_flow);
        let of_class = of_class.filter(|(flow, of)| **of as usize == class && flow.cc == cc);
        let mut times: Vec<u64> = of_class.filter_map(|(flow, _)| flow.completion_ns).collect();
        times.sort_unstable();
        times[times.len() / 2] as f64
    };
    let gain = |class| median(class, "bbr3") / median(class, "cubic");
    names.iter().enumerate().map(|(nth, name)| ((*name).to_owned(), gain(nth))).collect()
}

fn table(truth: &Scenario, estimate: &Scenario) -> String {
    let mut out = String::from(
        "| network | row | median rate | median RTT | loss | buffer | time, BBRv3 / CUBIC |\n\
         |---|---|---:|---:|---:|---:|---:|\n",
    );
    let sides = [("truth", truth, gains(truth)), ("from the log", estimate, gains(estimate))];
    for class in classes(truth) {
        for (name, scenario, gains) in &sides {
            let Some(gain) = gains.get(class) else {
                let _infallible = writeln!(out, "| {class} | {name} | none | | | | |");
                continue;
            };
            let [rate, rtt, loss, buffer] = figures(scenario, class);
            let _infallible = writeln!(
                out,
                "| {class} | {name} | {rate:.1} Mbit/s | {rtt:.1} ms | {loss:.2} % | {buffer:.0} kB | {gain:.2} |"
            );
        }
    }
    out
}

/// `page` with `table` below the comment that names it.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let comment = format!("<!-- table: {name} -->\n");
    let (before, after) = page.split_once(&comment).expect("a table");
    let rest = after.trim_start().lines().skip_while(|line| line.starts_with('|'));
    let rest: Vec<&str> = rest.skip_while(|line| line.is_empty()).collect();
    format!("{before}{comment}{table}\n{}\n", rest.join("\n"))
}

/// The twin of the clients that left these records.
fn twin(records: &[u8]) -> Scenario {
    let records = read_json_lines(records).expect("records");
    let controllers = [Algorithm::Cubic, Algorithm::Bbr3].map(CcSpec::new).to_vec();
    let spec = TwinSpec { controllers, clients: 20, by_network: None, only: None };
    let twin = Twin::of(&records, &spec).expect("a twin");
    scenario(&twin.text, &[])
}

#[test]
fn page_is_current_and_recovers_the_truth() {
    let truth = scenario(&text("from-logs/truth.toml"), &[]);
    if is_update() {
        fs::write(docs("from-logs/records.jsonl"), simulate(&truth)).expect("a writable checkout");
    }
    let estimate = twin(text("from-logs/records.jsonl").as_bytes());
    let unseen = scenario(&text("from-logs/unseen.toml"), &[]);
    let of_unseen = twin(&simulate(&unseen));
    let page = text("reference/from-logs.md");
    let expected = with_table(&with_output(&page), "recovered", &table(&truth, &estimate));
    let expected = with_table(&expected, "unseen", &table(&unseen, &of_unseen));
    if is_update() {
        fs::write(docs("reference/from-logs.md"), &expected).unwrap();
    } else {
        assert_eq!(page, expected);
    }
    for class in classes(&truth) {
        let [true_rate, true_rtt, true_loss, true_buffer] = figures(&truth, class);
        let [rate, rtt, loss, buffer] = figures(&estimate, class);
        assert!((0.7..1.3).contains(&(rate / true_rate)), "{class}: {rate} Mbit/s");
        assert!((0.8..1.25).contains(&(rtt / true_rtt)), "{class}: {rtt} ms");
        assert!((loss - true_loss).abs() < 0.2, "{class}: {loss} %");
        assert!((0.5..1.5).contains(&(buffer / true_buffer)), "{class}: {buffer} kB");
    }
}

#[test]
fn example_records_parse_as_records() {
    let records = read_json_lines(text("from-logs/records.jsonl").as_bytes()).unwrap();
    assert_eq!(records.len(), 80);
}
