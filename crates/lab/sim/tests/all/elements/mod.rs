//! Every path element in the closed loop: real controllers, compared with closed forms and
//! published figures. To print the tables: `cargo test -p uncork-sim --test all elements -- --nocapture
//! --test-threads 1`.
//!
//! Other tests cover policers (`policer.rs`), drop-tail and Bernoulli loss.

mod ack_path;
mod aqm;
mod bursts;
mod dual_queue;
mod ecn;
mod ecn_path;
mod fair_queues;
mod prague;
mod reordering;
mod routes;
mod scene;
mod streams;
mod traces;
