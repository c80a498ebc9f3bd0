//! What congestion controllers cost, measured alike.
//!
//! Every controller is the [`Subject`] of the same closed loop ([`Connection`]): 20 ms of round-trip
//! time, a bottleneck, one packet lost now and then. The loop keeps to the controller's window, but
//! not to its pacing rate, and has a limit of its own ([`Load`]). It makes the calls that the
//! controller's own stack makes, in its order. Each call is told the same constant round-trip time:
//! the estimators of the other stacks cannot be fed from outside.
//!
//! What is timed is the calls and, for a packet sent, the question for the window before it; not
//! the bookkeeping of the loop. Controllers that a stack reaches through a `Box<dyn Controller>` are
//! reached that way here.

mod connection;
#[cfg(feature = "others")]
mod handshake;
#[cfg(feature = "others")]
mod noq;
mod ours;
#[cfg(feature = "others")]
mod quinn;

mod report;
mod subject;
mod timer;

pub use connection::{Connection, Costs, Load};
#[cfg(feature = "others")]
pub use noq::Noq;
pub use ours::Ours;
#[cfg(feature = "others")]
pub use quinn::Quinn;

pub use report::{Candidate, Row, candidate, measure};
pub use subject::Subject;
pub use timer::{Tally, Timer};

use uncork_units::TimeDelta;

/// Bytes in a packet.
pub const PACKET: u32 = 1_200;
/// The round-trip time without a queue.
pub const RTT: TimeDelta = TimeDelta::from_millis(20);
