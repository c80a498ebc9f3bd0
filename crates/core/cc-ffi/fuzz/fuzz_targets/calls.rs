#![no_main]

use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use uncork_cc_ffi::*;

/// One call, with arbitrary values. A `bool` before a value says whether its pointer is NULL.
#[derive(Arbitrary, Debug)]
enum Call {
    New { spec: Spec, settings: (bool, u32, [bool; 2], [u64; 5]), capacity: u8 },
    Free,
    Sent { now: u64, packet: (bool, u32, u64, u64), drained: bool, token_is_null: bool },
    Feedback { now: u64, acked: Packets, lost: Packets, numbers: [u64; 6], marks: u32, flags: [bool; 2] },
    Spurious { now: u64, lost: Packets },
    Timeout { now: u64, kind: u32 },
    MtuChanged { now: u64, mss: u32 },
    Migrated { now: u64 },
    Drained { now: u64 },
    ClassicEcn { now: u64 },
    FoundClassicQueue { is_null: bool },
    Resume { now: u64, cwnd: u64, rtt: u64 },
    Control { is_null: bool },
    Snapshot { is_null: bool },
    Release { now: u64, is_null: bool },
    PacerSent { now: u64, bytes: u64 },
    EndBurst,
    StatusText { status: u32 },
}

#[derive(Arbitrary, Debug)]
enum Spec {
    Null,
    Known(u8),
    Text(Vec<u8>),
}

/// Packets of the host with their own tokens, by index, or with arbitrary words.
#[derive(Arbitrary, Debug)]
struct Packets {
    is_null: bool,
    all: Vec<(Token6, u32, bool)>,
}

#[derive(Arbitrary, Debug)]
enum Token6 {
    Sent(u8),
    Words([u64; 6]),
}

/// The host's side: one controller, and the tokens that it returned.
struct Host {
    cc: *mut Cc,
    tokens: Vec<CToken>,
}

const KNOWN: [&CStr; 9] = [
    c"reno",
    c"cubic",
    c"cubic:start=search",
    c"cubic:start=rapid",
    c"bbr1",
    c"bbr2",
    c"bbr3",
    c"bbr3:loss_floor",
    c"prague",
];
const CAPACITY: usize = 64;

impl Host {
    fn token(&self, token: &Token6) -> CToken {
        match token {
            Token6::Sent(index) => {
                self.tokens.get(usize::from(*index)).copied().unwrap_or_default()
            }
            Token6::Words(words) => CToken { words: *words },
        }
    }

    fn new_controller(&mut self, spec: &Spec, settings: Option<&CSettings>, capacity: u8) {
        self.free();
        let text = match spec {
            Spec::Null => None,
            Spec::Known(index) => Some(KNOWN[usize::from(*index) % KNOWN.len()].to_owned()),
            Spec::Text(bytes) => CString::new(bytes.clone()).ok(),
        };
        let mut message: [c_char; CAPACITY] = [1; CAPACITY];
        let capacity = usize::from(capacity) % (CAPACITY + 1);
        let status = unsafe {
            uncork_cc_new(
                text.as_ref().map_or(null(), |text| text.as_ptr()),
                settings.map_or(null(), |settings| settings),
                &raw mut self.cc,
                message.as_mut_ptr(),
                capacity,
            )
        };
        assert_eq!(status == CStatus::Ok, !self.cc.is_null());
        assert!(capacity == 0 || message[..capacity].contains(&0), "no terminating NUL");
        assert!(message[capacity..].iter().all(|byte| *byte == 1), "written beyond its capacity");
    }

    fn free(&mut self) {
        unsafe { uncork_cc_free(self.cc) };
        self.cc = null_mut();
        self.tokens.clear();
    }

    fn feedback(&self, now: u64, acked: &Packets, lost: &Packets, call: (&[u64; 6], u32, [bool; 2])) {
        let (numbers, ce_packets, flags) = call;
        let acked_packets: Vec<_> =
            acked.all.iter().map(|(token, bytes, _)| CAcked { token: self.token(token), bytes: *bytes }).collect();
        let lost_packets = self.lost(lost);
        let feedback = CFeedback {
            acked: if acked.is_null { null() } else { acked_packets.as_ptr() },
            acked_count: acked_packets.len(),
            lost: if lost.is_null { null() } else { lost_packets.as_ptr() },
            lost_count: lost_packets.len(),
            rtt: CRtt { latest_ns: numbers[0], smoothed_ns: numbers[1], min_ns: numbers[2] },
            ce_packets,
            una_advanced: flags[0],
            repaired_by_probe: flags[1],
            in_flight: numbers[3],
            unacked: numbers[4],
            oldest_sent_ns: numbers[5],
        };
        unsafe { uncork_cc_on_feedback(self.cc, now, &raw const feedback) };
    }

    fn lost(&self, lost: &Packets) -> Vec<CLost> {
        let all = lost.all.iter();
        all.map(|(token, bytes, contiguous)| CLost {
            token: self.token(token),
            bytes: *bytes,
            contiguous: *contiguous,
        })
        .collect()
    }

    fn sent(&mut self, now: u64, packet: CSentPacket, nulls: (bool, bool), drained: bool) {
        let mut token = CToken::default();
        let status = unsafe {
            let packet = if nulls.0 { null() } else { &raw const packet };
            let token = if nulls.1 { null_mut() } else { &raw mut token };
            uncork_cc_on_sent(self.cc, now, packet, drained, token)
        };
        if status == CStatus::Ok && self.tokens.len() < 256 {
            self.tokens.push(token);
        }
    }

    fn control(&self, is_null: bool) {
        let mut control = CControl::default();
        let to = if is_null { null_mut() } else { &raw mut control };
        if unsafe { uncork_cc_control(self.cc, to) } == CStatus::Ok {
            assert!(control.cwnd > 0 && control.send_quantum > 0, "{control:?}");
        }
    }

    fn play(&mut self, call: &Call) {
        let cc = self.cc;
        match call {
            Call::New { spec, settings: (is_null, mss, [paced, scalable_marks], numbers), capacity } => {
                let [initial_window, initial_rtt_ns, seed, now_ns, clock_granularity_ns] = *numbers;
                let settings = CSettings {
                    mss: *mss,
                    paced: *paced,
                    scalable_marks: *scalable_marks,
                    initial_window,
                    initial_rtt_ns,
                    seed,
                    now_ns,
                    clock_granularity_ns,
                };
                self.new_controller(spec, (!is_null).then_some(&settings), *capacity);
            }
            Call::Free => self.free(),
            Call::Sent { now, packet: (is_null, bytes, in_flight, unacked), drained, token_is_null } => {
                let packet = CSentPacket { bytes: *bytes, in_flight: *in_flight, unacked: *unacked };
                self.sent(*now, packet, (*is_null, *token_is_null), *drained);
            }
            Call::Feedback { now, acked, lost, numbers, marks, flags } => {
                self.feedback(*now, acked, lost, (numbers, *marks, *flags));
            }
            Call::Spurious { now, lost } => {
                let packets = self.lost(lost);
                let first = if lost.is_null { null() } else { packets.as_ptr() };
                unsafe { uncork_cc_on_spurious(cc, *now, first, packets.len()) };
            }
            Call::Timeout { now, kind } => unsafe { drop(uncork_cc_on_timeout(cc, *now, kind % 4)) },
            Call::MtuChanged { now, mss } => unsafe { drop(uncork_cc_on_mtu_changed(cc, *now, *mss)) },
            Call::Migrated { now } => unsafe { drop(uncork_cc_on_migrated(cc, *now)) },
            Call::Drained { now } => unsafe { drop(uncork_cc_on_drained(cc, *now)) },
            Call::ClassicEcn { now } => unsafe { drop(uncork_cc_on_classic_ecn(cc, *now)) },
            Call::FoundClassicQueue { is_null } => {
                let mut found = false;
                let to = if *is_null { null_mut() } else { &raw mut found };
                unsafe { uncork_cc_found_classic_queue(cc, to) };
            }
            Call::Resume { now, cwnd, rtt } => unsafe { drop(uncork_cc_resume(cc, *now, *cwnd, *rtt)) },
            Call::Control { is_null } => self.control(*is_null),
            Call::Snapshot { is_null } => {
                let mut snapshot = std::mem::MaybeUninit::uninit();
                let to = if *is_null { null_mut() } else { snapshot.as_mut_ptr() };
                unsafe { uncork_cc_snapshot(cc, to) };
            }
            Call::Release { now, is_null } => {
                let mut release = 0;
                let to = if *is_null { null_mut() } else { &raw mut release };
                if unsafe { uncork_pacer_release(cc, *now, to) } == CStatus::Ok {
                    assert!(release >= *now, "released in the past");
                }
            }
            Call::PacerSent { now, bytes } => unsafe { drop(uncork_pacer_on_sent(cc, *now, *bytes)) },
            Call::EndBurst => unsafe { drop(uncork_pacer_end_burst(cc)) },
            Call::StatusText { status } => {
                let text = unsafe { CStr::from_ptr(uncork_status_text(*status)) };
                assert!(!text.is_empty());
            }
        }
    }
}

// Calls with pointers that are NULL or valid neither panic, in any order, nor touch memory of others.
fuzz_target!(|calls: Vec<Call>| {
    let mut host = Host { cc: null_mut(), tokens: Vec::new() };
    calls.iter().for_each(|call| host.play(call));
    host.free();
});
