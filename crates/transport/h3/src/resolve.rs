//! Request heads.

use std::future::{Future, poll_fn};
use std::pin::pin;

use h3::error::StreamError;
use h3::server::{RequestResolver, RequestStream};
use http::Request;

use crate::payload::Payload;
use crate::session::SessionScope;
use crate::transport::{BidiStream, Transport};

impl SessionScope {
    /// Waits for a request's head. `h3` answers a head that is too large with 431, but drops the stream
    /// without a FIN; this adds the FIN, so that the client receives the response.
    ///
    /// # Errors
    ///
    /// If the head is invalid. The client has already been answered.
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
