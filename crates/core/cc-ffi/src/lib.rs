//! A C interface to [`uncork_cc`]: every controller behind an opaque handle.
//!
//! `include/uncork_cc.h` is generated from this file, `README.md` explains its use, and
//! `examples/host.c` is a host. Each function mirrors a method of [`uncork_cc::Controller`]; its
//! documentation specifies when to call it.
//!
//! A handle must not be used by two threads at a time. Panics do not cross into C: the controllers do not
//! panic, and `extern "C"` would abort the process at the boundary.
#![allow(unsafe_code, reason = "a C interface takes pointers")]
#![deny(unsafe_op_in_unsafe_fn)]

mod convert;
mod types;

use std::ffi::{CStr, c_char};

use uncork_cc::pacer::Pacer;
use uncork_cc::{AnyController, CcSpec, Controller, PathEvent, ResumeHint};
use uncork_units::{Time, TimeDelta};

pub use types::{
    CAcked, CControl, CFeedback, CLost, CRtt, CSentPacket, CSettings, CSnapshot, CStatus, CToken,
    UNCORK_STATE_CAPACITY, UNCORK_TIMEOUT_PERSISTENT, UNCORK_TIMEOUT_PROBE,
    UNCORK_TIMEOUT_RETRANSMISSION,
};

/// A controller with a pacer.
#[derive(Debug)]
pub struct Cc {
    controller: AnyController,
    pacer: Pacer,
    /// Reused buffers for the packets of a feedback.
    acked: Vec<uncork_cc::Acked>,
    lost: Vec<uncork_cc::Lost>,
}

/// Runs `$body` with references from the pointers, or returns [`CStatus::NullPointer`].
macro_rules! with {
    ($($name:ident = $reference:expr),+; $body:expr) => {{
        // SAFETY: the caller promises that each pointer is null or valid (see `# Safety`).
        match unsafe { ($($reference),+,) } {
            ($(Some($name)),+,) => $body,
            _ => CStatus::NullPointer,
        }
    }};
}

/// Creates the controller named by `spec`, such as "cubic" or "bbr3:loss_floor", and stores it in `cc`.
/// Free it with `uncork_cc_free`.
///
/// On an error, `cc` is set to NULL and the reason is written to `message`, truncated to `capacity` bytes
/// including the terminating NUL. `message` may be NULL.
///
/// # Safety
/// `spec` is NULL or a NUL-terminated string, `settings` and `cc` are NULL or valid, `message` is NULL or
/// has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_new(
    spec: *const c_char,
    settings: *const CSettings,
    cc: *mut *mut Cc,
    message: *mut c_char,
    capacity: usize,
) -> CStatus {
    let built = if spec.is_null() {
        Err((CStatus::NullPointer, "spec is NULL".to_owned()))
    } else {
        // SAFETY: the caller promises a NUL-terminated string.
        let spec = unsafe { CStr::from_ptr(spec) };
        // SAFETY: the caller promises that the pointer is null or valid.
        build(spec, unsafe { settings.as_ref() })
    };
    // SAFETY: the caller promises that the pointer is null or valid.
    let Some(slot) = (unsafe { cc.as_mut() }) else {
        // SAFETY: the caller promises room for `capacity` bytes.
        unsafe { convert::write_text("cc is NULL", message, capacity) };
        return CStatus::NullPointer;
    };
    let (status, handle, text) = match built {
        Ok(cc) => (CStatus::Ok, Box::into_raw(Box::new(cc)), String::new()),
        Err((status, text)) => (status, std::ptr::null_mut(), text),
    };
    *slot = handle;
    // SAFETY: as above.
    unsafe { convert::write_text(&text, message, capacity) };
    status
}

fn build(spec: &CStr, settings: Option<&CSettings>) -> Result<Cc, (CStatus, String)> {
    let settings = settings.ok_or((CStatus::NullPointer, "settings is NULL".to_owned()))?;
    let text = spec.to_str().map_err(|_| (CStatus::BadSpec, "spec is not UTF-8".to_owned()))?;
    let spec: CcSpec =
        text.parse().map_err(|error| (CStatus::BadSpec, format!("{text:?}: {error}")))?;
    let settings = settings.read().map_err(|text| (CStatus::BadArgument, text.to_owned()))?;
    Ok(Cc {
        controller: spec.build(&settings),
        pacer: Pacer::default(),
        acked: Vec::new(),
        lost: Vec::new(),
    })
}

/// Frees a controller. NULL is ignored.
///
/// # Safety
/// `cc` is NULL or from `uncork_cc_new`, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_free(cc: *mut Cc) {
    if !cc.is_null() {
        // SAFETY: the caller promises that it is a Box of `uncork_cc_new`, used for the last time.
        drop(unsafe { Box::from_raw(cc) });
    }
}

/// A packet that counts as in flight is sent. Store `token` with the packet. `drained`: the application
/// has no
/// more data to send.
///
/// # Safety
/// Each pointer is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_on_sent(
    cc: *mut Cc,
    now_ns: u64,
    packet: *const CSentPacket,
    drained: bool,
    token: *mut CToken,
) -> CStatus {
    with!(cc = cc.as_mut(), packet = packet.as_ref(), token = token.as_mut(); {
        let sent = cc.controller.on_sent(time(now_ns), packet.read(), convert::app_state(drained));
        token.words = sent.words();
        CStatus::Ok
    })
}

/// Reports one acknowledgement or one loss timer, with all its packets.
///
/// # Safety
/// Each pointer is NULL or valid, `acked` and `lost` in `feedback` for as many elements as their counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_on_feedback(
    cc: *mut Cc,
    now_ns: u64,
    feedback: *const CFeedback,
) -> CStatus {
    with!(cc = cc.as_mut(), feedback = feedback.as_ref(); {
        // SAFETY: the caller promises as many elements as the counts say.
        let packets = unsafe { (feedback.acked_packets(), feedback.lost_packets()) };
        let (Some(acked), Some(lost)) = packets else { return CStatus::NullPointer };
        let Cc { controller, acked: acked_memory, lost: lost_memory, .. } = cc;
        convert::refill(acked_memory, acked.iter().map(CAcked::read));
        convert::refill(lost_memory, lost.iter().map(CLost::read));
        controller.on_feedback(time(now_ns), &feedback.read(acked_memory, lost_memory));
        CStatus::Ok
    })
}

/// `count` packets that were declared lost have arrived. Pass the same tokens, each once. Call
/// `uncork_cc_on_feedback` with their acknowledgement next.
///
/// # Safety
/// Each pointer is NULL or valid, `packets` for `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_on_spurious(
    cc: *mut Cc,
    now_ns: u64,
    packets: *const CLost,
    count: usize,
) -> CStatus {
    with!(cc = cc.as_mut(), packets = convert::elements(packets, count); {
        convert::refill(&mut cc.lost, packets.iter().map(CLost::read));
        cc.controller.on_spurious(time(now_ns), &cc.lost);
        CStatus::Ok
    })
}

/// A timer expired without acknowledgements: `UNCORK_TIMEOUT_...`. Call `uncork_cc_on_feedback` with the
/// packets that it declares lost next.
///
/// # Safety
/// `cc` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_on_timeout(cc: *mut Cc, now_ns: u64, timeout: u32) -> CStatus {
    with!(cc = cc.as_mut(); match convert::timeout(timeout) {
        Some(timeout) => {
            cc.controller.on_timeout(time(now_ns), timeout);
            CStatus::Ok
        }
        None => CStatus::BadArgument,
    })
}

/// The maximum packet size is now `mss` bytes.
///
/// # Safety
/// `cc` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_on_mtu_changed(cc: *mut Cc, now_ns: u64, mss: u32) -> CStatus {
    // SAFETY: passed on.
    unsafe { on_path(cc, now_ns, PathEvent::MtuChanged { mss }) }
}

/// The connection migrated to another path: the measurements no longer apply.
///
/// # Safety
/// `cc` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_on_migrated(cc: *mut Cc, now_ns: u64) -> CStatus {
    // SAFETY: passed on.
    unsafe { on_path(cc, now_ns, PathEvent::Migrated) }
}

/// The application had no more data to send, for hosts that did not know when they reported the last packet.
///
/// # Safety
/// `cc` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_on_drained(cc: *mut Cc, now_ns: u64) -> CStatus {
    // SAFETY: passed on.
    unsafe { on_path(cc, now_ns, PathEvent::Drained) }
}

/// The host stops to send ECT(1), because it cannot, or because the feedback is not credible (RFC 9331 section 4.3). From
/// now on marks count as losses, as without `scalable_marks`.
///
/// # Safety
/// `cc` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_on_classic_ecn(cc: *mut Cc, now_ns: u64) -> CStatus {
    // SAFETY: passed on.
    unsafe { on_path(cc, now_ns, PathEvent::ClassicEcn) }
}

/// Call before the first packet: an earlier connection over the same path delivered `saved_cwnd` bytes per
/// round trip, with this minimum round-trip time (RFC 9959).
///
/// # Safety
/// `cc` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_resume(
    cc: *mut Cc,
    now_ns: u64,
    saved_cwnd: u64,
    saved_rtt_ns: u64,
) -> CStatus {
    let saved_rtt = TimeDelta::from_nanos(saved_rtt_ns);
    // SAFETY: passed on.
    unsafe { on_path(cc, now_ns, PathEvent::Resume(ResumeHint { saved_cwnd, saved_rtt })) }
}

/// # Safety
/// `cc` is NULL or valid.
unsafe fn on_path(cc: *mut Cc, now_ns: u64, event: PathEvent) -> CStatus {
    with!(cc = cc.as_mut(); {
        cc.controller.on_path(time(now_ns), event);
        CStatus::Ok
    })
}

/// Returns the current congestion window, pacing rate and send quantum.
///
/// # Safety
/// Each pointer is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_control(cc: *const Cc, control: *mut CControl) -> CStatus {
    with!(cc = cc.as_ref(), control = control.as_mut(); {
        *control = CControl::of(&cc.controller.control());
        CStatus::Ok
    })
}

/// Returns the controller's state, for logs and plots.
///
/// # Safety
/// Each pointer is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_snapshot(cc: *const Cc, snapshot: *mut CSnapshot) -> CStatus {
    with!(cc = cc.as_ref(), snapshot = snapshot.as_mut(); {
        *snapshot = CSnapshot::of(&cc.controller.snapshot());
        CStatus::Ok
    })
}

/// Stores in `found` whether marks have come from a queue that is not for L4S, and count as losses for the rest of the
/// connection. A host that sends ECT(1) must then change to ECT(0) (RFC 9331 section 4.3). Ask after each feedback.
///
/// # Safety
/// Each pointer is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_cc_found_classic_queue(cc: *const Cc, found: *mut bool) -> CStatus {
    with!(cc = cc.as_ref(), found = found.as_mut(); {
        *found = cc.controller.found_classic_queue();
        CStatus::Ok
    })
}

/// Returns when the pacer releases the next packet: `now_ns` or later. For hosts without their own pacer.
///
/// # Safety
/// Each pointer is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_pacer_release(
    cc: *mut Cc,
    now_ns: u64,
    release_ns: *mut u64,
) -> CStatus {
    with!(cc = cc.as_mut(), release = release_ns.as_mut(); {
        let control = cc.controller.control();
        *release = cc.pacer.release(time(now_ns), &control).as_nanos();
        CStatus::Ok
    })
}

/// A packet of `bytes` was sent, after `uncork_pacer_release` had returned `now_ns`.
///
/// # Safety
/// `cc` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_pacer_on_sent(cc: *mut Cc, now_ns: u64, bytes: u64) -> CStatus {
    with!(cc = cc.as_mut(); {
        cc.pacer.on_sent(time(now_ns), bytes, &cc.controller.control());
        CStatus::Ok
    })
}

/// The sender stops for lack of data or window: the unused quantum is discarded.
///
/// # Safety
/// `cc` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uncork_pacer_end_burst(cc: *mut Cc) -> CStatus {
    with!(cc = cc.as_mut(); {
        cc.pacer.end_burst();
        CStatus::Ok
    })
}

/// Returns the meaning of a status: a static string, never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn uncork_status_text(status: u32) -> *const c_char {
    convert::status_text(status).as_ptr()
}

fn time(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}
