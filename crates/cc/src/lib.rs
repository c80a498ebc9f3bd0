//! Congestion control as pure state machines.
//!
//! A host (a QUIC stack, a TCP, a simulator) tells a [`Controller`] what happened and asks it for a
//! window, a pacing rate and a burst size. A controller never reads a clock, opens a socket or
//! allocates; time and the seed of its randomness are arguments, so equal inputs give equal
//! decisions on every machine.
//!
//! Byte counts are `u64` bytes of transport payload (or of whole packets: the host chooses one and
//! keeps to it).
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod ack_train;
mod any;
mod bbr1;
mod bbr3;
mod controller;
mod cubic;
mod event;
mod filter;
mod hystart;
#[cfg(test)]
mod link;
mod loss_window;
mod newreno;
mod prr;
mod recovery;
mod round;
mod sampler;
#[cfg(test)]
mod script;
mod spec;

pub mod pacer;

pub use any::AnyController;
pub use controller::{Control, Controller, Settings, Snapshot};
pub use event::{
    Acked, AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token,
};
pub use spec::{Algorithm, CcSpec, SpecError};
