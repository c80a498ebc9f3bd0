//! Invariants of every controller after every call, with any host.

use uncork_cc::{
    AckFrequency, Algorithm, AnyController, AppState, CcSpec, Control, Controller, Feedback, Lost,
    PathEvent, ResumePhase, SentPacket, Settings, Snapshot, Timeout, Token,
};
use uncork_units::{Rate, Time, TimeDelta};

use super::transitions::{Call, may_lead};

/// FNV-1a, 64 bits: equal traces have equal digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) u64);

impl Digest {
    fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn take_in(&mut self, control: &Control, snapshot: &Snapshot) {
        let rate = |rate: Option<Rate>| rate.map_or(0, Rate::bytes_per_sec);
        snapshot.state.bytes().for_each(|byte| self.add(u64::from(byte)));
        for number in [
            control.cwnd,
            rate(control.pacing_rate),
            control.send_quantum,
            u64::from(snapshot.in_recovery),
            snapshot.ssthresh.unwrap_or(0),
            rate(snapshot.max_bw),
            rate(snapshot.bw),
            snapshot.min_rtt.map_or(0, TimeDelta::as_nanos),
            snapshot.inflight_shortterm.unwrap_or(0),
            snapshot.inflight_longterm.unwrap_or(0),
            snapshot.round_count,
        ] {
            self.add(number);
        }
    }
}

/// A controller with checks after every call.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    cc: AnyController,
    algorithm: Algorithm,
    mss: u64,
    last: Snapshot,
    digest: Digest,
}

impl Watched {
    /// A controller for a new connection.
    pub(crate) fn new(spec: CcSpec, settings: &Settings) -> Self {
        // Without marks of L4S, Prague is CUBIC.
        let is_scalable = settings.scalable_marks || spec.algorithm() == Algorithm::Prague;
        let cc = spec.build(&settings.with_scalable_marks(is_scalable));
        let last = cc.snapshot();
        let mss = u64::from(settings.mss.max(1));
        let digest = Digest(0xcbf2_9ce4_8422_2325);
        let watched = Self { cc, algorithm: spec.algorithm(), mss, last, digest };
        watched.check_control();
        watched
    }

    /// Digest of all decisions of the controller so far.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    fn is_bbr(&self) -> bool {
        matches!(self.algorithm, Algorithm::Bbr1 | Algorithm::Bbr2 | Algorithm::Bbr3)
    }

    /// The host can send: a packet fits the window and the pacer will release it at some point.
    fn check_control(&self) {
        let (control, snapshot) = (self.cc.control(), self.cc.snapshot());
        let what = || format!("{control:?}, {snapshot:?}, packets of {}", self.mss);
        assert!(control.cwnd >= self.mss, "{}", what());
        let packets =
            if matches!(self.algorithm, Algorithm::Bbr2 | Algorithm::Bbr3) { 2 } else { 1 };
        assert!(control.send_quantum >= packets * self.mss, "{}", what());
        if self.is_bbr() {
            // Recovery begins with the bytes in flight. After a timeout that may be one packet.
            assert!(snapshot.in_recovery || control.cwnd >= 4 * self.mss, "{}", what());
            let slowest = Rate::from_bytes_per_sec(self.mss);
            assert!(control.pacing_rate.is_some_and(|rate| rate >= slowest), "{}", what());
            // BBRv1 uses the rate of a detected policer, which may be higher.
            let is_policed = self.algorithm == Algorithm::Bbr1;
            assert!(is_policed || snapshot.bw <= snapshot.max_bw, "{}", what());
        } else if self.algorithm == Algorithm::Prague {
            // It paces once it knows an RTT. Marks reduce the window below two packets, losses do not.
            assert!(control.pacing_rate.is_none_or(|rate| !rate.is_zero()), "{}", what());
        } else {
            // An unvalidated window is not sent as a burst.
            let is_on_trust = snapshot.resume == Some(ResumePhase::Unvalidated);
            assert_eq!(control.pacing_rate.is_some(), is_on_trust, "{}", what());
            assert!(snapshot.ssthresh.is_none_or(|bytes| bytes >= 2 * self.mss), "{}", what());
        }
    }

    fn check_after(&mut self, call: Call) {
        self.check_control();
        let (control, snapshot) = (self.cc.control(), self.cc.snapshot());
        let (from, to) = (self.last.state, snapshot.state);
        assert!(may_lead(self.algorithm, call, from, to), "{from} -> {to} by {call:?}");
        let rounds = snapshot.round_count.wrapping_sub(self.last.round_count);
        let has_begun = snapshot.round_count == 0 && matches!(call, Call::Path(_));
        assert!(rounds <= 1 || has_begun, "{rounds} rounds in one call");
        self.digest.take_in(&control, &snapshot);
        self.last = snapshot;
    }
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        let token = self.cc.on_sent(now, packet, app);
        self.check_after(Call::Sent);
        token
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        self.cc.on_feedback(now, feedback);
        let is_retreat = self.last.resume == Some(ResumePhase::SafeRetreat);
        self.check_after(if is_retreat { Call::Retreating } else { Call::Feedback });
    }

    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        self.cc.on_spurious(now, packets);
        self.check_after(Call::Spurious);
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        self.cc.on_timeout(now, timeout);
        self.check_after(Call::Timeout);
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        if let PathEvent::MtuChanged { mss } = event {
            self.mss = u64::from(mss.max(1));
        }
        self.cc.on_path(now, event);
        self.check_after(Call::Path(event));
    }

    fn control(&self) -> Control {
        self.cc.control()
    }

    fn ack_frequency(&self) -> Option<AckFrequency> {
        self.cc.ack_frequency()
    }

    fn snapshot(&self) -> Snapshot {
        self.cc.snapshot()
    }
}
