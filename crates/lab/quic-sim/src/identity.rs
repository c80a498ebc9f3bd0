//! The simulated server's certificate, which the simulated client accepts.

use std::sync::Arc;
use std::time::Duration;

use noq_proto::crypto;
use noq_proto::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;

use crate::error::QuicSimError;

/// The name in the certificate.
pub(crate) const NAME: &str = "server.example";
/// A public test key that protects nothing. It uses Ed25519 because its signatures have a fixed
/// length, so equal runs have packets of equal sizes.
static KEY: &[u8] = include_bytes!("../identity/key.der");
static CERTIFICATE: &[u8] = include_bytes!("../identity/certificate.der");
/// A time at which the certificate is valid.
const NOW: u64 = 1_800_000_000;

/// The cryptography of all connections of a run.
pub(crate) struct TestIdentity {
    pub(crate) server: Arc<dyn crypto::ServerConfig>,
    pub(crate) client: Arc<dyn crypto::ClientConfig>,
}

/// A clock that returns a constant.
#[derive(Debug)]
struct FixedClock;

impl TimeProvider for FixedClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(NOW)))
    }
}

impl TestIdentity {
    pub(crate) fn new() -> Result<Self, QuicSimError> {
        let provider = Arc::new(ring::default_provider());
        let server = server(Arc::clone(&provider))?;
        let server = QuicServerConfig::try_from(server).map_err(|error| no_suite(&error))?;
        let client =
            QuicClientConfig::try_from(client(provider)?).map_err(|error| no_suite(&error))?;
        Ok(Self { server: Arc::new(server), client: Arc::new(client) })
    }
}

fn server(provider: Arc<CryptoProvider>) -> Result<rustls::ServerConfig, rustls::Error> {
    let key = PrivateKeyDer::try_from(KEY).map_err(|error| rustls::Error::General(error.into()))?;
    let chain = vec![CertificateDer::from(CERTIFICATE)];
    let server = rustls::ServerConfig::builder_with_details(provider, Arc::new(FixedClock));
    let server = server.with_protocol_versions(&[&TLS13])?.with_no_client_auth();
    server.with_single_cert(chain, key)
}

fn client(provider: Arc<CryptoProvider>) -> Result<rustls::ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE))?;
    let client = rustls::ClientConfig::builder_with_details(provider, Arc::new(FixedClock));
    let client = client.with_protocol_versions(&[&TLS13])?.with_root_certificates(roots);
    let mut client = client.with_no_client_auth();
    // Flows do not share sessions.
    client.resumption = rustls::client::Resumption::disabled();
    Ok(client)
}

fn no_suite(error: &NoInitialCipherSuite) -> rustls::Error {
    rustls::Error::General(error.to_string())
}
