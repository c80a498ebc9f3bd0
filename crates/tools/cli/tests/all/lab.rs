//! The output and errors of `uncork lab`.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;

use serde_json::Value;

use crate::common::{Finished, Scratch, finish, stdout, uncork};

const SMALL: &str = r#"title = "A small one"
about = "Two cells of three runs each."

[run]
seeds = 3

[path]
rate = "20mbit"
rtt = "20ms"
loss = "1%"

[flow.main]
cc = "cubic"
transfer = "100kB"

[matrix]
"flow.main.cc" = ["cubic", "bbr3"]

[[threshold]]
metric = "completion.p50"
max = "60s"
"#;

/// `uncork lab` with `arguments`, in a directory with `text` as `small.toml`.
fn lab(scratch: &Scratch, text: &str, arguments: &str) -> Finished {
    fs::write(scratch.path("small.toml"), text).unwrap();
    finish(crate::common::lab(scratch, arguments))
}

#[test]
fn list_names_every_scenario_with_its_runs() {
    let list = stdout("lab list");
    assert!(list.lines().next().unwrap().starts_with("name "), "{list}");
    let row = list.lines().find(|line| line.starts_with("litespeed-loss ")).unwrap();
    assert!(row.contains("CUBIC and BBR") && row.ends_with(" 15 x 20 = 300"), "{row}");
}

#[test]
fn shown_scenarios_can_be_run() {
    let scratch = Scratch::new("show");
    let shown = stdout("lab show litespeed-loss");
    assert!(shown.starts_with("title = "), "{shown}");
    let arguments = "run small.toml --seeds 1 --set flow.download.transfer=50kB --format json";
    let Finished { status, stdout, stderr } = lab(&scratch, &shown, arguments);
    assert_eq!(status, 1, "50 kB does not show the effects of 10 MB: {stderr}");
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&document["name"], &document["seeds"]), (&"small".into(), &1.into()));
    assert_eq!(document["cells"].as_array().unwrap().len(), 15);
}

#[test]
fn stdout_has_the_requested_format() {
    let scratch = Scratch::new("formats");
    let printed = |format: &str| {
        let finished = lab(&scratch, SMALL, &format!("run small.toml --format {format}"));
        assert_eq!((finished.status, finished.stderr.as_str()), (0, ""), "{format}");
        finished.stdout
    };
    let table = printed("human");
    // First the answers, then the thresholds.
    assert!(table.starts_with("bbr3 and cubic: "), "{table}");
    assert!(table.contains("\n\nBoth thresholds met.\n"), "{table}");
    assert!(!table.contains('\u{1b}'), "{table}");
    let csv = printed("csv");
    assert!(csv.starts_with("flow.main.cc,class,cc,flows,finished,metric,"), "{csv}");
    let document: Value = serde_json::from_str(&printed("json")).unwrap();
    assert_eq!(document["schema"], "uncork.lab/2");
    assert_eq!(document["command"], "uncork lab run small.toml");
    assert_eq!(document["cells"][1]["classes"][0]["flows"], 3);
    let coloured = lab(&scratch, SMALL, "run small.toml --color always").stdout;
    assert!(coloured.contains('\u{1b}'), "{coloured}");
}

#[test]
fn command_in_the_document_reproduces_it() {
    let scratch = Scratch::new("repeat");
    let arguments = "run small.toml --set path.loss=3% --seeds 2 --seed 7 --jobs 1 --format json";
    let first = lab(&scratch, SMALL, arguments).stdout;
    let document: Value = serde_json::from_str(&first).unwrap();
    let command = document["command"].as_str().unwrap();
    assert_eq!(command, "uncork lab run small.toml --set path.loss=3% --seeds 2 --seed 7");
    let again = command.strip_prefix("uncork lab ").unwrap();
    let second = lab(&scratch, SMALL, &format!("{again} --jobs 2 --format json")).stdout;
    assert_eq!(first, second);
    assert!(document["scenario"].as_str().unwrap().contains("loss = \"3%\""), "{document}");
    let other = lab(&scratch, SMALL, "run small.toml --seeds 2 --seed 7 --format json").stdout;
    assert_ne!(serde_json::from_str::<Value>(&other).unwrap()["cells"], document["cells"]);
}

/// The plan approximately matches the actual runs: a dry run counts without running.
#[test]
fn dry_run_reports_the_size_of_a_sweep_and_writes_nothing() {
    let scratch = Scratch::new("lab-dry");
    let dry = lab(&scratch, SMALL, "run small.toml --dry-run -o out --format json");
    assert_eq!((dry.status, dry.stderr.as_str()), (0, ""));
    assert_eq!(scratch.entries(""), ["small.toml"]);
    let plan: serde_json::Value = serde_json::from_str(&dry.stdout).unwrap();
    assert!(plan["packets_per_s"].as_f64().unwrap() > 1e4, "{plan}");
    let plan = &plan["scenarios"][0];
    let whole = lab(&scratch, SMALL, "run small.toml --format json -o out");
    let document: serde_json::Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!(plan["cells"], document["cells"].as_array().unwrap().len());
    let seeds = document["seeds"].as_u64().unwrap();
    assert_eq!(plan["runs"], plan["cells"].as_u64().unwrap() * seeds);
    let (planned, sent) = (plan["packets"].as_f64().unwrap(), packets(&scratch));
    assert!((0.5..2.0).contains(&(planned / sent)), "{planned} planned, {sent} sent");
    let files = plan["files"].as_array().unwrap();
    assert!(files.iter().all(|file| scratch.path(file.as_str().unwrap()).exists()), "{files:?}");
    let again = lab(&scratch, SMALL, "run small.toml --dry-run --resume -o out");
    assert!(again.stdout.contains("of them there already"), "{}", again.stdout);
}

/// Packets sent by all runs in `out`.
fn packets(scratch: &Scratch) -> f64 {
    let archive = std::fs::read_to_string(scratch.path("out/runs/runs.archive")).unwrap();
    let number = |part: &str| part.split([',', '}']).next().unwrap().parse::<f64>().unwrap();
    archive.split("\"packets\":").skip(1).map(number).sum()
}

#[test]
fn missed_threshold_sets_the_exit_status() {
    let scratch = Scratch::new("threshold");
    let strict = SMALL.replace("max = \"60s\"", "max = \"100ms\"");
    let Finished { status, stdout, stderr } = lab(&scratch, &strict, "run small.toml");
    assert_eq!((status, stderr.as_str()), (1, "error: 2 of 2 thresholds missed\n"));
    assert!(stdout.contains("✗ missed"), "{stdout}");
    // Also where stdout has no reader, as in `| head -1`.
    let mut lost = crate::common::lab(&scratch, "run small.toml -o out");
    lost.stdout(std::io::pipe().unwrap().1);
    assert_eq!(lost.status().unwrap().code(), Some(1));
    assert!(scratch.path("out/summary.json").exists());
}

#[test]
fn invalid_scenario_is_shown_with_its_line() {
    let scratch = Scratch::new("wrong");
    let wrong = SMALL.replace("rtt = \"20ms\"", "rtt = \"20\"");
    let Finished { status, stdout, stderr } = lab(&scratch, &wrong, "run small.toml -o out");
    assert_eq!((status, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("error: missing unit\n"), "{stderr}");
    for part in ["--> small.toml:9:7", "9 | rtt = \"20\"", "^^^^", "help: write 20ms"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    assert!(lab(&scratch, &wrong, "run small.toml --color always").stderr.contains('\u{1b}'));
    let stderr = lab(&scratch, SMALL, "run small.toml --set path.los=2% -o out").stderr;
    assert!(stderr.contains("--> --set:1:1") && stderr.contains("`path.loss`"), "{stderr}");
    assert_eq!(scratch.entries(""), ["small.toml"]);
}

#[test]
fn files_are_found_next_to_the_scenario() {
    let scratch = Scratch::new("next-to");
    fs::create_dir(scratch.path("deep")).unwrap();
    let traced = SMALL.replace("rate = \"20mbit\"", "trace = \"link.txt\"");
    fs::write(scratch.path("deep/traced.toml"), traced).unwrap();
    let missing = lab(&scratch, SMALL, "run deep/traced.toml");
    assert_eq!(missing.status, 2);
    assert!(missing.stderr.contains("link.txt"), "{}", missing.stderr);
}

#[test]
fn shards_require_an_output_directory() {
    for flag in ["--resume", "--shard 1/2"] {
        let Finished { status, stderr, .. } = uncork(&format!("lab run litespeed-loss {flag}"));
        assert_eq!(status, 2);
        assert!(stderr.contains("--output <DIR>"), "{stderr}");
    }
}

/// The output of `line` in a terminal with `columns` columns.
fn printed_in(scratch: &Scratch, columns: usize, line: &str) -> String {
    let mut command = crate::common::command(line);
    command.current_dir(scratch.path("")).env("COLUMNS", columns.to_string());
    finish(command).stdout
}

#[test]
fn lines_fit_the_terminal() {
    let scratch = Scratch::new("width");
    let small = SMALL.replace("max = \"60s\"", "max = \"100ms\"");
    fs::write(scratch.path("small.toml"), small).unwrap();
    for columns in [60, 80, 132] {
        for line in ["lab list", "lab run small.toml", "lab run --help", "serve -h", "compare -h"] {
            let text = printed_in(&scratch, columns, line);
            let long = text.lines().find(|line| line.chars().count() > columns);
            assert_eq!(long, None, "{line} in {columns} columns");
        }
    }
    let usual = stdout("lab list");
    assert!(usual.lines().all(|line| line.chars().count() <= 100), "{usual}");
}

#[test]
fn log_names_the_report() {
    let scratch = Scratch::new("wrote");
    let notes = lab(&scratch, SMALL, "run small.toml -o out").stderr;
    assert_eq!(notes, "wrote out/report.html\n");
    assert_eq!(lab(&scratch, SMALL, "run small.toml -o other --quiet").stderr, "");
}
