//! Helpers for the tests of all crates.
//!
//! * [`not_run`]: reports a test that this machine cannot run, or fails if `UNCORK_REQUIRE` lists the missing
//!   [`Capability`].
//! * [`Scratch`]: a directory that is removed when the test ends. [`install`]: a copy of a program.
//! * [`assert_snapshot`], [`assert_generated`]: compare a text with a file, or a part of one, which `UPDATE_DOCS=1` writes.
//! * [`assert_message!`]: compares a message with the crate's `tests/messages.txt`, which `UPDATE_DOCS=1` writes.
//! * [`assert_schema!`]: compares the JSON Schema of a document with its type, from which `UPDATE_DOCS=1` writes it.
//! * [`assert_keys`], [`metrics_table`]: tables of a reference page, of the keys of a file and of an exporter's metrics.
//! * [`finished_table`]: a table of networks with the line that ends it.
//! * [`wait_until`], [`wait_for`] and their asynchronous variants: wait for a condition, with a limit.
//! * [`pause`]: the only fixed sleep allowed in tests, for scenarios with a period of inactivity.
//!
//! For `[dev-dependencies]` only.
#![forbid(unsafe_code)]

mod capability;
mod keys;
mod messages;
mod metrics;
mod schema;
mod scratch;
mod snapshot;
mod table;
mod wait;

pub use capability::{Capability, not_run};
pub use keys::assert_keys;
pub use messages::assert_message_of;
pub use metrics::metrics_table;
pub use schema::{assert_schema_is, schema_of};
pub use scratch::{Scratch, install};
pub use snapshot::{assert_generated, assert_snapshot};
pub use table::finished_table;
pub use wait::{
    holds_within, now, pause, pause_async, wait_for, wait_for_async, wait_until, wait_until_async,
};
