//! The server's TLS identity.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::error::ServeError;
use arc_swap::ArcSwap;

/// The server's TLS identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// None: HTTP without TLS.
    Plain,
    /// A self-signed certificate, created at the start, for tests.
    SelfSigned,
    /// A certificate and its key.
    Files {
        /// The certificate and its intermediate certificates, in PEM.
        certificate: PathBuf,
        /// The private key, in PEM.
        key: PathBuf,
    },
}

/// The current certificate, for all transports. A connection uses the certificate that is current
/// when it is accepted.
#[derive(Debug)]
pub(crate) struct Certificates(ArcSwap<CertifiedKey>);

impl Certificates {
    /// Loads the certificate. `None` for a server without TLS. A self-signed certificate is valid
    /// for `addresses`.
    pub(crate) fn load(
        identity: &Identity,
        addresses: &[SocketAddr],
    ) -> Result<Option<Arc<Self>>, ServeError> {
        let certified = match identity {
            Identity::Plain => return Ok(None),
            Identity::SelfSigned => self_signed(addresses)?,
            Identity::Files { certificate, key } => from_files(certificate, key)?,
        };
        Ok(Some(Arc::new(Self(ArcSwap::from_pointee(certified)))))
    }

    /// Replaces the certificate and key, if they match.
    pub(crate) fn replace(&self, certificate: &Path, key: &Path) -> Result<(), ServeError> {
        self.0.store(Arc::new(from_files(certificate, key)?));
        Ok(())
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

fn from_files(certificate: &Path, key: &Path) -> Result<CertifiedKey, ServeError> {
    let wrong = |path: &Path, problem: String| ServeError::Certificate(path.to_owned(), problem);
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "it has no certificate".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.map_err(|error| wrong(key, error.to_string()))?;
    certified(chain, secret).map_err(|error| wrong(key, error.to_string()))
}

/// A certificate for the machine's own names and the listening addresses.
fn self_signed(addresses: &[SocketAddr]) -> Result<CertifiedKey, ServeError> {
    let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let others = addresses.iter().map(|address| address.ip().to_string());
    let mut names: Vec<String> = own.into_iter().chain(others).collect();
    names.sort();
    names.dedup();
    let made = rcgen::generate_simple_self_signed(names);
    let made = made.map_err(|error| ServeError::SelfSigned(error.to_string()))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let certified = certified(vec![made.cert.der().clone()], key.into());
    certified.map_err(|error| ServeError::SelfSigned(error.to_string()))
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, rustls::Error> {
    CertifiedKey::from_der(chain, key, &ring::default_provider())
}
