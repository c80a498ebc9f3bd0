//! Uncork's congestion controllers inside a QUIC stack, `noq-proto`.
//!
//! The stack reports each packet separately: acknowledgements one by one, losses after them. It does not
//! report packet number spaces, the number of CE marks, or late arrivals. A controller of [`uncork_cc`]
//! needs one [`uncork_cc::Feedback`] for each acknowledgement. This crate closes the gap without a change
//! to the stack:
//!
//! - A [`Handle`] for each connection gives the stack a factory of controllers, and wraps its packet
//!   keys to see packets in plain text just before the stack processes them.
//! - The calls for one acknowledgement are collected and passed on when the next event or query shows that
//!   the acknowledgement is complete.
//! - The algorithm, the initial window and a cap on the pacing rate ([`Choice`]) can be chosen by the
//!   server name that the client asks for, and changed at any time ([`Handle::choose`]).
//!
//! [`Handle::watch`] reports every event, and [`Qlog`] writes events as text. Like the stack, this crate
//! reads no clock.
//!
//! # Limits of the stack's interface
//!
//! - Probe timeouts ([`uncork_cc::Timeout::Probe`]) are not reported. Controllers conclude nothing from
//!   them.
//! - The ACK frequency ([`uncork_cc::Controller::ack_frequency`]) comes from the stack's configuration.
//! - Only the next acknowledgement shows that the application ran out of data. Data written before it counts
//!   as if it had been available all the time.
//! - [`uncork_cc::Control::send_quantum`] bounds the stack's batches, but its pacer sends ten packets at once
//!   after a pause.
//! - The fate of packets of an earlier path (RFC 9000 §9.4) is not reported.
//!
//! `docs/evidence/fidelity.md` measures the effect, compared with a transport that reports everything.
#![forbid(unsafe_code)]

mod ack;
mod choice;
mod congestion;
mod controller;
mod counts;
mod delivery;
mod epoch;
mod handle;
mod ledger;
mod observed;
mod pending;
mod qlog;
mod rtt;
mod start;
mod tls;
mod watch;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use choice::Choice;
pub use epoch::Epoch;
pub use handle::{Handle, Observation};
pub use observed::Space;
pub use qlog::Qlog;
pub use start::ConnectionStart;
pub use watch::{Event, Watch};
