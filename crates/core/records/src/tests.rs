use std::fs;
use std::path::Path;
use std::thread;

use uncork_flow::{FlowRecord, Scope, Service, read_flows, read_json_lines};

use super::*;
use uncork_testkit::{Scratch, wait_until};

const LIMIT: Duration = Duration::from_mins(1);

/// A record of a response or a connection.
fn record(flow: u32, scope: Scope) -> FlowRecord {
    let service = Service { responses: 1, ..Service::blank(scope, 0, "h1", "[::1]:1") };
    FlowRecord { service: Some(service), ..FlowRecord::blank("serve", "g", "bbr", (0, flow)) }
}

fn end(records: Records, writer: Writer) -> RecordsSummary {
    drop(records);
    writer.end()
}

/// The files in the directory, and each table's records in the order of the files.
fn tables(directory: &Path) -> (Vec<String>, Vec<FlowRecord>, Vec<FlowRecord>) {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    let read = |kind: &str| {
        let files = names.iter().filter(|name| name.starts_with(kind));
        let rows = files.map(|name| fs::read(directory.join(name)).expect("a file"));
        rows.flat_map(|file| read_flows(file).expect("Parquet")).collect()
    };
    (names.clone(), read("responses-"), read("connections-"))
}

#[test]
fn a_directory_gets_a_file_for_each_number_of_records() {
    let scratch = Scratch::new("records");
    let spec = RecordsSpec { rows: 600, ..RecordsSpec::new(scratch.path("")) };
    let (records, writer) = spec.open().expect("opens");
    let sent: Vec<_> = (0..1500).map(|flow| record(flow, Scope::Response)).collect();
    for record in &sent {
        records.leave(record.clone());
    }
    records.leave(record(7, Scope::Connection));
    assert_eq!(end(records, writer), RecordsSummary { written: 1501, lost: 0 });
    let (names, responses, connections) = tables(&scratch.path(""));
    assert!((3..=4).contains(&names.len()), "{names:?}");
    assert!(responses == sent);
    assert_eq!(connections, [record(7, Scope::Connection)]);
}

/// Files of roll-ups of two hosts, two of each.
fn rollups_of_two_hosts(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for (number, host) in ["edge1", "edge2"].into_iter().enumerate() {
        let mut rollups = uncork_rollup::Rollups::new(RollupSpec::new(host));
        for minute in [0, 7] {
            let mut record = record(1, Scope::Response);
            let service = record.service.as_mut().expect("a response");
            service.start_unix_ns = (minute * 60 + number as u64) * 1_000_000_000;
            rollups.add(&record).expect("it has a time");
        }
        let written =
            rollups.take().into_iter().map(|it| write_rollup(directory, &it).expect("a file"));
        files.extend(written);
    }
    files
}

/// Of the files of a directory, the records and the files that each counts.
fn merged_into(directory: &Path) -> Vec<(u64, usize)> {
    let files =
        fs::read_dir(directory).expect("a directory").map(|it| it.expect("an entry").path());
    let files = files.filter(|file| is_named_rollup(file));
    let files = files.map(|file| fs::read(file).expect("a file"));
    let of = |file| uncork_rollup::Rollup::from_parquet(file).expect("a roll-up");
    files.map(of).map(|it| (it.records(), it.sources().len())).collect()
}

#[test]
fn merge_rollups_again_with_more_files_each_counts_once_in_one_file() {
    let scratch = Scratch::new("merged");
    let (hosts, days) = (scratch.path("hosts"), scratch.path("days"));
    for directory in [&hosts, &days] {
        fs::create_dir_all(directory).expect("a directory");
    }
    let files = rollups_of_two_hosts(&hosts);
    let spec = RollupSpec { period: Period::DAY, ..RollupSpec::new("fra") };
    let merge = |files: &[std::path::PathBuf]| {
        let mut new = Vec::new();
        merge_rollups(files, &days, &spec, &Metric::ALL, |day| new.push(day.new)).expect("merges");
        new
    };
    assert_eq!(merge(&files[..1]), [1]);
    assert_eq!(merge(&files), [3]);
    assert_eq!(merged_into(&days), [(4, 4)]);
    assert_eq!(merge(&files), [0], "nothing is new");
    assert!(merge(&[]).is_empty(), "nothing to do");
    assert_eq!(merged_into(&days), [(4, 4)]);
    // Ended before the old file was removed: the next run removes it.
    let old = uncork_rollup::RollupSpec { period: Period::DAY, ..RollupSpec::new("fra") };
    let mut part = uncork_rollup::Merger::new(old, 0);
    part.add(fs::read(&files[0]).expect("a file")).expect("of the day");
    write_rollup(&days, &part.into_rollup()).expect("a file");
    assert_eq!(merged_into(&days).len(), 2);
    assert_eq!(merge(&files), [0]);
    assert_eq!(merged_into(&days), [(4, 4)]);
    let other = hosts.join("a.parquet");
    let refused = || {
        let merged =
            merge_rollups(std::slice::from_ref(&other), &days, &spec, &Metric::ALL, |_| {});
        merged.expect_err("no roll-up").to_string()
    };
    assert!(refused().contains("No such file"), "{}", refused());
    fs::write(&other, "").expect("a file");
    assert!(refused().contains("not named as roll-ups are"), "{}", refused());
}

/// Otherwise both count the same files, and readers refuse the two.
#[test]
fn merge_rollups_at_once_into_one_directory_is_one_after_the_other() {
    let scratch = Scratch::new("merged-at-once");
    let (hosts, days) = (scratch.path("hosts"), scratch.path("days"));
    for directory in [&hosts, &days] {
        fs::create_dir_all(directory).expect("a directory");
    }
    let files = rollups_of_two_hosts(&hosts);
    let spec = RollupSpec { period: Period::DAY, ..RollupSpec::new("fra") };
    let merge = |files: &[std::path::PathBuf]| {
        merge_rollups(files, &days, &spec, &Metric::ALL, |_| {}).expect("merges");
    };
    merge(&files[..1]);
    let other = fs::File::open(days.join(".merge.lock")).expect("the lock of a merge");
    other.lock().expect("no other merge");
    thread::scope(|scope| {
        let (ends, ended) = std::sync::mpsc::channel();
        scope.spawn(move || {
            merge(&files);
            ends.send(()).expect("the test waits");
        });
        ended.recv_timeout(Duration::from_millis(500)).expect_err("it waits");
        other.unlock().expect("it was locked");
        ended.recv_timeout(LIMIT).expect("it goes on");
    });
    assert_eq!(merged_into(&days), [(4, 4)]);
}

#[test]
fn merge_rollups_names_a_damaged_file_and_leaves_it_out_and_its_good_copy_counts_once() {
    let scratch = Scratch::new("merged-damaged");
    let (hosts, days) = (scratch.path("hosts"), scratch.path("days"));
    for directory in [&hosts, &days] {
        fs::create_dir_all(directory).expect("a directory");
    }
    let files = rollups_of_two_hosts(&hosts);
    let good = fs::read(&files[0]).expect("a file");
    let spec = RollupSpec { period: Period::DAY, ..RollupSpec::new("fra") };
    let merge = || merge_rollups(&files, &days, &spec, &Metric::ALL, |_| {});
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    for bytes in [&flipped[..], b"junk"] {
        fs::write(&files[0], bytes).expect("a file");
        let error = merge().expect_err("a damaged file").to_string();
        assert!(error.contains(&files[0].display().to_string()), "{error}");
        assert_eq!(merged_into(&days), [(3, 3)], "the others");
    }
    fs::write(&files[0], good).expect("a file");
    merge().expect("merges");
    assert_eq!(merged_into(&days), [(4, 4)]);
    // What a damaged merged file counts may have no other file.
    let mut in_days = fs::read_dir(&days).expect("files").map(|it| it.expect("a file").path());
    let old = in_days.find(|file| is_named_rollup(file)).expect("a merged file");
    fs::write(&old, "junk").expect("a file");
    merge().expect_err("a damaged file");
    assert!(old.exists());
}

#[test]
fn a_directory_gets_a_file_when_it_is_time() {
    let scratch = Scratch::new("records");
    let spec =
        RecordsSpec { every: Duration::from_millis(20), ..RecordsSpec::new(scratch.path("")) };
    let (records, writer) = spec.open().expect("opens");
    records.leave(record(1, Scope::Response));
    wait_until("a record", LIMIT, || records.tally().summary().written > 0);
    assert_eq!(tables(&scratch.path("")).1, [record(1, Scope::Response)]);
    assert_eq!(end(records, writer).written, 1);
    assert_eq!(tables(&scratch.path("")).0.len(), 1, "nothing to write, no file");
}

/// A reader never sees a partial file.
#[test]
fn no_reader_sees_a_part_of_a_file() {
    let scratch = Scratch::new("records");
    let spec = RecordsSpec { rows: 100, ..RecordsSpec::new(scratch.path("")) };
    let (records, writer) = spec.open().expect("opens");
    let leaving = thread::spawn(move || {
        for flow in 0..3000 {
            records.leave(record(flow, Scope::Response));
        }
        end(records, writer)
    });
    let mut looks = 0;
    while !leaving.is_finished() || looks == 0 {
        for entry in fs::read_dir(scratch.path("")).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            if !name.starts_with('.') {
                read_flows(fs::read(&path).expect("a file")).expect("a whole file");
                looks += 1;
            }
        }
    }
    let summary = leaving.join().expect("left");
    assert_eq!(summary.written + summary.lost, 3000);
    assert_eq!(tables(&scratch.path("")).1.len() as u64, summary.written);
}

#[test]
fn lines_go_on_in_a_new_file_when_the_old_one_was_renamed() {
    let scratch = Scratch::new("records");
    let (path, old) = (scratch.path("log.jsonl"), scratch.path("log.jsonl.1"));
    let (records, writer) = RecordsSpec::new(&path).open().expect("opens");
    records.leave(record(1, Scope::Response));
    wait_until("a record", LIMIT, || records.tally().summary().written > 0);
    fs::rename(&path, &old).expect("renamed");
    records.reopen();
    records.leave(record(2, Scope::Response));
    assert_eq!(end(records, writer), RecordsSummary { written: 2, lost: 0 });
    let read = |path: &Path| read_json_lines(fs::read(path).expect("a file").as_slice());
    assert_eq!(read(&old).expect("lines"), [record(1, Scope::Response)]);
    assert_eq!(read(&path).expect("lines"), [record(2, Scope::Response)]);
}

/// As after SIGKILL: the part of a line is left out, and the next record is whole.
#[test]
fn a_part_of_a_line_spoils_no_record() {
    let scratch = Scratch::new("records");
    let path = scratch.path("r.jsonl");
    let sent = [0, 1, 2].map(|flow| record(flow, Scope::Response));
    for (flow, one) in sent.iter().enumerate() {
        let (records, writer) = RecordsSpec::new(&path).open().expect("opens");
        records.leave(one.clone());
        assert_eq!(end(records, writer), RecordsSummary { written: 1, lost: 0 });
        let whole = fs::read(&path).expect("a file");
        let read = read_json_lines(whole.as_slice()).expect("readable");
        assert!(read == sent[..=flow], "{flow}");
        let part = &whole[..40];
        fs::write(&path, [&whole[..], part].concat()).expect("written");
        assert!(
            read_json_lines(fs::read(&path).expect("a file").as_slice()).expect("readable") == read
        );
    }
}

#[test]
fn a_full_disk_loses_records_and_is_reported_once() {
    let (records, writer) = RecordsSpec::new("/dev/full").open().expect("opens");
    for flow in 0..5 {
        records.leave(record(flow, Scope::Response));
        wait_until("a lost record", LIMIT, || records.tally().summary().lost > u64::from(flow));
    }
    let problem = records.tally().problem().expect("a problem");
    assert!(problem.contains("'/dev/full': No space left"), "{problem}");
    assert_eq!(records.tally().problem(), None);
    assert_eq!(end(records, writer), RecordsSummary { written: 0, lost: 5 });
}

#[test]
fn invalid_destinations_are_rejected() {
    let scratch = Scratch::new("records");
    let refused = |path: &str| {
        let opened = RecordsSpec::new(scratch.path(path)).open();
        opened.map(drop).expect_err("refused").to_string()
    };
    assert!(refused("out.parquet").contains("a directory"), "{}", refused("out.parquet"));
    assert!(refused("no/such/file").contains("No such file"));
    fs::write(scratch.path("file"), "").expect("a file");
    assert!(refused("file/").contains("cannot write records"));
}

/// The files of roll-ups by name.
fn rollups(directory: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let entries =
        fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    let named = entries.map(|entry| (entry.file_name().into_string().expect("text"), entry.path()));
    let files = named.filter(|(name, _)| name.starts_with(ROLLUP_PREFIX));
    files.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

/// Writes records of connections that begin at these times as a program does, and returns the sum of the tally.
fn run(spec: &RecordsSpec, starts: &[u64]) -> (RecordsSummary, Vec<FlowRecord>) {
    let (records, writer) = spec.open().expect("opens");
    let made = starts.iter().zip(0..).map(|(start, flow)| {
        let mut made = record(flow, Scope::Connection);
        made.service.as_mut().expect("a service").start_unix_ns = *start;
        made
    });
    let made: Vec<FlowRecord> = made.collect();
    for record in &made {
        records.leave(record.clone());
    }
    (end(records, writer), made)
}

#[test]
fn roll_ups_of_a_program_have_the_bytes_of_those_of_its_records() {
    let scratch = Scratch::new("rolled");
    let rollup = RollupSpec::new("edge/1");
    let now = clock::today().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let spec = RecordsSpec {
        rollup: Some(rollup.clone()),
        sample: "0%".parse().expect("a share"),
        ..RecordsSpec::new(scratch.path("edge/"))
    };
    let (summary, made) = run(&spec, &vec![now.as_nanos() as u64; 700]);
    assert_eq!(summary, RecordsSummary { written: 700, lost: 0 });
    let mut all = uncork_rollup::Rollups::new(rollup);
    for record in &made {
        all.add(record).expect("it has a time");
    }
    let later = scratch.path("later");
    fs::create_dir(&later).expect("a directory");
    for rollup in all.take() {
        write_rollup(&later, &rollup).expect("written");
    }
    assert_eq!(rollups(&scratch.path("edge")), rollups(&later));
    let (names, _, connections) = tables(&scratch.path("edge"));
    assert_eq!((names.len(), connections.len()), (1, 0), "{names:?}");
    assert!(names[0].starts_with("rollup-edge_1-"), "{names:?}");
}

#[test]
fn late_records_are_in_files_that_add_up() {
    let scratch = Scratch::new("rolled-late");
    let spec = RecordsSpec {
        rollup: Some(RollupSpec::new("edge1")),
        ..RecordsSpec::new(scratch.path("edge/"))
    };
    let minute = 60_000_000_000_u64;
    let mut all = uncork_rollup::Rollups::new(RollupSpec::new("edge1"));
    let (records, writer) = spec.open().expect("opens");
    for part in 1..=3 {
        for nth in 0..50 {
            // All times are over: a file is due at once, with counts that equal those of the last one.
            let mut late = record(nth, Scope::Connection);
            late.service.as_mut().expect("a service").start_unix_ns = u64::from(nth % 10) * minute;
            all.add(&late).expect("it has a time");
            records.leave(late);
        }
        wait_until("the records are in files", LIMIT, || {
            rollups(&scratch.path("edge")).len() >= 2 * part
        });
    }
    end(records, writer);
    let mut merged = uncork_rollup::Rollups::new(RollupSpec::new("edge1"));
    for file in rollups(&scratch.path("edge")).into_values() {
        merged
            .merge(&uncork_rollup::Rollup::from_parquet(file).expect("a roll-up"))
            .expect("merges");
    }
    assert!(merged.take() == all.take());
    let (_, _, connections) = tables(&scratch.path("edge"));
    assert_eq!(connections.len(), 150, "by default all records stay");
}

#[test]
fn roll_ups_need_a_directory() {
    let scratch = Scratch::new("rolled-file");
    let spec = RecordsSpec {
        rollup: Some(RollupSpec::new("edge1")),
        ..RecordsSpec::new(scratch.path("records.jsonl"))
    };
    for error in [spec.check().err(), spec.open().map(drop).err()] {
        assert!(matches!(error, Some(RecordsError::RollupIntoFile(_))));
    }
}
