//! Why there is no run.

use uncork_units::Time;

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuicSimError {
    /// QUIC endpoints cannot do what is described; this says what.
    #[error("{0}")]
    Spec(String),
    /// The endpoints' cryptography cannot be set up, which is a bug.
    #[error("cannot set up the endpoints' cryptography: {0}")]
    Tls(#[from] rustls::Error),
    /// A flow is woken again and again, and neither sends nor receives, which is a bug.
    #[error(
        "flow {flow} makes no progress at {:.9} s of virtual time: its QUIC stack wakes up without end; play \
         the scenario with --on sim, and report this scenario",
        time.as_secs_f64()
    )]
    Stalled {
        /// Index of the flow.
        flow: u32,
        /// When it was.
        time: Time,
    },
}
