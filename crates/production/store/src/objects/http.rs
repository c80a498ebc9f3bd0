//! HTTP/1.1 over the workspace's own crates. Requests of one thread share its connections.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpRequestBody, HttpResponse, HttpResponseBody, HttpService,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::BYTES_PER_SECOND;

/// How long a connection may take, with its encryption.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a store may take to answer a small request.
const ANSWER: Duration = Duration::from_secs(20);
/// The longest answer with an error.
const MAX_ERROR: usize = 64 << 10;
/// Connections that are left open.
const MAX_IDLE: usize = 16;

/// Makes clients.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let allows_http = allows_http.as_deref() == Some("true");
        Ok(HttpClient::new(Client { allows_http, connections: Mutex::default() }))
    }
}

/// A connection, and to whom. While it is in use, it is not ready.
type Connection = (Origin, SendRequest<HttpRequestBody>);

/// A client with its open connections.
struct Client {
    allows_http: bool,
    connections: Mutex<Vec<Connection>>,
}

/// Without the connections, which do not matter to anybody.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// Whom a request is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    is_encrypted: bool,
    authority: Authority,
}

impl Origin {
    fn of(uri: &Uri) -> Result<Self, HttpError> {
        let authority = uri.authority().cloned();
        let authority =
            authority.ok_or_else(|| wrong(format_args!("an address without a host")))?;
        Ok(Self { is_encrypted: uri.scheme_str() != Some("http"), authority })
    }

    /// Without the brackets of IPv6.
    fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_encrypted { 443 } else { 80 })
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let origin = Origin::of(request.uri())?;
        if !origin.is_encrypted && !self.allows_http {
            return Err(wrong(format_args!(
                "http to {} is not encrypted; set AWS_ALLOW_HTTP=true or AZURE_ALLOW_HTTP=true if that is wanted",
                origin.authority
            )));
        }
        let host = HeaderValue::from_str(origin.authority.as_str());
        request.headers_mut().insert(HOST, host.map_err(wrong)?);
        *request.uri_mut() = relative(request.uri());
        let patience = request.body().content_length() as u64 / BYTES_PER_SECOND;
        let patience = ANSWER + Duration::from_secs(patience);
        let mut sender = self.connection(&origin).await?;
        let answer = timeout(patience, sender.send_request(request)).await;
        let response = answer.map_err(|_| late(&origin, patience))?.map_err(failed)?;
        self.keep((origin, sender));
        let is_error = !response.status().is_success();
        Ok(response.map(|body| {
            let body = body.map_err(failed);
            if !is_error {
                return HttpResponseBody::new(body);
            }
            // It is read whole.
            HttpResponseBody::new(Limited::new(body, MAX_ERROR).map_err(wrong))
        }))
    }
}

impl Client {
    fn open(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An open connection, or a new one.
    async fn connection(&self, origin: &Origin) -> Result<SendRequest<HttpRequestBody>, HttpError> {
        // What the other end has closed since the last request is known after its task had a turn.
        tokio::task::yield_now().await;
        let open = {
            let mut open = self.open();
            open.retain(|(_, sender)| !sender.is_closed());
            let found = open.iter().position(|(other, it)| other == origin && it.is_ready());
            found.map(|place| open.swap_remove(place).1)
        };
        if let Some(sender) = open {
            return Ok(sender);
        }
        let connected = timeout(CONNECT, connect(origin)).await;
        connected.map_err(|_| late(origin, CONNECT))?
    }

    /// It is ready again when the answer was read.
    fn keep(&self, connection: Connection) {
        let mut open = self.open();
        if open.len() < MAX_IDLE {
            open.push(connection);
        }
    }
}

/// What a request line has.
fn relative(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned();
    Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")))
}

async fn connect(origin: &Origin) -> Result<SendRequest<HttpRequestBody>, HttpError> {
    let refused = |error: std::io::Error| {
        let text = format!("cannot connect to {}: {error}", origin.authority);
        HttpError::new(HttpErrorKind::Connect, std::io::Error::new(error.kind(), text))
    };
    let stream = TcpStream::connect((origin.host(), origin.port())).await.map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    if !origin.is_encrypted {
        return handshake(TokioIo::new(stream)).await;
    }
    let name = ServerName::try_from(origin.host().to_owned()).map_err(wrong)?;
    let tls = TlsConnector::from(tls()?).connect(name, stream).await.map_err(refused)?;
    handshake(TokioIo::new(tls)).await
}

async fn handshake<T>(stream: T) -> Result<SendRequest<HttpRequestBody>, HttpError>
where
    T: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(stream).await.map_err(failed)?;
    // Its end is the sender's, which says why.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// The certificates of the host, or of SSL_CERT_FILE and SSL_CERT_DIR.
fn tls() -> Result<Arc<ClientConfig>, HttpError> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(wrong(format_args!(
            "this host has no certificates of authorities; install ca-certificates or set SSL_CERT_FILE"
        )));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().map_err(wrong)?;
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    Ok(Arc::clone(CONFIG.get_or_init(|| config)))
}

/// An error of a request that is not sent again.
fn wrong(text: impl fmt::Display) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, std::io::Error::other(text.to_string()))
}

fn late(origin: &Origin, patience: Duration) -> HttpError {
    let text = format!("{} has not answered within {} s", origin.authority, patience.as_secs());
    HttpError::new(HttpErrorKind::Timeout, std::io::Error::other(text))
}

/// A connection that ends before its answer is tried again, as a new one.
fn failed(error: hyper::Error) -> HttpError {
    let is_cut = error.is_closed() || error.is_canceled() || error.is_incomplete_message();
    let kind = if is_cut { HttpErrorKind::Request } else { HttpErrorKind::Interrupted };
    HttpError::new(kind, error)
}
