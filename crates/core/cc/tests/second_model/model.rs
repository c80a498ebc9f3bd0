//! BBR's state and its event handlers (§5.2).

use std::collections::BTreeMap;

use uncork_cc::{AppState, PathEvent, SentPacket, Settings};
use uncork_units::{Rng, Time};

use super::filters::{CycleMax, NicholsMax};
use super::recovery::Recovery;
use super::sampler::{Connection, Packet, RateSample};
use super::{BDP_BYTES, BYTES, Switches};

/// "bbr3": the stream of the controller's random numbers.
const RNG_STREAM: u64 = 0x6262_7233;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// An ACK, or a timer that declares losses.
pub(crate) struct Ack<'a> {
    pub(crate) acked: &'a [Packet],
    /// Each with whether the packet before it was also lost.
    pub(crate) lost: &'a [(Packet, bool)],
    pub(crate) rtt: Option<uncork_cc::RttSample>,
    pub(crate) ce_packets: u32,
    pub(crate) in_flight: u64,
    pub(crate) unacked: u64,
    pub(crate) repaired_by_probe: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    pub(crate) switches: Switches,
    pub(crate) c: Connection,
    pub(crate) rs: RateSample,
    pub(crate) now: f64,
    pub(crate) rng: Rng,
    pub(crate) recovery: Recovery,
    /// Inflight before the current ACK.
    pub(crate) prior_inflight: f64,
    pub(crate) is_cwnd_limited: bool,
    /// C.delivered when C.cwnd was last full.
    pub(crate) full_at_delivered: f64,
    pub(crate) has_seen_rtt: bool,
    pub(crate) pacing_rate: f64,
    pub(crate) send_quantum: f64,

    pub(crate) state: State,
    pub(crate) round_count: u64,
    pub(crate) round_start: bool,
    pub(crate) next_round_delivered: f64,
    pub(crate) idle_restart: bool,
    pub(crate) drain_start_round: u64,
    pub(crate) max_bw: f64,
    pub(crate) max_bw_filter: CycleMax,
    pub(crate) bw: f64,
    pub(crate) bw_shortterm: f64,
    pub(crate) inflight_shortterm: f64,
    pub(crate) inflight_longterm: f64,
    pub(crate) extra_acked: f64,
    pub(crate) extra_acked_filter: NicholsMax,
    pub(crate) extra_acked_interval_start: f64,
    pub(crate) extra_acked_delivered: f64,
    pub(crate) bw_latest: f64,
    pub(crate) inflight_latest: f64,
    pub(crate) loss_round_delivered: f64,
    pub(crate) loss_round_start: bool,
    pub(crate) is_loss_in_round: bool,
    pub(crate) loss_ranges_in_round: u32,
    pub(crate) full_bw: f64,
    pub(crate) full_bw_count: u32,
    pub(crate) full_bw_now: bool,
    pub(crate) full_bw_reached: bool,
    pub(crate) ack_phase: AckPhase,
    pub(crate) is_bw_probe_sample: bool,
    pub(crate) bw_probe_up_acked: f64,
    pub(crate) probe_up_acked_per_inc: f64,
    pub(crate) bw_probe_up_rounds: u32,
    pub(crate) rounds_since_probe_up: u64,
    pub(crate) bw_probe_wait: f64,
    pub(crate) cycle_stamp: f64,
    pub(crate) prev_probe_too_high: bool,
    pub(crate) prev_probe_precautionary: bool,
    /// (n): a completed probe has not advanced the filter yet.
    pub(crate) filter_is_due: bool,
    pub(crate) prior_cwnd: f64,
    pub(crate) undo_state: Option<State>,
    pub(crate) undo_bw_shortterm: f64,
    pub(crate) undo_inflight_shortterm: f64,
    pub(crate) undo_inflight_longterm: f64,
    pub(crate) min_rtt: f64,
    pub(crate) min_rtt_stamp: f64,
    pub(crate) probe_rtt_min_delay: f64,
    pub(crate) probe_rtt_min_stamp: f64,
    pub(crate) probe_rtt_expired: bool,
    pub(crate) probe_rtt_done_stamp: Option<f64>,
    pub(crate) probe_rtt_round_done: bool,

    /// A decision between numbers that rounding may swap.
    pub(crate) close_call: Option<&'static str>,
    /// C.delivered when rounding decided whether C.cwnd was full; infinite once that no longer
    /// matters.
    pub(crate) full_doubted_at: f64,
    /// Whether C.cwnd is limited only by less than the rounding error.
    pub(crate) cwnd_may_be_lower: bool,
    /// Possible rounding error of probe_up_acked_per_inc and bw_probe_up_acked.
    pub(crate) slope_rounding: f64,
    pub(crate) growth_rounding: f64,
    /// How often each event of interest occurred.
    pub(crate) reached: BTreeMap<&'static str, u32>,
}

pub(crate) fn nanos(time: Time) -> f64 {
    time.as_nanos() as f64
}

impl Bbr {
    /// OnInit(), §5.2.1, with its omissions fixed (f).
    #[expect(clippy::too_many_lines, reason = "one list of variables")]
    pub(crate) fn new(settings: &Settings, switches: Switches) -> Self {
        let now = nanos(settings.now);
        let srtt = settings.initial_rtt.map(|rtt| rtt.as_nanos() as f64);
        // A window without room for MinPipeCwnd would never open.
        let initial_cwnd = (settings.initial_window as f64).max(4.0 * f64::from(settings.mss));
        let c = Connection::new(now, f64::from(settings.mss), initial_cwnd, srtt);
        let min_rtt = srtt.unwrap_or(f64::INFINITY);
        let mut bbr = Self {
            switches,
            c,
            rs: RateSample::default(),
            now,
            rng: Rng::new(settings.seed, RNG_STREAM),
            recovery: Recovery::default(),
            prior_inflight: 0.0,
            is_cwnd_limited: false,
            full_at_delivered: 0.0,
            has_seen_rtt: srtt.is_some(),
            pacing_rate: 0.0,
            send_quantum: 0.0,
            state: State::Startup,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0.0,
            idle_restart: false,
            drain_start_round: 0,
            max_bw: 0.0,
            max_bw_filter: CycleMax::default(),
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            extra_acked: 0.0,
            extra_acked_filter: NicholsMax::default(),
            extra_acked_interval_start: now,
            extra_acked_delivered: 0.0,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0.0,
            loss_round_start: false,
            is_loss_in_round: false,
            loss_ranges_in_round: 0,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            bw_probe_wait: 0.0,
            cycle_stamp: 0.0,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            filter_is_due: true,
            prior_cwnd: 0.0,
            undo_state: None,
            undo_bw_shortterm: 0.0,
            undo_inflight_shortterm: 0.0,
            undo_inflight_longterm: 0.0,
            min_rtt,
            min_rtt_stamp: now,
            probe_rtt_min_delay: min_rtt,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            close_call: None,
            full_doubted_at: f64::INFINITY,
            cwnd_may_be_lower: false,
            slope_rounding: 0.0,
            growth_rounding: 0.0,
            reached: BTreeMap::new(),
        };
        bbr.init_pacing_rate();
        bbr.set_send_quantum();
        bbr
    }

    pub(crate) fn note(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    /// Records a comparison of `a` and `b` that rounding may change. Whole and infinite numbers are
    /// exact.
    pub(crate) fn compared(&mut self, what: &'static str, a: f64, b: f64) {
        let is_exact = a.fract() == 0.0 && b.fract() == 0.0;
        if !is_exact && (a - b).abs() < BYTES {
            self.close_call = Some(what);
        }
    }

    /// Like [`Self::compared`], for a whole number and a multiple of the BDP. The latter is rounded
    /// down, so a volume above it stays above it.
    pub(crate) fn compared_with_bdp(&mut self, what: &'static str, volume: f64, bdp: f64) {
        if volume.fract() != 0.0 {
            self.compared(what, volume, bdp);
        } else if bdp.fract() != 0.0 && (0.0..BDP_BYTES).contains(&(bdp - volume)) {
            self.close_call = Some(what);
        }
    }

    /// A packet leaves: OnTransmit(), then OnPacketSent().
    pub(crate) fn on_sent(&mut self, now: f64, packet: SentPacket, app: AppState) -> Packet {
        self.now = now;
        let size = f64::from(packet.bytes);
        let unacked = packet.unacked as f64 - size;
        self.c.inflight = packet.in_flight as f64 - size;
        self.check_if_application_limited();
        self.handle_restart_from_idle(unacked);
        let sent = self.c.on_packet_sent(now, size, unacked);
        self.c.no_unsent_data = app == AppState::Drained;
        self.c.lost_data_waits = false;
        self.c.next_send_time = now + (size * 1e9 / self.pacing_rate).floor();
        self.note_cwnd_usage();
        sent
    }

    /// CheckIfApplicationLimited(), §4.1.2.4, with the addition of §4.1.1.3: window and pacing rate
    /// would have allowed another packet.
    pub(crate) fn check_if_application_limited(&mut self) {
        let nothing_waits = self.c.no_unsent_data && !self.c.lost_data_waits;
        if nothing_waits && self.now > self.c.next_send_time {
            let next = self.c.inflight + self.c.smss;
            self.compared("room and cwnd", next, self.c.cwnd);
            if next <= self.c.cwnd {
                self.c.mark_connection_app_limited();
            }
        }
    }

    /// C.is_cwnd_limited becomes true when another packet has no room.
    fn note_cwnd_usage(&mut self) {
        let next = self.c.inflight + self.c.smss;
        if next > self.c.cwnd {
            self.is_cwnd_limited = true;
            self.full_at_delivered = self.c.delivered;
        }
        if self.c.cwnd.fract() != 0.0 && (next - self.c.cwnd).abs() < BYTES {
            self.full_doubted_at = self.c.delivered;
        }
    }

    /// HandleRestartFromIdle(), §5.4.1.
    fn handle_restart_from_idle(&mut self, unacked: f64) {
        if self.c.inflight != 0.0 || self.c.app_limited == 0.0 {
            return;
        }
        self.note("idle restart");
        if unacked == 0.0 {
            self.recovery.may_undo = false;
        }
        self.idle_restart = true;
        self.extra_acked_interval_start = self.now;
        if self.is_in_a_probe_bw_state() {
            self.set_pacing_rate_with_gain(100.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done();
            self.bound_bw_for_model();
        }
    }

    /// UpdateOnACK(), §5.2.3, with the losses first.
    pub(crate) fn on_feedback(&mut self, now: f64, ack: &Ack<'_>) {
        self.now = now;
        if !self.recovery.timeout_is_due {
            self.check_if_application_limited();
        }
        self.prior_inflight = self.c.inflight;
        self.c.inflight = ack.in_flight as f64;
        self.c.lost_data_waits = ack.unacked > ack.in_flight;
        self.rs = RateSample::default();
        if let Some(rtt) = ack.rtt {
            self.rs.rtt = Some(rtt.latest.as_nanos() as f64);
            self.c.min_rtt = rtt.min.as_nanos() as f64;
            self.c.srtt = Some(rtt.smoothed.as_nanos() as f64);
        }
        for packet in ack.acked {
            self.c.update_rate_sample(now, &mut self.rs, packet);
        }
        self.c.generate_rate_sample(&mut self.rs);
        self.note_kind_of_ack(ack);
        self.update_recovery(ack);
        self.c.lost += f64::from(ack.ce_packets) * self.c.smss;
        self.handle_losses(ack);
        if self.rs.has_data {
            self.is_cwnd_limited &= self.rs.prior_delivered <= self.full_at_delivered;
            if self.rs.prior_delivered > self.full_doubted_at {
                self.full_doubted_at = f64::INFINITY;
            }
            self.update_model_and_state();
            self.update_control_parameters();
        }
        self.finish_timeout();
    }

    fn note_kind_of_ack(&mut self, ack: &Ack<'_>) {
        if ack.acked.len() >= 8 {
            self.note("ACK of eight packets and more");
        }
        if self.rs.has_data && !self.rs.is_reliable {
            self.note("unreliable sample");
        }
        if self.rs.is_app_limited {
            self.note("application-limited sample");
        }
    }

    /// UpdateModelAndState(), §5.2.3.
    fn update_model_and_state(&mut self) {
        self.update_latest_delivery_signals();
        self.update_congestion_signals();
        self.update_ack_aggregation();
        self.check_full_bw_reached();
        self.check_startup_done();
        self.check_drain_done();
        self.update_probe_bw_cycle_phase();
        self.update_min_rtt();
        self.check_probe_rtt();
        self.advance_latest_delivery_signals();
        self.bound_bw_for_model();
    }

    /// (k): a new packet size changes the minimums, a new path resets everything.
    pub(crate) fn on_path(&mut self, now: f64, event: PathEvent) {
        self.now = now;
        match event {
            PathEvent::MtuChanged { mss } => {
                self.note("MTU change");
                self.c.smss = f64::from(mss);
                self.c.cwnd = self.c.cwnd.max(self.min_pipe_cwnd());
                self.set_send_quantum();
            }
            PathEvent::Migrated => {
                self.note("migration");
                let seed = self.rng.next_u64();
                let reached = std::mem::take(&mut self.reached);
                let now = Time::from_nanos(now as u64);
                let mut settings = Settings::new(self.c.smss as u32, seed, now);
                settings.initial_window = self.c.initial_cwnd as u64;
                *self = Self { reached, ..Self::new(&settings, self.switches) };
            }
            other => panic!("not in the model: {other:?}"),
        }
    }
}
