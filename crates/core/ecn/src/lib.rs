//! Which kind of queue marks packets on the way to a client network: one for L4S, one per flow, or one classic queue.
//!
//! A flow alone cannot know before it has done harm for a while (`prague`'s test needs 24 round trips of a standing queue).
//! A server sees many flows of a network, so what they have seen decides how the next connection begins:
//!
//! ```text
//! each ACK ─► FlowObserver ─► FlowEvidence, when the connection ends ─► NetworkEvidence, a sum ─► Verdict
//!                   │ Round, at the end of each
//!                   └─► ConcurrentFlows of one client ─► PairEvidence ──────────┘
//! totals, now and then ─► PolledFlow ─► FlowEvidence
//! ```
//!
//! Only flows that send ECT(1) count: a queue for L4S holds no others. All types are plain counts of fixed size. There is
//! no clock: times are arguments.
#![forbid(unsafe_code)]

mod concurrent;
mod flow;
mod limits;
mod network;
mod networks;
mod observer;
mod polled;
mod round;
mod verdict;

pub use concurrent::{ConcurrentFlows, PairEvidence};
pub use flow::{FlowEvidence, Vote};
pub use limits::{
    CLASSIC_QUEUE, L4S_QUEUE, MAX_AGE, MAX_PACKET_TIME, MIN_CLASSIC_LEAD, MIN_L4S_VOTES,
    MIN_ROUNDS, VOTES_PER_CONTRADICTION,
};
pub use network::NetworkEvidence;
pub use networks::Networks;
pub use observer::{AckReport, FlowObserver};
pub use polled::{PolledFlow, Totals};
pub use round::{Round, RoundKind};
pub use verdict::{Bottleneck, Verdict, verdict};
