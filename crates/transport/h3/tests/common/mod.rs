//! A server that responds with the length given in the path, and clients that check each byte.
#![allow(dead_code, unused_imports, reason = "no test file uses all of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

#[path = "../../../quic/tests/pair/identity.rs"]
pub(crate) mod identity;
pub(crate) mod raw;
#[path = "../../../quic-io/tests/common/real.rs"]
mod real;

use real::block;
pub(crate) use real::fits;
pub(crate) use uncork_testkit::now;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, Request, StatusCode, header};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ConnectionError, Dir, IdleTimeout, ServerConfig, Side, StreamId, TransportConfig, VarInt,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use uncork_cc::CcSpec;
use uncork_h3::client::{ClientOptions, Tls};
use uncork_h3::{
    Client, Payload, Priority, Session, SessionBounds, SessionScope, Transport, Unsendable,
};
use uncork_quic_io::{
    App, Arrival, Config, ConnectionContext, Identity, Mailer, Server, Verdict, Workers, bind,
};

/// Counters of a server's connections and requests.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicU64,
    pub(crate) closed: AtomicU64,
    /// The error code of the last close.
    pub(crate) code: AtomicU64,
    /// Responses sent completely, and responses that the client stopped.
    pub(crate) sent: AtomicU64,
    pub(crate) stopped: AtomicU64,
    /// Responses with an acknowledged FIN.
    pub(crate) acknowledged: AtomicU64,
}

impl Counts {
    pub(crate) fn of(count: &AtomicU64) -> u64 {
        count.load(Ordering::SeqCst)
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::SeqCst);
}

/// The server.
pub(crate) struct Serving {
    mailer: Mailer<()>,
    server: Server,
    counts: Arc<Counts>,
    seed: u64,
}

impl App for Serving {
    type State = Session;
    type Command = ();

    fn incoming(&mut self, arrival: &Arrival<'_>) -> Verdict<Session> {
        self.seed += 1;
        add(&self.counts.connections);
        let (cc, config) =
            self.server.accept("cubic".parse::<CcSpec>().unwrap().into(), self.seed, |_| None);
        let bounds = SessionBounds { request: 64 * 1024, control: 64 * 1024 };
        let state = Session::new(self.mailer.clone(), Side::Server, bounds, arrival.now);
        Verdict::Accept { config, cc, state }
    }

    fn connected(&mut self, context: &mut ConnectionContext<'_, Session>) {
        let scope = context.state.scope();
        let counts = Arc::clone(&self.counts);
        scope.spawn(serve(context.state.transport(), scope.clone(), counts));
    }

    fn opened(&mut self, context: &mut ConnectionContext<'_, Session>, dir: Dir) {
        context.state.opened(context.connection, dir);
    }

    fn readable(&mut self, context: &mut ConnectionContext<'_, Session>, stream: StreamId) {
        context.state.readable(stream);
    }

    fn writable(&mut self, context: &mut ConnectionContext<'_, Session>, stream: StreamId) {
        context.state.writable(stream);
    }

    fn finished(&mut self, context: &mut ConnectionContext<'_, Session>, stream: StreamId) {
        context.state.finished(stream);
        add(&self.counts.acknowledged);
    }

    fn stopped(
        &mut self,
        context: &mut ConnectionContext<'_, Session>,
        stream: StreamId,
        code: VarInt,
    ) {
        context.state.stopped(context.connection, stream, code);
        add(&self.counts.stopped);
    }

    fn settle(&mut self, context: &mut ConnectionContext<'_, Session>) {
        context.state.settle(context.now, context.key, context.connection);
    }

    fn closed(&mut self, context: &mut ConnectionContext<'_, Session>, reason: &ConnectionError) {
        context.state.closed(context.now, context.key, reason);
        let code = match reason {
            ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
            _ => 0,
        };
        self.counts.code.store(code, Ordering::SeqCst);
        add(&self.counts.closed);
    }
}

type Requests = h3::server::RequestResolver<Transport, Payload>;

async fn serve(transport: Transport, scope: SessionScope, counts: Arc<Counts>) {
    let mut builder = h3::server::builder();
    builder.max_field_section_size(16 * 1024).send_grease(false);
    let Ok(mut connection) = builder.build(transport).await else { return };
    while let Ok(Some(request)) = connection.accept().await {
        let (scope, counts) = (scope.clone(), Arc::clone(&counts));
        scope.clone().spawn(async move {
            if respond(request, scope).await.is_ok() {
                add(&counts.sent);
            }
        });
    }
}

/// `/LENGTH` returns that many bytes; `/cut/LENGTH` resets after that many; `/silent` never answers;
/// `/fields/STATUS` returns the fields of the request.
async fn respond(request: Requests, scope: SessionScope) -> Result<(), Unsendable> {
    let (request, stream) = scope.resolve(request).await.map_err(|_| Unsendable)?;
    scope.prioritize(stream.id(), Priority::of(request.headers()));
    let path = request.uri().path();
    if path == "/silent" {
        std::future::pending::<()>().await;
    }
    if let Some(status) = path.strip_prefix("/fields/") {
        let status = status.parse().unwrap();
        return scope.reply(stream.id(), status, request.headers())?.finish();
    }
    let cut = path.strip_prefix("/cut/");
    let Ok(length) = cut.or(path.get(1..)).unwrap_or_default().parse::<u64>() else {
        let none = HeaderMap::new();
        return scope.reply(stream.id(), StatusCode::NOT_FOUND, &none)?.finish();
    };
    let is_cut = cut.is_some();
    let promised = if is_cut { length + 1 } else { length };
    let headers = HeaderMap::from_iter([(header::CONTENT_LENGTH, promised.into())]);
    let mut reply = scope.reply(stream.id(), StatusCode::OK, &headers)?;
    let mut offset = 0;
    while offset < length {
        let from = (offset % block().len() as u64) as usize;
        let to = block().len().min(from + (length - offset) as usize);
        reply.push(block().slice(from..to))?;
        reply.ready().await?;
        offset += (to - from) as u64;
    }
    if is_cut {
        reply.reset(h3::error::Code::H3_INTERNAL_ERROR);
        return Ok(());
    }
    reply.finish()
}

/// A server, and the TLS configurations for its clients.
pub(crate) struct Test {
    pub(crate) server: Workers<()>,
    pub(crate) address: SocketAddr,
    pub(crate) counts: Arc<Counts>,
    pub(crate) tls: Tls,
    /// The TLS configuration for plain QUIC clients.
    pub(crate) crypto: Arc<QuicClientConfig>,
}

/// Tests wait for the end of connections that neither side closed.
const IDLE: Duration = Duration::from_secs(4);

pub(crate) fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::try_from(IDLE).unwrap()));
    transport
}

impl Test {
    pub(crate) fn new() -> Self {
        Self::on(bind((Ipv4Addr::LOCALHOST, 0).into(), 2).unwrap())
    }

    pub(crate) fn on(sockets: Vec<UdpSocket>) -> Self {
        let (certificate, key) = identity::certificate();
        let certificate = CertificateDer::from(certificate);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
        let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let key = PrivateKeyDer::try_from(key).unwrap();
        let tls = tls.with_no_client_auth().with_single_cert(vec![certificate.clone()], key);
        let mut tls = tls.unwrap();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let base = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
        let server = Server::new(base, transport(), now());
        let mut config = Config::new(Identity::random().unwrap());
        config.server = Some(server.base());
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        let make = move |mailer| {
            let (server, counts) = (server.clone(), Arc::clone(&shared));
            Serving { mailer, server, counts, seed: 0 }
        };
        let server = Workers::start(sockets, &config, make).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(provider);
        let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = Arc::new(QuicClientConfig::try_from(tls.clone()).unwrap());
        let address = server.addresses()[0];
        Self { server, address, counts, tls: Tls::new(tls).unwrap(), crypto }
    }

    pub(crate) async fn connect(&self, client: &Client) -> uncork_h3::client::Connection {
        let cc = ("cubic".parse().unwrap(), 1);
        client.connect(self.address, identity::NAME, cc, &self.tls).await.unwrap()
    }
}

pub(crate) fn client() -> Client {
    Client::start(&ClientOptions::default(), now()).unwrap()
}

pub(crate) fn get(path: &str) -> Request<()> {
    Request::get(format!("https://{}{path}", identity::NAME)).body(()).unwrap()
}

/// Runs a test with a timeout of two minutes.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_mins(2), test).await.unwrap() })
}

/// Waits until `is_so` returns true; fails after a minute.
pub(crate) async fn until(what: &str, is_so: impl FnMut() -> bool) {
    uncork_testkit::wait_until_async(what, Duration::from_mins(1), is_so).await;
}

/// Checks that the server still works and all other connections are gone.
pub(crate) fn still_serves(test: &Test) {
    let client = client();
    run(async {
        let connection = test.connect(&client).await;
        let mut response = connection.request(get("/1000")).await.unwrap();
        let chunk = response.body_mut().next_chunk().await.unwrap().unwrap();
        assert!(fits(0, &chunk.data));
        drop((response, connection));
        let [all, closed] = [&test.counts.connections, &test.counts.closed];
        until("all connections are over", || Counts::of(all) == Counts::of(closed)).await;
    });
}
