//! HTTP/2 on one connection (RFC 9113).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::server::{Builder, Connection, Handshake, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response, header};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{RequestHandler, Sending};
use super::http2_stream::Http2Stream;
use crate::clock;
use crate::guarded::guarded;
use crate::limits::Limits;
use crate::piece::PieceSize;
use crate::request_head::{HeadFault, check_head};
use crate::site::{SiteBody, bad_request, unwanted};

/// Most bytes of all responses that may wait for the socket.
const BACKLOG: usize = 256 * 1024;
/// Most bytes of an unwanted request body that are read before the response.
const MAX_UNWANTED: usize = 64 * 1024;

type Exchange = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection with its exchanges. If they were separate tasks, the connection would write each
/// response before it polls the next exchange, with one system call per response.
pub(super) struct Http2 {
    state: Http2State,
    is_leaving: bool,
    exchanges: FuturesUnordered<Exchange>,
    /// Whether there are exchanges that were not polled yet.
    has_new: bool,
    handler: RequestHandler,
    backlog: Arc<Semaphore>,
    /// How long a response may wait for its flow-control window.
    patience: Duration,
}

enum Http2State {
    Greeting(Handshake<Http2Stream, Bytes>),
    Talking(Connection<Http2Stream, Bytes>),
}

impl Http2 {
    pub(super) fn new(stream: Http2Stream, limits: &Limits, handler: RequestHandler) -> Self {
        let mut builder = Builder::new();
        builder.max_header_list_size(limits.head_bytes).max_concurrent_streams(limits.streams);
        Self {
            state: Http2State::Greeting(builder.handshake(stream)),
            is_leaving: false,
            exchanges: FuturesUnordered::new(),
            has_new: false,
            handler,
            backlog: Arc::new(Semaphore::new(BACKLOG)),
            patience: limits.idle_time,
        }
    }

    /// Accepts no more requests; the connection ends when those in progress are answered.
    pub(super) fn leave(&mut self) {
        self.is_leaving = true;
        if let Http2State::Talking(connection) = &mut self.state {
            connection.graceful_shutdown();
        }
    }

    /// Accepts available requests and writes pending data. Ready when the connection has ended.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.state {
                Http2State::Greeting(handshake) => match Pin::new(handshake).poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(connection)) => {
                        self.state = Http2State::Talking(connection);
                        if self.is_leaving {
                            self.leave();
                        }
                    }
                },
                Http2State::Talking(connection) => match connection.poll_accept(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                    Poll::Ready(Some(Ok((request, reply)))) => {
                        let (handler, backlog) = (self.handler.clone(), Arc::clone(&self.backlog));
                        let exchange = exchange(request, reply, handler, backlog, self.patience);
                        self.exchanges.push(Box::pin(exchange));
                        self.has_new = true;
                    }
                },
            }
        }
    }
}

impl Future for Http2 {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_accept(cx).is_ready() {
            return Poll::Ready(());
        }
        loop {
            self.has_new = false;
            while let Poll::Ready(Some(())) = self.exchanges.poll_next_unpin(cx) {}
            // Write the data of these exchanges in the same turn.
            if self.poll_accept(cx).is_ready() {
                return Poll::Ready(());
            }
            if !self.has_new {
                return Poll::Pending;
            }
        }
    }
}

/// Handles a request up to the end of its response.
async fn exchange(
    request: Request<RecvStream>,
    mut reply: SendResponse<Bytes>,
    handler: RequestHandler,
    backlog: Arc<Semaphore>,
    patience: Duration,
) {
    let (head, body) = request.into_parts();
    let request = Request::from_parts(head, ());
    let Ok(is_empty) = is_empty(&request, body).await else { return };
    let refusal = match check_head(&request) {
        Err(HeadFault::Malformed) => return reply.send_reset(Reason::PROTOCOL_ERROR),
        Err(HeadFault::BadRequest) => Some(bad_request()),
        Ok(()) => (!is_empty).then(|| unwanted(request.version())),
    };
    let (response, sending) = handler.respond(&request, refusal);
    sending.is_on(reply.stream_id().into());
    let (head, body) = response.into_parts();
    let Ok(mut stream) = reply.send_response(Response::from_parts(head, ()), body.is_empty())
    else {
        return sending.is_reset();
    };
    if let Err(reason) = send(&mut stream, body, sending, &backlog, patience).await {
        stream.send_reset(reason);
    }
}

/// Whether the request has an empty body. Reads up to [`MAX_UNWANTED`] bytes of it.
///
/// Some clients signal an empty body only after the head. And later frames may make a request
/// malformed, which a client that already has its response no longer learns (RFC 9113 §8.1.1).
async fn is_empty(request: &Request<()>, mut body: RecvStream) -> Result<bool, h2::Error> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > MAX_UNWANTED) {
        return Ok(false);
    }
    let mut bytes = 0;
    while let Some(data) = body.data().await {
        let length = data?.len();
        bytes += length;
        if bytes > MAX_UNWANTED {
            return Ok(false);
        }
        body.flow_control().release_capacity(length)?;
    }
    Ok(bytes == 0)
}

/// Sends a body. Reads no more of it than the client's windows allow now, so that a blocked
/// response holds no memory.
async fn send(
    stream: &mut SendStream<Bytes>,
    mut body: SiteBody,
    mut sending: Sending,
    backlog: &Arc<Semaphore>,
    patience: Duration,
) -> Result<(), Reason> {
    let mut piece = PieceSize::default();
    while !body.is_empty() {
        let wanted =
            piece.next(clock::now()).min(usize::try_from(body.len()).unwrap_or(usize::MAX));
        stream.reserve_capacity(wanted);
        let room = timeout(patience, room(stream)).await.map_err(|_| Reason::CANCEL)??;
        let most = wanted.min(room);
        let is_own = body.is_read();
        let permit = if is_own {
            let permits = Arc::clone(backlog).acquire_many_owned(most as u32);
            Some(permits.await.map_err(|_| Reason::INTERNAL_ERROR)?)
        } else {
            None
        };
        let chunk = poll_fn(|cx| body.poll_chunk(cx, most)).await;
        // The promised body cannot be completed: reset the stream, so that the client notices.
        let Some(Ok(chunk)) = chunk else { return Err(Reason::INTERNAL_ERROR) };
        let chunk = sending.give(chunk, is_own);
        let chunk = match permit {
            Some(permit) => guarded(chunk, permit),
            None => chunk,
        };
        let sent = stream.send_data(chunk, body.is_empty());
        sent.map_err(|_| Reason::CANCEL)?;
    }
    Ok(())
}

/// Waits until the client's windows have room. Returns the number of bytes.
async fn room(stream: &mut SendStream<Bytes>) -> Result<usize, Reason> {
    while stream.capacity() == 0 {
        match poll_fn(|cx| stream.poll_capacity(cx)).await {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Err(Reason::CANCEL),
        }
    }
    Ok(stream.capacity())
}
