//! One TCP connection, from its acceptance to its end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::answer::RequestHandler;
use super::coalescing::CoalescingWriter;
use super::http1::Http1Stream;
use super::http2::Http2;
use super::http2_stream::Http2Stream;
use super::linger::{End, linger};
use super::socket::CountedStream;
use super::steering::TcpSteering;
use super::{preface, proxy_protocol};
use crate::access_log::Line;
use crate::admission::Transport;
use crate::choice::Chooser;
use crate::clock;
use crate::shared::{LINGER, Shared, Stop, Stopping};
use crate::telemetry::{ConnectionProgress, Labels, Observer, Socket, SocketLookup};

/// The state that a listener shares with its connections.
#[derive(Clone)]
pub(crate) struct TcpContext {
    pub(crate) shared: Arc<Shared>,
    /// The listener's name.
    pub(crate) listener: Arc<str>,
    pub(crate) chooser: Chooser,
    pub(crate) tls: Option<TlsAcceptor>,
    /// The port of HTTPS, to which requests are sent on.
    pub(crate) to_https: Option<u16>,
    /// The `Alt-Svc` header, if HTTP/3 is served, too.
    pub(crate) alternative: Option<HeaderValue>,
    pub(crate) stop: Stop,
}

impl TcpContext {
    /// Serves the connection until it ends. Errors are caused by the client and not reported.
    pub(super) async fn serve(
        self,
        mut stream: TcpStream,
        peer: SocketAddr,
        _permit: Option<OwnedSemaphorePermit>,
    ) {
        let Some(client) = self.client(&mut stream, peer.ip()).await else { return };
        let claim = self.shared.admission.admit(client, Transport::Tcp, clock::now());
        let Some(claim) = claim else { return };
        let progress = Arc::new(ConnectionProgress::new(claim));
        let Ok((handler, stream, socket)) = self.prepare(stream, (peer, client), &progress) else {
            return;
        };
        let observer = handler.observer.clone();
        let talk = async {
            tokio::select! {
                end = self.greet_and_talk(stream, handler, &progress) => {
                    if !progress.is_answering() {
                        let stall = || self.shared.timeouts().stall;
                        linger((*socket).as_ref(), end, stall, self.stop.clone()).await;
                    }
                }
                () = progress.claim().ended() => {}
            }
            progress.close();
        };
        match observer {
            None => talk.await,
            Some(observer) => {
                // After each turn of the connection the observer sees what has changed.
                tokio::join!(biased; talk, observer.watch(self.stop.clone()));
                // Keep the socket open until here: a client that has received everything may reset
                // the connection, and then only the socket still has the acknowledged bytes.
                drop(socket);
            }
        }
    }

    /// Who the client is: `peer`, unless that is a proxy, which has to say so.
    async fn client(&self, stream: &mut TcpStream, peer: IpAddr) -> Option<IpAddr> {
        if !self.shared.live.load().proxies.contains(peer) {
            return Some(peer);
        }
        tokio::select! {
            header = timeout(self.shared.limits.head_time, proxy_protocol::read(stream)) => {
                Some(header.ok()?.ok()?.unwrap_or(peer))
            }
            () = self.stopped() => None,
        }
    }

    fn prepare(
        &self,
        stream: TcpStream,
        (peer, client): (SocketAddr, IpAddr),
        progress: &Arc<ConnectionProgress>,
    ) -> io::Result<(RequestHandler, CountedStream, Arc<OwnedWriteHalf>)> {
        let local = stream.local_addr()?;
        let (reading, stream) = stream.into_split();
        let stream = Arc::new(stream);
        let choice = self.chooser.accept(client, clock::unix());
        let origin = choice.origin();
        let steering = Arc::new(TcpSteering::begin(&stream, choice)?);
        let observer = match &self.shared.telemetry {
            None => None,
            Some(telemetry) => {
                let number = (self.shared.next_connection(), self.shared.epoch);
                let labels = Labels::new(number, &self.listener, client, origin);
                let protocol = if self.tls.is_some() { "tls" } else { "tcp" };
                let socket: Arc<dyn Socket> = stream.clone();
                let lookup = SocketLookup { socket: Arc::downgrade(&socket), local, peer };
                let first = (steering.active_settings(), protocol);
                Some(Arc::new(Observer::new(progress, telemetry, lookup, labels, first)))
            }
        };
        let stall = self.shared.limits.stall_time;
        let socket = Arc::clone(&stream);
        let counted =
            CountedStream::new((reading, stream), Arc::clone(progress), observer.clone(), stall)?;
        let handler = RequestHandler {
            shared: Arc::clone(&self.shared),
            client,
            port: local.port(),
            to_https: self.to_https,
            progress: Arc::clone(progress),
            observer,
            steering,
            alternative: self.alternative.clone(),
            stop: self.stop.clone(),
        };
        Ok((handler, counted, socket))
    }

    async fn greet_and_talk(
        &self,
        stream: CountedStream,
        handler: RequestHandler,
        progress: &Arc<ConnectionProgress>,
    ) -> End {
        let Some((stream, is_http2)) = self.greet(stream, &handler.steering).await else {
            return End::Acknowledged;
        };
        self.talk((stream, is_http2), handler, progress).await;
        if is_http2 { End::Client } else { End::Acknowledged }
    }

    /// Determines the HTTP version, after the TLS handshake if the server uses TLS.
    async fn greet(
        &self,
        stream: CountedStream,
        steering: &TcpSteering,
    ) -> Option<(CoalescingWriter, bool)> {
        let greeting = timeout(self.shared.limits.head_time, async {
            match &self.tls {
                None => plain(stream, steering).await,
                Some(acceptor) => encrypted(stream, acceptor, steering).await,
            }
        });
        tokio::select! {
            greeted = greeting => greeted.ok()?.ok(),
            () = self.stopped() => None,
        }
    }

    /// Returns when a client that has not begun has to go.
    async fn stopped(&self) {
        drop(self.stop.clone().wait_for(Option::is_some).await);
        sleep(self.shared.linger()).await;
    }

    async fn talk(
        &self,
        (stream, is_http2): (CoalescingWriter, bool),
        handler: RequestHandler,
        progress: &Arc<ConnectionProgress>,
    ) {
        let limits = &self.shared.limits;
        let end = (handler.client, handler.port);
        let observed = handler.observer.is_some().then(|| Arc::clone(progress));
        if is_http2 {
            let output = Http2Stream::new(stream.clone(), self.tls.is_some(), observed);
            let http = pin!(Http2::new(output, limits, handler));
            let protocol =
                Protocol { leave: |mut it: Pin<&mut Http2>| it.leave(), sends_goaway: true };
            self.converse(http, protocol, &stream, progress).await;
            return;
        }
        let answer = service_fn(move |request| handler.clone().answer(request));
        let mut builder = http1::Builder::new();
        // `converse` implements the head timeout, for both versions and for TLS.
        builder.header_read_timeout(None).max_buf_size(limits.head_bytes as usize);
        // A client that has sent its last request may close its side and still read (RFC 9293 §3.6).
        builder.half_close(true);
        let output = Http1Stream::new(stream.clone(), self.tls.is_some(), observed);
        let http = pin!(builder.serve_connection(TokioIo::new(output), answer));
        let leave = http1::Connection::graceful_shutdown;
        let protocol = Protocol { leave, sends_goaway: false };
        let ended = self.converse(http, protocol, &stream, progress).await;
        if let Some(error) = ended.and_then(Result::err).filter(hyper::Error::is_parse) {
            self.refused_head(end, error.is_parse_too_large());
        }
    }

    /// The HTTP library has refused a head. A record needs a request.
    fn refused_head(&self, (client, port): (IpAddr, u16), is_too_large: bool) {
        if let Some(telemetry) = &self.shared.telemetry {
            telemetry.metrics().refused_head(&self.listener);
        }
        if let Some(log) = &self.shared.access_log {
            let status = if is_too_large { 431 } else { 400 };
            Line::refused(log, (client, port), clock::today(), status).end(0);
        }
    }

    /// Serves HTTP until the connection ends or times out. The result is that of `http`, if it has ended.
    async fn converse<H: Future>(
        &self,
        mut http: Pin<&mut H>,
        protocol: Protocol<impl Fn(Pin<&mut H>)>,
        stream: &CoalescingWriter,
        progress: &ConnectionProgress,
    ) -> Option<H::Output> {
        let mut stop = self.stop.clone();
        let mut stopping = *stop.borrow_and_update();
        // When a graceful shutdown of the connection began.
        let mut left = None;
        if stopping.is_some() && protocol.sends_goaway {
            left = Some(clock::now());
            (protocol.leave)(http.as_mut());
        }
        let deadline = |left: Option<Instant>, stopping: Option<Stopping>| {
            let leaving = left.or(stopping.map(|it| it.since));
            let deadline = match leaving.filter(|_| !progress.is_answering()) {
                Some(since) => since.max(progress.last_progress()) + self.shared.linger(),
                None => progress.deadline(&self.shared.limits.timeouts()),
            };
            stopping.map_or(deadline, |it| deadline.min(it.at))
        };
        loop {
            // During a shutdown, check again after `LINGER`: if a response ends meanwhile, the
            // deadline comes earlier.
            let look = stopping.map(|_| clock::now() + LINGER);
            let look = look.into_iter().chain([deadline(left, stopping)]).min();
            tokio::select! {
                biased;
                ended = http.as_mut() => return Some(ended),
                _failed = stream.end() => return None,
                () = sleep_until(look.unwrap_or_else(clock::now).into()) => {
                    let now = clock::now();
                    if now < deadline(left, stopping) {
                        continue;
                    }
                    let must_end = stopping.is_some_and(|it| now >= it.at);
                    if must_end || left.is_some() || progress.is_answering() {
                        return None;
                    }
                    left = Some(now);
                    (protocol.leave)(http.as_mut());
                }
                Ok(()) = stop.changed() => {
                    stopping = *stop.borrow();
                    if protocol.sends_goaway && left.is_none() {
                        left = Some(clock::now());
                        (protocol.leave)(http.as_mut());
                    }
                }
            }
        }
    }
}

/// How a version of HTTP shuts down gracefully.
struct Protocol<L> {
    leave: L,
    /// Whether the server can ask the client to send no more requests while requests in flight are answered, as
    /// in HTTP/2. In HTTP/1.1 only a response can ask; until then, a request may be in flight.
    sends_goaway: bool,
}

/// Without TLS, the first bytes determine the version.
async fn plain(
    mut stream: CountedStream,
    steering: &TcpSteering,
) -> io::Result<(CoalescingWriter, bool)> {
    steering.server_name(None);
    let (is_http2, begun) = preface::read(&mut stream).await?;
    stream.rewind(begun);
    Ok((CoalescingWriter::new(Box::new(stream), false), is_http2))
}

async fn encrypted(
    stream: CountedStream,
    acceptor: &TlsAcceptor,
    steering: &TcpSteering,
) -> io::Result<(CoalescingWriter, bool)> {
    let stream = acceptor.accept(stream).await?;
    let tls = stream.get_ref().1;
    steering.server_name(tls.server_name());
    let is_http2 = tls.alpn_protocol() == Some(b"h2");
    Ok((CoalescingWriter::new(Box::new(stream), true), is_http2))
}
