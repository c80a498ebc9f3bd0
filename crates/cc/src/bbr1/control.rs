//! Pacing rate, send quantum and window: draft-00 §4.2, with Linux's quantization.

use uncork_units::{Rate, Ratio, Time, TimeDelta};

use super::params::{
    CWND_GAIN, DRAIN_GAIN, EXTRA_ACKED_MAX, HIGH_GAIN, MAX_QUANTUM_BYTES, ONE_SEGMENT_BITS_PER_SEC,
    PACING_MARGIN,
};
use super::{Ack, Bbr1, Mode};

/// A nominal RTT until one is measured.
const NOMINAL_RTT: TimeDelta = TimeDelta::from_millis(1);
/// The pacing rate shifted right by so much is about what a millisecond delivers.
const QUANTUM_SHIFT: u32 = 10;
/// Quanta that the hosts' queues and offloads may hold.
const HOST_QUANTA: u64 = 3;

/// Loss recovery, as the window has taken it into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// Nothing is being repaired.
    None,
    /// Losses were declared; the next ACK begins fast recovery.
    Entering,
    /// Fast recovery.
    Recovery,
    /// A timeout expired; what it declared lost is not known yet.
    TimedOut,
    /// Recovery from a timeout.
    Timeout,
}

impl Bbr1 {
    /// Answers an ACK that delivered something.
    pub(super) fn update_control(&mut self, ack: &Ack) {
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

    /// The initial window over the RTT, or over a nominal one, times Startup's gain.
    pub(super) fn init_pacing_rate(&mut self, rtt: Option<TimeDelta>) {
        self.has_seen_rtt = rtt.is_some();
        let bw = Rate::of(self.cwnd, rtt.unwrap_or(NOMINAL_RTT).max(TimeDelta::from_micros(1)));
        let rate = bw.scaled(HIGH_GAIN).scaled(PACING_MARGIN);
        self.pacing_rate = rate.max(Rate::from_bytes_per_sec(1));
    }

    /// Until the pipe is full the rate only rises: early samples are low.
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

    /// The pacer's promise: when the packet after this one may leave.
    pub(super) fn note_departure(&mut self, now: Time, bytes: u64) {
        self.next_departure = self.next_departure.max(now) + self.pacing_rate.time_for(bytes);
    }

    /// About a millisecond of the pacing rate, in whole packets: one at the lowest rates, else at
    /// least two.
    pub(super) fn send_quantum(&self) -> u64 {
        let least = if self.pacing_rate.bits_per_sec() < ONE_SEGMENT_BITS_PER_SEC { 1 } else { 2 };
        let bytes = (self.pacing_rate.bytes_per_sec() >> QUANTUM_SHIFT).min(MAX_QUANTUM_BYTES);
        (bytes / self.mss).max(least) * self.mss
    }

    /// The target for what is in flight at `bw` and `gain`.
    pub(super) fn inflight(&self, bw: Rate, gain: Ratio) -> u64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// Room for what the hosts hold, an even number of packets because every second one is
    /// acknowledged, and two more where a small BDP would otherwise never be exceeded.
    fn quantized(&self, bytes: u64) -> u64 {
        let bytes = bytes.saturating_add(HOST_QUANTA * self.send_quantum());
        let packets = bytes.div_ceil(self.mss);
        let probing = self.mode == Mode::ProbeBw && self.cycle.is_probing_up();
        let more = packets % 2 + if probing { 2 } else { 0 };
        packets.saturating_add(more).saturating_mul(self.mss)
    }

    /// Up to the target by what is delivered; down to it at once, but not before the pipe is full.
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

    /// Losses begin recovery, or prolong it. Linux repairs until what was outstanding at the first
    /// loss is delivered, and goes on within the same ACK when more was lost meanwhile; BBR sees one
    /// recovery, with one round of conservation.
    pub(super) fn note_losses(&mut self, now: Time) {
        if self.repair == Repair::None {
            self.save_cwnd();
            self.repair = Repair::Entering;
        }
        self.last_loss = now;
    }

    /// Each lost packet leaves the window; the first round of recovery sends one packet for each
    /// delivered; afterwards the window returns to what it was. True when that is all this ACK may
    /// do to the window.
    fn follow_recovery(&mut self, ack: &Ack) -> bool {
        // Small packets must not leave a window that no full one fits in.
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

    /// All that was declared lost has arrived: recovery was for nothing.
    pub(super) fn undo_recovery(&mut self) {
        if self.repair != Repair::None {
            self.exit_recovery();
            self.cap_in_probe_rtt();
        }
    }

    /// The window to come back to: the one before recovery or ProbeRTT cut it.
    pub(super) fn save_cwnd(&mut self) {
        let is_whole = self.repair == Repair::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_whole { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// A retransmission timeout: one packet may leave. What was in flight must be delivered, at last
    /// or again, before the window of before is restored. In TCP that is so once the oldest data
    /// outstanding is younger than the timeout; a host with packet numbers of their own has nothing
    /// older outstanding at once, and after one round trip would send a window into a path that has
    /// shown no more than a packet.
    pub(super) fn enter_timeout(&mut self, now: Time) {
        let repaired_at = self.sampler.delivered().saturating_add(self.sampler.in_flight());
        self.timeout_repaired_at = self.timeout_repaired_at.max(repaired_at);
        self.repair = Repair::TimedOut;
        self.last_loss = now;
        self.packet_conservation = false;
        self.cwnd = self.mss;
    }

    /// Now it is known what the timeout left in flight.
    pub(super) fn follow_timeout(&mut self, in_flight: u64) {
        if self.repair == Repair::TimedOut {
            self.repair = Repair::Timeout;
            self.cwnd = in_flight.saturating_add(self.mss);
        }
    }
}
