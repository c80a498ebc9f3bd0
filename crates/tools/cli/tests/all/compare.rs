//! The output of `uncork compare`.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use serde_json::Value;

use crate::common::{command, finish, stdout};

const SMALL: &str = "compare --size 200kB --seeds 3";

fn json(line: &str) -> Value {
    serde_json::from_str(&stdout(&format!("{line} --format json"))).expect("JSON")
}

/// The metric `name` of the row of `cc` in cell `cell`.
fn metric(document: &Value, cell: usize, cc: &str, name: &str) -> Option<f64> {
    let classes = document["cells"][cell]["classes"].as_array().unwrap();
    let class = classes.iter().find(|class| class["cc"] == cc).unwrap();
    let metrics = class["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|metric| metric["name"] == name)?;
    metric["estimate"]["value"].as_f64()
}

#[test]
fn default_case_is_the_published_one() {
    let document = json("compare");
    assert_eq!(
        (&document["schema"], &document["name"]),
        (&"uncork.lab/2".into(), &"compare".into())
    );
    assert_eq!(document["seeds"], 10);
    let scenario = document["scenario"].as_str().unwrap();
    for line in ["rate = \"20mbit\"", "rtt = \"50ms\"", "loss = \"1%\"", "transfer = \"10MB\""] {
        assert!(scenario.contains(line), "{scenario}");
    }
    for (cell, cc) in ["cubic", "bbr1", "bbr3"].into_iter().enumerate() {
        let class = &document["cells"][cell]["classes"][0];
        assert_eq!((&class["flows"], &class["finished"]), (&10.into(), &10.into()));
        // 10 MB plus headers take 4.14 s on the link.
        let median = metric(&document, cell, cc, "completion_p50").unwrap();
        assert!((4.14..60.0).contains(&median), "{median}");
        let link = metric(&document, cell, cc, "utilisation_mean").unwrap();
        assert!((5.0..=100.0).contains(&link), "{link}");
    }
    assert!(document["engine"]["packets"].as_u64().unwrap() > 30 * 6907);
    let answers = document["answers"].as_array().unwrap();
    let choices: Vec<&str> =
        answers.iter().map(|answer| answer["choice"].as_str().unwrap()).collect();
    assert_eq!(choices, ["bbr1", "bbr3"]);
    for answer in answers {
        assert_eq!((&answer["baseline"], &answer["kind"]), (&"cubic".into(), &"better".into()));
        let ratio = |name: &str| answer["ratio"][name].as_f64().unwrap();
        assert!(ratio("low") <= ratio("value") && ratio("value") <= ratio("high"), "{answer}");
        assert!(ratio("high") < 0.5, "{answer}");
    }
}

/// One flow has more than each of two, with any controller.
#[test]
fn other_number_of_flows_is_not_compared_and_named() {
    let document = json("compare --size 200kB --seeds 3 --cc cubic,cubic+cubic,bbr3");
    let answers = document["answers"].as_array().unwrap();
    let compared = answers.iter().filter(|it| it["baseline"] == "cubic");
    let choices: Vec<&str> = compared.map(|it| it["choice"].as_str().unwrap()).collect();
    assert_eq!(choices, ["bbr3"]);
    let named = "cubic+cubic is not compared with cubic: 2 flows against 1.";
    assert_eq!(document["not_compared"], Value::from(vec![named]));
}

/// Costs of a slower or unfair controller are reported too.
#[test]
fn costs_of_both_sides_are_reported() {
    let text = stdout("compare --loss 0% --duration 10s --flows 4 --cc cubic,bbr1 --seeds 6");
    let verdict = text.split("\n\n").nth(1).unwrap().replace('\n', " ");
    assert!(verdict.starts_with("bbr1 and cubic "), "{verdict}");
    assert!(verdict.contains("; bbr1 retransmits "), "{verdict}");
    let shallow = "compare --loss 0% --duration 10s --flows 10 --buffer 0.5bdp --cc cubic,bbr1";
    let document = json(&format!("{shallow} --seeds 6"));
    let prices = document["answers"][0]["prices"].as_array().unwrap();
    let jain = prices.iter().find(|price| price["metric"] == "jain_mean").unwrap();
    assert_eq!(jain["payer"], "choice", "{jain}");
    let text = stdout(&format!("{shallow} --seeds 6")).replace('\n', " ");
    assert!(text.contains("shares less evenly: Jain 0."), "{text}");
}

#[test]
fn timeouts_are_means_of_a_flow() {
    let document = json("compare --loss 20% --size 1MB --cc cubic --seeds 4");
    let mean = metric(&document, 0, "cubic", "timeouts_mean").unwrap();
    assert!((1.0..1000.0).contains(&mean), "{mean}");
    let text = stdout("compare --loss 20% --size 1MB --cc cubic --seeds 4");
    let heading: Vec<&str> = text.lines().filter(|line| line.contains("RTOs")).collect();
    assert_eq!(heading.len(), 1, "{text}");
    assert!(text.contains(&format!("{mean:.1}")), "{mean}: {text}");
}

#[test]
fn equal_commands_print_equal_bytes() {
    for format in ["json", "csv", "human"] {
        let first = stdout(&format!("{SMALL} --format {format} --jobs 1"));
        assert_eq!(first, stdout(&format!("{SMALL} --format {format} --jobs 3")));
        assert_ne!(first, stdout(&format!("{SMALL} --format {format} --seed 4")));
    }
}

#[test]
fn command_in_the_document_reproduces_it() {
    let line = "compare --size 50kB --seeds 2 --rtt 20ms --loss 0%,1% --buffer 30p --cc reno,bbr3";
    let document = json(line);
    let line = document["command"].as_str().unwrap().strip_prefix("uncork ").unwrap();
    assert_eq!(json(line), document);
}

#[test]
fn several_losses_make_a_matrix() {
    let line = "compare --size 100kB --seeds 6 --loss 0%,0.1%,2% --rtt 20ms,50ms --cc cubic,bbr3";
    let document = json(line);
    assert_eq!(document["cells"].as_array().unwrap().len(), 12);
    let places: Vec<&str> = document["answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["place"].as_str().unwrap())
        .collect();
    assert_eq!(places.len(), 6);
    assert_eq!(places[..2], ["rtt 20ms, loss 0%", "rtt 20ms, loss 0.1%"]);
    let text = stdout(line);
    for place in places {
        let rows = text.lines().filter(|line| line.starts_with(&format!("{place} ")));
        assert_eq!(rows.count(), 1, "{place}: {text}");
    }
    assert!(text.contains("completion p50, bbr3 / cubic"), "{text}");
    assert!(text.contains(" of 6 cells"), "{text}");
}

#[test]
fn scenario_runs_in_the_lab() {
    let scratch = crate::common::Scratch::new("scenario");
    let line = "compare --size 100kB --seeds 2 --cc cubic,bbr3+cubic";
    let text = stdout(&format!("{line} --scenario"));
    std::fs::write(scratch.path("compare.toml"), text).unwrap();
    let lab = finish(crate::common::lab(&scratch, "run compare.toml --format json"));
    let document: Value = serde_json::from_str(&lab.stdout).unwrap();
    assert_eq!(document["cells"], json(line)["cells"]);
}

#[test]
fn mix_lists_each_controller_and_the_total() {
    let line = "compare --cc bbr3+cubic,cubic --flows 2 --duration 3s --loss 0% --seeds 2";
    let document = json(line);
    let names = |cell: usize| -> Vec<(String, u64)> {
        let classes = document["cells"][cell]["classes"].as_array().unwrap();
        let row = |class: &Value| {
            (class["cc"].as_str().unwrap().to_owned(), class["flows"].as_u64().unwrap())
        };
        classes.iter().map(row).collect()
    };
    let row = |name: &str, flows| (name.to_owned(), flows);
    assert_eq!(names(0), [row("bbr3+cubic", 8), row("bbr3", 4), row("cubic", 4)]);
    assert_eq!(names(1), [row("cubic", 4)]);
    let share = |cc| metric(&document, 0, cc, "share_mean").unwrap();
    assert!((share("bbr3") + share("cubic") - 100.0).abs() < 1e-3);
    let link = metric(&document, 0, "bbr3+cubic", "utilisation_mean").unwrap();
    assert!((80.0..=100.0).contains(&link), "{link}");
    let csv = stdout(&format!("{line} --format csv"));
    for row in ["bbr3+cubic,\"[", ",main,bbr3,", ",main,bbr3+cubic,"] {
        assert!(csv.contains(row.trim_end_matches("\"[").trim_end_matches(',')), "{row}: {csv}");
    }
    let shares = csv.lines().filter(|line| line.contains(",share_mean,%,")).count();
    assert_eq!(shares, 2, "{csv}");
}

#[test]
fn csv_has_a_line_per_metric() {
    let text = stdout(&format!("{SMALL} --cc cubic,bbr1 --format csv"));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert!(text.starts_with("flow.main.cc,class,cc,flows,finished,metric,unit,value,"), "{text}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    for cc in ["cubic", "bbr1"] {
        assert!(text.contains(&format!("\n{cc},main,{cc},3,3,completion_p50,s,")), "{text}");
    }
}

#[test]
fn table_has_answers_and_a_row_per_column() {
    let text = stdout("compare --size 200kB --seeds 6 --cc cubic,reno");
    assert!(text.starts_with("200 kB over 20 Mbit/s, 50 ms RTT, "), "{text}");
    for name in ["cubic ", "reno "] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
    }
    assert!(text.contains("\n\nreno and cubic "), "{text}");
    let text = stdout(&format!("{SMALL} --cc cubic,bbr1"));
    assert!(text.contains("\n\nbbr1 and cubic: "), "{text}");
}

#[test]
fn colours_need_a_terminal_or_a_flag() {
    let line = format!("{SMALL} --cc cubic");
    assert!(!stdout(&line).contains('\u{1b}'));
    assert!(stdout(&format!("{line} --color always")).contains('\u{1b}'));
    let mut no_color = command(&format!("{line} --color always"));
    no_color.env("NO_COLOR", "1");
    assert!(finish(no_color).stdout.contains('\u{1b}'), "--color overrides the environment");
}

#[test]
fn transfers_that_cannot_finish_are_counted_and_end() {
    let line = "compare --loss 99.99% --size 1MB --cc cubic,bbr1 --seeds 2";
    let document = json(line);
    let class = &document["cells"][0]["classes"][0];
    assert_eq!((&class["flows"], &class["finished"]), (&2.into(), &0.into()));
    assert_eq!(metric(&document, 0, "cubic", "completion_p50"), None);
    let text = stdout(line);
    assert!(text.contains("bbr1 finishes 0 of 2 transfers, cubic 0 of 2"), "{text}");
    assert!(text.contains("\ncubic: 2 of 2 transfers "), "{text}");
}

#[test]
fn unmeasured_metrics_are_absent() {
    // The only packet arrives before any ACK could provide an RTT.
    let line = "compare --size 1kB --loss 0% --cc cubic --seeds 1";
    assert_eq!(metric(&json(line), 0, "cubic", "rtt_p50"), None);
    assert!(!stdout(line).contains("NaN"));
    // No packet ever arrives: neither a panic nor invalid output.
    let nothing = "compare --size 1kB --loss 99.99999% --seeds 1";
    for format in ["human", "json", "csv"] {
        assert!(!stdout(&format!("{nothing} --format {format}")).contains("NaN"));
    }
}

#[test]
fn closed_stdout_is_not_an_error() {
    let mut child = command("man").stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn help_shows_the_purpose_then_three_working_examples() {
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
            // fish separates a value from its description by a literal `\t`.
            let words = script.replace("\\t", " ").replace(['\'', '"', '\n', '\t', ')'], " ");
            assert!(words.contains(value), "{shell}: {value}");
        }
    }
    assert!(stdout("man").contains(".TH uncork 1"));
    let page = stdout("man compare");
    assert!(page.contains(".TH uncork-compare 1") && page.contains("loss\\-position"), "{page}");
    assert!(page.contains(".SH EXAMPLES\n.nf\nuncork compare\n"), "{page}");
    let page = stdout("man lab run");
    assert!(page.contains(".TH uncork-lab-run 1") && page.contains("resume"), "{page}");
    for command in ["lab", "emu", "serve", "play", "policy", "man"] {
        let page = stdout(&format!("man {command}"));
        assert!(page.contains(&format!(".TH uncork-{command} 1")), "{page}");
    }
}
