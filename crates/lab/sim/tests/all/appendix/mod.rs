//! The example test cases of draft-ietf-ccwg-bbr-06, Appendix A, over a grid of RTTs and rates: one
//! BBRv3 flow over a bottleneck chosen by the case.
//!
//! `cargo test` runs a sample of the grid. The full grid, with a table for each case:
//! `UNCORK_GRID=full cargo test --release -p uncork-sim --test all appendix -- --nocapture`
//!
//! A.18 and A.19, spurious losses and timeouts, need a host that reverts losses on command: they
//! are in `uncork-cc`, `src/bbr3/tests/appendix.rs`.

mod aggregation;
mod app_limited;
mod drain;
mod grid;
mod loss;
mod policer;
mod probe_bw;
mod probe_rtt;
mod rate_changes;
mod scene;
mod startup;
