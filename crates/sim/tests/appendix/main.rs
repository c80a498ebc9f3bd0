//! The example test cases of draft-ietf-ccwg-bbr-06, Appendix A, over a grid of round-trip times and
//! rates: one flow of BBRv3 over a path whose bottleneck the case chooses.
//!
//! `cargo test` runs a sample of the grid. All of it, with a table for each case:
//! `UNCORK_GRID=full cargo test --release -p uncork-sim --test appendix -- --nocapture`
//!
//! A.18 and A.19, spurious losses and timeouts, need a host that takes a loss back when the test says
//! so: they are in `uncork-cc`, `src/bbr3/tests/appendix.rs`.

mod aggregation;
mod app_limited;
#[path = "../common/mod.rs"]
mod common;
mod drain;
mod grid;
mod loss;
mod policer;
mod probe_bw;
mod probe_rtt;
mod rate_changes;
mod scene;
mod startup;
