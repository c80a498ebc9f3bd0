//! Answers the requests of one connection, and tracks the bodies of their responses.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use http_body::{Body, Frame, SizeHint};

use super::steering::TcpSteering;
use crate::access_log::Line;
use crate::admission::MemoryGuard;
use crate::choice::{RequestFacts, host};
use crate::clock;
use crate::piece::PieceSize;
use crate::request_head::check_head;
use crate::shared::{Shared, Stop};
use crate::site::{Answer, SiteBody, https_url, malformed, moved, unwanted, with_length};
use crate::telemetry::{About, ConnectionProgress, Observer, host_name};
use crate::timing::SERVER_TIMING;

/// An authority asks for the proof of a domain without TLS (RFC 8555 §8.3).
const ACME: &str = "/.well-known/acme-challenge/";

/// Answers the requests of a connection.
#[derive(Clone, Debug)]
pub(super) struct RequestHandler {
    pub(super) shared: Arc<Shared>,
    pub(super) client: IpAddr,
    /// The server's port.
    pub(super) port: u16,
    /// The port of HTTPS, to which requests are sent on.
    pub(super) to_https: Option<u16>,
    pub(super) progress: Arc<ConnectionProgress>,
    pub(super) observer: Option<Arc<Observer>>,
    pub(super) steering: Arc<TcpSteering>,
    /// The `Alt-Svc` header.
    pub(super) alternative: Option<HeaderValue>,
    pub(super) stop: Stop,
}

impl RequestHandler {
    /// Answers an HTTP/1.1 request.
    pub(super) async fn answer<B: Body + Unpin>(
        self,
        request: Request<B>,
    ) -> Result<Response<ObservedBody>, Infallible> {
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, ());
        let refusal = if check_head(&request).is_err() {
            Some(malformed())
        } else if !is_empty(body).await {
            Some(unwanted(request.version()))
        } else {
            None
        };
        let (mut response, sending) = self.respond(&request, refusal);
        if self.stop.borrow().is_some() {
            // The client sends no more requests on this connection.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| ObservedBody { body, piece: PieceSize::default(), sending }))
    }

    /// Begins a response: the file, or an error if the request is refused.
    pub(super) fn respond(
        &self,
        request: &Request<()>,
        refusal: Option<Response<SiteBody>>,
    ) -> (Response<SiteBody>, Sending) {
        let began = clock::now();
        let today = clock::today();
        let live = self.shared.live.load();
        let network = self.progress.claim().network();
        let limited = live.limit(network, began);
        let refusal = refusal.or(limited).or_else(|| self.send_on(request));
        let (mut response, object_bytes, active) = if let Some(refusal) = refusal {
            (refusal, None, self.steering.active_settings())
        } else {
            let Answer { response, path, object_bytes } = if self.is_challenge(request) {
                live.respond_unmoved(request, today)
            } else {
                live.respond(request, today)
            };
            let asked = RequestFacts::new(request, path.as_deref(), object_bytes);
            (response, object_bytes, self.steering.request(&asked))
        };
        response.body_mut().throttled(live.throttle(network));
        response.headers_mut().extend(clock::date(today));
        if let Some(alternative) = &self.alternative {
            response.headers_mut().insert(header::ALT_SVC, alternative.clone());
        }
        let id = match &self.observer {
            None => self.progress.begin(began),
            Some(observer) => {
                let about = About {
                    at: today,
                    protocol: if request.version() < Version::HTTP_2 { "h1" } else { "h2" },
                    host: host(request).map(host_name),
                    status: response.status().as_u16(),
                    object_bytes,
                };
                observer.begin(began, response.body().len(), about, Arc::clone(&active))
            }
        };
        // After the observer, which may just have asked the kernel.
        if live.server_timing.is_for(self.client)
            && let Some(timing) = {
                let has_arms = live.server_timing.has_arms();
                self.steering.timing(began, &active, has_arms, self.observer.as_deref())
            }
        {
            response.headers_mut().insert(SERVER_TIMING, timing);
        }
        let held = self.progress.claim().response();
        let line = self.shared.access_log.as_ref().map(|log| {
            let addresses = (self.client, self.port);
            Line::new(log, addresses, today, request, response.status().as_u16())
        });
        let progress = Arc::clone(&self.progress);
        (response, Sending { progress, id, taken: 0, line: line.map(Box::new), _memory: held })
    }
}

impl RequestHandler {
    /// Whether it asks for the proof of a domain, where the other requests go on to HTTPS.
    fn is_challenge(&self, request: &Request<()>) -> bool {
        self.to_https.is_some() && request.uri().path().starts_with(ACME)
    }

    /// Sends a request on to HTTPS, if that is wanted. `OPTIONS *` asks about the server itself, which no URL names (RFC 9110 §9.3.7).
    fn send_on(&self, request: &Request<()>) -> Option<Response<SiteBody>> {
        let port = self.to_https.filter(|_| !self.is_challenge(request))?;
        if !request.uri().path().starts_with('/') {
            return None;
        }
        let Some(host) = host(request).filter(|host| !host.is_empty()) else {
            return Some(malformed());
        };
        let location = https_url(host, port, request.uri());
        Some(with_length(moved(StatusCode::PERMANENT_REDIRECT, location)))
    }
}

/// Whether the request has an empty body.
async fn is_empty<B: Body + Unpin>(mut body: B) -> bool {
    if body.size_hint().lower() > 0 {
        return false;
    }
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(frame) = frame else { return false };
        if frame.data_ref().is_some_and(Buf::has_remaining) {
            return false;
        }
    }
    true
}

/// A response in progress. Dropping it ends the response, however much of it was sent.
#[derive(Debug)]
pub(super) struct Sending {
    progress: Arc<ConnectionProgress>,
    id: u64,
    taken: u64,
    line: Option<Box<Line>>,
    _memory: MemoryGuard,
}

impl Sending {
    /// It is on this stream of HTTP/2.
    pub(super) fn is_on(&self, stream: u32) {
        self.progress.is_on(self.id, stream);
    }

    /// Its stream was reset before it began.
    pub(super) fn is_reset(&self) {
        self.progress.is_reset(self.id);
    }

    /// Records a chunk of the body that is passed to the protocol. `is_own`: whether it takes memory.
    pub(super) fn give(&mut self, chunk: Bytes, is_own: bool) -> Bytes {
        self.taken += chunk.len() as u64;
        self.progress.took();
        if is_own { self.progress.claim().holding(chunk) } else { chunk }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.progress.end(self.id, self.taken);
        if let Some(line) = self.line.take() {
            line.end(self.taken);
        }
    }
}

/// An HTTP/1.1 body that records how much of it was taken.
#[derive(Debug)]
pub(super) struct ObservedBody {
    body: SiteBody,
    piece: PieceSize,
    sending: Sending,
}

impl Body for ObservedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let most = self.piece.next(clock::now());
        let is_own = self.body.is_read();
        let chunk = ready!(self.body.poll_chunk(cx, most));
        Poll::Ready(chunk.map(|chunk| chunk.map(|it| Frame::data(self.sending.give(it, is_own)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.len())
    }
}
