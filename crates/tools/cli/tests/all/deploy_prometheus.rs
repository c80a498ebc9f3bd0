//! The dashboard's queries and the rules in a real Prometheus, which scrapes both exporters in a namespace of their own while
//! clients download over lossy paths.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::dashboard::{HOSTS, Panel, panels, variables};
use crate::common::{Scratch, finish};
use serde_json::Value;
use uncork_emu::{EmuError, Emulation, EmulationSpec};
use uncork_path::{Buffer, LossSpec, PathSpec};
use uncork_testkit::{Capability, holds_within, not_run, wait_until};
use uncork_units::{Rate, TimeDelta};

/// On a busy machine. An idle one needs less than 15 s: two scrapes, and 10 s until the first evaluation of the rules.
const LIMIT: Duration = Duration::from_mins(3);
const CONFIG: &str = r#"
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [RULES]
scrape_configs:
  - { job_name: uncork-host, static_configs: [{ targets: ["127.0.0.1:9464"] }] }
  - { job_name: uncork-serve, static_configs: [{ targets: ["127.0.0.1:9465"] }] }
"#;
/// Downloads one after the other from both listeners, until it is killed, or for five minutes.
const CLIENT: &str = "for i in $(seq 300); do for port in 8080 8081; do \
                      curl -s -m 60 -o /dev/null http://198.18.0.1:$port/large; done; done";

/// Programs that end with the test.
struct Programs(Vec<Child>);

impl Programs {
    fn start(&mut self, mut command: Command, scratch: &Scratch) {
        command.current_dir(scratch.path("")).stdin(Stdio::null());
        let log = fs::OpenOptions::new().create(true).append(true).open(scratch.path("log"));
        let log = log.unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.0.push(command.spawn().unwrap());
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asks Prometheus, in its namespace.
fn ask(emulation: &Emulation, path: &str, query: &str) -> Option<Value> {
    let mut curl = emulation.server().command("curl").unwrap();
    curl.args(["-sG", "-m", "20", "--data-urlencode", &format!("query={query}")]);
    let answer = finish({
        curl.arg(format!("http://127.0.0.1:9090/api/v1/{path}"));
        curl
    });
    let answer: Value = serde_json::from_str(&answer.stdout).ok()?;
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    Some(answer["data"].clone())
}

/// Whether the answer to a query has a value that is a number.
fn has_data(emulation: &Emulation, query: &str) -> bool {
    let Some(data) = ask(emulation, "query", query) else { return false };
    let series = data["result"].as_array().unwrap().iter();
    let mut values = series.map(|one| one["value"][1].as_str().unwrap().parse::<f64>().unwrap());
    values.any(f64::is_finite)
}

/// Starts exporters, clients and Prometheus. `None` if this machine cannot.
fn start(scratch: &Scratch) -> Option<(Emulation, Programs)> {
    if Command::new("prometheus").arg("--version").output().is_err() {
        not_run(Capability::Promtool, "prometheus is not installed");
        return None;
    }
    let path = PathSpec {
        loss: LossSpec::Bernoulli("1%".parse().unwrap()),
        ..PathSpec::new(Rate::from_mbit(20), TimeDelta::from_millis(20), Buffer::Packets(50))
    };
    let emulation = match Emulation::start(&EmulationSpec::over(path, 1)) {
        Ok(emulation) => emulation,
        Err(error @ EmuError::System { .. }) => {
            not_run(Capability::Netns, &error.to_string());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    if !fs::read_to_string(available).unwrap().split_whitespace().any(|name| name == "bbr") {
        not_run(Capability::Bbr, "the kernel has no tcp_bbr");
        return None;
    }
    scratch.write("root/large", "x".repeat(500_000));
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../deploy/prometheus/rules.yml");
    scratch.write("prometheus.yml", CONFIG.replace("RULES", rules));
    let uncork = |line: &str| {
        let mut uncork = emulation.server().command(env!("CARGO_BIN_EXE_uncork")).unwrap();
        uncork.args(line.split(' '));
        uncork
    };
    let mut programs = Programs(Vec::new());
    programs.start(uncork("host watch -q --every 200ms --listen 127.0.0.1:9464"), scratch);
    let serve = "serve -q --root root --plain --listen 198.18.0.1:8080=bbr --listen 198.18.0.1:8081=cubic \
                 --records records.jsonl --admin 127.0.0.1:9465";
    programs.start(uncork(serve), scratch);
    let mut client = emulation.client().command("bash").unwrap();
    client.args(["-c", CLIENT]);
    programs.start(client, scratch);
    let mut prometheus = emulation.server().command("prometheus").unwrap();
    let flags =
        "--config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:9090";
    prometheus.args(flags.split(' '));
    programs.start(prometheus, scratch);
    Some((emulation, programs))
}

#[test]
fn each_panel_has_data_or_says_why_not_and_each_rule_can_be_evaluated() {
    let scratch = Scratch::new("deploy-prometheus");
    let Some((emulation, _programs)) = start(&scratch) else { return };
    // A panel that may be empty says so.
    let (may_be_empty, others): (Vec<_>, Vec<_>) =
        panels(HOSTS).into_iter().partition(|panel| panel.description.contains("Empty while"));
    assert!(others.len() > 10 && may_be_empty.len() == 1);
    let queries = others.into_iter().flat_map(|panel| {
        let Panel { title, queries, .. } = panel;
        queries.into_iter().map(move |query| (title.clone(), query))
    });
    let queries =
        queries.chain(variables(HOSTS).into_iter().map(|query| ("variable".to_owned(), query)));
    let mut open: Vec<_> = queries.collect();
    let has_all = holds_within(LIMIT, || {
        open.retain(|(_, query)| !has_data(&emulation, query));
        open.is_empty()
    });
    assert!(has_all, "without data: {open:#?}");
    for panel in may_be_empty {
        for query in panel.queries {
            assert!(ask(&emulation, "query", &query).is_some(), "{}: {query}", panel.title);
        }
    }
    let mut count = 0;
    wait_until("each rule has been evaluated", LIMIT, || {
        let data = ask(&emulation, "rules", "").unwrap();
        let groups = data["groups"].as_array().unwrap().iter();
        let rules: Vec<_> = groups.flat_map(|group| group["rules"].as_array().unwrap()).collect();
        let bad = rules.iter().find(|rule| rule["health"] == "err");
        assert!(bad.is_none(), "{bad:?}");
        count = rules.len();
        rules.iter().all(|rule| rule["health"] == "ok")
    });
    assert!(count > 15, "{count}");
}
