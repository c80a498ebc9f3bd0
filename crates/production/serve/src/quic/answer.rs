//! Handles a request up to the end of its response.

use std::future::poll_fn;
use std::task::Poll;

use bytes::Buf;
use h3::error::Code;
use h3::server::{RequestResolver, RequestStream};
use http::{Request, Response};
use tokio::time::timeout;
use uncork_h3::{BidiStream, COPIED, Payload, Priority, Transport, fields};

use super::connection::{H3Connection, Inner};
use super::exchange::{Exchange, ExchangeOutcome};
use super::figures::transport;
use crate::access_log::Line;
use crate::choice::{RequestFacts, host};
use crate::clock;
use crate::piece::PieceSize;
use crate::request_head::{check_head, content_length};
use crate::site::{Answer, SiteBody, unwanted};
use crate::telemetry::{About, host_name};
use crate::timing::SERVER_TIMING;

type Stream = RequestStream<BidiStream, Payload>;

/// Answers a request. On errors, resets the stream, so that the client notices.
pub(super) async fn answer(request: RequestResolver<Transport, Payload>, talk: H3Connection) {
    // If the client takes longer, its stream is reset.
    let head_time = talk.shared.limits.head_time;
    let Ok(Ok((request, mut stream))) = timeout(head_time, talk.scope.resolve(request)).await
    else {
        return;
    };
    // Every fault of the head makes a request malformed (RFC 9114 §4.3.1).
    if fields::are_malformed(request.headers()) || check_head(&request).is_err() {
        return stream.stop_stream(Code::H3_MESSAGE_ERROR);
    }
    let began = talk.scope.now();
    let has_body = match timeout(head_time, has_body(&request, &mut stream)).await {
        Ok(Ok(has_body)) => has_body,
        Ok(Err(BodyFault::Malformed)) => return stream.stop_stream(Code::H3_MESSAGE_ERROR),
        Ok(Err(BodyFault::Stream)) | Err(_) => return,
    };
    talk.scope.prioritize(stream.id(), Priority::of(request.headers()));
    let (response, exchange) = respond(&request, has_body, began, &talk);
    let id = stream.id().into_inner();
    talk.responses().begin(began, id, exchange);
    let is_sent = send(&mut stream, response, id, &talk).await.is_some();
    // A response that was sent completely ends when the client has acknowledged it.
    if !is_sent {
        talk.ends(talk.scope.now(), id, ExchangeOutcome::BrokenOff);
    }
}

/// Why a body is not read.
enum BodyFault {
    Stream,
    /// It has another length than the announced one (RFC 9114 §4.1.2).
    Malformed,
}

/// Whether the request has a body. If its head announces no body, this does not wait for the end of
/// the stream; otherwise it waits for its beginning. The length is compared as far as the body has come.
async fn has_body(request: &Request<()>, stream: &mut Stream) -> Result<bool, BodyFault> {
    let announced = content_length(request.headers()).map_err(|_| BodyFault::Malformed)?;
    let is_announced = announced.is_some_and(|length| length > 0);
    let (bytes, has_ended) = poll_fn(|context| match stream.poll_recv_data(context) {
        Poll::Ready(Ok(data)) => {
            Poll::Ready(Ok((data.as_ref().map_or(0, Buf::remaining), data.is_none())))
        }
        Poll::Ready(Err(_)) => Poll::Ready(Err(BodyFault::Stream)),
        Poll::Pending if is_announced => Poll::Pending,
        Poll::Pending => Poll::Ready(Ok((0, false))),
    })
    .await?;
    let bytes = bytes as u64;
    if announced.is_some_and(|length| bytes > length) || is_announced && has_ended {
        return Err(BodyFault::Malformed);
    }
    Ok(bytes > 0 || is_announced)
}

fn respond(
    request: &Request<()>,
    has_body: bool,
    began: std::time::Instant,
    talk: &Inner,
) -> (Response<SiteBody>, Exchange) {
    let at = clock::today();
    let live = talk.shared.live.load();
    let network = talk.claim().map(|claim| claim.network());
    let limited = network.and_then(|network| live.limit(network, began));
    let refusal = if has_body { Some(unwanted(request.version())) } else { limited };
    let (mut response, object_bytes, active) = if let Some(refusal) = refusal {
        (refusal, None, talk.steering.active_settings())
    } else {
        let Answer { response, path, object_bytes } = live.respond(request, at);
        let asked = RequestFacts::new(request, path.as_deref(), object_bytes);
        (response, object_bytes, talk.steering.request(&asked, &talk.cc))
    };
    response.body_mut().throttled(network.and_then(|network| live.throttle(network)));
    let headers = response.headers_mut();
    headers.extend(clock::date(at));
    let transport = || talk.cc.observe().as_ref().and_then(transport);
    if live.server_timing.is_for(talk.client)
        && let Some(timing) = {
            let choice = active.server_timing(live.server_timing.has_arms());
            talk.timing.borrow_mut().at(began, choice, transport)
        }
    {
        headers.insert(SERVER_TIMING, timing);
    }
    let status = response.status().as_u16();
    let about = || {
        let host = host(request).map(host_name);
        About { at, protocol: "h3", host, status, object_bytes }
    };
    let exchange = Exchange::new(began, response.body().len(), active, about, talk);
    let line = talk.shared.access_log.as_ref().map(|log| {
        let port = talk.port;
        Box::new(Line::new(log, (talk.client, port), at, request, status))
    });
    let exchange = exchange.with_line(line);
    (response, exchange)
}

/// Passes the response to the stack. Returns `None` if it could not be passed completely.
async fn send(
    stream: &mut Stream,
    response: Response<SiteBody>,
    id: u64,
    talk: &Inner,
) -> Option<()> {
    let (head, mut body) = response.into_parts();
    let took = |bytes| {
        if let Some(exchange) = talk.responses().get_mut(id) {
            exchange.took(talk.scope.now(), bytes, talk);
        }
    };
    let mut reply = talk.scope.reply(stream.id(), head.status, &head.headers).ok()?;
    took(0);
    let mut piece = PieceSize::default();
    while !body.is_empty() {
        let most = piece.next(talk.scope.now());
        let is_own = body.is_read();
        let chunk = poll_fn(|context| body.poll_chunk(context, most)).await;
        let Some(Ok(chunk)) = chunk else {
            // The promised body cannot be completed: reset the stream, so that the client notices.
            reply.reset(Code::H3_INTERNAL_ERROR);
            return None;
        };
        let bytes = chunk.len() as u64;
        let chunk = match talk.claim() {
            // What is copied counts as a part of the response.
            Some(claim) if is_own && chunk.len() > COPIED => claim.holding(chunk),
            _ => chunk,
        };
        reply.push(chunk).ok()?;
        let Ok(ready) = timeout(talk.shared.limits.idle_time, reply.ready()).await else {
            reply.reset(Code::H3_REQUEST_CANCELLED);
            return None;
        };
        ready.ok()?;
        took(bytes);
    }
    reply.finish().ok()
}
