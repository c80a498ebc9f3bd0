//! A connection, whatever version of HTTP it speaks: one request, one response, its body piece by
//! piece.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::str::FromStr;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};

use crate::ClientError;
use crate::target::Target;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A connection that carries requests.
#[derive(Debug)]
pub(crate) enum Connection {
    Http1(http1::SendRequest<NoBody>),
    Http2(http2::SendRequest<NoBody>),
}

/// What is sent after the head of a request: nothing.
pub(crate) type NoBody = String;

/// The head of a response, and the body that follows.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The length of the body, if it was told.
    pub(crate) size: Option<u64>,
    pub(crate) body: Body,
}

/// The body of a response, as it arrives.
#[derive(Debug)]
pub(crate) enum Body {
    Hyper(Incoming),
}

impl Connection {
    pub(crate) fn version(&self) -> Version {
        match self {
            Self::Http1(_) => Version::Http1,
            Self::Http2(_) => Version::Http2,
        }
    }

    /// The same connection for somebody else, if it can carry several requests at a time.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(sender) => Some(Self::Http2(sender.clone())),
        }
    }

    /// Whether it is of no use any more.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    /// Sends a request, and waits for the head of its response.
    pub(crate) async fn request(
        &mut self,
        method: Method,
        target: &Target,
        headers: &HeaderMap,
    ) -> Result<Response, ClientError> {
        let broken = |error: hyper::Error| ClientError::broken(&error);
        let mut request = Request::new(NoBody::new());
        *request.method_mut() = method;
        *request.headers_mut() = headers.clone();
        let response = match self {
            Self::Http1(sender) => {
                let host = HeaderValue::from_str(target.authority());
                request.headers_mut().insert(HOST, host.map_err(|error| unfit(target, &error))?);
                let path = Uri::from_str(target.path_and_query());
                *request.uri_mut() = path.map_err(|error| unfit(target, &error))?;
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)?
            }
            Self::Http2(sender) => {
                *request.uri_mut() = target.uri.clone();
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)?
            }
        };
        let (head, body) = response.into_parts();
        let size = body.size_hint().exact();
        Ok(Response { status: head.status, headers: head.headers, size, body: Body::Hyper(body) })
    }
}

fn unfit(target: &Target, error: &dyn fmt::Display) -> ClientError {
    ClientError::Url { url: target.to_string(), problem: error.to_string() }
}

impl Body {
    /// The next piece; `None` at the end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, ClientError> {
        let Self::Hyper(body) = self;
        loop {
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(ClientError::broken(&error)),
                // What follows a body, if anything, tells nothing of it.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => return Ok(Some(piece)),
                    _ => {}
                },
            }
        }
    }
}

impl Version {
    /// As in `--http`: `1.1`, `2`.
    pub fn number(self) -> &'static str {
        match self {
            Self::Http1 => "1.1",
            Self::Http2 => "2",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/{}", self.number())
    }
}
