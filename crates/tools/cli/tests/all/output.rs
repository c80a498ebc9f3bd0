//! The files written by `-o`: all or none.

use std::fs;
use std::path::Path;

use crate::common::{Finished, Scratch, command, finish};
use uncork_testkit::assert_message;

const FILES: [&str; 7] = [
    "cells.csv",
    "flows.parquet",
    "objects.parquet",
    "report.html",
    "scenario.toml",
    "series.parquet",
    "summary.json",
];

/// `uncork compare` of three small transfers into `directory`.
fn write(directory: &Path, arguments: &str) -> Finished {
    into(directory, &format!("--size 100kB --seeds 2 {arguments}"))
}

fn into(directory: &Path, arguments: &str) -> Finished {
    let mut compare = command(&format!("compare {arguments} -o"));
    compare.arg(directory);
    finish(compare)
}

#[test]
fn compare_writes_the_files_of_a_lab_run_and_prints_the_table() {
    let scratch = Scratch::new("four");
    let Finished { status, stdout, stderr } = write(&scratch.path("new/report"), "");
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert!(stdout.contains("\ncubic "), "{stdout}");
    assert_eq!(scratch.entries("new/report"), FILES);
    assert_eq!(scratch.entries("new"), ["report"]);

    let read = |name: &str| fs::read(scratch.path("new/report").join(name)).unwrap();
    for name in ["flows.parquet", "series.parquet"] {
        let bytes = read(name);
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}");
    }
    let html = String::from_utf8(read("report.html")).unwrap();
    for text in ["<!DOCTYPE html>", "<svg", "cubic", "bbr1", "bbr3", "</html>"] {
        assert!(html.contains(text), "{text}");
    }
    for loaded in ["<script src", "<link", "@import", "url(http", "src=\"http"] {
        assert!(!html.contains(loaded), "{loaded}");
    }
}

#[test]
fn summary_is_the_document_on_stdout() {
    let scratch = Scratch::new("summary");
    let finished = write(&scratch.path("r"), "--format json");
    assert_eq!(fs::read_to_string(scratch.path("r/summary.json")).unwrap(), finished.stdout);
    // Writing a report does not change the results of the runs.
    let plain = crate::common::stdout("compare --size 100kB --seeds 2 --format json");
    let cells = |text: &str| {
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        [document["cells"].clone(), document["answers"].clone()]
    };
    assert_eq!(cells(&plain), cells(&finished.stdout));
}

#[test]
fn same_command_writes_the_same_bytes() {
    let scratch = Scratch::new("twice");
    for (name, jobs) in [("one", "1"), ("two", "4")] {
        assert_eq!(write(&scratch.path(name), &format!("--jobs {jobs}")).status, 0);
    }
    crate::common::assert_same(&scratch.path("one"), &scratch.path("two"));
}

#[test]
fn later_run_replaces_its_files_and_keeps_others() {
    let scratch = Scratch::new("replace");
    assert_eq!(write(&scratch.path("r"), "--cc cubic").status, 0);
    fs::write(scratch.path("r/notes.txt"), "mine").unwrap();
    assert_eq!(write(&scratch.path("r"), "--cc reno").status, 0);
    assert_eq!(scratch.entries("r").len(), FILES.len() + 1);
    assert!(fs::read_to_string(scratch.path("r/summary.json")).unwrap().contains("\"reno\""));
    assert_eq!(fs::read_to_string(scratch.path("r/notes.txt")).unwrap(), "mine");
}

#[test]
fn impossible_directory_is_detected_before_the_run() {
    let scratch = Scratch::new("unwritable");
    fs::write(scratch.path("file"), "mine").unwrap();
    let directory = scratch.path("file/report");
    // If it were run, this would take many minutes.
    let Finished { status, stdout, stderr } = into(&directory, "--rate 100mbit --duration 30000s");
    assert_eq!((status, stdout.as_str()), (3, ""));
    let start = format!("error: cannot write to '{}' of '--output <DIR>': ", directory.display());
    assert!(stderr.starts_with(&start), "{stderr}");
    let end = "; choose a directory that can be written or created\n";
    assert!(stderr.ends_with(end), "{stderr}");
    assert_eq!(scratch.entries(""), ["file"]);
}

#[test]
fn directory_in_place_of_a_file_is_kept() {
    let scratch = Scratch::new("in-the-way");
    fs::create_dir_all(scratch.path("r/report.html")).unwrap();
    fs::write(scratch.path("r/summary.json"), "earlier").unwrap();
    let Finished { status, stdout, stderr } = write(&scratch.path("r"), "");
    assert_eq!((status, stdout.as_str()), (3, ""));
    assert!(stderr.contains("report.html in it "), "{stderr}");
    assert_eq!(scratch.entries("r"), ["report.html", "summary.json"]);
    assert_eq!(fs::read_to_string(scratch.path("r/summary.json")).unwrap(), "earlier");
}

#[test]
fn bad_input_leaves_no_directory() {
    let scratch = Scratch::new("bad-input");
    assert_eq!(write(&scratch.path("r"), "--rate 20").status, 2);
    assert_eq!(write(&scratch.path("r"), "--buffer 0p").status, 2);
    assert_eq!(scratch.entries(""), [""; 0]);
}

#[test]
fn full_standard_output_is_an_environment_error() {
    let mut compare = command("compare --size 10kB --seeds 1");
    compare.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let Finished { status, stderr, .. } = finish(compare);
    assert_eq!(status, 3);
    assert_message!("/dev/full", stderr);
}
