//! Shared units: points in time, time spans, data rates, byte counts, ratios and probabilities as integer
//! newtypes, with parsing and printing (`20mbit`, `25ms`, `10MB`, `1%`); and the seeded random number
//! generator that the pure layers take as an argument.
//!
//! All arithmetic saturates and never panics.
#![no_std]
#![cfg_attr(not(target_arch = "bpf"), forbid(unsafe_code))]

mod bytes;
mod decimal;
mod error;
mod probability;
mod quantity;
mod rate;
mod ratio;
mod rng;
mod time;
#[expect(clippy::disallowed_types, reason = "it does without u128 where there is none")]
pub mod wide;

pub use bytes::ByteCount;
pub use error::ParseError;
pub use probability::Probability;
pub use rate::Rate;
pub use ratio::Ratio;
pub use rng::Rng;
pub use time::{Time, TimeDelta};
