//! A connection of any HTTP version: sends a request, returns the response's head and streams its body.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};

use crate::ClientError;
use crate::clock::instant;
use crate::target::Target;

/// An HTTP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// An open connection.
pub(crate) enum Connection {
    Http1(http1::SendRequest<EmptyBody>),
    Http2(http2::SendRequest<EmptyBody>),
    Http3(uncork_h3::client::Connection),
}

/// The empty body of requests.
pub(crate) type EmptyBody = String;

/// The head of a response, and its body.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The length of the body, if announced.
    pub(crate) size: Option<u64>,
    pub(crate) body: Body,
}

/// The body of a response, read as it arrives.
#[derive(Debug)]
pub(crate) enum Body {
    Hyper(Incoming),
    Http3(uncork_h3::client::Body),
}

/// A piece of a body, and its arrival time.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) at: Instant,
    pub(crate) data: Bytes,
}

impl Connection {
    pub(crate) fn version(&self) -> Version {
        match self {
            Self::Http1(_) => Version::Http1,
            Self::Http2(_) => Version::Http2,
            Self::Http3(_) => Version::Http3,
        }
    }

    /// Another handle of the connection, if it can multiplex requests.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(sender) => Some(Self::Http2(sender.clone())),
            Self::Http3(connection) => Some(Self::Http3(connection.clone())),
        }
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
            Self::Http3(connection) => connection.is_closed(),
        }
    }

    /// Sends a request and waits for the head of the response.
    pub(crate) async fn request(
        &mut self,
        method: Method,
        target: &Target,
        headers: &HeaderMap,
    ) -> Result<Response, ClientError> {
        let broken = |error: hyper::Error| ClientError::broken(&error);
        let mut request = Request::new(EmptyBody::new());
        *request.method_mut() = method;
        *request.headers_mut() = headers.clone();
        let response = match self {
            Self::Http1(sender) => {
                let host = HeaderValue::from_str(target.authority());
                request.headers_mut().insert(HOST, host.map_err(|error| bad_url(target, &error))?);
                let path = Uri::from_str(target.path_and_query());
                *request.uri_mut() = path.map_err(|error| bad_url(target, &error))?;
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)?
            }
            Self::Http2(sender) => {
                *request.uri_mut() = target.uri.clone();
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)?
            }
            Self::Http3(connection) => {
                *request.uri_mut() = target.uri.clone();
                let response = connection.request(request.map(drop)).await;
                let response = response.map_err(|error| ClientError::broken(&error))?;
                let (head, body) = response.into_parts();
                let size = length(&head.headers);
                let (status, headers) = (head.status, head.headers);
                return Ok(Response { status, headers, size, body: Body::Http3(body) });
            }
        };
        let (head, body) = response.into_parts();
        let size = body.size_hint().exact();
        Ok(Response { status: head.status, headers: head.headers, size, body: Body::Hyper(body) })
    }
}

fn bad_url(target: &Target, error: &dyn fmt::Display) -> ClientError {
    ClientError::Url { url: target.to_string(), problem: error.to_string() }
}

/// The body's length from `Content-Length`.
pub(crate) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl Body {
    /// The next piece; `None` at the end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Piece>, ClientError> {
        let body = match self {
            Self::Hyper(body) => body,
            Self::Http3(body) => {
                let chunk = body.next_chunk().await.transpose();
                let chunk = chunk.map_err(|error| ClientError::broken(&error))?;
                return Ok(chunk.map(|chunk| Piece { at: chunk.at, data: chunk.data }));
            }
        };
        loop {
            let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(ClientError::broken(&error)),
                // Ignore trailers.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => {
                        return Ok(Some(Piece { at: instant(), data }));
                    }
                    _ => {}
                },
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a connection of {}", self.version())
    }
}

impl Version {
    /// The value of `--http`: `1.1`, `2`, `3`.
    pub fn number(self) -> &'static str {
        match self {
            Self::Http1 => "1.1",
            Self::Http2 => "2",
            Self::Http3 => "3",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/{}", self.number())
    }
}
