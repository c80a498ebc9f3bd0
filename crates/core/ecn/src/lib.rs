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
//!
//! ```
//! use uncork_ecn::{AckReport, Bottleneck, FlowObserver, NetworkEvidence, verdict};
//! use uncork_units::{Time, TimeDelta};
//!
//! let (empty, queue) = (TimeDelta::from_millis(20), TimeDelta::from_micros(900));
//! let mut network = NetworkEvidence::default();
//! for _connection in 0..3 {
//!     let mut flow = FlowObserver::new(Time::ZERO, Some(empty));
//!     for ms in 1..1000 {
//!         let marked = u32::from(ms % 10 == 0);
//!         let ack = AckReport { packets: 2, marked, rtt: Some(empty + queue) };
//!         flow.on_ack(Time::ZERO + TimeDelta::from_millis(ms), ack);
//!     }
//!     network.add(&flow.evidence());
//! }
//! let verdict = verdict(&network, TimeDelta::ZERO);
//! assert_eq!((verdict.bottleneck, verdict.bottleneck.ecn()), (Bottleneck::L4s, Some("l4s")));
//! assert_eq!(
//!     verdict.to_string(),
//!     "the bottleneck marks for L4S: 3 of 3 flows had marks at a short queue (0.9 ms on average)"
//! );
//! ```
#![forbid(unsafe_code)]

mod concurrent;
mod document;
mod flow;
mod limits;
mod network;
mod networks;
mod observer;
mod polled;
mod round;
mod verdict;
mod votes;

pub use concurrent::{ConcurrentFlows, PairEvidence};
pub use document::EcnDocument;
pub use flow::{FlowEvidence, Vote};
pub use limits::{
    CLASSIC_QUEUE, L4S_QUEUE, MAX_AGE, MAX_PACKET_TIME, MIN_CLASSIC_LEAD, MIN_L4S_VOTES,
    MIN_ROUNDS, VOTES_PER_CONTRADICTION,
};
pub use network::NetworkEvidence;
pub use networks::Networks;
pub use observer::{AckReport, FlowObserver};
pub use polled::{EcnTotals, PolledFlow};
pub use round::{Round, RoundKind};
pub use verdict::{Bottleneck, Verdict, verdict};
pub use votes::Votes;
