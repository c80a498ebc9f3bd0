//! Queue disciplines: which packet leaves next, and which is dropped.
//!
//! The caller supplies the time and random numbers. A discipline measures waiting times from its
//! own record of arrivals. Dropped packets, from either end, are passed to the caller's closure.

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
mod step;

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
pub use step::{StepMarking, StepSpec};

/// A packet with its arrival time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<T> {
    /// Arrival time.
    pub since: Time,
    /// The packet.
    pub packet: Packet<T>,
}

/// A queue of any discipline.
#[derive(Clone, Debug)]
pub enum Queue<T> {
    /// FIFO with a size limit.
    DropTail(DropTail<T>),
    /// FIFO that drops when packets wait too long (RFC 8289).
    Codel(Codel<T>),
    /// Fair queueing among flows, each with CoDel (RFC 8290).
    FqCodel(FqCodel<T>),
    /// Fair queueing among hosts and their flows, each with CoDel.
    Cake(Cake<T>),
    /// A classic and a low-latency queue, coupled (RFC 9332).
    DualPi2(DualPi2<T>),
    /// Drops at random, at the rate that keeps the delay at a target (RFC 8033).
    Pie(Pie<T>),
    /// FIFO that marks above a fixed sojourn time.
    Step(StepMarking<T>),
}

impl<T> Queue<T> {
    /// A packet arrives at `now`. It, or others that make room for it, may be passed to `dropped`.
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
            Self::Step(queue) => queue.enqueue(now, packet, dropped),
        }
    }

    /// The packet that leaves at `now`. Packets dropped before it are passed to `dropped`.
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
            Self::DualPi2(queue) => queue.dequeue(now, rng, dropped),
            Self::Pie(queue) => queue.dequeue(now),
            Self::Step(queue) => queue.dequeue(now),
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
            Self::Step(queue) => queue.bytes(),
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
            Self::Step(queue) => queue.packets(),
        }
    }
}
