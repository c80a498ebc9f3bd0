//! A self-signed certificate, and TLS configurations for it.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::sync::Arc;

use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The server name in the certificate.
pub(crate) const NAME: &str = "named.example";

/// A certificate for [`NAME`], and its key. Ed25519, so that all signatures have the same length.
pub(crate) fn certificate() -> (Vec<u8>, Vec<u8>) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = rcgen::CertificateParams::new(vec![NAME.into()]).unwrap();
    (certificate.self_signed(&key).unwrap().der().to_vec(), key.serialize_der())
}

/// TLS configurations of a server with this certificate, and of a client that trusts it.
pub(crate) fn cryptography(
    certificate: &[u8],
    key: &[u8],
) -> (Arc<QuicServerConfig>, Arc<QuicClientConfig>) {
    let certificate = CertificateDer::from(certificate.to_vec());
    let key = PrivateKeyDer::try_from(key.to_vec()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
    let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let tls = tls.with_no_client_auth().with_single_cert(vec![certificate.clone()], key);
    let server = Arc::new(QuicServerConfig::try_from(tls.unwrap()).unwrap());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    (server, Arc::new(QuicClientConfig::try_from(tls).unwrap()))
}
