//! The wall clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http::{HeaderName, HeaderValue, header};
use uncork_policy::UnixTime;

#[expect(clippy::disallowed_methods, reason = "a server is an outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The wall-clock time, for dates in headers.
#[expect(clippy::disallowed_methods, reason = "a server is an outermost layer")]
pub(crate) fn today() -> SystemTime {
    SystemTime::now()
}

/// The `Date` header of a response (RFC 9110 §6.6.1). `h3` sends none, and hyper's stays constant
/// after the wall clock was set back, until the old time is reached again.
pub(crate) fn date(today: SystemTime) -> Option<(HeaderName, HeaderValue)> {
    let date = HeaderValue::try_from(httpdate::fmt_http_date(today)).ok()?;
    Some((header::DATE, date))
}

/// Unix time, for policies.
pub(crate) fn unix() -> UnixTime {
    let since = today().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(since.as_secs() as i64)
}
