//! Every element that a path can be made of, in the closed loop: real controllers over it, against
//! closed forms and published figures. The tables: `cargo test -p uncork-sim --test elements --
//! --nocapture --test-threads 1`.
//!
//! Elsewhere: policers in `tests/policer.rs`, drop-tail and Bernoulli loss in most other tests.

mod ack_path;
mod aqm;
mod bursts;
#[path = "../common/mod.rs"]
mod common;
mod dual_queue;
mod ecn;
mod fair_queues;
mod reordering;
mod routes;
mod scene;
mod streams;
mod traces;
