//! What went wrong with a connection, as `h3` has it.

use std::sync::Arc;

use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use noq_proto::ConnectionError;

/// What `h3` is told of a connection that is over.
pub(crate) fn connection(error: &ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error.clone())),
    }
}

/// What it is told of the streams of such a connection.
pub(crate) fn stream(error: &ConnectionErrorIncoming) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: error.clone() }
}
