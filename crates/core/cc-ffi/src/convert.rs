//! Conversions between C's types and those of [`uncork_cc`].

use std::ffi::{CStr, c_char};

use uncork_cc::{AppState, Timeout};

use crate::types::{
    UNCORK_STATE_CAPACITY, UNCORK_TIMEOUT_PERSISTENT, UNCORK_TIMEOUT_PROBE,
    UNCORK_TIMEOUT_RETRANSMISSION,
};

pub(crate) fn app_state(drained: bool) -> AppState {
    if drained { AppState::Drained } else { AppState::Backlogged }
}

pub(crate) fn timeout(timeout: u32) -> Option<Timeout> {
    match timeout {
        UNCORK_TIMEOUT_PROBE => Some(Timeout::Probe),
        UNCORK_TIMEOUT_RETRANSMISSION => Some(Timeout::Retransmission),
        UNCORK_TIMEOUT_PERSISTENT => Some(Timeout::Persistent),
        _ => None,
    }
}

pub(crate) fn status_text(status: u32) -> &'static CStr {
    match status {
        0 => c"ok",
        1 => c"a pointer is NULL",
        2 => c"unknown controller or option",
        3 => c"a value is out of range",
        _ => c"unknown status",
    }
}

/// The elements of an array; `None` if it is NULL but not empty.
///
/// # Safety
/// `first` is NULL or has `count` elements.
pub(crate) unsafe fn elements<'a, T>(first: *const T, count: usize) -> Option<&'a [T]> {
    if count == 0 {
        return Some(&[]);
    }
    // SAFETY: it is not NULL, and the caller promises `count` elements.
    (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, count) })
}

/// Replaces the contents of `memory`.
pub(crate) fn refill<T>(memory: &mut Vec<T>, elements: impl Iterator<Item = T>) {
    memory.clear();
    memory.extend(elements);
}

/// Writes as much of `text` as fits, and a terminating NUL.
///
/// # Safety
/// `to` is NULL or has room for `capacity` bytes.
pub(crate) unsafe fn write_text(text: &str, to: *mut c_char, capacity: usize) {
    if to.is_null() || capacity == 0 {
        return;
    }
    let length = text.len().min(capacity - 1);
    // SAFETY: `length` + 1 bytes fit into `capacity`, and a new allocation does not overlap the text.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, length);
        to.add(length).write(0);
    }
}

/// The name of a state with a terminating NUL.
pub(crate) fn state_text(name: &str) -> [c_char; UNCORK_STATE_CAPACITY] {
    let mut text = [0; UNCORK_STATE_CAPACITY];
    for (to, byte) in text[..UNCORK_STATE_CAPACITY - 1].iter_mut().zip(name.bytes()) {
        *to = byte as c_char;
    }
    text
}
