//! Which congestion control a connection is given, whatever carries it.
//!
//! A listener has a [`Chooser`]. What it accepts has a [`Choice`], which is asked up to three times: when
//! the connection is accepted, when the client has said which server it wants, and with requests. Each
//! time [`Choice::chosen`] is what shall be in force from then on, with what records say of it.
//!
//! # Policies that are replaced
//!
//! A connection is decided by the policy that it was accepted with, up to and with its first request,
//! which ends it if the policy decides `"once"`: no connection has heard of two. A policy that decides
//! `"each_request"` says that an open connection may change, so each request is decided by the policy in
//! force when it comes. Where a client is, and when it came, is found out once.

mod chooser;
mod chosen;
mod connection;
mod in_force;
mod request_facts;
#[cfg(test)]
mod tests;

pub(crate) use chooser::Chooser;
pub(crate) use connection::Choice;
pub(crate) use in_force::InForce;
pub(crate) use request_facts::{RequestFacts, host};
