//! Errors of a run.

use uncork_units::Time;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuicSimError {
    /// QUIC endpoints do not support the specification, for this reason.
    #[error("{0}")]
    Spec(String),
    /// The endpoints' cryptography cannot be set up, which is a bug.
    #[error("cannot set up the endpoints' cryptography: {0}")]
    Tls(#[from] rustls::Error),
    /// A flow is woken repeatedly without sending or receiving; a bug.
    #[error(
        "flow {flow} makes no progress at {:.9} s of virtual time: its QUIC stack wakes up without end; play \
         the scenario with --on sim, and report this scenario",
        time.as_secs_f64()
    )]
    Stalled {
        /// Index of the flow.
        flow: u32,
        /// The virtual time.
        time: Time,
    },
}
