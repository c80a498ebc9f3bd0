//! Who the server is.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::error::ServeError;

/// How clients know the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// They do not: HTTP without TLS.
    Plain,
    /// By a certificate that is made at the start, which nobody trusts.
    SelfSigned,
    /// By a certificate and its key.
    Files {
        /// The certificate and those between it and an authority, in PEM.
        certificate: PathBuf,
        /// Its private key, in PEM.
        key: PathBuf,
    },
}

/// The identity in force. New connections take what is there when they come.
pub(super) struct Tls(RwLock<Option<TlsAcceptor>>);

/// Its key is nobody's business.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    pub(super) fn new(identity: &Identity, names: &[SocketAddr]) -> Result<Self, ServeError> {
        let config = match identity {
            Identity::Plain => None,
            Identity::SelfSigned => Some(self_signed(names)?),
            Identity::Files { certificate, key } => Some(from_files(certificate, key)?),
        };
        let acceptor = config.map(|config| TlsAcceptor::from(Arc::new(config)));
        Ok(Self(RwLock::new(acceptor)))
    }

    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn from_files(certificate: &Path, key: &Path) -> Result<ServerConfig, ServeError> {
    let wrong = |path: &Path, problem: String| ServeError::Certificate(path.to_owned(), problem);
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "it has no certificate".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.map_err(|error| wrong(key, error.to_string()))?;
    config(chain, secret).map_err(|error| wrong(key, error.to_string()))
}

/// For the machine's own names, and the addresses that are listened on.
fn self_signed(addresses: &[SocketAddr]) -> Result<ServerConfig, ServeError> {
    let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let others = addresses.iter().map(|address| address.ip().to_string());
    let mut names: Vec<String> = own.into_iter().chain(others).collect();
    names.sort();
    names.dedup();
    let made = rcgen::generate_simple_self_signed(names);
    let made = made.map_err(|error| ServeError::SelfSigned(error.to_string()))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = config(vec![made.cert.der().clone()], key.into());
    config.map_err(|error| ServeError::SelfSigned(error.to_string()))
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions()?.with_no_client_auth();
    let mut config = config.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
