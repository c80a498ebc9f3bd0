//! Tests of changes: killed at every step, in random sequences, and on this kernel.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod desired_states;
mod faults;
mod live;
mod live_policies;
mod live_routes;
mod live_sequences;
mod memory;
mod model;
mod policies;
mod sequences;
mod trials;
