//! Counters of a connection.

/// Totals so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathCounts {
    pub(crate) sent_bytes: u64,
    pub(crate) acked_bytes: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) lost_packets: u64,
    pub(crate) spurious_packets: u64,
    pub(crate) ce_packets: u64,
}

impl PathCounts {
    /// The difference from earlier totals.
    pub(crate) fn less(&self, other: &Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes.saturating_sub(other.sent_bytes),
            acked_bytes: self.acked_bytes.saturating_sub(other.acked_bytes),
            lost_bytes: self.lost_bytes.saturating_sub(other.lost_bytes),
            lost_packets: self.lost_packets.saturating_sub(other.lost_packets),
            spurious_packets: self.spurious_packets.saturating_sub(other.spurious_packets),
            ce_packets: self.ce_packets.saturating_sub(other.ce_packets),
        }
    }
}
