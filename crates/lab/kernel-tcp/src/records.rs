//! Flow records that programs write to a file.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use uncork_flow::{FlowRecord, LabRecord, RequestRecord, read_json_lines};
use uncork_sim::{RunResult, RunSpec};

use crate::scratch::Scratch;

/// Merges the records written by the clients of commands into `result`. Returns the flows of
/// clients that should have written records and did not, with the reason.
pub(crate) fn take(run: &RunSpec, result: &mut RunResult, scratch: &Scratch) -> Vec<(u32, String)> {
    let mut problems = Vec::new();
    for (number, flow) in (0..).zip(&run.flows) {
        let wanted = run.command_of(flow).and_then(|command| command.records);
        let Some(record) = result.flows.get_mut(number as usize).filter(|_| wanted.is_some())
        else {
            continue;
        };
        match read(&scratch.records_of(number)) {
            Ok(written) => note(record, &mut result.requests, &written),
            Err(problem) => problems.push((number, problem)),
        }
    }
    result.requests.sort_by_key(|request| request.flow);
    problems
}

fn read(path: &Path) -> Result<Vec<FlowRecord>, String> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "left no records in $UNCORK_RECORDS".to_owned(),
        _ => format!("left records that cannot be read: {error}"),
    })?;
    let written = read_json_lines(BufReader::new(file));
    let written = written.map_err(|error| format!("left records that cannot be read: {error}"))?;
    if written.is_empty() {
        Err("left no record in $UNCORK_RECORDS".to_owned())
    } else {
        Ok(written)
    }
}

/// Merges the records `written` by a flow's client into its record and the requests. Records with a
/// size are requests; the others are of the client itself. Their times count from the client's
/// start.
fn note(record: &mut FlowRecord, requests: &mut Vec<RequestRecord>, written: &[FlowRecord]) {
    let of_request = |one: &FlowRecord| RequestRecord {
        flow: record.flow,
        start_ns: record.start_ns + one.start_ns,
        first_byte_ns: one.first_byte_ns,
        completion_ns: one.completion_ns,
        size_bytes: one.size_bytes.unwrap_or_default(),
        bytes_delivered: one.bytes_delivered,
    };
    let (sized, others): (Vec<&FlowRecord>, _) =
        written.iter().partition(|one| one.size_bytes.is_some());
    requests.extend(sized.iter().map(|one| of_request(one)));
    let first = sized.iter().filter_map(|one| Some(one.start_ns + one.first_byte_ns?));
    record.first_byte_ns = first.min();
    record.bytes_delivered = sized.iter().map(|one| one.bytes_delivered).sum();
    record.lab = Some(LabRecord { bytes_delivered_early: 0, ..record.lab() });
    record.playback = others.iter().find_map(|one: &&FlowRecord| one.playback);
}
