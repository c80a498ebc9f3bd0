//! Whole connections through the public interface: every algorithm, honest hosts and liars.

mod any_host;
mod determinism;
mod host;
mod longevity;
mod undo;
