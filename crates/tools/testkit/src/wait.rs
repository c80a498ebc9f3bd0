//! Waiting for conditions, always with a limit.

use std::thread;
use std::time::{Duration, Instant};

/// Polling interval.
const INTERVAL: Duration = Duration::from_millis(2);

/// The current time, for tests in real time.
#[expect(clippy::disallowed_methods, reason = "tests of sockets and processes run in real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Waits until `condition` holds. `what` describes it in the failure message.
///
/// # Panics
/// After `limit`.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(what, limit, || condition().then_some(()));
}

/// Waits until `look` returns a value, and returns that value.
///
/// # Panics
/// After `limit`.
#[track_caller]
pub fn wait_for<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        thread::sleep(INTERVAL);
    }
}

/// Waits up to `limit` for `condition`. Returns whether it held, for callers with their own failure message.
pub fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        thread::sleep(INTERVAL);
    }
}

/// [`wait_until`] inside a tokio runtime.
///
/// # Panics
/// After `limit`.
pub async fn wait_until_async(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    wait_for_async(what, limit, || condition().then_some(())).await;
}

/// [`wait_for`] inside a tokio runtime.
///
/// # Panics
/// After `limit`.
pub async fn wait_for_async<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let start = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Sleeps for `duration`, where inactivity is part of the scenario: a client that stalls, a slow script.
///
/// Not for waiting until something has happened: use [`wait_until`]. `reason` explains the inactivity.
pub fn pause(duration: Duration, reason: &str) {
    assert!(!reason.is_empty(), "a pause needs a reason");
    thread::sleep(duration);
}

/// [`pause`] inside a tokio runtime.
pub async fn pause_async(duration: Duration, reason: &str) {
    assert!(!reason.is_empty(), "a pause needs a reason");
    tokio::time::sleep(duration).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_for_returns_what_is_found() {
        let mut looks = 0;
        let found = wait_for("the third look", Duration::from_secs(10), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
    }

    #[test]
    #[should_panic(expected = "in vain: a miracle")]
    fn wait_until_gives_up_at_its_limit() {
        wait_until("a miracle", Duration::from_millis(5), || false);
    }
}
