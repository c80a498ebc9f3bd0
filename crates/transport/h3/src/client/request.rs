//! The tasks of a client connection.

use std::pin::pin;

use bytes::Buf;
use futures_util::future::{Either, select};
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use http::{Method, Request, Response, StatusCode, header};
use tokio::sync::mpsc;

use super::body::{Body, Chunk, Part, ROOM};
use super::connection::PendingRequest;
use super::error::ClientError;
use crate::payload::Payload;
use crate::session::SessionScope;
use crate::transport::{BidiStream, Transport};

type Requests = SendRequest<Transport, Payload>;
type Stream = RequestStream<BidiStream, Payload>;

/// Runs a connection until all request handles are dropped.
pub(super) async fn talk(
    transport: Transport,
    scope: SessionScope,
    mut asked: mpsc::UnboundedReceiver<PendingRequest>,
    head_bytes: u64,
) {
    let mut builder = h3::client::builder();
    builder.max_field_section_size(head_bytes).send_grease(false);
    // An error closes the connection; pending requests then fail.
    let Ok((mut driver, requests)) = builder.build(transport).await else { return };
    scope.spawn(async move {
        driver.wait_idle().await;
    });
    while let Some(ask) = asked.recv().await {
        scope.spawn(ask_for(requests.clone(), scope.clone(), ask));
    }
}

async fn ask_for(mut requests: Requests, scope: SessionScope, ask: PendingRequest) {
    let PendingRequest { request, mut reply } = ask;
    let method = request.method().clone();
    let begun = match select(pin!(begin(&mut requests, request)), pin!(reply.closed())).await {
        Either::Left((begun, _)) => begun,
        Either::Right(_) => return,
    };
    let (mut stream, response) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let _receiver_may_be_gone = reply.send(Err(error.into()));
            return;
        }
    };
    let promised = promised(&method, &response);
    let (parts, chunks) = mpsc::channel(ROOM);
    let head_at = scope.now();
    if reply.send(Ok(response.map(|()| Body::new(chunks, head_at)))).is_err() {
        return;
    }
    let end = match pass_on(&mut stream, &scope, &parts).await {
        Ok(None) => return,
        Ok(Some(length)) if promised.is_some_and(|promised| promised != length) => {
            let problem = format!("{length} bytes of a body of {}", promised.unwrap_or_default());
            Part::Error(ClientError::Malformed(problem))
        }
        Ok(Some(_)) => Part::End,
        Err(error) => Part::Error(error.into()),
    };
    let _receiver_may_be_gone = parts.send(end).await;
}

async fn begin(
    requests: &mut Requests,
    request: Request<()>,
) -> Result<(Stream, Response<()>), StreamError> {
    let mut stream = requests.send_request(request).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    Ok((stream, response))
}

/// The length of the body from `Content-Length`, if present.
fn promised(method: &Method, response: &Response<()>) -> Option<u64> {
    let is_empty = method == Method::HEAD || response.status() == StatusCode::NOT_MODIFIED;
    let length = response.headers().get(header::CONTENT_LENGTH).filter(|_| !is_empty)?;
    length.to_str().ok()?.parse().ok()
}

/// Passes the body on to its receiver. Returns its length, or `None` if the receiver is gone.
async fn pass_on(
    stream: &mut Stream,
    scope: &SessionScope,
    parts: &mpsc::Sender<Part>,
) -> Result<Option<u64>, StreamError> {
    let mut length = 0;
    loop {
        let received = {
            let next = pin!(async {
                let next = stream.recv_data().await?;
                Ok(next.map(|mut data| data.copy_to_bytes(data.remaining())))
            });
            match select(next, pin!(parts.closed())).await {
                Either::Left((received, _)) => received?,
                Either::Right(_) => return Ok(None),
            }
        };
        let Some(data) = received else { return Ok(Some(length)) };
        length += data.len() as u64;
        if parts.send(Part::Chunk(Chunk { at: scope.now(), data })).await.is_err() {
            return Ok(None);
        }
    }
}
