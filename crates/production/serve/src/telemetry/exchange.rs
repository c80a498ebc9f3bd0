//! One request and its response.

use std::sync::Arc;
use std::time::Instant;

use uncork_flow::{Distribution, FlowRecord, TransportFigures, rtt_quantiles};

use super::about::{About, Labels};
use crate::choice::ActiveSettings;

/// The state of a response.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) began: Instant,
    /// The settings in effect for it.
    active: Arc<ActiveSettings>,
    about: About,
    /// The kernel's counters of the connection at its start.
    pub(super) before: TransportFigures,
    /// Bytes that the socket had accepted at its start.
    pub(super) from: u64,
    /// When the socket first accepted more bytes.
    pub(super) first: Option<Instant>,
    /// The length of the body.
    pub(super) size: u64,
    /// Body bytes that the protocol has taken; `None` while it may take more.
    pub(super) taken: Option<u64>,
    /// Bytes that the socket had accepted when the whole response was among them, and when that was.
    pub(super) end: Option<(u64, Instant)>,
    /// Smoothed round-trip times, one per sample of the kernel.
    pub(super) rtts: Distribution,
    /// The latest counters of the kernel.
    pub(super) last: TransportFigures,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client acknowledged all of it at this time.
    Acknowledged(Instant),
    /// The kernel has all of it and continues to send; it is unknown what has arrived.
    Unknown,
    /// It was aborted, or the connection ended before.
    BrokenOff,
}

impl Exchange {
    pub(super) fn new(
        began: Instant,
        (about, active): (About, Arc<ActiveSettings>),
        before: &TransportFigures,
        (from, size): (u64, u64),
    ) -> Self {
        Self {
            began,
            active,
            about,
            before: *before,
            from,
            first: None,
            size,
            taken: None,
            end: None,
            rtts: Distribution::new(),
            last: *before,
        }
    }

    pub(super) fn note(&mut self, figures: &TransportFigures) {
        self.last = *figures;
        if let Some(rtt) = figures.rtt {
            self.rtts.record(rtt.as_nanos());
        }
    }

    /// Bytes that the socket has accepted for it, with what others sent meanwhile, once it is known where it ends.
    pub(super) fn bytes(&self) -> u64 {
        self.end.map_or(0, |(end, _)| end - self.from)
    }

    pub(super) fn is_broken_off(&self) -> bool {
        self.taken.is_some_and(|taken| taken < self.size)
    }

    /// Creates the record from the differences of the kernel's counters between start and end.
    /// Responses that share a connection share these, but what arrived of one is counted once: `delivered` bytes of what the
    /// client acknowledged are in earlier records.
    pub(super) fn record(&self, ending: Ending, delivered: u64, labels: &Labels) -> FlowRecord {
        let left = self.last.bytes_acked.saturating_sub(delivered);
        let nanos = |time: Instant| time.saturating_duration_since(self.began).as_nanos() as u64;
        let mut figures = self.last.since(&self.before);
        // Bytes after its end belong to the next response.
        let most = self.end.map_or(u64::MAX, |(end, _)| end - self.from);
        figures.bytes_acked = figures.bytes_acked.min(most);
        let taken = self.taken.unwrap_or(0);
        let (completion, delivered) = match ending {
            Ending::Acknowledged(at) => (Some(nanos(at)), taken),
            Ending::Unknown | Ending::BrokenOff => (None, taken.min(figures.bytes_acked).min(left)),
        };
        let record = FlowRecord {
            completion_ns: completion,
            first_byte_ns: self.first.map(nanos),
            rtt_ms: rtt_quantiles(&self.rtts, figures.min_rtt),
            size_bytes: Some(self.size),
            bytes_delivered: delivered,
            service: Some(labels.response(&self.about, ending == Ending::BrokenOff)),
            ..labels.record(&self.active, self.began)
        };
        figures.fill(record)
    }
}
