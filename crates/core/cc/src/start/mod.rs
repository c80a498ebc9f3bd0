//! How the initial slow start ends before a loss ends it: one file for each method.

mod ack_train;
mod classic;
mod hystart;
mod rapid;
mod search;

use core::fmt;

use uncork_units::Time;

use crate::event::RttSample;

pub use classic::ClassicStart;
pub use hystart::HyStart;
pub use rapid::RapidStart;
pub use search::Search;

/// A method that ends the initial slow start of [`crate::NewReno`] or [`crate::Cubic`].
pub trait SlowStart: Copy + fmt::Debug {
    /// The state at the start of a connection.
    const INITIAL: Self;

    /// Whether a loss or mark that ends it makes the window converge as in Rapid Start. Otherwise the window is
    /// reduced as by any other congestion.
    const CONVERGES: bool = false;

    /// A packet of `bytes` leaves.
    fn on_sent(&mut self, _bytes: u32) {}

    /// Bytes that an acknowledgement of `acked` bytes adds to the window, in packet-timed round trip `round`.
    fn growth(&mut self, acked: u64, _round: u64, _rtt: Option<RttSample>) -> u64 {
        acked
    }

    /// Handles an acknowledgement, after the window has grown. Returns true when slow start ends.
    fn on_ack(&mut self, ack: &StartAck) -> bool;

    /// Name of the state, for [`crate::Snapshot`].
    fn state(&self) -> &'static str {
        "SlowStart"
    }
}

/// An acknowledgement in the initial slow start, and the window after it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StartAck {
    /// When it arrived.
    pub now: Time,
    /// Packet-timed round trips so far.
    pub round: u64,
    /// The RTT, if the acknowledgement measures one.
    pub rtt: Option<RttSample>,
    /// Bytes delivered on the connection so far.
    pub delivered: u64,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Sender maximum segment size in bytes.
    pub mss: u64,
    /// Whether packets are paced over the round trip.
    pub is_paced: bool,
}

#[cfg(test)]
impl StartAck {
    /// An acknowledgement of a sender with a large window that does not pace.
    pub(crate) fn at(now: Time, round: u64, rtt: Option<uncork_units::TimeDelta>) -> Self {
        let rtt = rtt.map(|rtt| RttSample { latest: rtt, smoothed: rtt, min: rtt });
        Self { now, round, rtt, delivered: 0, cwnd: 100_000, mss: 1_000, is_paced: false }
    }
}
