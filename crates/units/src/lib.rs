//! Units that every layer of uncork shares: points in time, spans of time, data rates, byte counts
//! and exact ratios, as integer newtypes; how people write them (`20mbit`, `25ms`, `10MB`, `1%`);
//! and the seeded random numbers that the pure layers take as an argument.
//!
//! All arithmetic saturates: an absurd input gives an absurd answer, never a panic.
#![no_std]
#![forbid(unsafe_code)]

mod bytes;
mod decimal;
mod error;
mod probability;
mod quantity;
mod rate;
mod ratio;
mod rng;
mod time;

pub use bytes::ByteCount;
pub use error::ParseError;
pub use probability::Probability;
pub use rate::Rate;
pub use ratio::Ratio;
pub use rng::Rng;
pub use time::{Time, TimeDelta};
