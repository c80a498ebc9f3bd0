//! What the tests of all crates share.
//!
//! * [`not_run`]: a test that this machine cannot run says so loudly, or fails where `UNCORK_REQUIRE` names the
//!   [`Capability`] that is missing.
//! * [`Scratch`]: a directory that is removed when the test ends.
//! * [`wait_until`], [`wait_for`] and their asynchronous twins: waiting for a condition, with a limit.
//! * [`pause`]: the only fixed sleep that tests may use, for scenarios in which somebody does nothing for a while.
//!
//! For `[dev-dependencies]` only.
#![forbid(unsafe_code)]

mod capability;
mod scratch;
mod wait;

pub use capability::{Capability, not_run};
pub use scratch::Scratch;
pub use wait::{
    holds_within, now, pause, pause_async, wait_for, wait_for_async, wait_until, wait_until_async,
};
