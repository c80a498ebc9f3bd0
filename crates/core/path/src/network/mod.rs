//! The paths of a simulation or emulation, driven by any clock.
//!
//! Each event happens at its own time, however late [`Network::advance`] is called: a queue uses
//! the time a packet arrived and the time the link took it, not the time a thread ran. Equal
//! packets at equal times with equal seeds have the same fate, to the nanosecond.
//!
//! A simulation has its own events, such as its hosts' timers. They share the network's schedule
//! ([`Network::schedule`], [`Network::step`]), so that events at equal times keep their order.

mod calendar;
mod flow;
mod lines;
mod one_way;
mod schedule;
mod spec;
mod walk;

pub use spec::{BackSpec, Body, Cause, Direction, Fate, FlowPath, NetworkSpec, Offer};
pub use walk::{DropSink, Event, Line, Network, PendingEvents};
