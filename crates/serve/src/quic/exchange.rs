//! One request and its response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uncork_flow::{Distribution, FlowRecord, Service};
use uncork_units::TimeDelta;

use super::connection::Inner;
use super::figures::Figures;
use crate::choice::InForce;
use crate::evidence::{About, quantiles};

/// Round-trip times are noted no more often than this.
const SAMPLES: Duration = Duration::from_millis(10);

/// What is known of a response so far.
pub(super) struct Exchange {
    began: Instant,
    /// The length of the body that was promised.
    size: u64,
    /// What was given to be sent of it.
    taken: u64,
    /// When the first of it was.
    first: Option<Instant>,
    /// What is only wanted for a record.
    evidence: Option<Box<Evidence>>,
}

struct Evidence {
    in_force: Arc<InForce>,
    about: About,
    before: Figures,
    rtts: Distribution,
    sampled: Instant,
}

impl Exchange {
    /// `about` is asked if anybody wants to know.
    pub(super) fn new(
        began: Instant,
        size: u64,
        in_force: Arc<InForce>,
        about: impl FnOnce() -> About,
        talk: &Inner,
    ) -> Self {
        let evidence = talk.shared.has_evidence().then(|| {
            let (before, rtts) = (talk.figures(), Distribution::new());
            Box::new(Evidence { in_force, about: about(), before, rtts, sampled: began })
        });
        Self { began, size, taken: 0, first: None, evidence }
    }

    /// So much more of the body was given to be sent, at this time; nothing of it with the head.
    pub(super) fn took(&mut self, now: Instant, bytes: u64, talk: &Inner) {
        self.first.get_or_insert(now);
        self.taken += bytes;
        if let Some(evidence) = &mut self.evidence
            && now >= evidence.sampled + SAMPLES
            && let Some([latest, ..]) = talk.figures().rtt
        {
            evidence.sampled = now;
            evidence.rtts.record(latest);
        }
    }

    /// It is over: the client had all of it `at` some time, or it was broken off.
    pub(super) fn end(mut self, at: Option<Instant>, talk: &Inner) {
        let Some(mut evidence) = self.evidence.take() else { return };
        let after = talk.figures();
        if let Some([latest, ..]) = after.rtt {
            evidence.rtts.record(latest);
        }
        talk.shared.leave(self.record(at, &evidence, &after, talk));
    }

    /// Differences between what was known before and at last, so that responses that share the connection
    /// for a while share these, too.
    fn record(
        &self,
        at: Option<Instant>,
        evidence: &Evidence,
        after: &Figures,
        talk: &Inner,
    ) -> FlowRecord {
        let nanos = |time: Instant| time.saturating_duration_since(self.began).as_nanos() as u64;
        let since = |of: fn(&Figures) -> u64| of(after).saturating_sub(of(&evidence.before));
        let acked = since(|figures| figures.acked_bytes);
        let completion = at.filter(|_| self.taken == self.size).map(nanos);
        let (first, end) = (self.first.map(nanos), at.unwrap_or(talk.scope.now()));
        let min = after.rtt.map(|[.., min]| TimeDelta::from_nanos(min));
        let service = Service {
            min_rtt_ns: min.map(TimeDelta::as_nanos),
            ..talk.labels.response(&evidence.about, completion.is_none())
        };
        FlowRecord {
            completion_ns: completion,
            first_byte_ns: first,
            busy_ns: first.map_or(0, |first| nanos(end).saturating_sub(first)),
            size_bytes: Some(self.size),
            bytes_delivered: if completion.is_some() { self.size } else { self.taken.min(acked) },
            bytes_acked: acked,
            bytes_sent: since(|figures| figures.sent_bytes),
            bytes_retransmitted: since(|figures| figures.lost_bytes),
            packets_sent: since(|figures| figures.packets),
            packets_lost: since(|figures| figures.lost_packets),
            packets_marked: since(|figures| figures.ce_packets),
            rtt_ms: quantiles(&evidence.rtts, min),
            service: Some(service),
            ..talk.labels.record(&evidence.in_force, self.began)
        }
    }
}
