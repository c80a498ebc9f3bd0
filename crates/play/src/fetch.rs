//! One request, and what came of it.

use http::header::{ACCEPT_ENCODING, RANGE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use uncork_units::{Time, TimeDelta};

use crate::ClientError;
use crate::clock::Clock;
use crate::connect::Setup;
use crate::connection::{Body, Piece, Response, Version};
use crate::line::Line;
use crate::range::ByteRange;
use crate::sink::Sink;
use crate::target::Target;

/// What became of a download. Times are since the first of all began.
#[derive(Debug)]
pub struct Fetched {
    /// What was asked for.
    pub target: Target,
    /// Its number among all downloads, from 0.
    pub number: u32,
    /// When it began: before its connection, if it made one.
    pub start: Time,
    /// How the connection was made, if it was made for this download.
    pub setup: Option<Setup>,
    /// The version of HTTP.
    pub version: Option<Version>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The controller of the sender, if the server told it (`Server-Timing: cc`).
    pub cc: Option<String>,
    /// The length of the body, if it was told.
    pub size: Option<u64>,
    /// How much of it arrived.
    pub received: u64,
    /// From the start to the body's first byte.
    pub first_byte: Option<TimeDelta>,
    /// From the start to the body's last byte, or to the failure.
    pub took: TimeDelta,
    /// The digest of the whole body, if it was asked for.
    pub sha256: Option<String>,
    /// Why it failed.
    pub problem: Option<ClientError>,
}

/// What is asked of the server, and what is done with the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) target: &'a Target,
    pub(crate) number: u32,
    pub(crate) range: Option<ByteRange>,
    pub(crate) clock: Clock,
}

impl Fetched {
    pub(crate) fn new(ask: Ask<'_>) -> Self {
        Self {
            target: ask.target.clone(),
            number: ask.number,
            start: ask.clock.now(),
            setup: None,
            version: None,
            status: None,
            cc: None,
            size: None,
            received: 0,
            first_byte: None,
            took: TimeDelta::ZERO,
            sha256: None,
            problem: None,
        }
    }

    /// Notes the digest of the body, or the failure, which came at `now`.
    pub(crate) fn end(&mut self, now: Time, result: Result<Option<String>, ClientError>) {
        match result {
            Ok(digest) => self.sha256 = digest,
            Err(error) => {
                self.took = now.since(self.start);
                self.problem = Some(error);
            }
        }
    }

    /// The body's bits over the time from the start to its last byte, of what did not fail.
    pub fn goodput_bps(&self) -> Option<f64> {
        let is_known = self.problem.is_none() && !self.took.is_zero();
        is_known.then(|| self.received as f64 * 8.0 / self.took.as_secs_f64())
    }
}

/// Asks over `line`, and takes what comes to its end, which `fetched` is told; `tell` is told of every
/// piece. Gives the digest of the body, if `sink` makes one.
pub(crate) async fn fetch(
    ask: Ask<'_>,
    line: &mut Line,
    mut sink: Sink,
    fetched: &mut Fetched,
    tell: impl Fn(u64),
) -> Result<Option<String>, ClientError> {
    let made = line.open(ask.target).await?;
    fetched.setup = fetched.setup.or(made);
    fetched.version = line.version();
    let asked = headers(ask.range);
    let (response, again) = line.request(Method::GET, ask.target, &asked).await?;
    fetched.setup = fetched.setup.or(again);
    let Response { status, headers, size, mut body } = response;
    fetched.status = Some(status.as_u16());
    fetched.cc = controller(&headers);
    check(ask.range, status, &headers)?;
    fetched.size = size;
    while let Some(piece) = next(line, &mut body, size, fetched.received).await? {
        fetched.first_byte.get_or_insert_with(|| ask.clock.at(piece.at).since(fetched.start));
        fetched.received += piece.data.len() as u64;
        tell(piece.data.len() as u64);
        sink.take(&piece.data)?;
    }
    // Writing the file to the disk is no part of the download.
    fetched.took = ask.clock.now().since(fetched.start);
    let received = fetched.received;
    match size.filter(|size| *size != received) {
        Some(size) => Err(ClientError::Length { received, size }),
        None => sink.finish(),
    }
}

/// Whether a response has what was asked for.
pub(crate) fn check(
    range: Option<ByteRange>,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<(), ClientError> {
    match range {
        _ if !status.is_success() => Err(ClientError::Status(status.as_u16())),
        Some(range) => range.check(status, headers),
        None => Ok(()),
    }
}

/// The next piece of a body of `size` bytes, of which so many have been `received`.
pub(crate) async fn next(
    line: &Line,
    body: &mut Body,
    size: Option<u64>,
    received: u64,
) -> Result<Option<Piece>, ClientError> {
    let piece = line.connector().patiently(body.piece()).await;
    piece.map_err(|error| match error {
        ClientError::Broken { problem, .. } => ClientError::Broken { received, size, problem },
        other => other,
    })
}

/// What all requests say: the bytes are wanted as they are.
pub(crate) fn headers(range: Option<ByteRange>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let agent = concat!("uncork/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let range = range.and_then(|range| HeaderValue::try_from(range.to_string()).ok());
    if let Some(range) = range {
        headers.insert(RANGE, range);
    }
    headers
}

/// What a server says of its sender: `Server-Timing: cc;desc="bbr"`.
pub(crate) fn controller(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all("server-timing").iter().filter_map(|value| value.to_str().ok());
    let mut metrics = values.flat_map(|value| value.split(',')).map(str::trim);
    let parameters = metrics.find_map(|metric| metric.strip_prefix("cc;"))?;
    let mut parameters = parameters.split(';').map(str::trim);
    let name = parameters.find_map(|parameter| parameter.strip_prefix("desc="))?;
    let name = name.trim_matches('"');
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:.".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_tell_their_controller() {
        let told = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("server-timing", value.parse().expect("a header"));
            }
            controller(&headers)
        };
        assert_eq!(told(&["cc;desc=\"bbr\""]).as_deref(), Some("bbr"));
        assert_eq!(told(&["cache;dur=1", "db, cc;dur=2;desc=bbr3"]).as_deref(), Some("bbr3"));
        assert_eq!(told(&["cache;desc=cc"]), None);
        assert_eq!(told(&["cc;desc=\"a b\""]), None, "no name");
        assert_eq!(told(&[]), None);
    }
}
