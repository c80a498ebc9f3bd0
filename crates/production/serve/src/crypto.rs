//! The cryptography of TLS and QUIC: that of ring, or with the feature `aws-lc` that of AWS-LC, which
//! encrypts in less time but takes longer to build.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
#[cfg(feature = "aws-lc")]
use rustls::crypto::aws_lc_rs as chosen;
#[cfg(not(feature = "aws-lc"))]
use rustls::crypto::ring as chosen;

/// Cipher suites, key exchanges and signatures.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(chosen::default_provider())
}
