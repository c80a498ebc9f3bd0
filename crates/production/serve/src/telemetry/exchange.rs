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
    /// Where it begins in the stream: behind what the HTTP library had passed on.
    pub(super) from: u64,
    /// Whether responses follow each other in the stream (HTTP/1.1).
    is_in_order: bool,
    /// When the socket first accepted more bytes.
    pub(super) first: Option<Instant>,
    /// The length of the body.
    pub(super) size: u64,
    /// Its stream of HTTP/2.
    pub(super) stream: Option<u32>,
    /// Body bytes in frames of HTTP/2.
    pub(super) sent: u64,
    /// Whether its stream was reset.
    pub(super) is_reset: bool,
    /// Body bytes that the protocol has taken; `None` while it may take more.
    pub(super) taken: Option<u64>,
    /// Where it ends in the stream, once the HTTP library has passed on all of it.
    pub(super) last_byte: Option<u64>,
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

/// What responses of HTTP/2 that are not whole have of the acknowledged bytes. The kernel counts the connection only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UncertainShare {
    /// Acknowledged bytes that other responses cannot have.
    bytes: u64,
    /// Body bytes in frames, of all responses that share them.
    sent: u64,
}

impl UncertainShare {
    /// The share of responses that end now, of `open` ones on a connection: each with whether it ends.
    /// Earlier records have `delivered` bytes.
    ///
    /// While the connection is open, responses that go on may have all that is in frames of them. Once it `is_over`,
    /// all have parts in proportion, because HTTP/2 interleaves them.
    pub(super) fn new<'e>(
        open: impl Iterator<Item = (&'e Exchange, bool)>,
        delivered: u64,
        is_over: bool,
    ) -> Self {
        let (mut acked, mut sent, mut reserved) = (0, 0, 0);
        for (exchange, ends) in open {
            acked = exchange.last.bytes_acked.max(acked);
            let part = if ends || is_over { &mut sent } else { &mut reserved };
            *part += exchange.passed();
        }
        Self { bytes: acked.saturating_sub(delivered).saturating_sub(reserved), sent }
    }

    /// The part of a response with `sent` bytes in frames.
    fn of(&self, sent: u64) -> u64 {
        let part = u128::from(self.bytes) * u128::from(sent) / u128::from(self.sent.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

impl Ending {
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Acknowledged(_))
    }
}

impl Exchange {
    pub(super) fn new(
        began: Instant,
        (about, active): (About, Arc<ActiveSettings>),
        before: &TransportFigures,
        (from, is_in_order): (u64, bool),
        size: u64,
    ) -> Self {
        Self {
            began,
            active,
            about,
            before: *before,
            from,
            is_in_order,
            first: None,
            size,
            stream: None,
            sent: 0,
            is_reset: false,
            taken: None,
            last_byte: None,
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

    /// The socket has accepted `written` bytes. The HTTP library writes at `position`.
    pub(super) fn wrote(&mut self, written: u64, position: Option<u64>, now: Instant) {
        if written > self.from {
            self.first.get_or_insert(now);
        }
        // A response with another one behind it. The flush finds the end of the last one, with TLS more exactly.
        let end = self.last_byte.filter(|end| *end <= written && Some(*end) < position);
        if let (Some(end), None) = (end, self.end) {
            self.end = Some((end, now));
        }
    }

    /// Finds its end in the `written` bytes, if it is among them. The socket has accepted everything up to `flushed`.
    pub(super) fn find_end(&mut self, written: u64, flushed: Option<u64>, now: Instant) {
        if self.end.is_some() {
            return;
        }
        let end = match self.last_byte {
            Some(end) if flushed == Some(end) => Some(written),
            Some(end) if flushed.is_some() => Some(end.min(written)),
            end => end.filter(|end| *end <= written),
        };
        self.end = end.map(|end| (end, now));
    }

    /// Bytes that the socket has accepted for it, with what others sent meanwhile, once it is known where it ends.
    pub(super) fn bytes(&self) -> u64 {
        self.end.map_or(0, |(end, _)| end.saturating_sub(self.from))
    }

    pub(super) fn is_broken_off(&self) -> bool {
        let is_cut = self.is_reset && self.last_byte.is_none();
        self.taken.is_some_and(|taken| taken < self.size || is_cut)
    }

    /// Body bytes that were passed on to the connection.
    fn passed(&self) -> u64 {
        if self.is_in_order { self.taken.unwrap_or(0) } else { self.sent }
    }

    /// Bytes of it that the client has acknowledged; of a connection with several responses at a time, bytes of all since it began.
    fn acknowledged(&self, since: u64) -> u64 {
        let end = self.end.map(|(end, _)| end).or(self.last_byte);
        let most = end.map_or(u64::MAX, |end| end.saturating_sub(self.from));
        let acked =
            if self.is_in_order { self.last.bytes_acked.saturating_sub(self.from) } else { since };
        // Bytes after its end belong to the next response.
        acked.min(most)
    }

    /// Bytes of its head, and of TLS, if they are known: over HTTP/2, other responses are between them.
    fn head(&self) -> u64 {
        let end = self.last_byte.filter(|_| self.is_in_order);
        let bytes = end.map_or(0, |end| end.saturating_sub(self.from));
        bytes.saturating_sub(self.taken.unwrap_or(0))
    }

    /// Creates the record from the differences of the kernel's counters between start and end. Responses that share a
    /// connection share these, but each byte of a body counts once: of a response that is not whole, `share` at most.
    pub(super) fn record(
        &self,
        ending: Ending,
        share: &UncertainShare,
        labels: &Labels,
    ) -> FlowRecord {
        let nanos = |time: Instant| time.saturating_duration_since(self.began).as_nanos() as u64;
        let mut figures = self.last.since(&self.before);
        figures.bytes_acked = self.acknowledged(figures.bytes_acked);
        let (completion, delivered) = match ending {
            Ending::Acknowledged(at) => (Some(nanos(at)), self.taken.unwrap_or(0)),
            Ending::Unknown | Ending::BrokenOff => {
                let passed = self.passed();
                let most = if self.is_in_order { passed } else { share.of(passed) };
                (None, passed.min(figures.bytes_acked.saturating_sub(self.head())).min(most))
            }
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
