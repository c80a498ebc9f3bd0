//! HTTP/3 connections, on their own threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use uncork_cc::{Algorithm, CcSpec};
use uncork_h3::client::{Client, ClientOptions, Tls};

use crate::ClientError;
use crate::clock::instant;
use crate::connection::Connection;

/// Idle timeout of connections: a player may be idle for this long.
const IDLE: Duration = Duration::from_mins(1);

/// Opens HTTP/3 connections.
#[derive(Clone, Debug)]
pub(crate) struct Quic {
    client: Client,
    tls: Tls,
    /// The seed of the next connection.
    seed: Arc<AtomicU64>,
}

impl Quic {
    pub(crate) fn start(tls: &rustls::ClientConfig) -> Result<Self, ClientError> {
        let unfit = || ClientError::Authorities("TLS 1.3 is not available".to_owned());
        let tls = Tls::new(tls.clone()).ok_or_else(unfit)?;
        let mut options = ClientOptions::default();
        options.workers = thread::available_parallelism().map_or(1, usize::from);
        options.idle_time = IDLE;
        let client = Client::start(&options, instant()).map_err(ClientError::System)?;
        Ok(Self { client, tls, seed: Arc::default() })
    }

    pub(crate) async fn connect(
        &self,
        address: SocketAddr,
        host: &str,
    ) -> Result<Connection, ClientError> {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        // A client sends only requests and acknowledgements: the controller does not matter.
        let cc = CcSpec::new(Algorithm::Cubic);
        let made = self.client.connect(address, host, (cc, seed), &self.tls).await;
        let failed = |problem: String| ClientError::Quic { address, problem };
        Ok(Connection::Http3(made.map_err(|error| failed(error.to_string()))?))
    }
}
