//! A file server of a hundred lines over h3 and quinn, with their defaults: `h3-quinn-files
//! ADDR:PORT DIR` serves `DIR/files` with `DIR/cert.pem` and `DIR/key.pem`. For measurements only:
//! it trusts its client.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use h3::server::RequestResolver;
use http::{Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The size of the pieces that `uncork serve` reads.
const CHUNK: u64 = 128 * 1024;

type BoxError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(directory)) = (arguments.next(), arguments.next()) else {
        return Err("usage: h3-quinn-files ADDR:PORT DIR".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&address, Path::new(&directory)))
}

async fn serve(address: &str, directory: &Path) -> Result<(), BoxError> {
    let certificate = CertificateDer::from_pem_file(directory.join("cert.pem"))?;
    let key = PrivateKeyDer::from_pem_file(directory.join("key.pem"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = quinn::Endpoint::server(config, address.parse()?)?;
    let root: Arc<Path> = directory.join("files").into();
    while let Some(incoming) = endpoint.accept().await {
        let root = Arc::clone(&root);
        tokio::spawn(async move {
            if let Err(problem) = connection(incoming, root).await {
                eprintln!("connection: {problem}");
            }
        });
    }
    Ok(())
}

async fn connection(incoming: quinn::Incoming, root: Arc<Path>) -> Result<(), BoxError> {
    let connection = h3_quinn::Connection::new(incoming.await?);
    let mut connection = h3::server::Connection::<_, Bytes>::new(connection).await?;
    while let Some(resolver) = connection.accept().await? {
        let root = Arc::clone(&root);
        tokio::spawn(async move {
            if let Err(problem) = answer(resolver, root).await {
                eprintln!("request: {problem}");
            }
        });
    }
    Ok(())
}

async fn answer(
    resolver: RequestResolver<h3_quinn::Connection, Bytes>,
    root: Arc<Path>,
) -> Result<(), BoxError> {
    let (request, mut stream) = resolver.resolve_request().await?;
    let path: PathBuf = root.join(request.uri().path().trim_start_matches('/'));
    let Ok(file) = File::open(path) else {
        let response = Response::builder().status(StatusCode::NOT_FOUND).body(())?;
        stream.send_response(response).await?;
        return Ok(stream.finish().await?);
    };
    let length = file.metadata()?.len();
    let response = Response::builder().header("content-length", length).body(())?;
    stream.send_response(response).await?;
    let mut at = 0;
    while at < length {
        let mut chunk = BytesMut::zeroed((length - at).min(CHUNK) as usize);
        file.read_exact_at(&mut chunk, at)?;
        at += chunk.len() as u64;
        stream.send_data(chunk.freeze()).await?;
    }
    Ok(stream.finish().await?)
}
