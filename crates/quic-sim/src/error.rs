//! What can be wrong.

use std::fmt;

/// Why there is no run.
#[derive(Debug)]
#[non_exhaustive]
pub enum QuicSimError {
    /// QUIC endpoints cannot do what is described; this says what.
    Spec(String),
    /// The endpoints' cryptography cannot be set up, which is a bug.
    Tls(rustls::Error),
}

impl fmt::Display for QuicSimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(problem) => f.write_str(problem),
            Self::Tls(error) => write!(f, "cannot set up the endpoints' cryptography: {error}"),
        }
    }
}

impl std::error::Error for QuicSimError {}

impl From<rustls::Error> for QuicSimError {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}
