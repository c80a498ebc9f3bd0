//! What `uncork compare` prints.
mod common;

use serde_json::Value;

use common::{command, finish, stdout};

const SMALL: &str = "compare --size 200kB --seeds 3";

fn json(line: &str) -> Value {
    serde_json::from_str(&stdout(&format!("{line} --format json"))).expect("JSON")
}

/// The paths of all fields, such as `results.completion_s.p50`; those of lists by their first entry.
fn fields(value: &Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path =
                    if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                fields(value, &path, found);
            }
        }
        Value::Array(entries) if entries.first().is_some_and(Value::is_object) => {
            fields(&entries[0], prefix, found);
        }
        _ => found.push(prefix.to_owned()),
    }
}

#[test]
fn the_default_case_has_exactly_the_fields_of_the_contract() {
    let document = json("compare");
    let mut found = Vec::new();
    fields(&document, "", &mut found);
    let mut expected: Vec<&str> = "\
        schema version command seeds verdict \
        path.rate_bps path.rtt_ms path.loss path.loss_position path.buffer_bytes \
        path.buffer_packets path.buffer_bdp path.mss_bytes path.packet_bytes \
        workload.size_bytes \
        results.cc results.flows results.completion_s.p10 results.completion_s.p50 \
        results.completion_s.p90 results.unfinished results.goodput_bps results.utilisation \
        results.rtt_ms.min results.rtt_ms.p50 results.rtt_ms.p95 \
        results.queue_ms.p50 results.queue_ms.p95 \
        results.retransmit_fraction results.timeouts results.jain \
        results.per_flow.flow results.per_flow.cc results.per_flow.goodput_bps \
        results.per_flow.share results.per_flow.completion_s \
        engine.packets engine.wall_s engine.packets_per_s"
        .split_whitespace()
        .collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn the_default_case_is_the_published_one() {
    let document = json("compare");
    assert_eq!(document["schema"], "uncork.compare/1");
    assert_eq!(document["seeds"], 10);
    assert_eq!(document["workload"]["size_bytes"], 10_000_000);
    let path = &document["path"];
    assert_eq!((&path["rate_bps"], &path["rtt_ms"]), (&20_000_000.into(), &50.into()));
    assert_eq!((&path["loss"], &path["loss_position"]), (&0.01.into(), &"after".into()));
    assert_eq!((&path["buffer_bytes"], &path["buffer_packets"]), (&125_000.into(), &83.into()));
    let results = document["results"].as_array().unwrap();
    let names: Vec<&str> = results.iter().map(|result| result["cc"].as_str().unwrap()).collect();
    assert_eq!(names, ["cubic", "bbr1", "bbr3"]);
    for result in results {
        assert_eq!((&result["flows"], &result["unfinished"]), (&1.into(), &0.into()));
        let median = result["completion_s"]["p50"].as_f64().unwrap();
        // 10 MB and their headers take 4.14 s of the link alone.
        assert!((4.14..60.0).contains(&median), "{result}");
        assert!((0.05..=1.0).contains(&result["utilisation"].as_f64().unwrap()), "{result}");
        assert!((50.0..51.0).contains(&result["rtt_ms"]["min"].as_f64().unwrap()), "{result}");
    }
    assert!(document["engine"]["packets"].as_u64().unwrap() > 30 * 6907);
    let verdict = document["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("bbr1 finishes "), "{verdict}");
    assert!(verdict.contains("x sooner than cubic (95 % CI "), "{verdict}");
    assert_eq!(verdict.lines().count(), 2);
}

#[test]
fn the_same_command_twice_differs_only_in_its_cost() {
    let first = stdout(&format!("{SMALL} --format json --jobs 1"));
    let second = stdout(&format!("{SMALL} --format json --jobs 3"));
    let (first, first_engine) = first.split_once("\"engine\"").unwrap();
    let (second, second_engine) = second.split_once("\"engine\"").unwrap();
    assert_eq!(first, second);
    let packets = |engine: &str| engine.lines().nth(1).unwrap().to_owned();
    assert_eq!(packets(first_engine), packets(second_engine));
    assert_ne!(
        first,
        stdout(&format!("{SMALL} --seed 4 --format json")).split_once("\"engine\"").unwrap().0
    );
}

#[test]
fn the_command_in_the_document_repeats_it() {
    let document = json("compare --size 50kB --seeds 2 --rtt 20ms --buffer 30p --cc reno,bbr3");
    let line = document["command"].as_str().unwrap().strip_prefix("uncork ").unwrap();
    let again = json(line);
    assert_eq!(again["results"], document["results"]);
    assert_eq!(again["path"], document["path"]);
    assert_eq!(again["command"], document["command"]);
}

#[test]
fn a_mix_lists_each_flow() {
    let document =
        json("compare --cc bbr3+cubic,cubic --flows 2 --duration 3s --loss 0% --seeds 2");
    assert_eq!(document["workload"]["duration_s"], 3);
    let mix = &document["results"][0];
    assert_eq!((&mix["cc"], &mix["flows"]), (&"bbr3+cubic".into(), &4.into()));
    assert!(mix["completion_s"].is_null());
    let flows = mix["per_flow"].as_array().unwrap();
    let controllers: Vec<&str> = flows.iter().map(|flow| flow["cc"].as_str().unwrap()).collect();
    assert_eq!(controllers, ["bbr3", "bbr3", "cubic", "cubic"]);
    let shares: f64 = flows.iter().map(|flow| flow["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-4, "{shares}");
    assert!((0.25..=1.0).contains(&mix["jain"].as_f64().unwrap()));
    assert!((0.8..=1.0).contains(&mix["utilisation"].as_f64().unwrap()), "{mix}");
    assert_eq!(document["results"][1]["flows"], 2);
}

#[test]
fn csv_has_a_row_for_each_column() {
    let text = stdout(&format!("{SMALL} --cc cubic,bbr1 --format csv"));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0][..3], ["cc", "flows", "completion_p10_s"]);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert_eq!((rows[1][0], rows[2][0]), ("cubic", "bbr1"));
    assert!(rows[1][3].parse::<f64>().unwrap() > 0.1);
}

#[test]
fn the_table_has_a_row_for_each_column_and_a_verdict() {
    let text = stdout(&format!("{SMALL} --cc cubic,reno"));
    assert!(text.contains("20 Mbit/s, 50 ms RTT, 1 % random loss after the bottleneck"), "{text}");
    for name in ["cubic ", "reno "] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
    }
    assert!(text.contains("(3 seeds: too few for an interval)"), "{text}");
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let line = format!("{SMALL} --cc cubic");
    assert!(!stdout(&line).contains('\u{1b}'));
    assert!(stdout(&format!("{line} --color always")).contains('\u{1b}'));
    let mut no_color = command(&format!("{line} --color always"));
    no_color.env("NO_COLOR", "1");
    assert!(finish(no_color).stdout.contains('\u{1b}'), "--color outranks the environment");
}

#[test]
fn transfers_that_cannot_finish_are_counted_and_end() {
    let document = json("compare --loss 99.99% --size 1MB --cc cubic --seeds 2");
    let result = &document["results"][0];
    assert_eq!(result["unfinished"], 2);
    assert!(result["completion_s"].is_null());
    let verdict = document["verdict"].as_str().unwrap();
    assert_eq!(verdict, "cubic finishes 0 of 2 transfers; runs stop after 120 s of virtual time.");
}

#[test]
fn what_was_not_measured_is_absent() {
    // The only packet has arrived before its ACK could tell the sender of a round trip.
    let line = "compare --size 1kB --loss 0% --cc cubic --seeds 1";
    assert!(json(line)["results"][0]["rtt_ms"].is_null());
    assert!(!stdout(line).contains("NaN"));
    // Nothing ever arrives: neither panic nor nonsense.
    let nothing = "compare --size 1kB --loss 99.99999% --seeds 1";
    for format in ["human", "json", "csv"] {
        assert!(!stdout(&format!("{nothing} --format {format}")).contains("NaN"));
    }
}

#[test]
fn whoever_stops_reading_is_no_error() {
    let mut child = command("man").stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn help_shows_the_purpose_then_three_examples_that_can_be_pasted() {
    let own = ["", "--help", "-h", "compare --help", "compare -h"];
    for line in own.into_iter().chain(["lab --help", "lab run --help", "lab merge -h"]) {
        let help = stdout(line);
        let mut lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        assert!(help.find("\n\nExamples:").is_some_and(|at| at > 20), "{help}");
        for _ in 0..3 {
            let example = lines.next().unwrap().trim().strip_prefix("uncork ").unwrap();
            assert!(["compare", "lab"].iter().any(|c| example.starts_with(c)), "{example}");
        }
        assert_eq!(lines.next(), Some(""), "{line}");
    }
}

#[test]
fn completions_and_manual_pages_come_from_the_same_definition() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&format!("completions {shell}"));
        assert!(script.contains("loss-position") && script.contains("shard"), "{shell}");
        for value in ["bbr3", "litespeed-loss", "rfc9743 "] {
            assert!(
                script.replace(['\'', '"', '\n', '\t', ')'], " ").contains(value),
                "{shell}: {value}"
            );
        }
    }
    assert!(stdout("man").contains(".TH uncork 1"));
    let page = stdout("man compare");
    assert!(page.contains(".TH uncork-compare 1") && page.contains("loss\\-position"), "{page}");
    assert!(page.contains(".SH EXAMPLES\n.nf\nuncork compare\n"), "{page}");
    let page = stdout("man lab run");
    assert!(page.contains(".TH uncork-lab-run 1") && page.contains("resume"), "{page}");
}
