//! What is chosen for a connection.

use uncork_cc::{CcSpec, InitialWindow};
use uncork_units::Rate;

/// How a connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The algorithm.
    pub spec: CcSpec,
    /// The congestion window that a path begins with; without one it is that of RFC 9002 §7.2. One that
    /// is chosen when more than a window has been sent counts for paths that the connection moves to.
    pub initial_window: Option<InitialWindow>,
    /// The connection is paced no faster than this, whatever the algorithm wants. What counts is packets
    /// of QUIC, without the headers of UDP and IP.
    pub pacing_cap: Option<Rate>,
}

impl From<CcSpec> for Choice {
    /// The algorithm, and all else as it has it.
    fn from(spec: CcSpec) -> Self {
        Self { spec, initial_window: None, pacing_cap: None }
    }
}
