//! Errors of a client.

use h3::error::{ConnectionError as H3ConnectionError, StreamError};
use thiserror::Error;

/// Why a response is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection cannot be opened: invalid address or server name.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection was lost, with the reason.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The server reset the response, with the error code (RFC 9114 §8.1).
    #[error("the server reset the response (code {0:#x})")]
    Reset(u64),
    /// The server accepts no more requests on this connection (GOAWAY).
    #[error("the server takes no more requests on this connection")]
    Closing,
    /// The request or the response violates HTTP/3.
    #[error("not HTTP/3: {0}")]
    Malformed(String),
    /// The connection has ended for an unknown reason.
    #[error("the connection has ended")]
    Ended,
}

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
