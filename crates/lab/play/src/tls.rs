//! TLS configurations and trusted certificates.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::ClientError;

/// The trusted certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The certificate authorities of this system.
    #[default]
    System,
    /// The authorities or servers in this PEM file.
    File(PathBuf),
    /// Any certificate: the server's identity is not verified.
    Anybody,
}

/// A configuration that offers `protocols` by ALPN, in order of preference. Session resumption is
/// disabled, so every connection performs a full handshake.
pub(crate) fn config(trust: &Trust, protocols: &[&[u8]]) -> Result<ClientConfig, ClientError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| ClientError::Authorities(error.to_string()))?;
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Anybody => Arc::new(AnyCertificate(Arc::clone(&provider))),
        Trust::System => authorities(system()?, provider)?,
        Trust::File(path) => {
            let wrong = |problem: &dyn std::fmt::Display| {
                let path = path.display();
                let text = format!("cannot take certificates from '{path}': {problem}");
                ClientError::Authorities(text)
            };
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
            let read: Vec<_> = read.map_err(|error| wrong(&error))?;
            let mut roots = RootCertStore::empty();
            let (_, ignored) = roots.add_parsable_certificates(read);
            if roots.is_empty() || ignored > 0 {
                return Err(wrong(&"expected certificates in PEM"));
            }
            authorities(roots, provider)?
        }
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn system() -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let reason = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
    Err(ClientError::Authorities(format!(
        "this machine trusts no authorities{reason}: give certificates with --ca FILE, or disable \
         verification with --insecure"
    )))
}

fn authorities(
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, ClientError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(verifier.map_err(|error| ClientError::Authorities(error.to_string()))?)
}

/// Accepts every certificate, but verifies that the server has its private key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
