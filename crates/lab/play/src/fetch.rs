//! A single download.

use http::header::{ACCEPT_ENCODING, RANGE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use uncork_units::{Time, TimeDelta};

use crate::ClientError;
use crate::clock::PlayClock;
use crate::connect::Setup;
use crate::connection::{Body, Piece, Response, Version};
use crate::persistent::PersistentConnection;
use crate::range::ByteRange;
use crate::sink::BodySink;
use crate::target::Target;

/// The result of a download. Times count from the start of the first one.
#[derive(Debug)]
pub struct Fetched {
    /// The URL.
    pub target: Target,
    /// The index of the download, from 0.
    pub number: u32,
    /// Start time, before connection setup.
    pub start: Time,
    /// The connection setup, if this download opened a connection.
    pub setup: Option<Setup>,
    /// The HTTP version.
    pub version: Option<Version>,
    /// The response status.
    pub status: Option<u16>,
    /// The server's congestion controller, if reported (`Server-Timing: cc`).
    pub cc: Option<String>,
    /// The length of the body, if announced.
    pub size: Option<u64>,
    /// Bytes of the body received.
    pub received: u64,
    /// Time from the start to the first byte of the body.
    pub first_byte: Option<TimeDelta>,
    /// Time from the start to the last byte of the body, or to the failure.
    pub took: TimeDelta,
    /// The SHA-256 of the body, if requested.
    pub sha256: Option<String>,
    /// Why it failed.
    pub problem: Option<ClientError>,
}

/// The parameters of a download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) target: &'a Target,
    pub(crate) number: u32,
    pub(crate) range: Option<ByteRange>,
    pub(crate) clock: PlayClock,
}

impl Fetched {
    pub(crate) fn new(job: Job<'_>) -> Self {
        Self {
            target: job.target.clone(),
            number: job.number,
            start: job.clock.now(),
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

    /// Records the digest of the body, or the failure at `now`.
    pub(crate) fn end(&mut self, now: Time, result: Result<Option<String>, ClientError>) {
        match result {
            Ok(digest) => self.sha256 = digest,
            Err(error) => {
                self.took = now.since(self.start);
                self.problem = Some(error);
            }
        }
    }

    /// Bits of the body divided by the total time, unless the download failed.
    pub fn goodput_bps(&self) -> Option<f64> {
        let is_known = self.problem.is_none() && !self.took.is_zero();
        is_known.then(|| self.received as f64 * 8.0 / self.took.as_secs_f64())
    }
}

/// Downloads over `persistent` and records the progress in `fetched`; calls `on_bytes` with the size of every piece.
/// Returns the digest of the body, if `sink` computes one.
pub(crate) async fn fetch(
    job: Job<'_>,
    persistent: &mut PersistentConnection,
    mut sink: BodySink,
    fetched: &mut Fetched,
    on_bytes: impl Fn(u64),
) -> Result<Option<String>, ClientError> {
    let made = persistent.open(job.target).await?;
    fetched.setup = fetched.setup.or(made);
    fetched.version = persistent.version();
    let asked = headers(job.range);
    let (response, again) = persistent.request(Method::GET, job.target, &asked).await?;
    fetched.setup = fetched.setup.or(again);
    let Response { status, headers, size, mut body } = response;
    fetched.status = Some(status.as_u16());
    fetched.cc = controller(&headers);
    check(job.range, status, &headers)?;
    fetched.size = size;
    while let Some(piece) = next(persistent, &mut body, size, fetched.received).await? {
        fetched.first_byte.get_or_insert_with(|| job.clock.at(piece.at).since(fetched.start));
        fetched.received += piece.data.len() as u64;
        on_bytes(piece.data.len() as u64);
        sink.take(&piece.data)?;
    }
    // Flushing the file is not part of the download time.
    fetched.took = job.clock.now().since(fetched.start);
    let received = fetched.received;
    match size.filter(|size| *size != received) {
        Some(size) => Err(ClientError::Length { received, size }),
        None => sink.finish(),
    }
}

/// Checks that a response matches the request.
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

/// The next piece of a body. `size` and `received` are for the error.
pub(crate) async fn next(
    persistent: &PersistentConnection,
    body: &mut Body,
    size: Option<u64>,
    received: u64,
) -> Result<Option<Piece>, ClientError> {
    let piece = persistent.connector().with_timeout(body.piece()).await;
    piece.map_err(|error| match error {
        ClientError::Broken { problem, .. } => ClientError::Broken { received, size, problem },
        other => other,
    })
}

/// The headers of all requests: no content coding, and the range.
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

/// The server's congestion controller, from `Server-Timing: cc;desc="bbr"`.
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
    fn the_controller_is_read_from_server_timing() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("server-timing", value.parse().expect("a header"));
            }
            controller(&headers)
        };
        assert_eq!(read(&["cc;desc=\"bbr\""]).as_deref(), Some("bbr"));
        assert_eq!(read(&["cache;dur=1", "db, cc;dur=2;desc=bbr3"]).as_deref(), Some("bbr3"));
        assert_eq!(read(&["cache;desc=cc"]), None);
        assert_eq!(read(&["cc;desc=\"a b\""]), None, "no name");
        assert_eq!(read(&[]), None);
    }
}
