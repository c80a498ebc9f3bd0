//! Congestion control as pure state machines.
//!
//! A host (a QUIC stack, a TCP, a simulator) tells a [`Controller`] what happened and asks it for a
//! window, a pacing rate and a burst size. A controller never reads a clock, opens a socket or
//! allocates; time and the seed of its randomness are arguments, so equal inputs give equal
//! decisions on every machine.
//!
//! Byte counts are `u64` bytes of transport payload (or of whole packets: the host chooses one and
//! keeps to it). Times and rates are those of `uncork_units`.
//!
//! # A host
//!
//! A host has four duties: to stay within [`Control`], to keep the [`Token`] of each packet in
//! flight, to tell what becomes of it, and to report timeouts; [`Controller`] says in which order.
//! Here is one that sends without end over a path that loses nothing:
//!
//! ```
//! use std::collections::VecDeque;
//! use uncork_cc::pacer::Pacer;
//! use uncork_cc::{
//!     Acked, AppState, CcSpec, Controller, Feedback, RttSample, SentPacket, Settings, Token,
//! };
//! use uncork_units::{Time, TimeDelta};
//!
//! const MSS: u32 = 1_200;
//! let bytes = u64::from(MSS);
//! let rtt = TimeDelta::from_millis(20);
//! let mut now = Time::ZERO;
//!
//! let spec: CcSpec = "bbr3".parse().expect("a known controller");
//! let initial_rtt = Some(rtt);
//! let mut cc =
//!     spec.build(&Settings { mss: MSS, initial_window: 10 * bytes, initial_rtt, seed: 1, now });
//! let mut pacer = Pacer::default();
//! let mut flight: VecDeque<Token> = VecDeque::new();
//! let mut in_flight = 0;
//!
//! while now < Time::ZERO + rtt.times(5) {
//!     // A packet leaves if the window and the pacer let it.
//!     let control = cc.control();
//!     let release = if in_flight + bytes <= control.cwnd {
//!         pacer.release(now, &control)
//!     } else {
//!         pacer.end_burst();
//!         Time::NEVER
//!     };
//!     if release == now {
//!         in_flight += bytes;
//!         let packet = SentPacket { bytes: MSS, in_flight, unacked: in_flight };
//!         flight.push_back(cc.on_sent(now, packet, AppState::Backlogged));
//!         pacer.on_sent(now, bytes, &control);
//!         continue;
//!     }
//!     // Otherwise the pacer or an ACK is next.
//!     let ack = flight.front().map_or(Time::NEVER, |oldest| oldest.send_time() + rtt);
//!     now = release.min(ack);
//!     if now == ack && let Some(token) = flight.pop_front() {
//!         in_flight -= bytes;
//!         cc.on_feedback(
//!             now,
//!             &Feedback {
//!                 acked: &[Acked { token, bytes: MSS }],
//!                 lost: &[],
//!                 rtt: Some(RttSample { latest: rtt, smoothed: rtt, min: rtt }),
//!                 ce_packets: 0,
//!                 in_flight,
//!                 unacked: in_flight,
//!                 una_advanced: true,
//!                 oldest_sent: flight.front().map_or(Time::NEVER, Token::send_time),
//!                 repaired_by_probe: false,
//!             },
//!         );
//!     }
//! }
//! assert_eq!(cc.snapshot().state, "Startup");
//! assert!(cc.control().cwnd > 40 * bytes, "the window has doubled twice and more");
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod ack_frequency;
mod ack_train;
mod any;
mod bbr1;
mod bbr3;
mod controller;
mod cubic;
mod event;
mod filter;
mod full_pipe;
mod hystart;
#[cfg(test)]
mod link;
mod loss_window;
mod newreno;
mod prr;
mod recovery;
mod resume;
mod round;
mod sampler;
#[cfg(test)]
mod script;
mod spec;

pub mod pacer;

pub use ack_frequency::AckFrequency;
pub use any::AnyController;
pub use controller::{Control, Controller, Settings, Snapshot};
pub use event::{
    Acked, AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token,
};
pub use resume::{ResumeHint, ResumePhase};
pub use spec::{Algorithm, CcSpec, SpecError};
