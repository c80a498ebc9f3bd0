//! The settings of a connection's congestion control.

use uncork_cc::{CcSpec, EcnMode, InitialWindow, ResumeHint};
use uncork_units::Rate;

/// How a connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The algorithm.
    pub spec: CcSpec,
    /// The initial congestion window of a path; default: RFC 9002 §7.2. If the current path has
    /// already sent more than a window, the choice applies to later paths only.
    pub initial_window: Option<InitialWindow>,
    /// The maximum pacing rate, for any algorithm. It counts QUIC packets without UDP and IP
    /// headers.
    pub pacing_cap: Option<Rate>,
    /// The ECN codepoint of its packets, and what a mark means. The handshake has it, too.
    pub ecn: EcnMode,
    /// What an earlier connection observed on the first path (RFC 9959). It has no effect once more than an initial
    /// window was sent, and on later paths.
    pub resume: Option<ResumeHint>,
}

impl From<CcSpec> for Choice {
    /// The algorithm with its defaults.
    fn from(spec: CcSpec) -> Self {
        let ecn = EcnMode::of(spec.algorithm());
        Self { spec, initial_window: None, pacing_cap: None, ecn, resume: None }
    }
}
