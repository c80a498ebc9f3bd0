//! The wall clock.

use std::cell::RefCell;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http::{HeaderName, HeaderValue, header};
use httpdate::HttpDate;
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
    thread_local! {
        static LATEST: RefCell<Option<(HttpDate, HeaderValue)>> = const { RefCell::new(None) };
    }
    let second = HttpDate::from(today);
    LATEST.with_borrow_mut(|latest| {
        if latest.as_ref().is_none_or(|(of, _)| *of != second) {
            *latest = Some((second, HeaderValue::try_from(second.to_string()).ok()?));
        }
        latest.as_ref().map(|(_, value)| (header::DATE, value.clone()))
    })
}

/// Unix time, for policies.
pub(crate) fn unix() -> UnixTime {
    let since = today().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(since.as_secs() as i64)
}
