//! Requests of one connection, and the bodies of their responses.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{HeaderValue, Request, Response, Version, header};
use http_body::{Body, Frame, SizeHint};

use super::steering::Steering;
use crate::choice::{RequestFacts, host};
use crate::clock;
use crate::site::{Answer, Site, SiteBody, unwanted};
use crate::telemetry::{About, ConnectionProgress, Observer, host_name};
use crate::timing::SERVER_TIMING;

/// Bytes of an unwanted request body that are read before the response.
const MOST_UNWANTED: u64 = 64 * 1024;

/// How much of a body goes into its first frame of HTTP/2. Many clients take a frame only when all of it is
/// there, and one of 16 KiB is more than a connection sends in its first round trip.
const FIRST_FRAME: usize = 8 * 1024;

/// What answers the requests of a connection.
#[derive(Clone, Debug)]
pub(super) struct Answerer {
    pub(super) site: Arc<Site>,
    pub(super) progress: Arc<ConnectionProgress>,
    pub(super) observer: Option<Arc<Observer>>,
    pub(super) steering: Arc<Steering>,
    /// `Alt-Svc`.
    pub(super) alternative: Option<HeaderValue>,
}

impl Answerer {
    pub(super) async fn answer<B: Body + Unpin>(
        self,
        request: Request<B>,
    ) -> Result<Response<ObservedBody>, Infallible> {
        let (head, body) = request.into_parts();
        let most = if head.version < Version::HTTP_2 { 0 } else { MOST_UNWANTED };
        let brings_nothing = is_empty(body, most).await;
        let request = Request::from_parts(head, ());
        let began = clock::now();
        let today = clock::today();
        let (mut response, object_bytes, in_force) = if brings_nothing {
            let Answer { response, path, object_bytes } = self.site.respond(&request, today);
            let asked = RequestFacts::new(&request, path.as_deref(), object_bytes);
            (response, object_bytes, self.steering.request(&asked))
        } else {
            (unwanted(request.version()), None, self.steering.in_force())
        };
        response.headers_mut().extend(clock::date(today));
        if let Some(timing) = self.steering.timing(began, &in_force) {
            response.headers_mut().insert(SERVER_TIMING, timing);
        }
        if let Some(alternative) = &self.alternative {
            response.headers_mut().insert(header::ALT_SVC, alternative.clone());
        }
        let size = response.body().len();
        let id = match &self.observer {
            None => self.progress.begin(began),
            Some(observer) => {
                let about = About {
                    at: today,
                    protocol: if request.version() < Version::HTTP_2 { "h1" } else { "h2" },
                    host: host(&request).map(host_name),
                    status: response.status().as_u16(),
                    object_bytes,
                };
                observer.begin(began, size, about, in_force)
            }
        };
        Ok(response.map(|body| ObservedBody::new(body, size, id, self.progress)))
    }
}

/// Whether nothing comes behind a request's head; what comes is read up to `most` bytes.
///
/// Some clients say so only after the head. And over HTTP/2, what follows may turn a request into a malformed
/// one, which is no longer told to a client that has its response (RFC 9113 §8.1.1).
async fn is_empty<B: Body + Unpin>(mut body: B, most: u64) -> bool {
    if body.size_hint().lower() > most {
        return false;
    }
    let mut bytes = 0;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(frame) = frame else { return false };
        bytes += frame.data_ref().map_or(0, |data| data.remaining() as u64);
        if bytes > most {
            return false;
        }
    }
    bytes == 0
}

/// A body that tells how much of it was taken, however it ends.
#[derive(Debug)]
pub(super) struct ObservedBody {
    body: SiteBody,
    /// What follows the first frame's part of the first chunk.
    rest: Bytes,
    is_begun: bool,
    size: u64,
    id: u64,
    progress: Arc<ConnectionProgress>,
}

impl ObservedBody {
    fn new(body: SiteBody, size: u64, id: u64, progress: Arc<ConnectionProgress>) -> Self {
        Self { body, rest: Bytes::new(), is_begun: false, size, id, progress }
    }

    fn remaining(&self) -> u64 {
        self.rest.len() as u64 + self.body.len()
    }
}

impl Body for ObservedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest)))));
        }
        let mut frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if !std::mem::replace(&mut self.is_begun, true)
            && let Some(Ok(frame)) = &mut frame
            && let Some(chunk) = frame.data_mut()
            && chunk.len() > FIRST_FRAME
        {
            self.rest = chunk.split_off(FIRST_FRAME);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.remaining() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining())
    }
}

impl Drop for ObservedBody {
    fn drop(&mut self) {
        self.progress.end(self.id, self.size - self.remaining());
    }
}
