//! Simulated applications: downloaders and media players as pure state machines, with the sizes and
//! times of their requests. Time and randomness are arguments: the simulator uses virtual time, and
//! an HTTP client on a socket can use them too.
//!
//! A [`Client`] returns its next action on its connection ([`Client::poll`]), is informed of data
//! ([`Client::on_body`]), and reports its user's experience ([`Client::report`]). A [`Cbr`] is the
//! other kind of traffic: a server application that writes at its own pace.
#![forbid(unsafe_code)]

mod abr;
mod arrivals;
mod audio;
mod cbr;
mod client;
mod error;
mod exponential;
mod fetch;
mod playback;
mod record;
mod sizes;
mod sizes_builtin;
mod table;
mod transfer;
mod video;

pub use abr::Abr;
pub use arrivals::{Arrival, ArrivalSpec, ArrivalTrace, Arrivals};
pub use audio::{AudioPlayer, AudioReport, AudioSpec, Track};
pub use cbr::{Cbr, CbrSpec, Written};
pub use client::{Action, Client, ClientReport, ClientSpec};
pub use error::SpecError;
pub use exponential::exponential;
pub use fetch::{Fetch, FetchSpec, Think};
pub use playback::{PlaybackReport, Stall};
pub use sizes::ObjectSizes;
pub use sizes_builtin::ObjectSizesError;
pub use table::TableError;
pub use transfer::Transfer;
pub use video::{VideoPlayer, VideoReport, VideoSpec};
