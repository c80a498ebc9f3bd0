//! Limits that end a test.

use std::collections::VecDeque;

use uncork_flow::quantile;
use uncork_units::{Probability, TimeDelta};
use uncork_watch::Tracked;

/// Passes that are judged together, so that one bad second does not breach a limit.
const PASSES: usize = 10;
/// Payload in these passes below which no share is judged.
const MIN_SENT: u64 = 500_000;
/// Round-trip times in these passes below which their 95th percentile is not judged.
const MIN_RTTS: usize = 20;

/// What a test may not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Share of the payload sent that was sent again.
    pub retransmitted: Probability,
    /// 95th percentile of the connections' smoothed round-trip times.
    pub rtt_p95: TimeDelta,
}

/// An exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Breach {
    /// Of the share retransmitted.
    Retransmitted {
        /// The share.
        share: f64,
        /// The limit.
        limit: f64,
    },
    /// Of the round-trip times.
    Rtt {
        /// Their 95th percentile.
        p95_ms: f64,
        /// The limit.
        limit_ms: f64,
    },
}

/// Judges the last passes of a window, over all connections of the host that sent something.
#[derive(Debug)]
pub struct SafetyMonitor {
    limits: Limits,
    passes: VecDeque<PassTotals>,
}

#[derive(Debug, Default)]
struct PassTotals {
    sent: u64,
    resent: u64,
    rtts_ms: Vec<f64>,
}

impl SafetyMonitor {
    /// A guard that has seen nothing.
    pub fn new(limits: Limits) -> Self {
        Self { limits, passes: VecDeque::new() }
    }

    /// Forgets what it has seen: another window begins.
    pub fn clear(&mut self) {
        self.passes.clear();
    }

    /// Takes in the connections of a pass, and returns the limit that they exceed.
    pub fn see<'a>(&mut self, connections: impl Iterator<Item = &'a Tracked>) -> Option<Breach> {
        let mut seen = PassTotals::default();
        for connection in connections.filter(|connection| connection.is_active()) {
            seen.sent += connection.change.bytes_sent;
            seen.resent += connection.change.bytes_retransmitted;
            seen.rtts_ms.extend(connection.now.figures.rtt.map(TimeDelta::as_millis_f64));
        }
        self.passes.push_back(seen);
        if self.passes.len() > PASSES {
            self.passes.pop_front();
        }
        self.breach()
    }

    fn breach(&self) -> Option<Breach> {
        let sum = |of: fn(&PassTotals) -> u64| self.passes.iter().map(of).sum::<u64>();
        let (sent, resent) = (sum(|seen| seen.sent), sum(|seen| seen.resent));
        let (share, limit) = (resent as f64 / sent as f64, self.limits.retransmitted.as_f64());
        if sent >= MIN_SENT && share > limit {
            return Some(Breach::Retransmitted { share, limit });
        }
        let rtts: Vec<f64> = self.passes.iter().flat_map(|seen| &seen.rtts_ms).copied().collect();
        let limit_ms = self.limits.rtt_p95.as_millis_f64();
        let p95_ms = quantile(&rtts, 0.95).filter(|_| rtts.len() >= MIN_RTTS)?;
        (p95_ms > limit_ms).then_some(Breach::Rtt { p95_ms, limit_ms })
    }
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Retransmitted { share, limit } => write!(
                f,
                "{:.2} % of the payload was retransmitted, the limit is {:.2} % (--max-retransmitted)",
                share * 100.0,
                limit * 100.0
            ),
            Self::Rtt { p95_ms, limit_ms } => write!(
                f,
                "the 95th percentile of round-trip times was {p95_ms:.1} ms, the limit is {limit_ms:.1} ms (--max-rtt-p95)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_watch::{Event, TapeReader, Tracker};

    /// A recorded session until its busiest second: 7.8 % of the payload are retransmitted, round-trip times are 53 to 67 ms.
    fn tracker() -> Tracker {
        let session = include_str!("../../../watch/tests/sessions/mixed.jsonl");
        let mut tape = TapeReader::new(session.as_bytes()).expect("a session");
        let mut tracker = Tracker::new(tape.has_close_events());
        while tracker.passes() < 3 {
            let event: Event = tape.read().expect("an event").expect("three passes");
            tracker.take(&event, |_, _| {});
        }
        tracker
    }

    fn judged(retransmitted: &str, rtt_ms: u64, passes: usize) -> Option<Breach> {
        let (tracker, rtt_p95) = (tracker(), TimeDelta::from_millis(rtt_ms));
        let retransmitted = retransmitted.parse().expect("a share");
        let mut guard = SafetyMonitor::new(Limits { retransmitted, rtt_p95 });
        (0..passes).map(|_| guard.see(tracker.connections())).last().expect("a pass")
    }

    #[test]
    fn limits_are_judged_when_there_is_enough_to_judge() {
        assert_eq!(judged("10%", 100, 10), None);
        let Some(Breach::Retransmitted { share, limit }) = judged("5%", 100, 1) else {
            panic!("no breach");
        };
        assert!((0.07..0.09).contains(&share) && (limit - 0.05).abs() < 1e-9, "{share} {limit}");
        let Some(Breach::Rtt { p95_ms, .. }) = judged("10%", 60, 10) else { panic!("no breach") };
        assert!((60.0..70.0).contains(&p95_ms), "{p95_ms}");
        assert_eq!(judged("10%", 60, 4), None, "16 round-trip times are too few");
    }

    #[test]
    fn the_next_window_is_judged_alone() {
        let limits = Limits {
            retransmitted: "10%".parse().expect("a share"),
            rtt_p95: TimeDelta::from_millis(60),
        };
        let (mut guard, tracker) = (SafetyMonitor::new(limits), tracker());
        let breached = (0..5).filter_map(|_| guard.see(tracker.connections())).count();
        assert_eq!(breached, 1);
        guard.clear();
        assert_eq!(guard.see(tracker.connections()), None);
    }
}
