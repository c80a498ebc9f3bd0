//! The paths of a simulation or emulation, driven by any clock.
//!
//! Each event happens at its own time, however late [`Network::advance`] is called: a queue sees the time at which a
//! packet came and the time at which the link took it, not the time at which a thread ran. Equal packets at equal times
//! with an equal seed have equal fates, to the nanosecond.
//!
//! A simulation has events of its own, such as its hosts' timers. They share the network's schedule
//! ([`Network::schedule`], [`Network::step`]), so events at equal times keep their order.

mod flow;
mod lines;
mod schedule;
mod spec;
mod walk;
mod way;

pub use spec::{BackSpec, Body, Cause, Direction, Fate, FlowPath, NetworkSpec, Offer};
pub use walk::{DropSink, Event, Line, Network};
