//! What the checks of records need beyond the counts: the clock, and records that contradict themselves.

use uncork_flow::FlowRecord;

use crate::values::add;

/// Of the records of a period and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    /// The first and the last start, since 1970.
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// Records that contradict themselves, by [`Contradiction`].
    pub(crate) contradictions: [u64; Contradiction::ALL.len()],
}

/// What no record can be, as in `experiment/health/counts.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contradiction {
    FirstByteAfterLast,
    SentAgainAboveSent,
    MinRttAboveMedian,
    BrokenOffAboveResponses,
}

impl Contradiction {
    pub(crate) const ALL: [Self; 4] = [
        Self::FirstByteAfterLast,
        Self::SentAgainAboveSent,
        Self::MinRttAboveMedian,
        Self::BrokenOffAboveResponses,
    ];

    fn is_in(self, record: &FlowRecord) -> bool {
        match self {
            Self::FirstByteAfterLast => {
                let both = record.first_byte_ns.zip(record.completion_ns);
                both.is_some_and(|(first, last)| first > last)
            }
            Self::SentAgainAboveSent => record.bytes_retransmitted > record.bytes_sent,
            Self::MinRttAboveMedian => record.rtt_ms.is_some_and(|rtt| rtt.min > rtt.p50 * 1.001),
            Self::BrokenOffAboveResponses => {
                record.service.as_ref().is_some_and(|it| it.broken_off > it.responses)
            }
        }
    }
}

impl Health {
    pub(crate) fn of(record: &FlowRecord, start_ns: u64) -> Self {
        Self {
            first_ns: start_ns,
            last_ns: start_ns,
            contradictions: Contradiction::ALL.map(|it| it.is_in(record).into()),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        for (sum, of) in self.contradictions.iter_mut().zip(other.contradictions) {
            add(sum, of);
        }
    }
}
