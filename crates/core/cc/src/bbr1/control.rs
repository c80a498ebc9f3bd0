//! Pacing rate, send quantum and window: draft-00 §4.2, with Linux's quantization.

use uncork_units::wide::saturating_mul;
use uncork_units::{Rate, Ratio, Time, TimeDelta};

use super::params::{
    CWND_GAIN, DRAIN_GAIN, EXTRA_ACKED_MAX, HIGH_GAIN, MAX_QUANTUM_BYTES, ONE_SEGMENT_BITS_PER_SEC,
    PACING_MARGIN,
};
use super::{Ack, Bbr1, Mode};

/// Assumed RTT until the first sample.
const NOMINAL_RTT: TimeDelta = TimeDelta::from_millis(1);
/// Shifting the pacing rate right by this much gives roughly the bytes of one millisecond.
const QUANTUM_SHIFT: u32 = 10;
/// Quanta that may sit in the hosts' queues and offloads.
const HOST_QUANTA: u64 = 3;

/// Loss recovery, as far as the window has reacted to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// No recovery.
    None,
    /// Losses were declared; the next ACK begins fast recovery.
    Entering,
    /// Fast recovery.
    Recovery,
    /// A timeout expired, but its losses have not been reported yet.
    TimedOut,
    /// Recovery from a timeout.
    Timeout,
}

impl Bbr1 {
    /// Updates pacing rate, quantum and window after an ACK that delivered data.
    pub(super) fn update_control(&mut self, ack: &Ack<'_>) {
        self.set_pacing_rate(self.bw(), self.pacing_gain());
        if !self.follow_recovery(ack) {
            self.grow_cwnd(ack.sample.newly_acked);
        }
        self.cap_in_probe_rtt();
    }

    fn cap_in_probe_rtt(&mut self) {
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.min_pipe_cwnd());
        }
    }

    pub(super) fn pacing_gain(&self) -> Ratio {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw if self.policer.bw().is_none() => self.cycle.pacing_gain(),
            Mode::ProbeBw | Mode::ProbeRtt => Ratio::ONE,
        }
    }

    pub(super) fn cwnd_gain(&self) -> Ratio {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw => CWND_GAIN,
            Mode::ProbeRtt => Ratio::ONE,
        }
    }

    /// The initial window over the RTT (or the nominal RTT), times Startup's gain.
    pub(super) fn init_pacing_rate(&mut self, rtt: Option<TimeDelta>) {
        self.has_seen_rtt = rtt.is_some();
        let bw = Rate::of(self.cwnd, rtt.unwrap_or(NOMINAL_RTT).max(TimeDelta::from_micros(1)));
        let rate = bw.scaled(HIGH_GAIN).scaled(PACING_MARGIN);
        self.pacing_rate = rate.max(Rate::from_bytes_per_sec(1));
    }

    /// Until the pipe is full the rate only rises, because early samples are too low.
    pub(super) fn set_pacing_rate(&mut self, bw: Rate, gain: Ratio) {
        let rate = bw.scaled(gain).scaled(PACING_MARGIN);
        let is_known = self.full_pipe.reached() && !rate.is_zero();
        if is_known || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    pub(super) fn pace_at_estimate(&mut self) {
        self.set_pacing_rate(self.bw(), Ratio::ONE);
    }

    /// Records when the pacer may release the packet after this one.
    #[inline]
    pub(super) fn note_departure(&mut self, now: Time, bytes: u64) {
        self.next_departure = self.next_departure.max(now) + self.pacing_rate.time_for(bytes);
    }

    /// About a millisecond at the pacing rate, in whole packets: one packet at the lowest rates,
    /// otherwise at least two.
    pub(super) fn send_quantum(&self) -> u64 {
        let least = if self.pacing_rate.bits_per_sec() < ONE_SEGMENT_BITS_PER_SEC { 1 } else { 2 };
        let bytes = (self.pacing_rate.bytes_per_sec() >> QUANTUM_SHIFT).min(MAX_QUANTUM_BYTES);
        (bytes / self.mss.max(1)).max(least) * self.mss
    }

    /// Target inflight at `bw` and `gain`.
    pub(super) fn inflight(&self, bw: Rate, gain: Ratio) -> u64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// Adds room for the quanta held by the hosts, rounds up to an even number of packets (delayed
    /// ACKs cover two), and adds two packets where a small BDP would never be exceeded otherwise.
    fn quantized(&self, bytes: u64) -> u64 {
        let bytes = bytes.saturating_add(HOST_QUANTA * self.send_quantum());
        let packets = bytes.div_ceil(self.mss.max(1));
        let probing = self.mode == Mode::ProbeBw && self.cycle.is_probing_up();
        let more = packets % 2 + if probing { 2 } else { 0 };
        saturating_mul(packets.saturating_add(more), self.mss)
    }

    /// Grows towards the target by the bytes delivered. Above the target, drops to it at once, but
    /// only once the pipe is full.
    fn grow_cwnd(&mut self, acked: u64) {
        let extra = if self.full_pipe.reached() {
            self.aggregation.extra_acked().min(self.bw().bytes_in(EXTRA_ACKED_MAX))
        } else {
            0
        };
        let target = self.bdp(self.bw(), self.cwnd_gain()).saturating_add(extra);
        let target = self.quantized(target);
        let grown = self.cwnd.saturating_add(acked);
        if self.full_pipe.reached() {
            self.cwnd = grown.min(target);
        } else if self.cwnd < target || self.sampler.delivered() < self.initial_window {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
    }

    /// Losses begin or extend recovery. Linux recovers until everything outstanding at the first
    /// loss is delivered, and continues within the same ACK if more was lost meanwhile. BBR sees a
    /// single recovery with one round of packet conservation.
    pub(super) fn note_losses(&mut self, now: Time) {
        if self.repair == Repair::None {
            self.save_cwnd();
            self.repair = Repair::Entering;
        }
        self.last_loss = now;
    }

    /// Subtracts each lost packet from the window. The first round of recovery sends one packet per
    /// packet delivered; then the window returns to its previous value. Returns true if this ACK
    /// must not change the window any further.
    fn follow_recovery(&mut self, ack: &Ack<'_>) -> bool {
        // Small packets must not leave a window smaller than one full-sized packet.
        let conserved = ack.in_flight.saturating_add(ack.sample.newly_acked).max(self.mss);
        if ack.sample.newly_lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(ack.sample.newly_lost).max(self.mss);
        }
        let is_repaired = ack.oldest_sent >= self.last_loss
            && self.sampler.delivered() >= self.timeout_repaired_at;
        match self.repair {
            Repair::Entering => {
                self.repair = Repair::Recovery;
                self.packet_conservation = true;
                self.round.restart(self.sampler.delivered());
                self.cwnd = conserved;
            }
            Repair::Recovery | Repair::Timeout if is_repaired => self.exit_recovery(),
            Repair::TimedOut => self.follow_timeout(ack.in_flight),
            Repair::None | Repair::Recovery | Repair::Timeout => {}
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(conserved);
        }
        self.packet_conservation
    }

    fn exit_recovery(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd).max(self.min_pipe_cwnd());
        self.packet_conservation = false;
        self.repair = Repair::None;
    }

    /// Every packet declared lost has arrived: undoes the recovery.
    pub(super) fn undo_recovery(&mut self) {
        if self.repair != Repair::None {
            self.exit_recovery();
            self.cap_in_probe_rtt();
        }
    }

    /// Saves the window to restore after recovery or ProbeRTT.
    pub(super) fn save_cwnd(&mut self) {
        let is_whole = self.repair == Repair::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_whole { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// Retransmission timeout: one packet may leave. The previous window is restored only after
    /// everything that was in flight has been delivered, first time or retransmitted. TCP reaches
    /// that point once its oldest outstanding data is younger than the timeout. A host that numbers
    /// each transmission separately (QUIC) has no older data outstanding right away, so after one
    /// round trip it would send a full window into a path that has delivered a single packet.
    pub(super) fn enter_timeout(&mut self, now: Time) {
        let repaired_at = self.sampler.delivered().saturating_add(self.sampler.in_flight());
        self.timeout_repaired_at = self.timeout_repaired_at.max(repaired_at);
        self.repair = Repair::TimedOut;
        self.last_loss = now;
        self.packet_conservation = false;
        self.cwnd = self.mss;
    }

    /// Applies the timeout once the bytes left in flight are known.
    pub(super) fn follow_timeout(&mut self, in_flight: u64) {
        if self.repair == Repair::TimedOut {
            self.repair = Repair::Timeout;
            self.cwnd = in_flight.saturating_add(self.mss);
        }
    }
}
