//! Sleep that a signal ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::Timespec;
use uncork_units::{ParseError, TimeDelta};

/// The longest sleep: a signal just before one is noticed after it.
const NAP: Duration = Duration::from_secs(10);

/// The time between two looks at a store: without one, a process does nothing else, and a store bills each of them.
pub(crate) fn pause(text: &str) -> Result<TimeDelta, String> {
    let pause: TimeDelta = text.parse().map_err(|error: ParseError| error.to_string())?;
    if pause < TimeDelta::from_secs(1) { Err("expected at least 1s".to_owned()) } else { Ok(pause) }
}

/// Sleeps, or until a signal has set `stop`.
pub(crate) fn sleep(pause: Duration, stop: &AtomicBool) {
    let mut left = pause;
    while !left.is_zero() && !stop.load(Ordering::Relaxed) {
        let nap = left.min(NAP);
        let time =
            Timespec { tv_sec: nap.as_secs().cast_signed(), tv_nsec: nap.subsec_nanos().into() };
        if let NanosleepRelativeResult::Ok = nanosleep(&time) {
            left -= nap;
        }
    }
}
