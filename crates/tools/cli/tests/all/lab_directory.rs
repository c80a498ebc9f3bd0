//! Runs stored by `uncork lab run -o`: shards, interruptions, damage, and identical results in the
//! end.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Finished, Scratch, assert_same, finish};
use serde_json::Value;
use uncork_testkit::{assert_message, wait_until};

/// Two cells of four seeds.
const SMALL: &str = r#"title = "A small one"

[run]
seeds = 4
sample = "10ms"

[path]
rate = "20mbit"
rtt = "20ms"
loss = "1%"

[flow.main]
cc = "cubic"
transfer = "100kB"

[matrix]
"flow.main.cc" = ["cubic", "bbr3"]
"#;

const FILES: [&str; 8] = [
    "cells.csv",
    "flows.parquet",
    "objects.parquet",
    "report.html",
    "runs",
    "scenario.toml",
    "series.parquet",
    "summary.json",
];

/// A directory with `small.toml`.
fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::write(scratch.path("small.toml"), SMALL).unwrap();
    scratch
}

fn lab(scratch: &Scratch, arguments: &str) -> Finished {
    finish(crate::common::lab(scratch, arguments))
}

/// The stderr of a command that succeeds.
fn notes(scratch: &Scratch, arguments: &str) -> String {
    let Finished { status, stderr, .. } = lab(scratch, arguments);
    assert_eq!(status, 0, "{arguments}: {stderr}");
    stderr
}

/// The error of a command that is rejected.
fn refusal(scratch: &Scratch, arguments: &str) -> String {
    let Finished { status, stdout, stderr } = lab(scratch, arguments);
    assert_eq!((status, stdout.as_str()), (2, ""), "{arguments}: {stderr}");
    stderr
}

/// The entries of an output directory's archive.
fn archived(scratch: &Scratch, directory: &str) -> Vec<String> {
    let text = fs::read_to_string(scratch.path(directory).join("runs/runs.archive")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.chunks(2).map(<[&str]>::concat).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let scratch = scratch("lab-jobs");
    for jobs in ["1", "2"] {
        let note = notes(&scratch, &format!("run small.toml --jobs {jobs} -o {jobs}"));
        assert_eq!(note, format!("wrote {jobs}/report.html\n"));
        assert_eq!(scratch.entries(jobs), FILES);
        assert_eq!(scratch.entries(&format!("{jobs}/runs")), ["runs.archive", "sweep.json"]);
    }
    assert_same(&scratch.path("1"), &scratch.path("2"));
    // Runs are stored as they finish, so only their order differs.
    let [one, two] = ["1", "2"].map(|jobs| {
        let mut runs = archived(&scratch, jobs);
        runs.sort();
        runs
    });
    assert_eq!(one.len(), 8);
    assert!(one == two);
}

#[test]
fn shards_merge_to_the_whole() {
    let scratch = scratch("lab-shards");
    notes(&scratch, "run small.toml -o whole");
    for nth in 1..=3 {
        let note = notes(&scratch, &format!("run small.toml --shard {nth}/3 -o parts/{nth}"));
        assert_message!(nth, note);
        assert_eq!(scratch.entries(&format!("parts/{nth}")), ["runs"]);
    }
    let note = notes(&scratch, "merge parts/3 parts/1 parts/2 -o merged");
    assert_eq!(note, "wrote merged/report.html\n");
    assert_same(&scratch.path("whole"), &scratch.path("merged"));

    let missing = refusal(&scratch, "merge parts/1 parts/3");
    assert_message!("missing", missing);
    let twice = notes(&scratch, "merge parts/1 parts/2 parts/3 whole --format csv");
    assert_message!("twice", twice);
}

#[test]
fn shards_of_several_scenarios_merge_too() {
    let scratch = scratch("lab-several");
    fs::write(scratch.path("other.toml"), SMALL.replace("100kB", "50kB")).unwrap();
    notes(&scratch, "run small.toml other.toml -o whole");
    assert_eq!(scratch.entries("whole"), ["other", "small"]);
    for nth in 1..=2 {
        notes(&scratch, &format!("run small.toml other.toml --shard {nth}/2 -o {nth}"));
    }
    notes(&scratch, "merge 1 2 -o merged");
    for name in ["small", "other"] {
        assert_same(&scratch.path("whole").join(name), &scratch.path("merged").join(name));
    }
    fs::create_dir(scratch.path("deep")).unwrap();
    fs::copy(scratch.path("other.toml"), scratch.path("deep/small.toml")).unwrap();
    let twice = refusal(&scratch, "run small.toml deep/small.toml -o x");
    assert!(twice.contains("two scenarios are called 'small'"), "{twice}");
}

#[test]
fn shards_of_a_suite_merge_to_its_report() {
    let scratch = scratch("lab-suite");
    let run = "run rfc9743 --seeds 1 --set run.end=300ms --set run.warmup=0s";
    let whole = lab(&scratch, &format!("{run} -o whole"));
    for nth in 1..=2 {
        notes(&scratch, &format!("{run} --shard {nth}/2 -o parts/{nth}"));
    }
    assert_eq!(scratch.entries("parts/1").len(), 18, "no report for a shard");
    let merged = lab(&scratch, "merge parts/2 parts/1 -o merged");
    // A third of a second is too short to meet all thresholds.
    assert_eq!((whole.status, merged.status), (1, 1), "{}", merged.stderr);
    assert!(whole.stdout.contains(" of 18 scenarios.\n"), "{}", whole.stdout);
    let stderr = whole.stderr.replace("wrote whole/", "wrote merged/");
    assert_eq!((merged.stdout, merged.stderr), (whole.stdout, stderr));
    assert_eq!(scratch.entries("merged"), scratch.entries("whole"));
    assert_same(
        &scratch.path("whole").join("rfc9743-loss"),
        &scratch.path("merged").join("rfc9743-loss"),
    );
    let read = |place: &str, name| fs::read_to_string(scratch.path(place).join(name)).unwrap();
    let command = "uncork lab run rfc9743 --set run.end=300ms --set run.warmup=0s --seeds 1";
    let summary: Value = serde_json::from_str(&read("merged", "summary.json")).unwrap();
    assert_eq!(summary["command"], command);
    crate::common::schema::assert_describes("suite-2", [&summary]);
    for name in ["summary.json", "report.html"] {
        assert!(read("whole", name) == read("merged", name), "{name}");
    }

    let csv = lab(&scratch, "merge parts/1 parts/2 --format csv").stdout;
    assert_eq!(
        csv.matches(",class,cc,flows,finished,metric,").count(),
        18,
        "one table per scenario"
    );
}

#[test]
fn directories_have_everything_a_scenario_needs() {
    let scratch = scratch("lab-trace");
    let traced = SMALL.replace("rate = \"20mbit\"", "trace = \"link.txt\"");
    fs::write(scratch.path("small.toml"), traced).unwrap();
    fs::write(scratch.path("link.txt"), "0 10\n1 20\n2 10\n").unwrap();
    notes(&scratch, "run small.toml -o whole");
    notes(&scratch, "run small.toml --shard 1/2 -o 1");
    notes(&scratch, "run small.toml --shard 2/2 -o 2");
    fs::write(scratch.path("link.txt"), "0 10\n1 30\n2 10\n").unwrap();
    let changed = refusal(&scratch, "run small.toml --resume -o 2");
    assert_message!("link.txt", changed);
    fs::remove_file(scratch.path("link.txt")).unwrap();
    notes(&scratch, "merge 1 2 -o merged");
    assert_same(&scratch.path("whole"), &scratch.path("merged"));
}

#[test]
fn missing_and_damaged_runs_are_repeated() {
    let scratch = scratch("lab-damage");
    notes(&scratch, "run small.toml -o whole");
    notes(&scratch, "run small.toml -o hurt");
    let runs = archived(&scratch, "hurt");
    let mut hurt: Vec<String> = runs.clone();
    hurt[1] = hurt[1].replace("\"packets\":", "\"packets\":1");
    hurt[3] = hurt[3].replacen("\"packets\":1", "\"packets\":2", 1).replacen("100000", "100001", 1);
    hurt.remove(5);
    let last = hurt.last_mut().unwrap();
    last.truncate(last.len() / 2);
    assert!(hurt[1].len() == runs[1].len() + 1 && hurt[3].len() == runs[3].len());
    fs::write(scratch.path("hurt/runs/runs.archive"), hurt.concat()).unwrap();

    let merged = lab(&scratch, "merge hurt");
    assert_eq!((merged.status, merged.stdout.as_str()), (2, ""));
    assert!(merged.stderr.contains("error: 4 of 8 runs"), "{}", merged.stderr);

    let notes = notes(&scratch, "run small.toml --resume -o hurt");
    for part in [
        "hurt/runs/runs.archive: seed ",
        ": its checksum is wrong; it is run again",
        " are damaged or cut short; what was there is run again",
        "note: 4 of 8 runs are there already",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert_same(&scratch.path("whole"), &scratch.path("hurt"));
    let again = lab(&scratch, "merge hurt --format csv");
    assert_eq!(again.status, 0, "{}", again.stderr);
}

/// Whenever it is killed, the finished runs are kept.
#[test]
fn killed_run_can_be_resumed() {
    let scratch = scratch("lab-killed");
    let mut child = start(&scratch, &format!("{MANY} --jobs 2 -o out"));
    await_runs(&scratch.path("out/runs"), 5);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = archived(&scratch, "out").len();
    let note = notes(&scratch, &format!("{MANY} --resume -o out"));
    let text = note.strip_suffix("\nwrote out/report.html\n").unwrap_or_default();
    let last = text.lines().last().unwrap_or_default();
    let whole = [kept, kept - 1].map(|n| format!("note: {n} of 80 runs are there already"));
    assert!(whole.contains(&last.to_owned()), "{note}");
    notes(&scratch, &format!("{MANY} -o whole"));
    assert_same(&scratch.path("whole"), &scratch.path("out"));
}

#[test]
fn one_process_at_a_time_writes_to_a_directory() {
    let scratch = scratch("lab-held");
    notes(&scratch, "run small.toml -o out");
    let held = fs::File::open(scratch.path("out/runs")).unwrap();
    held.lock().unwrap();
    let Finished { status, stdout, stderr } = lab(&scratch, "run small.toml --resume -o out");
    assert_eq!((status, stdout.as_str()), (3, ""));
    assert_message!("out", stderr);
    notes(&scratch, "merge out");
    drop(held);
    notes(&scratch, "run small.toml --resume -o out");
}

/// A new threshold, a better title, more seeds: none of them invalidates runs.
#[test]
fn thresholds_may_change_after_the_runs() {
    let scratch = scratch("lab-asked");
    notes(&scratch, "run small.toml -o out");
    let asked = "[[threshold]]\nmetric = \"completion.p50\"\nmax = \"50s\"\n";
    let text = SMALL.replace("title = ", "about = \"More.\"\ntitle = ") + asked;
    fs::write(scratch.path("small.toml"), text).unwrap();
    let resumed = notes(&scratch, "run small.toml --seeds 5 --resume -o out");
    assert_message!("8 of 10", resumed);
    notes(&scratch, "run small.toml --seeds 5 -o whole");
    assert_same(&scratch.path("whole"), &scratch.path("out"));
}

#[test]
fn runs_of_other_scenarios_are_not_mixed() {
    let scratch = scratch("lab-mixed");
    let refused = |case: &str, line: &str| assert_message!(case, refusal(&scratch, line));
    notes(&scratch, "run small.toml -o out");
    refused("again", "run small.toml -o out");
    refused("another loss", "run small.toml --set path.loss=2% --resume -o out");
    notes(&scratch, "run small.toml --set path.loss=2% --shard 1/2 -o other");
    refused("merged", "merge out other");
    refused("below", "merge .");
}

/// Results of different builds are not mixed, even with equal version numbers.
#[test]
fn runs_of_another_build_are_rejected() {
    let scratch = scratch("lab-build");
    notes(&scratch, "run small.toml -o out");
    let manifest = scratch.path("out/runs/sweep.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let ours = format!("{} (build ", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&ours), "{text}");
    fs::write(&manifest, text.replace(&ours, &format!("{ours}f"))).unwrap();
    for line in ["run small.toml --resume -o out", "merge out"] {
        let refusal = refusal(&scratch, line);
        let theirs = format!("its runs were made by uncork {ours}f");
        assert!(refusal.contains(&theirs), "{line}: {refusal}");
        assert!(refusal.contains(&format!("this is uncork {ours}")), "{line}: {refusal}");
    }
}

#[test]
fn impossible_directory_is_detected_before_the_run() {
    let scratch = scratch("lab-unwritable");
    fs::write(scratch.path("file"), "mine").unwrap();
    // If it were run, this would take many minutes.
    let line = "run small.toml --set flow.main.transfer=1GB --seeds 100 -o file/out";
    let Finished { status, stdout, stderr } = lab(&scratch, line);
    assert_eq!((status, stdout.as_str()), (3, ""));
    assert_message!("file/out", stderr);
    assert_message!("nowhere", refusal(&scratch, "merge nowhere"));
}

/// Many runs of a few milliseconds each.
const MANY: &str = "run small.toml --set flow.main.transfer=20MB --seeds 40";

/// Sends `name` (INT, TERM) to `child`.
fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    assert!(kill.unwrap().success());
}

/// Waits until there are `count` files in `directory`.
fn await_files(directory: &Path, count: usize) {
    let files = || fs::read_dir(directory).map_or(0, Iterator::count);
    wait_until("files of runs", Duration::from_mins(1), || files() >= count);
}

/// Waits until the archive of `directory` has `count` runs.
fn await_runs(directory: &Path, count: usize) {
    let path = directory.join("runs.archive");
    let lines = || fs::read(&path).map_or(0, |bytes| bytes.split(|byte| *byte == b'\n').count());
    wait_until("archived runs", Duration::from_mins(1), || lines() >= 2 * count);
}

fn start(scratch: &Scratch, arguments: &str) -> Child {
    let mut lab = crate::common::lab(scratch, arguments);
    lab.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn interrupted_run_can_be_resumed() {
    for name in ["INT", "TERM"] {
        let scratch = scratch(&format!("lab-interrupted-{name}"));
        let child = start(&scratch, &format!("{MANY} --jobs 1 -o out"));
        await_runs(&scratch.path("out/runs"), 3);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "{stderr}");
        let kept = archived(&scratch, "out").len();
        assert!((2..80).contains(&kept), "{kept}");
        assert_eq!(scratch.entries("out"), ["runs"]);
        let start =
            format!("interrupted: {kept} of 80 runs are kept in 'out'; go on with: uncork lab ");
        let again = stderr.strip_prefix(&start).unwrap_or_else(|| panic!("{stderr}")).trim();
        assert_eq!(again, format!("{MANY} --resume -o out"));

        let note = notes(&scratch, again);
        let expected =
            format!("note: {kept} of 80 runs are there already\nwrote out/report.html\n");
        assert_eq!(note, expected);
        notes(&scratch, &format!("{MANY} -o whole"));
        assert_same(&scratch.path("whole"), &scratch.path("out"));
    }
}

#[test]
fn second_interruption_ends_at_once() {
    let scratch = scratch("lab-twice");
    // A run of 30 s.
    let long = "--set flow.main.transfer=100GB --set run.end=86400s --set run.sample=10s";
    let child = start(&scratch, &format!("run small.toml {long} --seeds 1 -o out"));
    await_files(&scratch.path("out/runs"), 2);
    // These files exist before the run begins, and an interruption before that ends the process.
    // Start-up takes some milliseconds of CPU time, so after half a second of CPU time the run has
    // begun.
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').nth(11).unwrap().parse::<u64>().unwrap() // utime, in hundredths of a second
    };
    wait_until("a run under way", Duration::from_mins(1), || ticks() >= 50);
    signal(&child, "INT");
    // Two pending signals of the same kind count as one.
    let status = || fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let is_taken =
        || !status().lines().any(|line| line.starts_with("ShdPnd") && line.contains('2'));
    wait_until("the first signal is taken", Duration::from_mins(1), is_taken);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.as_str()), (Some(130), ""));
    assert_eq!(archived(&scratch, "out"), [""; 0]);
}
