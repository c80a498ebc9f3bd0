//! Every function rejects NULL and out-of-range values, and writes nothing in that case.
#![allow(unsafe_code, reason = "these are calls of a C interface")]

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

use uncork_cc_ffi::*;

fn settings() -> CSettings {
    CSettings { mss: 1_200, seed: 1, ..CSettings::default() }
}

fn build(spec: &CStr, settings: &CSettings, capacity: usize) -> (CStatus, *mut Cc, String) {
    let mut cc = null_mut();
    let mut message: [c_char; 200] = [1; 200];
    // SAFETY: all pointers are valid, and `capacity` is at most 200.
    let status = unsafe {
        uncork_cc_new(spec.as_ptr(), settings, &raw mut cc, message.as_mut_ptr(), capacity)
    };
    let bytes = message.iter().take_while(|byte| **byte != 0);
    (status, cc, bytes.map(|byte| *byte as u8 as char).collect())
}

#[test]
fn new_reports_a_bad_spec_and_bad_settings() {
    let (status, cc, message) = build(c"bbr9", &settings(), 200);
    assert!(status == CStatus::BadSpec && cc.is_null(), "{message}");
    assert!(message.starts_with("\"bbr9\": unknown controller"), "{message}");
    let (status, _, message) = build(c"\xff", &settings(), 200);
    assert_eq!((status, message.as_str()), (CStatus::BadSpec, "spec is not UTF-8"));
    let (status, cc, message) = build(c"reno", &CSettings { mss: 0, ..settings() }, 200);
    assert!(status == CStatus::BadArgument && cc.is_null() && message.contains("mss"), "{message}");
}

#[test]
fn new_cuts_its_message_to_the_capacity() {
    assert_eq!(build(c"bbr9", &settings(), 5).2, "\"bbr");
    assert_eq!(build(c"bbr9", &settings(), 1).2, "");
    let (status, cc, message) = build(c"reno", &settings(), 200);
    assert_eq!((status, message.as_str()), (CStatus::Ok, ""));
    // SAFETY: it comes from `uncork_cc_new`.
    unsafe { uncork_cc_free(cc) };
}

#[test]
fn null_pointers_are_reported() {
    let (_, cc, _) = build(c"bbr3", &settings(), 200);
    let (mut handle, mut found) = (null_mut(), false);
    let (packet, mut token) = (CSentPacket::default(), CToken::default());
    let mut feedback = CFeedback {
        acked: null(),
        acked_count: 1,
        lost: null(),
        lost_count: 0,
        rtt: CRtt::default(),
        ce_packets: 0,
        una_advanced: false,
        repaired_by_probe: false,
        in_flight: 0,
        unacked: 0,
        oldest_sent_ns: u64::MAX,
    };
    // SAFETY: each pointer is NULL or valid.
    unsafe {
        let statuses = [
            uncork_cc_new(null(), &settings(), &raw mut handle, null_mut(), 0),
            uncork_cc_new(c"reno".as_ptr(), null(), &raw mut handle, null_mut(), 0),
            uncork_cc_new(c"reno".as_ptr(), &settings(), null_mut(), null_mut(), 0),
            uncork_cc_on_sent(null_mut(), 0, &raw const packet, false, &raw mut token),
            uncork_cc_on_sent(cc, 0, null(), false, &raw mut token),
            uncork_cc_on_sent(cc, 0, &raw const packet, false, null_mut()),
            uncork_cc_on_feedback(cc, 0, null()),
            uncork_cc_on_feedback(cc, 0, &raw const feedback),
            uncork_cc_on_spurious(cc, 0, null(), 1),
            uncork_cc_on_timeout(null_mut(), 0, UNCORK_TIMEOUT_PROBE),
            uncork_cc_on_migrated(null_mut(), 0),
            uncork_cc_on_classic_ecn(null_mut(), 0),
            uncork_cc_found_classic_queue(null(), &raw mut found),
            uncork_cc_found_classic_queue(cc, null_mut()),
            uncork_cc_control(cc, null_mut()),
            uncork_cc_snapshot(null(), null_mut()),
            uncork_pacer_release(cc, 0, null_mut()),
        ];
        assert_eq!(statuses, [CStatus::NullPointer; 17]);
        assert!(!found);
        assert_eq!(uncork_cc_on_timeout(cc, 0, 3), CStatus::BadArgument);
        // An empty array may be NULL.
        feedback.acked_count = 0;
        assert_eq!(uncork_cc_on_feedback(cc, 0, &raw const feedback), CStatus::Ok);
        assert_eq!(uncork_cc_on_spurious(cc, 0, null(), 0), CStatus::Ok);
        uncork_cc_free(cc);
        uncork_cc_free(null_mut());
    }
}

#[test]
fn path_events_reach_the_controller() {
    let (_, cc, _) = build(c"reno", &settings(), 200);
    let mut control = CControl::default();
    // SAFETY: the pointers are valid until `uncork_cc_free`.
    unsafe {
        assert_eq!(uncork_cc_on_timeout(cc, 1, UNCORK_TIMEOUT_RETRANSMISSION), CStatus::Ok);
        uncork_cc_control(cc, &raw mut control);
        assert_eq!(control.cwnd, 1_200);
        assert_eq!(uncork_cc_on_migrated(cc, 2), CStatus::Ok);
        uncork_cc_control(cc, &raw mut control);
        assert_eq!(control.cwnd, 12_000);
        assert_eq!(uncork_cc_on_mtu_changed(cc, 3, 20_000), CStatus::Ok);
        assert_eq!(uncork_cc_on_drained(cc, 3), CStatus::Ok);
        assert_eq!(uncork_cc_resume(cc, 3, 100_000, 1_000_000), CStatus::Ok);
        uncork_cc_control(cc, &raw mut control);
        assert_eq!((control.cwnd, control.pacing_rate), (20_000, 0));
        uncork_cc_free(cc);
    }
}

/// Whether `prague` takes marks for those of a classic queue.
fn has_classic_queue(cc: *const Cc) -> bool {
    let mut found = false;
    // SAFETY: the pointers are valid.
    let status = unsafe { uncork_cc_found_classic_queue(cc, &raw mut found) };
    assert_eq!(status, CStatus::Ok);
    found
}

#[test]
fn settings_and_event_of_ect1_decide_what_marks_mean_for_prague() {
    let scalable = CSettings { scalable_marks: true, ..settings() };
    let (_, without, _) = build(c"prague", &settings(), 200);
    let (_, with, _) = build(c"prague", &scalable, 200);
    assert_eq!([without, with].map(|cc| has_classic_queue(cc)), [true, false]);
    // SAFETY: both come from `uncork_cc_new`, and are freed once.
    unsafe {
        assert_eq!(uncork_cc_on_classic_ecn(with, 1), CStatus::Ok);
        assert!(has_classic_queue(with));
        uncork_cc_free(without);
        uncork_cc_free(with);
    }
}

#[test]
fn every_status_has_a_text() {
    for status in [CStatus::Ok, CStatus::NullPointer, CStatus::BadSpec, CStatus::BadArgument] {
        // SAFETY: the text is static.
        let text = unsafe { CStr::from_ptr(uncork_status_text(status as u32)) };
        assert_ne!(text, c"unknown status");
    }
}
