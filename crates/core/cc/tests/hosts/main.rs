//! Whole connections through the public interface: every algorithm, with truthful and adversarial
//! hosts.

mod any_host;
mod coarse_clock;
mod determinism;
mod host;
mod longevity;
mod undo;
