//! Flow records of downloads and listeners.

use uncork_flow::{FlowRecord, RequestRecord};
use uncork_units::{Time, TimeDelta};

use crate::{Fetched, ListenerReport};

/// The engine's name in records.
const ENGINE: &str = "play";

impl Fetched {
    /// The record of this download, without fields that only the sender knows.
    pub fn record(&self) -> FlowRecord {
        let is_whole = self.problem.is_none();
        FlowRecord {
            start_ns: self.start.as_nanos(),
            completion_ns: is_whole.then(|| self.took.as_nanos()),
            first_byte_ns: self.first_byte.map(TimeDelta::as_nanos),
            busy_ns: self.took.as_nanos(),
            size_bytes: Some(self.size.unwrap_or(self.received)),
            bytes_delivered: self.received,
            ..unknown("get", self.cc.as_deref(), self.number)
        }
    }
}

impl ListenerReport {
    /// A record per request, with its size, and one of the listener, with its playback and without a size.
    pub fn records(&self) -> Vec<FlowRecord> {
        let cc = self.cc.as_deref();
        let requests = self.report.request_records(self.number);
        let of_request = |request: &RequestRecord| FlowRecord {
            start_ns: request.start_ns,
            completion_ns: request.completion_ns,
            first_byte_ns: request.first_byte_ns,
            busy_ns: request.completion_ns.unwrap_or(0),
            size_bytes: Some(request.size_bytes),
            bytes_delivered: request.bytes_delivered,
            ..unknown("request", cc, self.number)
        };
        let playback = self.report.playback.as_ref();
        let since_click = |time: Time| time.since(self.click).as_nanos();
        let first = self.report.transfers.iter().find_map(|transfer| transfer.first_byte);
        let listener = FlowRecord {
            start_ns: self.click.as_nanos(),
            completion_ns: playback.and_then(|playback| playback.ended).map(since_click),
            first_byte_ns: first.map(since_click),
            busy_ns: requests.iter().filter_map(|request| request.completion_ns).sum(),
            bytes_delivered: requests.iter().map(|request| request.bytes_delivered).sum(),
            playback: self.report.playback_record(),
            ..unknown("listener", cc, self.number)
        };
        requests.iter().map(of_request).chain([listener]).collect()
    }
}

/// A blank record of this flow.
fn unknown(group: &str, cc: Option<&str>, flow: u32) -> FlowRecord {
    FlowRecord::blank(ENGINE, group, cc.unwrap_or("unknown"), (0, flow))
}
