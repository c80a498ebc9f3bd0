//! Uncork's congestion controllers inside a QUIC stack, `noq-proto`.
//!
//! The stack tells a controller of each event by itself: packets acknowledged one by one, losses after
//! them, and nothing of packet number spaces, of how many packets were marked, or of what was declared
//! lost and arrived after all. A controller of [`uncork_cc`] wants one [`uncork_cc::Feedback`] for each
//! acknowledgement. This crate closes the gap without a change to the stack:
//!
//! - a [`Handle`] is made for each connection; it gives the stack a factory of controllers, and wraps
//!   its cryptography, where packets pass in plain text just before they are worked through;
//! - what belongs to one acknowledgement is put together, and handed over when the next event or
//!   question shows that it is complete;
//! - the algorithm can be chosen when the client's name for the server is known, and replaced at any
//!   time ([`Handle::choose`]), with a window to begin with and a bound of the rate ([`Choice`]).
//!
//! Somebody can be told of each event ([`Handle::watch`]), and [`Qlog`] makes text of it.
//!
//! Like the stack itself, nothing here reads a clock: time passes in arguments.
//!
//! # What cannot be carried over
//!
//! - That a probe timeout expired ([`uncork_cc::Timeout::Probe`]): the stack does not tell. Controllers
//!   conclude nothing from it.
//! - How often the receiver should acknowledge ([`uncork_cc::Controller::ack_frequency`]): the stack
//!   takes that from its configuration.
//! - That the application ran dry is told by the next acknowledgement. What it writes before that
//!   counts as if it had been there all the time.
//! - How much may go at once ([`uncork_cc::Control::send_quantum`]) bounds the stack's batches, but its
//!   pacer lets ten packets go after a pause.
//! - Packets of an earlier path (RFC 9000 §9.4): the stack keeps what becomes of them to itself.
//!
//! `docs/fidelity.md` has what that costs, measured beside a transport that tells everything.
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
mod tls;
mod watch;

pub use choice::Choice;
pub use epoch::Epoch;
pub use handle::{Handle, Observation};
pub use observed::Space;
pub use qlog::Qlog;
pub use watch::{Event, Watch};
