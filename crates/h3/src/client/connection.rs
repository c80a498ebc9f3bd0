//! A connection, as other threads hold it.

use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use tokio::sync::{mpsc, oneshot};
use uncork_quic::{Handle, Observation};

use super::Client;
use super::body::Body;
use super::error::ClientError;

/// A connection to a server. Clones are the same; it is closed when all are dropped and no response is
/// under way.
#[derive(Clone)]
pub struct Connection {
    pub(super) link: Link,
    pub(super) remote: SocketAddr,
    /// The workers stay as long as their connections.
    pub(super) client: Client,
}

/// What a worker gives of a connection.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) asks: mpsc::UnboundedSender<Ask>,
    pub(super) cc: Handle,
    pub(super) handshake: Duration,
}

/// A request, and where its response goes.
pub(super) struct Ask {
    pub(super) request: Request<()>,
    pub(super) reply: oneshot::Sender<Result<Response<Body>, ClientError>>,
}

impl Connection {
    /// Sends a request without a body, and waits for the head of its response. The request's URI has
    /// `https` and the server's name. Not waited for any longer, it is cancelled.
    ///
    /// # Errors
    ///
    /// If there is no response.
    pub async fn request(&self, request: Request<()>) -> Result<Response<Body>, ClientError> {
        let (reply, replied) = oneshot::channel();
        self.link.asks.send(Ask { request, reply }).map_err(|_| ClientError::Ended)?;
        let mut response = replied.await.unwrap_or(Err(ClientError::Ended))?;
        response.body_mut().client = Some(self.client.clone());
        Ok(response)
    }

    /// Whether it is over.
    pub fn is_closed(&self) -> bool {
        self.link.asks.is_closed()
    }

    /// Waits until it is over.
    pub async fn closed(&self) {
        self.link.asks.closed().await;
    }

    /// The server's address.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// How long the handshake took.
    pub fn handshake_time(&self) -> Duration {
        self.link.handshake
    }

    /// What can be seen of the connection's own congestion control: round-trip times, and what it sent,
    /// which is requests and acknowledgements.
    pub fn observe(&self) -> Option<Observation> {
        self.link.cc.observe()
    }
}
