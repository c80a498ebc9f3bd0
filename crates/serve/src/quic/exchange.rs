//! One request and its response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uncork_flow::{Distribution, FlowRecord, Quantiles, Scope, Service};

use super::connection::Inner;
use super::figures::Figures;
use crate::choice::InForce;
use crate::evidence::About;

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
        FlowRecord {
            engine: "serve".to_owned(),
            group: evidence.in_force.chosen().group.clone(),
            cc: evidence.in_force.cc().to_owned(),
            seed: 0,
            flow: talk.labels.connection,
            start_ns: self.began.saturating_duration_since(talk.labels.epoch).as_nanos() as u64,
            completion_ns: completion,
            first_byte_ns: first,
            busy_ns: first.map_or(0, |first| nanos(end).saturating_sub(first)),
            size_bytes: Some(self.size),
            bytes_delivered: if completion.is_some() { self.size } else { self.taken.min(acked) },
            bytes_delivered_early: 0,
            bytes_acked: acked,
            bytes_sent: since(|figures| figures.sent_bytes),
            bytes_retransmitted: since(|figures| figures.lost_bytes),
            packets_sent: since(|figures| figures.packets),
            packets_lost: since(|figures| figures.lost_packets),
            packets_dropped_queue: 0,
            packets_dropped_policer: 0,
            packets_dropped_random: 0,
            packets_marked: since(|figures| figures.ce_packets),
            acks_dropped: 0,
            timeouts: 0,
            rtt_ms: rtt(evidence, after),
            queue_ms: None,
            playback: None,
            service: Some(service(evidence, after, completion.is_some(), talk)),
            choice: evidence.in_force.choice(),
        }
    }
}

fn service(evidence: &Evidence, after: &Figures, is_whole: bool, talk: &Inner) -> Service {
    let About { at, protocol, host, status, object_bytes } = &evidence.about;
    Service {
        host: host.clone(),
        status: Some(*status),
        object_bytes: *object_bytes,
        responses: 1,
        broken_off: u64::from(!is_whole),
        min_rtt_ns: after.rtt.map(|[.., min]| min),
        ..talk.labels.service(Scope::Response, *at, protocol)
    }
}

/// The smallest is the connection's.
fn rtt(evidence: &Evidence, after: &Figures) -> Option<Quantiles> {
    let mut quantiles = evidence.rtts.quantiles()?;
    if let Some([.., min]) = after.rtt {
        quantiles.min = quantiles.min.min(min as f64 / 1e6);
    }
    Some(quantiles)
}
