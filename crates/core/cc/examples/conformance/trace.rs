//! The format of a trace: one JSON object on each line. `conformance/README.md` documents it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uncork_cc::units::{Rate, Ratio, TimeDelta};
use uncork_cc::{Controller, ResumePhase};

/// The version of the format.
pub(crate) const SCHEMA: &str = "uncork-cc-trace/1";

/// A controller's decisions and state, by name. A line holds only the values that changed.
pub(crate) type Decisions = BTreeMap<String, Value>;

/// The first line: how the controller was built and its first decisions.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) schema: String,
    pub(crate) controller: String,
    pub(crate) scenario: String,
    pub(crate) mss: u32,
    pub(crate) initial_window: u64,
    pub(crate) paced: bool,
    pub(crate) seed: u64,
    pub(crate) now: u64,
    /// Absent if the clock is exact.
    #[serde(default, skip_serializing_if = "is_exact")]
    pub(crate) clock_granularity: u64,
    /// Absent if the host does not send ECT(1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) scalable_marks: bool,
    pub(crate) out: Decisions,
}

/// Every other line: an event and the values it changed.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Nanoseconds.
    pub(crate) t: u64,
    #[serde(flatten)]
    pub(crate) event: Event,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) out: Decisions,
}

/// A call to the controller. Packets are numbered from 0 in order of `sent` events.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub(crate) enum Event {
    Sent {
        bytes: u32,
        in_flight: u64,
        /// Absent if it equals `in_flight`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unacked: Option<u64>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        drained: bool,
    },
    Feedback {
        acked: Vec<usize>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<usize>,
        /// Latest, smoothed and smallest round-trip time in nanoseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rtt: Option<[u64; 3]>,
        #[serde(default, skip_serializing_if = "is_zero")]
        ce_packets: u32,
        in_flight: u64,
        /// Absent if it equals `in_flight`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unacked: Option<u64>,
        una_advanced: bool,
        /// Nanoseconds; absent if nothing is unacknowledged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        oldest_sent: Option<u64>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        repaired_by_probe: bool,
    },
    Spurious {
        packets: Vec<usize>,
    },
    Timeout {
        kind: Kind,
    },
    Mtu {
        mss: u32,
    },
    Migrated,
    Drained,
    ClassicEcn,
    Resume {
        saved_cwnd: u64,
        saved_rtt: u64,
    },
}

/// The timer that expired.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Probe,
    Retransmission,
    Persistent,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_exact(nanos: &u64) -> bool {
    *nanos == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Every decision of `cc`, and its state.
pub(crate) fn decisions(cc: &impl Controller) -> Decisions {
    let (control, state) = (cc.control(), cc.snapshot());
    let rate = |rate: Option<Rate>| json!(rate.map(Rate::bytes_per_sec));
    let ratio = |ratio: Option<Ratio>| json!(ratio.map(|ratio| [ratio.num(), ratio.den()]));
    let resume = state.resume.map(|phase| match phase {
        ResumePhase::Reconnaissance => "reconnaissance",
        ResumePhase::Unvalidated => "unvalidated",
        ResumePhase::Validating => "validating",
        ResumePhase::SafeRetreat => "safe_retreat",
    });
    let all = [
        ("cwnd", json!(control.cwnd)),
        ("pacing_rate", rate(control.pacing_rate)),
        ("send_quantum", json!(control.send_quantum)),
        ("state", json!(state.state)),
        ("in_recovery", json!(state.in_recovery)),
        ("ssthresh", json!(state.ssthresh)),
        ("max_bw", rate(state.max_bw)),
        ("bw", rate(state.bw)),
        ("min_rtt", json!(state.min_rtt.map(TimeDelta::as_nanos))),
        ("pacing_gain", ratio(state.pacing_gain)),
        ("cwnd_gain", ratio(state.cwnd_gain)),
        ("bw_shortterm", rate(state.bw_shortterm)),
        ("inflight_shortterm", json!(state.inflight_shortterm)),
        ("inflight_longterm", json!(state.inflight_longterm)),
        ("resume", json!(resume)),
        ("round_count", json!(state.round_count)),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The entries of `new` that differ from `old`. `old` becomes `new`.
pub(crate) fn changes(old: &mut Decisions, new: Decisions) -> Decisions {
    let changed = |(name, value): &(&String, &Value)| old.get(*name) != Some(*value);
    let changes = new.iter().filter(changed).map(|(name, value)| (name.clone(), value.clone()));
    let changes = changes.collect();
    *old = new;
    changes
}
