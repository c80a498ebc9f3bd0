//! Why there is no response, or not all of it.

use std::fmt;

use h3::error::{ConnectionError as H3ConnectionError, StreamError};

/// What a client cannot go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// No connection can be begun: an address or a name that is none.
    Connect(String),
    /// The connection is over, for this reason.
    Lost(String),
    /// The server broke off the response, with this code (RFC 9114 §8.1).
    Reset(u64),
    /// The server takes no more requests on this connection.
    Closing,
    /// The request or the response was not as HTTP/3 wants it.
    Malformed(String),
    /// The connection is over, and nothing more is known.
    Ended,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(problem) => write!(f, "cannot connect: {problem}"),
            Self::Lost(reason) => write!(f, "the connection is over: {reason}"),
            Self::Reset(code) => write!(f, "the server broke off the response (code {code:#x})"),
            Self::Closing => f.write_str("the server takes no more requests on this connection"),
            Self::Malformed(problem) => write!(f, "not HTTP/3: {problem}"),
            Self::Ended => f.write_str("the connection is over"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<StreamError> for ClientError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::ConnectionError { 0: error, .. } => error.into(),
            StreamError::RemoteTerminate { code, .. } => Self::Reset(code.value()),
            StreamError::RemoteClosing { .. } => Self::Closing,
            error => Self::Malformed(error.to_string()),
        }
    }
}

impl From<H3ConnectionError> for ClientError {
    fn from(error: H3ConnectionError) -> Self {
        Self::Lost(error.to_string())
    }
}
