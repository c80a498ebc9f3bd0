//! What a download leaves: the same record as of every other flow.

use uncork_flow::FlowRecord;
use uncork_units::TimeDelta;

use crate::Fetched;

/// The engine's name in records.
const ENGINE: &str = "play";

impl Fetched {
    /// The record of this download. What only the sender knows is not in it.
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

/// A record of which nothing is known but whose it is.
pub(crate) fn unknown(group: &str, cc: Option<&str>, flow: u32) -> FlowRecord {
    FlowRecord {
        engine: ENGINE.to_owned(),
        group: group.to_owned(),
        cc: cc.unwrap_or("unknown").to_owned(),
        seed: 0,
        flow,
        start_ns: 0,
        completion_ns: None,
        first_byte_ns: None,
        busy_ns: 0,
        size_bytes: None,
        bytes_delivered: 0,
        bytes_delivered_early: 0,
        bytes_acked: 0,
        bytes_sent: 0,
        bytes_retransmitted: 0,
        packets_sent: 0,
        packets_lost: 0,
        packets_dropped_queue: 0,
        packets_dropped_policer: 0,
        packets_dropped_random: 0,
        packets_marked: 0,
        acks_dropped: 0,
        timeouts: 0,
        rtt_ms: None,
        queue_ms: None,
        playback: None,
        service: None,
        choice: None,
    }
}
