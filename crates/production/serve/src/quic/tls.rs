//! TLS for QUIC.

use std::io;
use std::sync::Arc;

use noq_proto::crypto::rustls::QuicServerConfig;
use rustls::ServerConfig;
use rustls::server::ProducesTickets;
use rustls::version::TLS13;

use crate::crypto;
use crate::error::ServeError;
use crate::identity::Certificates;

/// The TLS configuration of HTTP/3, with the current certificate. Sessions are resumed by stateless
/// tickets. 0-RTT data is not accepted, because it could be replayed.
pub(super) fn config(
    certificates: Arc<Certificates>,
    tickets: Arc<dyn ProducesTickets>,
) -> Result<Arc<QuicServerConfig>, ServeError> {
    let failed = |error: rustls::Error| ServeError::System("talk TLS", io::Error::other(error));
    let config = ServerConfig::builder_with_provider(crypto::provider());
    let config = config.with_protocol_versions(&[&TLS13]).map_err(failed)?;
    let mut config = config.with_no_client_auth().with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.ticketer = tickets;
    let config = QuicServerConfig::try_from(config)
        .map_err(|error| ServeError::System("talk TLS", io::Error::other(error)))?;
    Ok(Arc::new(config))
}
