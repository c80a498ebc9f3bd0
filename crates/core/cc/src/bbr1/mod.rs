//! BBR version 1, as mainline Linux behaves (`net/ipv4/tcp_bbr.c`): Cardwell et al., "BBR:
//! Congestion-Based Congestion Control", CACM 60(2), 2017, and
//! draft-cardwell-iccrg-bbr-congestion-control-00.
//!
//! Windows here are in bytes, in Linux in packets. Only the rounding to whole and even packets is
//! kept.

mod ack_aggregation;
mod control;
mod model;
mod params;
mod policer;
mod probe_bw;
mod probe_rtt;
mod resume;
mod startup;
#[cfg(test)]
mod tests;

use uncork_units::wide::forget;
use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::event::{AppState, Feedback, Lost, PathEvent, SentPacket, Timeout, Token};
use crate::filter::WindowedMax;
use crate::full_pipe::FullPipe;
use crate::inheritance::Inheritance;
use crate::pacer::slowest;
use crate::recovery::RecoveryEpisode;
use crate::resume::bbr::BbrResume;
use crate::round::RoundCounter;
use crate::sampler::{DeliverySampler, RateSample};

use self::ack_aggregation::AckAggregation;
use self::control::Repair;
use self::params::MIN_PIPE_PACKETS;
use self::policer::Policer;
use self::probe_bw::GainCycle;
use self::probe_rtt::{MinRtt, ProbeRtt};

/// BBR version 1, as in mainline Linux.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    mss: u64,
    initial_window: u64,
    rng: Rng,
    sampler: DeliverySampler,
    recovery: RecoveryEpisode,

    mode: Mode,
    round: RoundCounter,
    max_bw: WindowedMax,
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    resume: BbrResume,
    cycle: GainCycle,
    probe_rtt: ProbeRtt,
    policer: Policer,
    aggregation: AckAggregation,
    /// Data was sent after idle and none of it has been acknowledged yet.
    idle_restart: bool,

    cwnd: u64,
    /// The window before loss recovery or ProbeRTT reduced it.
    prior_cwnd: u64,
    pacing_rate: Rate,
    has_seen_rtt: bool,
    /// Loss recovery, as far as the window has reacted to it.
    repair: Repair,
    /// When losses were last declared. Packets sent earlier belong to that recovery.
    last_loss: Time,
    /// C.delivered at which everything in flight at the timeout has been delivered.
    timeout_repaired_at: u64,
    /// First round of recovery: one byte may leave per byte delivered.
    packet_conservation: bool,
    /// When the pacer releases the next packet.
    next_departure: Time,
}

const _: () = assert!(size_of::<Bbr1>() <= 512, "hosts keep one controller per connection");

/// The state machine of CACM figure 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// One processed acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Ack<'a> {
    now: Time,
    sample: &'a RateSample,
    /// Bytes in flight after it.
    in_flight: u64,
    /// Send time of the oldest data still unacknowledged after this ACK.
    oldest_sent: Time,
    /// The ACK of a single packet may have been delayed: its RTT sample is unreliable.
    maybe_delayed: bool,
}

impl<'a> Ack<'a> {
    fn new(now: Time, feedback: &Feedback<'_>, sample: &'a RateSample, mss: u64) -> Self {
        let maybe_delayed = feedback.acked.len() == 1
            && sample.newly_acked < mss
            && sample.delivered == sample.newly_acked
            && feedback.ce_packets == 0;
        let &Feedback { in_flight, oldest_sent, .. } = feedback;
        Self { now, sample, in_flight, oldest_sent, maybe_delayed }
    }
}

impl Bbr1 {
    /// Creates a controller for a new connection.
    pub fn new(settings: &Settings) -> Self {
        let mss = u64::from(settings.mss.max(1));
        let initial_window = settings.initial_window.max(MIN_PIPE_PACKETS * mss);
        let mut bbr = Self {
            mss,
            initial_window,
            rng: Rng::new(settings.seed, 0),
            sampler: DeliverySampler::new(settings),
            recovery: RecoveryEpisode::default(),
            mode: Mode::Startup,
            round: RoundCounter::default(),
            max_bw: WindowedMax::default(),
            min_rtt: MinRtt::new(settings.now, settings.usable_initial_rtt()),
            full_pipe: FullPipe::default(),
            resume: BbrResume::Off,
            cycle: GainCycle::new(settings.now),
            probe_rtt: ProbeRtt::default(),
            policer: Policer::default(),
            aggregation: AckAggregation::new(settings.now),
            idle_restart: false,
            cwnd: initial_window,
            prior_cwnd: 0,
            pacing_rate: Rate::ZERO,
            has_seen_rtt: false,
            repair: Repair::None,
            last_loss: settings.now,
            timeout_repaired_at: 0,
            packet_conservation: false,
            next_departure: settings.now,
        };
        bbr.init_pacing_rate(settings.initial_rtt);
        if let Some(inherited) = &settings.inherited {
            bbr.take_over(settings.now, inherited);
        }
        bbr
    }

    /// Continues from another controller's state. Its inflight may include a queue, so drain first.
    fn take_over(&mut self, now: Time, inherited: &Inheritance) {
        self.cwnd = inherited.window.max(self.min_pipe_cwnd());
        self.min_rtt = MinRtt::new(now, Some(inherited.min_rtt));
        self.init_pacing_rate(Some(inherited.min_rtt));
        forget();
        if inherited.has_filled_pipe {
            self.max_bw.reset(0, inherited.bw.bytes_per_sec());
            self.full_pipe.declare_full();
            self.mode = Mode::Drain;
            self.set_pacing_rate(inherited.bw, self.pacing_gain());
        }
    }

    /// State handed over to another controller.
    #[doc(hidden)]
    pub fn bequeath(&self) -> Inheritance {
        let (bw, min_rtt) = (self.bw(), self.min_rtt.get().unwrap_or(TimeDelta::MAX));
        Inheritance::of_model(bw, min_rtt, self.full_pipe.reached(), self.cwnd)
    }

    /// Replaces a pacing rate based on the nominal RTT when the first RTT sample arrives.
    fn init_pacing_from_first_rtt(&mut self, feedback: &Feedback<'_>) {
        if let Some(rtt) = feedback.rtt.filter(|_| !self.has_seen_rtt) {
            self.init_pacing_rate(Some(rtt.smoothed));
        }
    }

    /// The smallest window outside of loss recovery, in bytes.
    fn min_pipe_cwnd(&self) -> u64 {
        MIN_PIPE_PACKETS * self.mss
    }

    /// Whether the window has room for another packet.
    fn has_room(&self) -> bool {
        self.sampler.in_flight().saturating_add(self.mss) <= self.cwnd
    }

    /// First data after idle: paces at the estimated bandwidth, with no catching up (draft-00
    /// §4.3.4.4).
    fn restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.aggregation.restart_epoch(now);
        match self.mode {
            Mode::ProbeBw => self.pace_at_estimate(),
            Mode::ProbeRtt => self.check_probe_rtt_done(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Resets all estimates for a new path (RFC 9000 §9.4).
    fn migrate(&mut self, now: Time) {
        let settings = Settings {
            mss: u32::try_from(self.mss).unwrap_or(u32::MAX),
            initial_window: self.initial_window,
            initial_rtt: None,
            paced: false,
            segmentation_offload: false,
            scalable_marks: false,
            clock_granularity: self.sampler.clock_granularity(),
            inherited: None,
            seed: self.rng.next_u64(),
            now,
        };
        *self = Self::new(&settings);
        self.recovery.forget(now);
    }

    /// Processes feedback about packets of this path.
    fn take_in(&mut self, now: Time, feedback: &Feedback<'_>) {
        let mut sample = RateSample::default();
        self.take_in_losses(now, feedback, &mut sample);
        self.take_in_sample(now, feedback, &sample);
    }

    /// The first half of [`Controller::on_feedback`]: the rate sample and the losses. For a host
    /// that must keep its functions small. Its connections never migrate.
    #[inline]
    pub fn take_in_losses(&mut self, now: Time, feedback: &Feedback<'_>, sample: &mut RateSample) {
        self.sampler.check_app_limited(now, self.has_room());
        *sample = self.sampler.on_feedback(now, feedback);
        self.recovery.on_feedback(now, feedback);
        forget();
        if !feedback.lost.is_empty() {
            self.note_losses(now);
        }
        if self.resume.is_active() {
            let Self { resume, full_pipe, recovery, .. } = self;
            resume.on_feedback(feedback, sample, full_pipe, recovery);
        }
    }

    /// The second half: the model, and how to send from now on.
    #[inline]
    pub fn take_in_sample(&mut self, now: Time, feedback: &Feedback<'_>, sample: &RateSample) {
        if sample.has_data {
            let ack = Ack::new(now, feedback, sample, self.mss);
            self.init_pacing_from_first_rtt(feedback);
            forget();
            self.update_model(&ack);
            forget();
            self.update_control(&ack);
            forget();
            if self.resume.is_active() {
                self.update_resume(feedback, sample);
            }
        } else {
            self.follow_timeout(feedback.in_flight);
        }
    }
}

impl Controller for Bbr1 {
    #[inline]
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        self.sampler.check_app_limited(now, self.has_room());
        let was_idle = packet.in_flight <= u64::from(packet.bytes);
        if was_idle && self.sampler.is_app_limited() {
            self.restart_from_idle(now);
        }
        self.note_departure(now, u64::from(packet.bytes));
        self.sampler.on_sent(now, packet, app, Some(self.pacing_rate))
    }

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

    fn on_spurious(&mut self, _now: Time, packets: &[Lost]) {
        if self.recovery.on_spurious(packets) {
            self.full_pipe.restart(Rate::ZERO);
            self.policer.reset();
            self.undo_recovery();
        }
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        if timeout == Timeout::Probe {
            return;
        }
        self.save_cwnd();
        // With repeated timeouts, an undo must still account for the first one's losses.
        let repeats = matches!(self.repair, Repair::TimedOut | Repair::Timeout);
        if repeats && self.recovery.is_active() {
            self.recovery.extend(now);
        } else {
            self.recovery.enter(now);
        }
        self.enter_timeout(now);
        if timeout == Timeout::Persistent {
            // RFC 9002 §7.6.2, treated like a retransmission timeout; Linux has no such event. The
            // earlier window is not restored: it grows with the bytes delivered.
            self.recovery.confirm();
            self.prior_cwnd = 0;
            self.timeout_repaired_at = 0;
        }
        // Linux resets only the bandwidth, so the next delivery always counts as growth.
        self.full_pipe.restart(Rate::ZERO);
        self.sample_policer_on_timeout(now);
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        match event {
            PathEvent::MtuChanged { mss } => {
                self.mss = u64::from(mss.max(1));
                self.initial_window = self.initial_window.max(self.min_pipe_cwnd());
                self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
            }
            PathEvent::Migrated => self.migrate(now),
            PathEvent::Drained => self.sampler.run_dry(),
            PathEvent::ClassicEcn => {}
            PathEvent::Resume(hint) => self.take_in_hint(hint),
        }
    }

    #[inline]
    fn control(&self) -> Control {
        Control {
            cwnd: self.cwnd,
            pacing_rate: Some(self.pacing_rate.max(slowest(self.mss))),
            send_quantum: self.send_quantum(),
        }
    }

    fn has_left_start(&self) -> bool {
        self.full_pipe.reached()
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            in_recovery: self.repair != Repair::None,
            max_bw: Some(self.max_bw()).filter(|rate| !rate.is_zero()),
            bw: Some(self.bw()).filter(|rate| !rate.is_zero()),
            min_rtt: self.min_rtt.get(),
            pacing_gain: Some(self.pacing_gain()),
            cwnd_gain: Some(self.cwnd_gain()),
            resume: self.resume.phase(),
            round_count: self.round.count(),
            ..Snapshot::of_state(match self.mode {
                Mode::Startup => "Startup",
                Mode::Drain => "Drain",
                Mode::ProbeBw => "ProbeBW",
                Mode::ProbeRtt => "ProbeRTT",
            })
        }
    }
}
