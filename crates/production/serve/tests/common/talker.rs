//! A test server, and an HTTP/3 client that trusts its certificate.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use uncork_h3::Client;
use uncork_h3::client::{Body, ClientError, ClientOptions, Connection, Tls};
use uncork_serve::{CertificateFiles, Identity, ServerSpec};

use crate::common::{Scratch, Served, spec};

#[expect(clippy::disallowed_methods, reason = "what is tested happens in real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// The specification of a server with a certificate.
pub fn secured(scratch: &Scratch) -> ServerSpec {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    scratch.write("chain.pem", made.cert.pem());
    scratch.write("key.pem", made.signing_key.serialize_pem());
    let (certificate, key) = (scratch.path("chain.pem"), scratch.path("key.pem"));
    let identity = Identity::Files(CertificateFiles { certificate, key });
    ServerSpec { identity, ..spec(&scratch.path("root")) }
}

/// The TLS configuration of a client that trusts the certificate in the file.
pub fn tls(certificate: &Path) -> Tls {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    Tls::new(config.with_root_certificates(roots).with_no_client_auth()).unwrap()
}

/// A client of one server.
pub struct Http3Client {
    pub client: Client,
    pub tls: Tls,
    pub address: SocketAddr,
}

impl Http3Client {
    pub fn new(scratch: &Scratch, served: &Served) -> Self {
        let client = Client::start(&ClientOptions::default(), now()).unwrap();
        let address = served.server.listening()[1].address;
        Self { client, tls: tls(&scratch.path("chain.pem")), address }
    }

    pub async fn connect(&self) -> Connection {
        let cc = ("cubic".parse().unwrap(), 1);
        self.client.connect(self.address, "localhost", cc, &self.tls).await.unwrap()
    }
}

pub fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request =
        Request::builder().method(method).uri(format!("https://localhost{path}")).body(()).unwrap();
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    request
}

pub async fn body(response: Response<Body>) -> Result<Vec<u8>, ClientError> {
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while let Some(chunk) = body.next_chunk().await {
        bytes.extend_from_slice(&chunk?.data);
    }
    Ok(bytes)
}

pub async fn get(
    connection: &Connection,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(Response<()>, Vec<u8>), ClientError> {
    let response = connection.request(request("GET", path, headers)).await?;
    let head = {
        let mut head = Response::new(());
        *head.status_mut() = response.status();
        head.headers_mut().clone_from(response.headers());
        head
    };
    Ok((head, body(response).await?))
}

/// The result of a request: the status, the entity tag, the received part of the body, and whether
/// it was cut off.
pub struct Outcome {
    pub status: u16,
    pub etag: String,
    pub body: Vec<u8>,
    pub cut: Option<ClientError>,
}

pub async fn ask(
    connection: &Connection,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Outcome, ClientError> {
    let response = connection.request(request("GET", path, headers)).await?;
    let status = response.status().as_u16();
    let etag = response.headers().get("etag").map(|etag| etag.to_str().unwrap().to_owned());
    let (mut source, mut body, mut cut) = (response.into_body(), Vec::new(), None);
    while let Some(chunk) = source.next_chunk().await {
        match chunk {
            Ok(chunk) => body.extend_from_slice(&chunk.data),
            Err(error) => cut = Some(error),
        }
    }
    Ok(Outcome { status, etag: etag.unwrap_or_default(), body, cut })
}

/// Replaces a file atomically, so that it is always complete.
pub fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(new, path).unwrap();
}

/// Runs a test with a timeout of five minutes.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_mins(5), test).await.unwrap() })
}
