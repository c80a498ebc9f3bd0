//! TLS over TCP.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::ProducesTickets;
use tokio_rustls::TlsAcceptor;

use crate::crypto;
use crate::error::ServeError;
use crate::identity::Certificates;

/// The TLS configuration, with the current certificate. Sessions are resumed by stateless tickets:
/// a session table would be limited, and forget clients.
pub(crate) fn acceptor(
    certificates: Arc<Certificates>,
    tickets: Arc<dyn ProducesTickets>,
) -> Result<TlsAcceptor, ServeError> {
    let config = ServerConfig::builder_with_provider(crypto::provider());
    let config = config
        .with_safe_default_protocol_versions()
        .map_err(|error| ServeError::System("talk TLS", io::Error::other(error)))?;
    let mut config = config.with_no_client_auth().with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = tickets;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
