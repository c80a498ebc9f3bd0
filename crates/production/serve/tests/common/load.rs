//! Clients that send requests continuously and count failures. They never repeat a request, with
//! one exception: if the server has announced that it accepts no more requests on the connection,
//! and has not processed this one, they open another connection.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Version};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use rustls::{SupportedProtocolVersion, version::TLS13};
use tokio_rustls::TlsConnector;
use uncork_h3::client::{ClientError, ClientOptions, Connection as H3Connection};
use uncork_testkit::pause_async;

use crate::talker::{now, run, tls};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    H1,
    H2,
    H3,
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::H1, Self::H2, Self::H3];
}

/// The results of requests: the number of responses by server, and the failures.
#[derive(Default)]
pub struct Tally(Mutex<(BTreeMap<String, usize>, Vec<String>)>);

impl Tally {
    fn count(&self, outcome: Result<String, String>) {
        let (served, failures) = &mut *self.0.lock().unwrap();
        match outcome {
            Ok(server) => *served.entry(server).or_default() += 1,
            Err(failure) => failures.push(failure),
        }
    }

    /// The responses of this server.
    pub fn of(&self, server: &str) -> usize {
        self.0.lock().unwrap().0.get(server).copied().unwrap_or(0)
    }

    pub fn counts(&self) -> (BTreeMap<String, usize>, Vec<String>) {
        self.0.lock().unwrap().clone()
    }
}

pub struct Load {
    pub address: SocketAddr,
    /// The server's certificate.
    pub chain: PathBuf,
    /// The contents of `/small`.
    pub small: Vec<u8>,
}

/// The server's name and the body, or the error.
pub type Download = Result<(String, Vec<u8>), String>;

/// The server's name, the body, and whether the connection may be used again.
type Answer = (String, Vec<u8>, bool);

impl Load {
    /// Requests `/small` continuously, and counts the responses of each server.
    pub fn ask(&self, protocol: Protocol, is_over: &AtomicBool, tally: &Tally) {
        run(async {
            let mut client = Client::new(self, protocol);
            while !is_over.load(Ordering::Relaxed) && tally.counts().1.len() < 10 {
                let outcome = match client.get("/small", &Pace::FAST).await {
                    Ok((_, body)) if body != self.small => Err("a wrong body".to_owned()),
                    outcome => outcome.map(|(server, _)| server),
                };
                tally.count(outcome);
                pause_async(Duration::from_millis(2), "a client thinks").await;
            }
        });
    }

    /// Downloads `/large`, taking at least this time for 8 MB. `pieces` counts what has arrived.
    pub fn download_slowly(
        &self,
        protocol: Protocol,
        time: Duration,
        pieces: &AtomicUsize,
    ) -> Download {
        let pace = Pace { time, pieces: Some(pieces) };
        run(async { Client::new(self, protocol).get("/large", &pace).await })
    }
}

/// A client with one connection at a time.
struct Client<'a> {
    load: &'a Load,
    protocol: Protocol,
    h3: uncork_h3::Client,
    open: Option<Open>,
}

enum Open {
    H1(Box<BufReader<StreamOwned<ClientConnection, TcpStream>>>),
    H2(h2::client::SendRequest<bytes::Bytes>),
    H3(H3Connection),
}

impl<'a> Client<'a> {
    fn new(load: &'a Load, protocol: Protocol) -> Self {
        let h3 = uncork_h3::Client::start(&ClientOptions::default(), now()).unwrap();
        Self { load, protocol, h3, open: None }
    }

    /// The server's name and the body, which is read at this pace.
    async fn get(&mut self, path: &str, pace: &Pace<'_>) -> Result<(String, Vec<u8>), String> {
        loop {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.connect().await?,
            };
            let Some((server, body, is_reusable)) = open.get(path, pace).await? else { continue };
            self.open = is_reusable.then_some(open);
            return Ok((server, body));
        }
    }

    async fn connect(&self) -> Result<Open, String> {
        let failed = |error: &dyn std::fmt::Display| format!("to connect: {error}");
        let Load { address, chain, .. } = self.load;
        match self.protocol {
            Protocol::H1 => {
                let tls = tls_over_tcp(&client(chain, &TLS13, b"http/1.1"), *address);
                Ok(Open::H1(Box::new(BufReader::new(tls.map_err(|error| failed(&error))?))))
            }
            Protocol::H2 => {
                let socket = tokio::net::TcpStream::connect(address).await;
                let connector = TlsConnector::from(client(chain, &TLS13, b"h2"));
                let name = "localhost".try_into().unwrap();
                let tls = connector.connect(name, socket.map_err(|error| failed(&error))?).await;
                let http = h2::client::handshake(tls.map_err(|error| failed(&error))?).await;
                let (requests, connection) = http.map_err(|error| failed(&error))?;
                tokio::spawn(connection);
                Ok(Open::H2(requests))
            }
            Protocol::H3 => {
                let cc = ("cubic".parse().unwrap(), 1);
                let connected = self.h3.connect(*address, "localhost", cc, &tls(chain)).await;
                connected.map(Open::H3).map_err(|error| failed(&error))
            }
        }
    }
}

impl Open {
    /// `None` if the server had announced that it accepts no more requests, so that none was sent.
    async fn get(&mut self, path: &str, pace: &Pace<'_>) -> Result<Option<Answer>, String> {
        match self {
            Self::H1(stream) => h1(stream, path, pace).await.map(Some).map_err(|it| it.to_string()),
            Self::H2(requests) => h2(requests, path, pace).await,
            Self::H3(connection) => h3(connection, path, pace).await,
        }
    }
}

/// How a client reads a body.
struct Pace<'a> {
    /// For 8 MB.
    time: Duration,
    /// Counts pieces that have arrived.
    pieces: Option<&'a AtomicUsize>,
}

impl Pace<'_> {
    const FAST: Self = Self { time: Duration::ZERO, pieces: None };
}

/// The pause after this many bytes.
async fn rest(bytes: usize, pace: &Pace<'_>) {
    if let Some(pieces) = pace.pieces {
        pieces.fetch_add(1, Ordering::Relaxed);
    }
    if !pace.time.is_zero() {
        pause_async(pace.time * bytes as u32 / 8_000_000, "a client that reads slowly").await;
    }
}

async fn h1(
    stream: &mut BufReader<StreamOwned<ClientConnection, TcpStream>>,
    path: &str,
    pace: &Pace<'_>,
) -> std::io::Result<Answer> {
    stream.get_mut().write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes())?;
    let (mut server, mut length, mut is_reusable) = (String::new(), 0, true);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::Error::other("the connection ended"));
        }
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("cache-control", value)) => value.clone_into(&mut server),
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(("connection", value)) => is_reusable = value != "close",
            _ if line == "\r\n" => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    for piece in body.chunks_mut(64 * 1024) {
        stream.read_exact(piece)?;
        rest(piece.len(), pace).await;
    }
    Ok((server, body, is_reusable))
}

async fn h2(
    requests: &mut h2::client::SendRequest<bytes::Bytes>,
    path: &str,
    pace: &Pace<'_>,
) -> Result<Option<Answer>, String> {
    let failed = |error: h2::Error| error.to_string();
    // After an error here, the connection had ended before the request.
    let Ok(mut ready) = requests.clone().ready().await else { return Ok(None) };
    let request = Request::get(format!("https://localhost{path}")).version(Version::HTTP_2);
    let asked = ready.send_request(request.body(()).unwrap(), true);
    let Ok((response, _)) = asked else { return Ok(None) };
    let response = match response.await {
        // The GOAWAY crossed the request, and reports that it was not processed (RFC 9113 §6.8).
        Err(error) if error.is_go_away() && error.is_remote() => return Ok(None),
        response => response.map_err(failed)?,
    };
    let server = response.headers()["cache-control"].to_str().unwrap().to_owned();
    let (mut source, mut body) = (response.into_body(), Vec::new());
    while let Some(chunk) = source.data().await {
        let chunk = chunk.map_err(failed)?;
        body.extend_from_slice(&chunk);
        rest(chunk.len(), pace).await;
        source.flow_control().release_capacity(chunk.len()).map_err(failed)?;
    }
    Ok(Some((server, body, true)))
}

async fn h3(
    connection: &H3Connection,
    path: &str,
    pace: &Pace<'_>,
) -> Result<Option<Answer>, String> {
    if connection.is_closed() {
        return Ok(None);
    }
    let response = match connection.request(crate::talker::request("GET", path, &[])).await {
        Err(ClientError::Closing) => return Ok(None),
        response => response.map_err(|error| error.to_string())?,
    };
    let server = response.headers()["cache-control"].to_str().unwrap().to_owned();
    let (mut source, mut body) = (response.into_body(), Vec::new());
    while let Some(chunk) = source.next_chunk().await {
        let chunk = chunk.map_err(|error| error.to_string())?.data;
        body.extend_from_slice(&chunk);
        rest(chunk.len(), pace).await;
    }
    Ok(Some((server, body, true)))
}

/// A client that trusts the certificate in a file, with its own session cache.
pub fn client(
    chain: &Path,
    version: &'static SupportedProtocolVersion,
    protocol: &[u8],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(chain).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_protocol_versions(&[version]).unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Arc::new(config)
}

fn tls_over_tcp(
    config: &Arc<ClientConfig>,
    address: SocketAddr,
) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    tls_over(config, TcpStream::connect(address)?)
}

fn tls_over(
    config: &Arc<ClientConfig>,
    socket: TcpStream,
) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    socket.set_read_timeout(Some(Duration::from_mins(1)))?;
    let client = ClientConnection::new(Arc::clone(config), "localhost".try_into().unwrap());
    Ok(StreamOwned::new(client.unwrap(), socket))
}

/// The body of one HTTP/1.1 response to a client with this address.
pub async fn get_from(
    from: std::net::Ipv4Addr,
    config: &Arc<ClientConfig>,
    to: SocketAddr,
    path: &str,
) -> std::io::Result<Vec<u8>> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect(&to.into())?;
    let mut stream = BufReader::new(tls_over(config, socket.into())?);
    Ok(h1(&mut stream, path, &Pace::FAST).await?.1)
}

/// One request on a new connection, after which tickets are received.
pub fn handshake(config: &Arc<ClientConfig>, address: SocketAddr) -> HandshakeKind {
    let mut stream = tls_over_tcp(config, address).unwrap();
    stream.write_all(b"HEAD /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let _ended = stream.read_to_end(&mut Vec::new());
    stream.conn.handshake_kind().unwrap()
}
