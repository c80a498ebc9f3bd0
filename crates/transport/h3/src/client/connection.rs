//! The handle of a connection, usable on any thread.

use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use tokio::sync::{mpsc, oneshot};
use uncork_quic::{Handle, Observation};

use super::Client;
use super::body::Body;
use super::error::ClientError;

/// A connection to a server. Clones share it. It closes when all are dropped and no response is in
/// progress.
#[derive(Clone)]
pub struct Connection {
    pub(super) link: Link,
    pub(super) remote: SocketAddr,
    /// Keeps the workers alive.
    pub(super) client: Client,
}

/// The worker's side of an established connection.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) asks: mpsc::UnboundedSender<PendingRequest>,
    pub(super) cc: Handle,
    pub(super) handshake: Duration,
}

/// A request and the channel for its response.
pub(super) struct PendingRequest {
    pub(super) request: Request<()>,
    pub(super) reply: oneshot::Sender<Result<Response<Body>, ClientError>>,
}

impl Connection {
    /// Sends a request without a body and waits for the response's head. The request's URI needs the
    /// scheme `https` and the server's name. Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// If no response arrives.
    pub async fn request(&self, request: Request<()>) -> Result<Response<Body>, ClientError> {
        let (reply, replied) = oneshot::channel();
        self.link.asks.send(PendingRequest { request, reply }).map_err(|_| ClientError::Ended)?;
        let mut response = replied.await.unwrap_or(Err(ClientError::Ended))?;
        response.body_mut().client = Some(self.client.clone());
        Ok(response)
    }

    /// Whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.link.asks.is_closed()
    }

    /// Waits until the connection is closed.
    pub async fn closed(&self) {
        self.link.asks.closed().await;
    }

    /// The server's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The duration of the handshake.
    pub fn handshake_time(&self) -> Duration {
        self.link.handshake
    }

    /// The state of the client's own congestion control: round-trip times, and counters of the
    /// requests and acknowledgements that it sent.
    pub fn observe(&self) -> Option<Observation> {
        self.link.cc.observe()
    }
}
