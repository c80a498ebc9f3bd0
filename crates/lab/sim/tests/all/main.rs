//! The tests that need no process or kernel of their own. One program, because each links the whole crate.
mod any_path;
mod appendix;
mod bbr1_shares;
mod bbr2;
mod bbr3_alone;
mod careful_resume;
#[path = "../common/mod.rs"]
mod common;
mod determinism;
mod elements;
mod golden;
mod imc23;
mod l4s;
mod litespeed;
mod loss_floor;
mod mixes;
mod parts;
mod policer;
mod random_loss;
mod rate_changes;
mod response;
mod shallow;
mod sharing;
mod ties;
mod transport;
mod weaknesses;
mod workloads;
