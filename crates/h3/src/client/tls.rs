//! Whom a client believes.

use std::fmt;
use std::sync::Arc;

use noq_proto::crypto;
use noq_proto::crypto::rustls::QuicClientConfig;

/// How a client knows its servers: `rustls`'s configuration, for QUIC and HTTP/3.
#[derive(Clone)]
pub struct Tls(pub(super) Arc<dyn crypto::ClientConfig>);

/// Its keys are nobody's business.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// With the application protocol set to HTTP/3.
    ///
    /// # Errors
    ///
    /// `None` if it is for no version of TLS that QUIC can use, or without the cipher of its first
    /// packets (RFC 9001 §5.2).
    pub fn new(mut config: rustls::ClientConfig) -> Option<Self> {
        config.alpn_protocols = vec![b"h3".to_vec()];
        let config = QuicClientConfig::try_from(config).ok()?;
        Some(Self(Arc::new(config)))
    }
}
