//! BBR version 3: draft-ietf-ccwg-bbr-06, and version 2 as a profile of it (`profile.rs`).
//!
//! Functions have the draft's names. §5.2 of the draft explains how they work together; `model.rs`
//! has the order in which an ACK runs them. `DEVIATIONS.md` lists and justifies every deviation
//! from the draft.

mod ack_aggregation;
mod ack_frequency;
mod bounds;
mod congestion;
mod control;
mod deviations;
mod drain;
mod ecn;
mod events;
mod loss;
mod loss_floor;
mod max_bw;
mod min_rtt;
mod model;
mod params;
mod probe_bw;
mod probe_rtt;
mod profile;
mod resume;
mod rtt_fair;
mod startup;
mod state;
#[cfg(test)]
mod tests;
mod undo;

use uncork_units::wide::forget;
use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::ack_frequency::AckFrequency;
use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::event::{
    AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token, lost_packets,
};
use crate::full_pipe::FullPipe;
use crate::inheritance::Inheritance;
use crate::pacer::slowest;
use crate::recovery::RecoveryEpisode;
use crate::resume::bbr::BbrResume;
use crate::round::RoundCounter;
use crate::sampler::{DeliverySampler, RateSample};
use ack_aggregation::AckAggregation;
use bounds::{Bounds, UNBOUNDED};
use congestion::CongestionSignals;
use control::CwndUsage;
use deviations::{Deviation, Deviations};
use ecn::EcnResponse;
use loss_floor::LossFloor;
use max_bw::MaxBwFilter;
use min_rtt::MinRtt;
use probe_bw::ProbeCycle;
use profile::Profile;
use state::State;
use undo::Undo;

/// Separates this consumer's random numbers from others with the same connection seed.
const RNG_STREAM: u64 = 0x6262_7233;

/// BBR version 3 (draft-ietf-ccwg-bbr-06) or version 2 as in Linux.
//= bbr-06 5.1-1
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the draft's state variables, one by one")]
pub struct Bbr3 {
    profile: Profile,
    deviations: Deviations,
    rng: Rng,
    /// C.SMSS in bytes.
    mss: u64,
    /// C.InitialCwnd in bytes.
    initial_window: u32,
    /// [`Settings::segmentation_offload`].
    has_offload: bool,

    sampler: DeliverySampler,
    round: RoundCounter,
    recovery: RecoveryEpisode,
    /// Whether the recovery began with a retransmission timeout.
    timed_out: bool,
    undo: Undo,
    /// BBR.undo_state: the state before the loss.
    undo_state: Option<State>,

    state: State,
    cycle: ProbeCycle,
    /// BBR.probe_rtt_done_stamp; never until inflight has come down.
    probe_rtt_done_stamp: Time,
    /// BBR.probe_rtt_round_done.
    probe_rtt_round_done: bool,
    /// BBR.drain_start_round; the low byte is enough.
    drain_start_round: u8,
    /// BBR.idle_restart.
    idle_restart: bool,

    max_bw: MaxBwFilter,
    min_rtt: MinRtt,
    /// BBR.bw.
    bw: Rate,
    /// BBR.bdp; 0 without a BBR.min_rtt.
    bdp: u64,
    full_pipe: FullPipe,
    resume: BbrResume,
    aggregation: AckAggregation,
    signals: CongestionSignals,
    loss_floor: LossFloor,
    ecn: EcnResponse,
    bounds: Bounds,

    /// Whether BBR.bw, the state or the initial RTT has changed since the pacing rate was last set.
    is_pacing_due: bool,
    cwnd_usage: CwndUsage,
    /// C.cwnd.
    cwnd: u64,
    /// C.pacing_rate.
    pacing_rate: Rate,
    /// C.send_quantum in bytes.
    send_quantum: u64,
}

const _: () = assert!(size_of::<Bbr3>() <= 640, "servers keep one per connection");

impl Bbr3 {
    /// Creates a controller for a new connection. `strict_draft` keeps the draft's defects listed
    /// in `DEVIATIONS.md`, to measure the cost of each.
    pub fn new(settings: &Settings, strict_draft: bool) -> Self {
        let deviations = if strict_draft { Deviations::NONE } else { Deviations::ALL };
        Self::with(settings, Profile::V3, deviations)
    }

    /// Version 2. It ignores losses repaired by a tail-loss probe (`profile.rs`).
    pub fn v2(settings: &Settings) -> Self {
        Self::with(settings, Profile::V2, Deviations::ALL.without(Deviation::ProbeRepair))
    }

    /// 2 or 3.
    pub fn version(&self) -> u8 {
        match self.profile {
            Profile::V2 => 2,
            Profile::V3 => 3,
        }
    }

    /// The state, as Linux numbers it (`enum tcp_bbr_phase` of BBRv3's patch).
    pub fn phase(&self) -> u8 {
        match self.state {
            State::Startup => 1,
            State::Drain => 2,
            State::ProbeRtt => 3,
            State::ProbeBwUp => 4,
            State::ProbeBwDown => 5,
            State::ProbeBwCruise => 6,
            State::ProbeBwRefill => 7,
        }
    }

    /// The same controller with the option `loss_floor` on or off.
    pub(crate) fn with_loss_floor(mut self, is_on: bool) -> Self {
        self.loss_floor.set_on(is_on);
        self
    }

    /// OnInit(), §5.2.1.
    //= bbr-06 5.2.1-1 5.6.4.1-1
    fn with(settings: &Settings, profile: Profile, deviations: Deviations) -> Self {
        let now = settings.now;
        let initial_rtt = settings.usable_initial_rtt();
        let mss = u64::from(settings.mss.max(1));
        // SetCwnd()'s minimum applies from the start: a window with no room for a packet would
        // never open.
        let initial_window = settings.initial_window.max(params::MIN_PIPE_PACKETS * mss);
        let mut bbr = Self {
            profile,
            deviations,
            rng: Rng::new(settings.seed, RNG_STREAM),
            mss,
            initial_window: u32::try_from(initial_window).unwrap_or(u32::MAX),
            has_offload: settings.segmentation_offload,
            sampler: DeliverySampler::new(settings),
            round: RoundCounter::default(),
            recovery: RecoveryEpisode::default(),
            timed_out: false,
            undo: Undo::NOTHING,
            undo_state: None,
            state: State::Startup,
            cycle: ProbeCycle::new(now),
            probe_rtt_done_stamp: Time::NEVER,
            probe_rtt_round_done: false,
            drain_start_round: 0,
            idle_restart: false,
            max_bw: MaxBwFilter::default(),
            min_rtt: MinRtt::new(now, initial_rtt),
            bw: Rate::ZERO,
            bdp: 0,
            full_pipe: FullPipe::default(),
            resume: BbrResume::Off,
            aggregation: AckAggregation::new(now),
            signals: CongestionSignals::default(),
            loss_floor: LossFloor::default(),
            ecn: EcnResponse::new(settings.scalable_marks),
            bounds: Bounds::NONE,
            is_pacing_due: true,
            cwnd_usage: CwndUsage::UNUSED,
            cwnd: initial_window,
            pacing_rate: control::init_pacing_rate(profile, initial_window, initial_rtt),
            send_quantum: 0,
        };
        bbr.set_send_quantum();
        if let Some(inherited) = &settings.inherited {
            bbr.take_over(now, inherited);
        }
        bbr
    }

    /// Continues from another controller's state. Its inflight may include a queue, so drain first.
    fn take_over(&mut self, now: Time, inherited: &Inheritance) {
        let &Inheritance { window, min_rtt, bw, has_filled_pipe } = inherited;
        self.cwnd = window.max(self.min_pipe_cwnd());
        self.min_rtt = MinRtt::new(now, Some(min_rtt));
        self.pacing_rate = control::init_pacing_rate(self.profile, self.cwnd, Some(min_rtt));
        forget();
        if has_filled_pipe {
            self.max_bw.update(bw);
            self.bound_bw_for_model();
            forget();
            self.full_pipe.declare_full();
            self.enter_drain();
            forget();
            self.set_pacing_rate(self.state.pacing_gain(self.profile));
        }
        self.set_send_quantum();
    }

    /// State handed over to another controller.
    #[doc(hidden)]
    pub fn bequeath(&self) -> Inheritance {
        let (bw, min_rtt) = (self.max_bw.get(), self.min_rtt.get().unwrap_or(TimeDelta::MAX));
        Inheritance::of_model(bw, min_rtt, self.full_pipe.reached(), self.cwnd)
    }

    /// Every change of BBR.state goes through here.
    //= bbr-06 5.1.1-1
    fn transition(&mut self, next: State) {
        debug_assert!(self.state.may_become(next), "{:?} -> {next:?}", self.state);
        self.state = next;
        self.is_pacing_due = true;
    }

    /// C.InitialCwnd in bytes.
    fn initial_window(&self) -> u64 {
        u64::from(self.initial_window)
    }

    /// Whether the window has room for another packet when `in_flight` bytes are in flight.
    fn has_room(&self, in_flight: u64) -> bool {
        in_flight.saturating_add(self.mss) <= self.cwnd
    }

    /// Processes feedback about packets of this path.
    fn take_in(&mut self, now: Time, feedback: &Feedback<'_>) {
        let mut sample = RateSample::default();
        self.take_in_losses(now, feedback, &mut sample);
        self.take_in_sample(now, feedback.rtt, &sample);
    }

    /// The first half of [`Controller::on_feedback`]: the rate sample and the losses. For a host
    /// that must keep its functions small. Its connections never migrate.
    pub fn take_in_losses(&mut self, now: Time, feedback: &Feedback<'_>, sample: &mut RateSample) {
        self.sampler.check_app_limited(now, self.has_room(self.sampler.in_flight()));
        if feedback.ce_packets > 0 {
            self.count_marks(feedback.ce_packets);
        }
        *sample = self.sampler.on_feedback(now, feedback);
        forget();
        if !self.deviations.has(Deviation::AckFlight) {
            sample.tx_in_flight = 0;
            sample.lost = 0;
        }
        self.watch_loss_floor(feedback);
        forget();
        self.update_recovery(now, feedback);
        forget();
        self.handle_losses(now, feedback, sample);
        forget();
        if self.resume.is_active() {
            let Self { resume, full_pipe, recovery, .. } = self;
            resume.on_feedback(feedback, sample, full_pipe, recovery);
        }
    }

    /// The second half: the model, and how to send from now on. `rtt` is that of the feedback.
    pub fn take_in_sample(&mut self, now: Time, rtt: Option<RttSample>, sample: &RateSample) {
        if sample.has_data {
            self.cwnd_usage.on_ack(sample.prior_delivered);
            self.init_pacing_from_first_rtt(rtt);
            forget();
            self.update_model_and_state(now, sample);
            forget();
            self.update_control_parameters(sample);
            forget();
            if self.resume.is_active() {
                self.update_resume(rtt, sample);
            }
        } else {
            self.round.clear_start();
            self.bound_cwnd_after_timeout();
        }
        forget();
    }
}

impl Controller for Bbr3 {
    //= bbr-06 4.1.2.4-1 4.1.2.4-3 5.2.2-1 5.4.1-1
    #[inline]
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        let in_flight_before = packet.in_flight.saturating_sub(u64::from(packet.bytes));
        self.sampler.check_app_limited(now, self.has_room(in_flight_before));
        if in_flight_before == 0 && self.sampler.is_app_limited() {
            self.handle_restart_from_idle(now);
            if packet.unacked == packet.in_flight {
                // All losses are repaired and time has passed, so the saved state is obsolete.
                self.recovery.confirm();
            }
        }
        if !self.has_room(packet.in_flight) {
            self.cwnd_usage.on_full(self.sampler.delivered());
        }
        self.sampler.on_sent(now, packet, app, Some(self.pacing_rate))
    }

    //= bbr-06 4.1.2.4-2 4.1.2.4-3 5.2.3-1
    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        let path_since = self.sampler.path_since();
        let rest;
        let mut feedback = feedback;
        if feedback.reaches_back_before(path_since) {
            rest = feedback.since(path_since);
            feedback = &rest;
        }
        self.take_in(now, feedback);
    }

    //= bbr-06 5.2.5-1
    fn on_spurious(&mut self, _now: Time, packets: &[Lost]) {
        self.loss_floor.on_spurious(lost_packets(packets, self.mss));
        if self.recovery.on_spurious(packets) {
            self.handle_spurious_loss_detection();
        }
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        self.sampler.check_app_limited(now, self.has_room(self.sampler.in_flight()));
        match timeout {
            Timeout::Probe => {}
            Timeout::Retransmission => self.on_enter_rto(now),
            Timeout::Persistent => self.on_persistent_congestion(now),
        }
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        match event {
            PathEvent::MtuChanged { mss } => self.change_mss(mss),
            PathEvent::Migrated => self.start_over(now),
            PathEvent::Drained => self.sampler.run_dry(),
            PathEvent::ClassicEcn => self.ecn = EcnResponse::new(false),
            PathEvent::Resume(hint) => self.take_in_hint(hint),
        }
    }

    //= bbr-06 3.5-1
    #[inline]
    fn control(&self) -> Control {
        Control {
            cwnd: self.cwnd,
            pacing_rate: Some(self.pacing_rate.max(slowest(self.mss))),
            send_quantum: self.send_quantum,
        }
    }

    fn ack_frequency(&self) -> Option<AckFrequency> {
        self.wanted_ack_frequency()
    }

    fn has_left_start(&self) -> bool {
        self.full_pipe.reached()
    }

    fn snapshot(&self) -> Snapshot {
        let bounds = &self.bounds;
        let is_bound = |bound: &u64| *bound != UNBOUNDED;
        Snapshot {
            in_recovery: self.recovery.is_active(),
            max_bw: Some(self.max_bw.get()).filter(|rate| !rate.is_zero()),
            bw: Some(self.bw).filter(|rate| !rate.is_zero()),
            min_rtt: self.min_rtt.get(),
            pacing_gain: Some(self.state.pacing_gain(self.profile)),
            cwnd_gain: Some(self.state.cwnd_gain(self.profile)),
            bw_shortterm: Some(bounds.bw_shortterm).filter(|rate| *rate != Rate::MAX),
            inflight_shortterm: Some(bounds.inflight_shortterm).filter(is_bound),
            inflight_longterm: Some(bounds.inflight_longterm).filter(is_bound),
            resume: self.resume.phase(),
            round_count: self.round.count(),
            ..Snapshot::of_state(self.state.name())
        }
    }

    fn on_deferred(&mut self) {
        self.cwnd_usage.on_full(self.sampler.delivered());
    }
}
