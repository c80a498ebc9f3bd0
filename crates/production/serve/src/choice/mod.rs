//! Chooses the congestion control of each connection, on any transport.
//!
//! A listener has a [`Chooser`]. Each of its connections has a [`Choice`], which is evaluated up to
//! three times: when the connection is accepted, when the server name is known, and with each
//! request. After each evaluation, [`Choice::chosen`] is what the transport applies and what
//! records contain.
//!
//! # Replacing a policy
//!
//! A policy that decides `"once"` decides with the first request at the latest. The connection uses
//! the policy that was active when it was accepted, so one connection never mixes two policies. A policy
//! that decides `"each_request"` may change an open connection: each request uses the policy
//! that is active when it arrives. The client's location and the time of acceptance are determined once.

mod active_settings;
mod chooser;
mod chosen;
mod connection;
mod request_facts;
#[cfg(test)]
mod tests;

pub(crate) use active_settings::ActiveSettings;
pub(crate) use chooser::Chooser;
pub(crate) use connection::Choice;
pub(crate) use request_facts::{RequestFacts, host};
