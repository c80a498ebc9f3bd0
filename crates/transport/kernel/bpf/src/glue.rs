//! A controller behind the calls of `shim.bpf.c`. Compiled to BPF, and natively by the tests that
//! replay what the kernel did.

use core::mem::MaybeUninit;

use uncork_cc::units::{Rate, Ratio, Time, TimeDelta};
use uncork_cc::{
    Acked, AppState, Bbr1, Bbr3, Controller, Cubic, Feedback, Inheritance, Lost, NewReno,
    PathEvent, Prague, RateSample, ResumeHint, ResumePhase, RttSample, SentPacket, Settings,
    Snapshot, Stamp, Timeout, Token,
};

/// What the kernel's side reports and receives. Byte counts are packets times [`Self::mss`], times are in
/// nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    /// The current time.
    pub now: u64,
    /// Bytes that a packet counts for.
    pub mss: u64,
    /// Seed of the connection.
    pub seed: u64,
    /// Newly acknowledged.
    pub acked: u64,
    /// Newly declared lost; found to have arrived.
    pub lost: u64,
    /// What left since the last call of this kind.
    pub sent: u64,
    /// In flight.
    pub in_flight: u64,
    /// Unacknowledged.
    pub unacked: u64,
    /// The RTT of this ACK; [`NONE`] without one; 0 without one at the start.
    pub rtt: u64,
    /// Smoothed RTT.
    pub srtt: u64,
    /// Smallest RTT.
    pub min_rtt: u64,
    /// Stamps of the newest packet delivered: see [`Stamp`].
    pub send_time: u64,
    /// C.delivered at departure.
    pub delivered: u64,
    /// C.delivered_time at departure.
    pub delivered_time: u64,
    /// P.send_time - P.first_send_time.
    pub send_elapsed: u64,
    /// C.lost at departure.
    pub lost_then: u64,
    /// In flight at departure.
    pub tx_in_flight: u64,
    /// Departure of the packets that were last declared lost.
    pub lost_sent: u64,
    /// Packets newly reported as Congestion Experienced.
    pub ce_packets: u64,
    /// [`APP_LIMITED`], [`UNA_ADVANCED`], [`DRAINED`], [`REPAIRING`],
    /// [`REPAIRED_BY_PROBE`], [`DEFERRED`], [`ECT1`]; out, at the end: [`RETREATED`], [`JUMPED`].
    pub flags: u64,
    /// The window at the start.
    pub initial_window: u64,
    /// Where slow start ended under an earlier controller; 0 if it has not, or there was none. Out, where another controller follows: the window
    /// for it, 0 before the end of slow start.
    pub ssthresh: u64,
    /// The rate under the earlier controller, in bytes per second; 0 without one.
    pub inherited_bw: u64,
    /// What an earlier connection observed, as the next; 0 without one. Out, at the end: what this one has observed.
    pub saved_cwnd: u64,
    /// The smallest RTT with that window.
    pub saved_rtt: u64,
    /// Out: the congestion window.
    pub cwnd: u64,
    /// Out: the pacing rate in bytes per second; 0 without one.
    pub pacing_rate: u64,
    /// Out: the send quantum.
    pub send_quantum: u64,
    /// Out: not 0 if packets must not leave as ECT(1).
    pub is_classic: u64,
}

const NONE: u64 = u64::MAX;
/// The packet that the feedback is about left when the application had no more.
pub const APP_LIMITED: u64 = 1;
const UNA_ADVANCED: u64 = 2;
/// The application has no more data now.
const DRAINED: u64 = 4;
/// What was in flight at the latest loss has not been delivered yet.
pub const REPAIRING: u64 = 8;
/// A tail-loss probe repaired a loss.
pub const REPAIRED_BY_PROBE: u64 = 16;
/// The host kept data back that the window had room for.
pub const DEFERRED: u64 = 32;
/// Packets leave as ECT(1).
const ECT1: u64 = 64;
/// The window of an earlier connection met congestion.
pub const RETREATED: u64 = 128;
/// The window of an earlier connection was taken over.
pub const JUMPED: u64 = 256;
/// Whether the window of an earlier connection is taken over is not decided yet.
pub const RESUMING: u64 = 512;

/// What monitors read in the socket's storage, through sock_diag: a head, and the state of BBR as Linux reports it
/// (`struct tcp_bbr_info` of `include/uapi/linux/inet_diag.h`, with what version 3 appends). A change of its form is a
/// new [`LAYOUT`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    magic: u32,
    layout: u16,
    /// Bytes of what follows that count: 0 if the controller is not a BBR.
    length: u16,
    /// BBR.bw in bytes per second, the lower half first.
    bw: [u32; 2],
    min_rtt_us: u32,
    /// In 1/256, as the next.
    pacing_gain: u32,
    cwnd_gain: u32,
    max_bw: [u32; 2],
    bw_shortterm: [u32; 2],
    mode: u8,
    phase: u8,
    unused: u8,
    version: u8,
    /// In packets, as the next.
    inflight_shortterm: u32,
    inflight_longterm: u32,
    extra_acked: u32,
    padding: u32,
}

/// `uncork_`, shortened.
const MAGIC: u32 = u32::from_le_bytes(*b"uncr");
const LAYOUT: u16 = 1;
/// Of BBRv1, and of its successors.
const LENGTHS: [u16; 2] = [20, 52];

const fn halves(rate: Rate) -> [u32; 2] {
    let rate = rate.bytes_per_sec();
    [rate as u32, (rate >> 32) as u32]
}

impl Report {
    /// Version 1.
    #[inline(always)]
    fn bbr(snapshot: &Snapshot) -> Self {
        let gain = |gain: Option<Ratio>| gain.map_or(0, |gain| gain.of(256) as u32);
        let unmeasured = TimeDelta::from_micros(u32::MAX.into());
        Self {
            magic: MAGIC,
            layout: LAYOUT,
            length: LENGTHS[0],
            bw: halves(snapshot.bw.unwrap_or(Rate::ZERO)),
            min_rtt_us: snapshot.min_rtt.unwrap_or(unmeasured).as_micros() as u32,
            pacing_gain: gain(snapshot.pacing_gain),
            cwnd_gain: gain(snapshot.cwnd_gain),
            ..Self::default()
        }
    }

    /// Later versions.
    #[inline(always)]
    fn bbr2(snapshot: &Snapshot, version: u8, phase: u8, mss: u64) -> Self {
        let packets = |bytes: Option<u64>| bytes.map_or(u32::MAX, |bytes| (bytes / mss) as u32);
        Self {
            length: LENGTHS[1],
            max_bw: halves(snapshot.max_bw.unwrap_or(Rate::ZERO)),
            bw_shortterm: halves(snapshot.bw_shortterm.unwrap_or(Rate::MAX)),
            mode: match phase {
                1 => 0,
                2 => 1,
                3 => 3,
                _ => 2,
            },
            phase,
            version,
            inflight_shortterm: packets(snapshot.inflight_shortterm),
            inflight_longterm: packets(snapshot.inflight_longterm),
            ..Self::bbr(snapshot)
        }
    }
}

/// A controller that processes feedback in two stages. The kernel's verifier checks each by itself.
pub trait Staged: Controller {
    /// What monitors may know. Packets have `mss` bytes.
    #[inline(always)]
    fn report(&self, _mss: u64) -> Report {
        Report { magic: MAGIC, layout: LAYOUT, ..Report::default() }
    }
    /// What an earlier connection observed.
    fn take_hint(&mut self, hint: ResumeHint);
    /// Whether the window was taken over from it.
    fn has_jumped(&self) -> bool;
    /// What a successor begins with.
    fn bequeath(&self, rtt: RttSample) -> Inheritance;
    /// The first stage.
    fn first_stage(&mut self, now: Time, feedback: &Feedback<'_>, sample: &mut RateSample);
    /// The second stage.
    fn second_stage(&mut self, now: Time, feedback: &Feedback<'_>, sample: &RateSample);
}

/// Versions 2 and 3.
impl Staged for Bbr3 {
    #[inline(always)]
    fn take_hint(&mut self, hint: ResumeHint) {
        self.take_in_hint(hint);
    }

    #[inline(always)]
    fn has_jumped(&self) -> bool {
        self.has_jumped()
    }

    #[inline(always)]
    fn bequeath(&self, _: RttSample) -> Inheritance {
        self.bequeath()
    }

    #[inline(always)]
    fn first_stage(&mut self, now: Time, feedback: &Feedback<'_>, sample: &mut RateSample) {
        self.take_in_losses(now, feedback, sample);
    }

    #[inline(always)]
    fn report(&self, mss: u64) -> Report {
        Report::bbr2(&self.snapshot(), self.version(), self.phase(), mss)
    }

    #[inline(always)]
    fn second_stage(&mut self, now: Time, feedback: &Feedback<'_>, sample: &RateSample) {
        self.take_in_sample(now, feedback.rtt, sample);
    }
}

impl Staged for Bbr1 {
    #[inline(always)]
    fn take_hint(&mut self, hint: ResumeHint) {
        self.take_in_hint(hint);
    }

    #[inline(always)]
    fn has_jumped(&self) -> bool {
        self.has_jumped()
    }

    #[inline(always)]
    fn bequeath(&self, _: RttSample) -> Inheritance {
        self.bequeath()
    }

    #[inline(always)]
    fn first_stage(&mut self, now: Time, feedback: &Feedback<'_>, sample: &mut RateSample) {
        self.take_in_losses(now, feedback, sample);
    }

    #[inline(always)]
    fn report(&self, _mss: u64) -> Report {
        Report::bbr(&self.snapshot())
    }

    #[inline(always)]
    fn second_stage(&mut self, now: Time, feedback: &Feedback<'_>, sample: &RateSample) {
        self.take_in_sample(now, feedback, sample);
    }
}

impl Staged for Prague {
    #[inline(always)]
    fn take_hint(&mut self, hint: ResumeHint) {
        self.take_in_hint(hint);
    }

    #[inline(always)]
    fn has_jumped(&self) -> bool {
        self.has_jumped()
    }

    #[inline(always)]
    fn bequeath(&self, rtt: RttSample) -> Inheritance {
        self.bequeath(rtt)
    }

    #[inline(always)]
    fn first_stage(&mut self, now: Time, feedback: &Feedback<'_>, _: &mut RateSample) {
        self.take_in_marks(now, feedback);
    }

    #[inline(always)]
    fn second_stage(&mut self, now: Time, feedback: &Feedback<'_>, _: &RateSample) {
        self.take_in_losses(now, feedback);
    }
}

/// Small enough for one stage.
macro_rules! in_one_stage {
    ($($controller:ty),*) => {
        $(impl Staged for $controller {
            #[inline(always)]
            fn take_hint(&mut self, hint: ResumeHint) {
                self.take_in_hint(hint);
            }

            #[inline(always)]
            fn has_jumped(&self) -> bool {
                self.has_jumped()
            }

            #[inline(always)]
            fn bequeath(&self, rtt: RttSample) -> Inheritance {
                self.bequeath(rtt)
            }

            #[inline(always)]
            fn first_stage(&mut self, _: Time, _: &Feedback<'_>, _: &mut RateSample) {}

            #[inline(always)]
            fn second_stage(&mut self, now: Time, feedback: &Feedback<'_>, _: &RateSample) {
                self.on_feedback(now, feedback);
            }
        })*
    };
}

in_one_stage!(Cubic, NewReno);

/// The state of a connection, in the storage of its socket. What a function could keep on its stack lies
/// here too: BPF's has 512 bytes.
#[repr(C)]
pub struct Connection<C> {
    /// What monitors may read.
    pub report: Report,
    /// The call.
    pub call: Call,
    acked: [MaybeUninit<Acked>; 1],
    lost: [MaybeUninit<Lost>; 1],
    sample: MaybeUninit<RateSample>,
    cc: MaybeUninit<C>,
}

impl<C: Staged> Connection<C> {
    /// Storage for a connection.
    #[cfg(not(target_arch = "bpf"))]
    pub fn storage() -> Self {
        Self {
            report: Report::default(),
            call: Call::default(),
            acked: [MaybeUninit::uninit()],
            lost: [MaybeUninit::uninit()],
            sample: MaybeUninit::uninit(),
            cc: MaybeUninit::uninit(),
        }
    }

    /// A new connection. `start` builds its controller.
    #[inline(always)]
    pub fn init(&mut self, start: impl FnOnce(&Settings) -> C) {
        let call = &self.call;
        let settings = Settings::new(call.mss as u32, call.seed, Time::from_nanos(call.now))
            .with_initial_window(call.initial_window)
            .with_segmentation_offload(true)
            .with_scalable_marks(call.flags & ECT1 != 0);
        let settings = match call.rtt {
            0 => settings,
            rtt => settings.with_initial_rtt(TimeDelta::from_nanos(rtt)),
        };
        let settings = match inherited(call) {
            None => settings,
            Some(inherited) => settings.with_inherited(inherited),
        };
        self.sample.write(RateSample::default());
        self.cc.write(start(&settings));
        let Call { saved_cwnd, saved_rtt, .. } = self.call;
        if saved_cwnd != 0 {
            let saved_rtt = TimeDelta::from_nanos(saved_rtt);
            self.controller().take_hint(ResumeHint { saved_cwnd, saved_rtt });
        }
        self.set_control();
    }

    /// The connection ends. `acked` bytes were delivered in `send_elapsed` by its newest sample that the application did not limit,
    /// and `delivered` bytes in all.
    #[inline(always)]
    pub fn ended(&mut self) {
        let Call { acked, send_elapsed, delivered, min_rtt, .. } = self.call;
        let (elapsed, min_rtt) =
            (TimeDelta::from_nanos(send_elapsed), TimeDelta::from_nanos(min_rtt));
        let rate = if send_elapsed == 0 { Rate::ZERO } else { Rate::of(acked, elapsed) };
        let saved = ResumeHint::observed(rate, min_rtt, delivered);
        self.call.saved_cwnd = saved.map_or(0, |saved| saved.saved_cwnd);
        self.call.saved_rtt = saved.map_or(0, |saved| saved.saved_rtt.as_nanos());
        let has_retreated = self.controller().snapshot().resume == Some(ResumePhase::SafeRetreat);
        let has_jumped = Staged::has_jumped(self.controller());
        self.call.flags =
            if has_retreated { RETREATED } else { 0 } | if has_jumped { JUMPED } else { 0 };
    }

    /// Another controller follows on the open connection.
    #[inline(always)]
    pub fn hand_over(&mut self) {
        let Call { srtt, min_rtt, .. } = self.call;
        let (srtt, min_rtt) = (TimeDelta::from_nanos(srtt), TimeDelta::from_nanos(min_rtt));
        let rtt = RttSample { latest: srtt, smoothed: srtt, min: min_rtt };
        let Inheritance { window, has_filled_pipe, .. } = Staged::bequeath(self.controller(), rtt);
        self.call.ssthresh = if has_filled_pipe { window } else { 0 };
    }

    /// How far Careful Resume is: [`RESUMING`], [`RETREATED`], or over.
    #[inline(always)]
    pub fn resume_phase(&mut self) {
        self.call.flags = match self.controller().snapshot().resume {
            None => 0,
            Some(ResumePhase::SafeRetreat) => RETREATED,
            Some(_) => RESUMING,
        };
    }

    /// The controller.
    #[inline(always)]
    pub fn controller(&mut self) -> &mut C {
        // SAFETY: `init` is the first call of a connection, and the shim makes no other where it was not.
        unsafe { self.cc.assume_init_mut() }
    }

    #[inline(always)]
    fn set_control(&mut self) {
        let control = self.controller().control();
        self.call.cwnd = control.cwnd;
        self.call.pacing_rate = control.pacing_rate.map_or(0, Rate::bytes_per_sec);
        self.call.send_quantum = control.send_quantum;
        self.call.is_classic = u64::from(self.controller().found_classic_queue());
    }

    /// Packets left, reported as one.
    #[inline(always)]
    pub fn sent(&mut self) {
        let Call { now, sent, in_flight, unacked, flags, .. } = self.call;
        let app = if flags & DRAINED != 0 { AppState::Drained } else { AppState::Backlogged };
        let packet = SentPacket { bytes: sent as u32, in_flight, unacked };
        let _ = self.controller().on_sent(Time::from_nanos(now), packet, app);
        self.set_control();
    }

    /// The first stage of an ACK.
    #[inline(always)]
    pub fn ack_losses(&mut self) {
        if self.call.flags & DEFERRED != 0 {
            self.controller().on_deferred();
        }
        self.feedback(C::first_stage);
    }

    /// The second stage of an ACK.
    #[inline(always)]
    pub fn ack_model(&mut self) {
        self.feedback(|cc, now, feedback, sample| cc.second_stage(now, feedback, sample));
        self.set_control();
    }

    /// A retransmission timeout.
    #[inline(always)]
    pub fn timeout(&mut self) {
        let now = Time::from_nanos(self.call.now);
        self.controller().on_timeout(now, Timeout::Retransmission);
        self.set_control();
    }

    /// All losses of the episode were spurious.
    #[inline(always)]
    pub fn spurious(&mut self) {
        let Call { now, lost, .. } = self.call;
        let token = token(&self.call, self.call.lost_sent);
        let lost = self.lost[0].write(Lost { token, bytes: lost as u32, contiguous: false });
        // SAFETY: as in `controller`; not a call, because it would borrow `self` as a whole.
        let cc = unsafe { self.cc.assume_init_mut() };
        cc.on_spurious(Time::from_nanos(now), core::slice::from_ref(lost));
        self.set_control();
    }

    /// The path takes packets of another size.
    #[inline(always)]
    pub fn resized(&mut self) {
        let Call { now, mss, .. } = self.call;
        let event = PathEvent::MtuChanged { mss: mss as u32 };
        self.controller().on_path(Time::from_nanos(now), event);
        self.set_control();
    }

    /// Packets do not leave as ECT(1) any more.
    #[inline(always)]
    pub fn classic_ecn(&mut self) {
        let now = Time::from_nanos(self.call.now);
        self.controller().on_path(now, PathEvent::ClassicEcn);
        self.set_control();
    }

    /// Renews what monitors may read.
    #[inline(always)]
    pub fn renew_report(&mut self) {
        let mss = self.call.mss.max(1);
        self.report = self.controller().report(mss);
    }

    #[inline(always)]
    fn feedback(&mut self, stage: impl FnOnce(&mut C, Time, &Feedback<'_>, &mut RateSample)) {
        let Self { call, acked, lost, sample, cc, .. } = self;
        let acked_token = token(call, call.send_time);
        let acked = &*acked[0].write(Acked { token: acked_token, bytes: call.acked as u32 });
        let token = token(call, call.lost_sent);
        let lost = &*lost[0].write(Lost { token, bytes: call.lost as u32, contiguous: false });
        // Also where it is empty, the slice is in the map: kernels before 6.4 do not see that an empty one is not read.
        let acked = &core::slice::from_ref(acked)[..usize::from(call.acked != 0)];
        let lost = &core::slice::from_ref(lost)[..usize::from(call.lost != 0)];
        // The kernel reports whether data older than the latest loss is in flight, which is the question.
        let oldest_sent = if call.flags & REPAIRING != 0 { Time::ZERO } else { Time::NEVER };
        let mut feedback = Feedback::new(acked, lost, call.in_flight, oldest_sent)
            .with_unacked(call.unacked)
            .with_una_advanced(call.flags & UNA_ADVANCED != 0)
            .with_ce_packets(call.ce_packets as u32)
            .with_repaired_by_probe(call.flags & REPAIRED_BY_PROBE != 0);
        feedback.rtt = rtt(call);
        // SAFETY: `init` has written both.
        let (cc, sample) = unsafe { (cc.assume_init_mut(), sample.assume_init_mut()) };
        stage(cc, Time::from_nanos(call.now), &feedback, sample);
    }
}

/// What the socket knows of the path.
#[inline(always)]
fn inherited(call: &Call) -> Option<Inheritance> {
    let &Call { initial_window: window, inherited_bw, min_rtt, .. } = call;
    (inherited_bw != 0).then(|| Inheritance {
        window,
        min_rtt: TimeDelta::from_nanos(min_rtt),
        bw: Rate::from_bytes_per_sec(inherited_bw),
        has_filled_pipe: true,
    })
}

#[inline(always)]
fn rtt(call: &Call) -> Option<RttSample> {
    (call.rtt != NONE).then(|| RttSample {
        latest: TimeDelta::from_nanos(call.rtt),
        smoothed: TimeDelta::from_nanos(call.srtt),
        min: TimeDelta::from_nanos(call.min_rtt),
    })
}

#[inline(always)]
fn token(call: &Call, send_time: u64) -> Token {
    Token::stamped(Stamp {
        send_time: Time::from_nanos(send_time),
        delivered: call.delivered,
        delivered_time: Time::from_nanos(call.delivered_time),
        send_elapsed: TimeDelta::from_nanos(call.send_elapsed),
        lost: call.lost_then,
        tx_in_flight: call.tx_in_flight,
        is_app_limited: call.flags & APP_LIMITED != 0,
    })
}
