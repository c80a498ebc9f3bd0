//! The TLS configuration of a client.

use std::fmt;
use std::sync::Arc;

use noq_proto::crypto;
use noq_proto::crypto::rustls::QuicClientConfig;

/// A `rustls` client configuration for QUIC and HTTP/3.
#[derive(Clone)]
pub struct Tls(pub(super) Arc<dyn crypto::ClientConfig>);

/// Prints no secrets.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Uses `config` with ALPN set to HTTP/3.
    ///
    /// # Errors
    ///
    /// `None` if `config` lacks TLS 1.3 or the cipher suite of Initial packets (RFC 9001 §5.2).
    pub fn new(mut config: rustls::ClientConfig) -> Option<Self> {
        config.alpn_protocols = vec![b"h3".to_vec()];
        let config = QuicClientConfig::try_from(config).ok()?;
        Some(Self(Arc::new(config)))
    }
}
