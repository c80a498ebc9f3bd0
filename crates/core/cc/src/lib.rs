//! Congestion control as pure state machines.
//!
//! A host (a QUIC stack, a TCP implementation, a game protocol over UDP, a simulator) reports
//! events to a [`Controller`], which returns a window, a pacing rate and a burst size. A controller
//! never reads a clock, opens a socket or allocates. Time and random seed are arguments, so equal
//! inputs give equal decisions on every machine. The crate is `no_std` without `alloc`, has no
//! unsafe code and needs Rust 1.85, the first version with edition 2024.
//!
//! Byte counts are `u64` bytes of transport payload, or of whole packets if the host prefers; it
//! must use one of them consistently. The types of time and rate are in [`units`], so a host needs
//! no other crate:
//!
//! ```toml
//! [dependencies]
//! uncork-cc = { path = "uncork/crates/core/cc" }
//! ```
//!
//! # Writing a host
//!
//! A host has four duties: stay within [`Control`], keep the [`Token`] of each packet in flight,
//! report whether it was acknowledged or lost, and report timeouts. [`Controller`] documents the
//! order of calls. This host sends endless data over a path without loss; `examples/udp` does all
//! four over sockets.
//!
//! ```
//! use std::collections::VecDeque;
//! use uncork_cc::pacer::Pacer;
//! use uncork_cc::units::{Time, TimeDelta};
//! use uncork_cc::{Acked, AppState, CcSpec, Controller, Feedback, RttSample, SentPacket};
//! use uncork_cc::{Settings, Token};
//!
//! const MSS: u32 = 1_200;
//! const RTT: TimeDelta = TimeDelta::from_millis(20);
//! let mut now = Time::ZERO;
//! let spec: CcSpec = "bbr3".parse()?;
//! let mut cc = spec.build(&Settings::new(MSS, 1, now));
//! let mut pacer = Pacer::default();
//! let mut flight: VecDeque<Token> = VecDeque::new();
//!
//! while now < Time::ZERO + RTT.times(5) {
//!     // A packet leaves if the window and the pacer let it.
//!     let control = cc.control();
//!     let in_flight = (flight.len() as u64 + 1) * u64::from(MSS);
//!     let has_room = in_flight <= control.cwnd;
//!     if has_room && pacer.release(now, &control) == now {
//!         let packet = SentPacket { bytes: MSS, in_flight, unacked: in_flight };
//!         flight.push_back(cc.on_sent(now, packet, AppState::Backlogged));
//!         pacer.on_sent(now, u64::from(MSS), &control);
//!         continue;
//!     }
//!     // Otherwise wait for the pacer or for the ACK of the oldest packet.
//!     let release = if has_room { pacer.release(now, &control) } else { Time::NEVER };
//!     let ack = flight.front().map_or(Time::NEVER, |oldest| oldest.send_time() + RTT);
//!     now = release.min(ack);
//!     if now == ack {
//!         let Some(token) = flight.pop_front() else { break };
//!         let acked = [Acked { token, bytes: MSS }];
//!         let oldest = flight.front().map_or(Time::NEVER, Token::send_time);
//!         let in_flight = flight.len() as u64 * u64::from(MSS);
//!         let rtt = RttSample { latest: RTT, smoothed: RTT, min: RTT };
//!         cc.on_feedback(now, &Feedback::new(&acked, &[], in_flight, oldest).with_rtt(rtt));
//!     }
//! }
//! assert_eq!(cc.snapshot().state, "Startup");
//! assert!(cc.control().cwnd > 40 * u64::from(MSS), "the window has doubled twice and more");
//! # Ok::<(), uncork_cc::SpecError>(())
//! ```
//!
//! # Common mistakes in a host
//!
//! No input makes a controller panic, but some inputs cause bad decisions:
//!
//! - **One feedback per packet of an ACK** instead of one per ACK: losses arrive after the rate
//!   sample they belong to.
//! - **[`AppState::Drained`] while the pacer or the window holds data back**: every sample then
//!   counts as application-limited, and BBR never learns the bandwidth.
//! - **[`AppState::Backlogged`] without data left to send**: samples then blame the path for data
//!   that the application did not send.
//! - **Ignoring [`Control::pacing_rate`]**: BBR's model assumes that the host paces. Use
//!   [`pacer::Pacer`] or the socket's pacing (`SO_MAX_PACING_RATE`, `SO_TXTIME`).
//! - **Reporting pure ACKs as sent**: they are never acknowledged, so they stay in flight forever.
//! - **The same seed for all connections**: they probe for bandwidth at the same time.
//! - **Subtracting the peer's ACK delay from [`RttSample::latest`]**: the window must cover that
//!   delay.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod ack_frequency;
mod any;
mod bbr1;
mod bbr3;
mod controller;
mod cubic;
mod ecn_mode;
mod event;
mod filter;
mod full_pipe;
mod in_linux;
mod inheritance;
mod initial_window;
#[cfg(test)]
mod link;
mod loss_window;
mod newreno;
mod prague;
mod prr;
mod recovery;
mod resume;
mod round;
mod sampler;
#[cfg(test)]
mod script;
mod spec;
mod start_observer;
mod ticks;

pub mod pacer;
pub mod start;

#[cfg(doctest)]
#[doc = include_str!("../../../../docs/reference/embedding.md")]
mod embedding {}

pub use ack_frequency::AckFrequency;
pub use any::{AnyController, Either};
pub use bbr1::Bbr1;
pub use bbr3::Bbr3;
pub use controller::{Control, Controller, ControllerSpec, Settings, Snapshot};
pub use cubic::Cubic;
pub use ecn_mode::{EcnMode, UnknownEcnMode};
pub use event::{
    Acked, AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Stamp, Timeout, Token,
};
pub use in_linux::{InLinux, Missing, is_kernel_controller};
pub use inheritance::Inheritance;
pub use initial_window::{InitialWindow, InitialWindowError};
pub use newreno::NewReno;
pub use prague::Prague;
pub use resume::{ResumeHint, ResumePhase};
pub use sampler::RateSample;
pub use spec::{Algorithm, CcSpec, SpecError};
pub use start_observer::{ResumeOutcome, StartCounts, StartExit, StartObserver, StartReport};
/// Times, rates and ratios.
pub use uncork_units as units;
