//! The server's TLS identity.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::crypto;
use crate::error::ServeError;
use crate::site::HostPattern;
use crate::spec::ServerSpec;
use arc_swap::ArcSwap;

/// The server's TLS identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// None: HTTP without TLS.
    Plain,
    /// A self-signed certificate, created at the start, for tests.
    SelfSigned,
    /// A certificate and its key.
    Files(CertificateFiles),
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and those between it and an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The active certificates, for all transports. A connection uses the certificate that is active when it begins.
#[derive(Debug)]
pub(crate) struct Certificates(ArcSwap<CertificateSet>);

/// Certificates by the server name that clients ask for.
#[derive(Debug)]
pub(crate) struct CertificateSet {
    hosts: ByName,
    /// For other names, and for clients that ask for none.
    default: Arc<CertifiedKey>,
}

type ByName = Vec<(Vec<HostPattern>, Arc<CertifiedKey>)>;

impl Certificates {
    pub(crate) fn new(certificates: CertificateSet) -> Self {
        Self(ArcSwap::from_pointee(certificates))
    }

    /// Reads what `spec` names. A certificate that was made here stays the same.
    pub(crate) fn read_again(&self, spec: &ServerSpec) -> Result<CertificateSet, ServeError> {
        let default = match &spec.identity {
            Identity::Files(files) => Arc::new(from_files(files)?),
            Identity::Plain | Identity::SelfSigned => Arc::clone(&self.0.load().default),
        };
        Ok(CertificateSet { hosts: of_hosts(spec)?, default })
    }

    /// Activates other certificates.
    pub(crate) fn replace(&self, certificates: CertificateSet) {
        self.0.store(Arc::new(certificates));
    }
}

impl CertificateSet {
    /// Loads the certificate. `None` for a server without TLS. A self-signed certificate is valid
    /// for `addresses`.
    pub(crate) fn read(
        spec: &ServerSpec,
        addresses: &[SocketAddr],
    ) -> Result<Option<Self>, ServeError> {
        let default = match &spec.identity {
            Identity::Plain => return Ok(None),
            Identity::SelfSigned => self_signed(addresses)?,
            Identity::Files(files) => from_files(files)?,
        };
        Ok(Some(Self { hosts: of_hosts(spec)?, default: Arc::new(default) }))
    }

    fn of(&self, name: Option<&str>) -> &Arc<CertifiedKey> {
        let is_for = |(names, _): &&(Vec<HostPattern>, _)| {
            name.is_some_and(|name| names.iter().any(|it| it.matches(name)))
        };
        self.hosts.iter().find(is_for).map_or(&self.default, |(_, certified)| certified)
    }
}

fn of_hosts(spec: &ServerSpec) -> Result<ByName, ServeError> {
    let own = spec.hosts.iter().filter_map(|host| Some((&host.names, host.certificate.as_ref()?)));
    own.map(|(names, files)| Ok((names.clone(), Arc::new(from_files(files)?)))).collect()
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(self.0.load().of(hello.server_name())))
    }
}

fn from_files(files: &CertificateFiles) -> Result<CertifiedKey, ServeError> {
    let CertificateFiles { certificate, key } = files;
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
    CertifiedKey::from_der(chain, key, &crypto::provider())
}
