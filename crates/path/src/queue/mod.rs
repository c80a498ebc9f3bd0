//! Queue disciplines: which packet leaves next, and which never does.
//!
//! A discipline is told the time and given the random numbers it needs; it sees how long each packet
//! has waited by its own record of when it came. What it drops, at either end, goes to a closure of
//! the caller's.

mod cake;
mod codel;
mod control_law;
mod drop_tail;
mod drr;
mod dualpi2;
mod fq_codel;
mod gain;
mod params;
mod pi;
mod pie;
#[cfg(test)]
mod properties;
mod spec;

use uncork_units::{Rng, Time};

use crate::Packet;

pub use cake::{Cake, CakeSpec};
pub use codel::{Codel, CodelSpec};
pub use drop_tail::DropTail;
pub use dualpi2::{DualPi2, DualPi2Spec};
pub use fq_codel::{FqCodel, FqCodelSpec};
pub use gain::{Gain, GainError};
pub use pie::{Pie, PieSpec};
pub use spec::{QueueError, QueueSpec};

/// A packet that waits, or has waited, since it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<T> {
    /// When it came.
    pub since: Time,
    /// The packet.
    pub packet: Packet<T>,
}

/// A queue of any discipline.
#[derive(Clone, Debug)]
pub enum Queue<T> {
    /// First in, first out, up to a limit.
    DropTail(DropTail<T>),
    /// First in, first out, and drops when packets wait too long (RFC 8289).
    Codel(Codel<T>),
    /// Flows take turns, each under CoDel (RFC 8290).
    FqCodel(FqCodel<T>),
    /// Hosts take turns, and their flows, each under CoDel.
    Cake(Cake<T>),
    /// A classic queue and one for low latency, coupled (RFC 9332).
    DualPi2(DualPi2<T>),
    /// Drops at random, as often as keeps the delay at a target (RFC 8033).
    Pie(Pie<T>),
}

impl<T> Queue<T> {
    /// A packet arrives at `now`. It, or others that make room for it, may go to `dropped`.
    pub fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<T>,
        rng: &mut Rng,
        dropped: &mut impl FnMut(Packet<T>),
    ) {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, packet, dropped),
            Self::Codel(queue) => queue.enqueue(now, packet, dropped),
            Self::FqCodel(queue) => queue.enqueue(now, packet, rng, dropped),
            Self::Cake(queue) => queue.enqueue(now, packet, rng, dropped),
            Self::DualPi2(queue) => queue.enqueue(now, packet, dropped),
            Self::Pie(queue) => queue.enqueue(now, packet, rng, dropped),
        }
    }

    /// The packet that leaves at `now`. Packets that the discipline drops before it go to `dropped`.
    pub fn dequeue(
        &mut self,
        now: Time,
        rng: &mut Rng,
        dropped: &mut impl FnMut(Packet<T>),
    ) -> Option<Queued<T>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::Codel(queue) => queue.dequeue(now, dropped),
            Self::FqCodel(queue) => queue.dequeue(now, rng, dropped),
            Self::Cake(queue) => queue.dequeue(now, rng, dropped),
            Self::DualPi2(queue) => queue.dequeue(now, dropped),
            Self::Pie(queue) => queue.dequeue(now),
        }
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::DropTail(queue) => queue.bytes(),
            Self::Codel(queue) => queue.bytes(),
            Self::FqCodel(queue) => queue.bytes(),
            Self::Cake(queue) => queue.bytes(),
            Self::DualPi2(queue) => queue.bytes(),
            Self::Pie(queue) => queue.bytes(),
        }
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        match self {
            Self::DropTail(queue) => queue.packets(),
            Self::Codel(queue) => queue.packets(),
            Self::FqCodel(queue) => queue.packets(),
            Self::Cake(queue) => queue.packets(),
            Self::DualPi2(queue) => queue.packets(),
            Self::Pie(queue) => queue.packets(),
        }
    }
}
