//! One connection, from its acceptance to its end.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderValue, Version};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep_until, timeout};

use super::answer::Answerer;
use super::coalescing::CoalescingWriter;
use super::exchanges::{ExchangeSpawner, Exchanges};
use super::socket::CountedStream;
use super::steering::Steering;
use crate::choice::Chooser;
use crate::clock;
use crate::limits::Limits;
use crate::shared::{Shared, Stop};
use crate::telemetry::{ConnectionProgress, Labels, Observer, Socket, SocketLookup};

/// How long a client that was told to go may take.
const GOODBYE_TIME: Duration = Duration::from_secs(1);

/// What a listener gives to its connections.
#[derive(Clone)]
pub(crate) struct TcpContext {
    pub(crate) shared: Arc<Shared>,
    /// The listener's name.
    pub(crate) listener: Arc<str>,
    pub(crate) chooser: Chooser,
    /// Where the same is served over QUIC, if it is.
    pub(crate) alternative: Option<HeaderValue>,
    pub(crate) stop: Stop,
}

impl TcpContext {
    /// Serves the connection until it ends. Its errors are the client's and are not reported.
    pub(super) async fn serve(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        permit: OwnedSemaphorePermit,
    ) {
        let progress = Arc::new(ConnectionProgress::new());
        let Ok((answerer, stream)) = self.prepare(stream, peer, &progress) else { return };
        let observer = answerer.observer.clone();
        let talk = async {
            if let Some((stream, version)) = self.encrypt(stream, &answerer.steering).await {
                self.talk(stream, version, answerer, &progress).await;
            }
            progress.close();
            drop(permit);
        };
        match observer {
            None => talk.await,
            Some(observer) => {
                tokio::join!(talk, observer.watch(self.stop.clone()));
            }
        }
    }

    fn prepare(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        progress: &Arc<ConnectionProgress>,
    ) -> io::Result<(Answerer, CountedStream)> {
        let local = stream.local_addr()?;
        let (reading, stream) = stream.into_split();
        let stream = Arc::new(stream);
        let choice = self.chooser.accept(peer.ip(), clock::unix());
        let origin = choice.origin();
        let steering = Arc::new(Steering::begin(&stream, choice)?);
        let observer = match &self.shared.telemetry {
            None => None,
            Some(telemetry) => {
                let number = (self.shared.next_connection(), self.shared.epoch);
                let labels = Labels::new(number, &self.listener, peer.ip(), origin);
                let protocol = if self.shared.tls.is_some() { "tls" } else { "tcp" };
                let socket: Arc<dyn Socket> = stream.clone();
                let lookup = SocketLookup { socket: Arc::downgrade(&socket), local, peer };
                let first = (steering.in_force(), protocol);
                Some(Arc::new(Observer::new(progress, telemetry, lookup, labels, first)))
            }
        };
        let stall = self.shared.limits.stall_time;
        let counted =
            CountedStream::new((reading, stream), Arc::clone(progress), observer.clone(), stall)?;
        let answerer = Answerer {
            site: Arc::clone(&self.shared.site),
            progress: Arc::clone(progress),
            observer,
            steering,
            alternative: self.alternative.clone(),
        };
        Ok((answerer, counted))
    }

    /// TLS, if the server has an identity, and the version of HTTP that it settles.
    async fn encrypt(
        &self,
        stream: CountedStream,
        steering: &Steering,
    ) -> Option<(CoalescingWriter, Option<Version>)> {
        let Some(acceptor) = &self.shared.tls else {
            steering.server_name(None);
            return Some((CoalescingWriter::new(Box::new(stream), false), None));
        };
        let handshake = timeout(self.shared.limits.head_time, acceptor.accept(stream));
        let mut stop = self.stop.clone();
        tokio::select! {
            stream = handshake => {
                let stream = stream.ok()?.ok()?;
                let tls = stream.get_ref().1;
                steering.server_name(tls.server_name());
                let is_2 = tls.alpn_protocol() == Some(b"h2");
                let version = if is_2 { Version::HTTP_2 } else { Version::HTTP_11 };
                Some((CoalescingWriter::new(Box::new(stream), true), Some(version)))
            }
            _stopped = stop.wait_for(Option::is_some) => None,
        }
    }

    async fn talk(
        &self,
        stream: CoalescingWriter,
        version: Option<Version>,
        answerer: Answerer,
        progress: &ConnectionProgress,
    ) {
        let timeouts = self.shared.limits.timeouts();
        let mut exchanges = Exchanges::default();
        let builder = builder(&self.shared.limits, version, exchanges.spawner());
        let answer = service_fn(move |request| answerer.clone().answer(request));
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream.clone()), answer));
        let mut stop = self.stop.clone();
        // When it ends, whatever it does; set once the client was told to go.
        let mut end = *stop.borrow();
        if end.is_some() {
            connection.as_mut().graceful_shutdown();
        }
        let deadline = |end: Option<Instant>| match (end, progress.is_answering()) {
            (None, _) => progress.deadline(&timeouts),
            (Some(end), true) => progress.deadline(&timeouts).min(end),
            (Some(end), false) => end,
        };
        loop {
            tokio::select! {
                biased;
                _ended = connection.as_mut() => return,
                never = exchanges.run() => match never {},
                _failed = stream.end() => return,
                () = sleep_until(deadline(end).into()) => {
                    let now = clock::now();
                    if now < deadline(end) {
                        continue;
                    }
                    if end.is_some() || progress.is_answering() {
                        return;
                    }
                    end = Some(now + GOODBYE_TIME);
                    connection.as_mut().graceful_shutdown();
                }
                Ok(()) = stop.changed() => {
                    end = *stop.borrow();
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// For this version of HTTP; without one, for that whose first bytes come (RFC 9113 §3.4).
fn builder(
    limits: &Limits,
    version: Option<Version>,
    exchanges: ExchangeSpawner,
) -> Builder<ExchangeSpawner> {
    let builder = Builder::new(exchanges);
    let mut builder = match version {
        Some(Version::HTTP_2) => builder.http2_only(),
        Some(_) => builder.http1_only(),
        None => builder,
    };
    // How long a head may take is watched from outside, for both versions and TLS.
    builder.http1().header_read_timeout(None).max_buf_size(limits.head_bytes as usize);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).max_header_list_size(limits.head_bytes);
    http2.max_concurrent_streams(limits.streams);
    builder
}
