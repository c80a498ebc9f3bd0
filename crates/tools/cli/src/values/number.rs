//! Whole numbers.

use std::num::NonZeroUsize;

/// The requested number of threads, or one per processor.
pub(crate) fn jobs(asked: Option<NonZeroUsize>) -> usize {
    let processors = || std::thread::available_parallelism().ok();
    asked.or_else(processors).map_or(1, NonZeroUsize::get)
}

/// A number that does not fit exceeds every limit, which the limit check reports.
pub(crate) fn count(text: &str) -> Result<u32, &'static str> {
    seed(text).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

pub(crate) fn seed(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "expected a whole number, such as 10")
}

pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "expected a whole number of at least 1")
}
