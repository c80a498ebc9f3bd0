//! The heads of requests.

use std::future::{Future, poll_fn};
use std::pin::pin;

use h3::error::StreamError;
use h3::server::{RequestResolver, RequestStream};
use http::Request;

use crate::payload::Payload;
use crate::session::Scope;
use crate::transport::{BidiStream, Transport};

impl Scope {
    /// Waits for the head of a request. One that is too large `h3` answers by itself, with 431, and drops the stream
    /// without an end; here that answer has one, so that the client sees it.
    ///
    /// # Errors
    ///
    /// What is wrong with it. The client has been told.
    pub async fn resolve(
        &self,
        request: RequestResolver<Transport, Payload>,
    ) -> Result<(Request<()>, RequestStream<BidiStream, Payload>), StreamError> {
        let mut resolved = pin!(request.resolve_request());
        poll_fn(|context| {
            self.core.borrow_mut().is_resolving = true;
            let resolved = resolved.as_mut().poll(context);
            self.core.borrow_mut().is_resolving = false;
            resolved
        })
        .await
    }
}
