//! What another controller is worth on this host: a switchback experiment.
//!
//! The host alternates between two controllers in pairs of windows, each pair in random order ([`schedule`]). Only connections
//! opened within a window count ([`Windows`]); windows of a pair are compared within client networks ([`effects`]); the rules of
//! `uncork-decide` decide ([`Verdict`]); a [`SafetyMonitor`] stops the test when a
//! limit is exceeded. All this is pure. [`Prover`] runs it on a live host, with [`crate::change`] and [`uncork_watch`].

mod document;
mod effect;
mod guard;
mod schedule;
mod session;
mod spec;
mod text;
mod verdict;
mod windows;
mod within;

pub use document::{PROVE_SCHEMA, ProveDocument, WindowDocument};
pub use effect::{Effect, MIN_PAIRS, Metric, effects, interval};
pub use guard::{Breach, Limits, SafetyMonitor};
pub use schedule::{Arm, Window, schedule};
pub use session::{AbortReason, ProveError, Prover, TestResult, Tick, check};
pub use spec::{ProveSpec, SpecError};
pub use verdict::{Answer, Choice, Verdict};
pub use windows::{LeftOut, Traffic, WindowFigures, Windows};
pub use within::Comparison;
