//! Measures the cost of congestion controllers under equal conditions.
//!
//! Every controller is the [`Subject`] of the same closed loop ([`Connection`]): 20 ms of round-trip time, a
//! bottleneck, an occasional packet loss. The loop respects the controller's window, but not its pacing rate,
//! and has a limit of its own ([`BenchLoad`]). It makes the same calls as the controller's own stack, in the same
//! order. Each call reports the same constant round-trip time, because the estimators of the other stacks
//! cannot be set from outside.
//!
//! The measured time covers the calls and, per packet sent, the query of the window before it, but not the
//! loop's bookkeeping. Controllers that their stack calls through a `Box<dyn Controller>` are called that way
//! here.

mod connection;
mod handshake;
mod noq;
mod ours;
mod quinn;
mod report;
mod subject;
mod timer;

pub use connection::{BenchLoad, Connection, Costs};
pub use noq::Noq;
pub use ours::Ours;
pub use quinn::Quinn;
pub use report::{Candidate, Row, candidate, measure};
pub use subject::Subject;
pub use timer::{Tally, Timer};

use uncork_units::TimeDelta;

/// Bytes in a packet.
pub const PACKET: u32 = 1_200;
/// The round-trip time without a queue.
pub const RTT: TimeDelta = TimeDelta::from_millis(20);
