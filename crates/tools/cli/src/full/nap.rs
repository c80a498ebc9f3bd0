//! Sleep that a signal ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::Timespec;

/// The longest sleep: a signal just before one is noticed after it.
const NAP: Duration = Duration::from_secs(10);

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
