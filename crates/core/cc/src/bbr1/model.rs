//! The path model and the order in which an ACK updates it: Linux tcp_bbr.c.

use uncork_units::wide::{forget, saturating_mul};
use uncork_units::{Rate, Ratio, Time, TimeDelta};

use super::ack_aggregation::AckBurst;
use super::params::{EXTRA_ACKED_EPOCH_PACKETS, MAX_BW_WINDOW_ROUNDS};
use super::policer::AckFacts;
use super::{Ack, Bbr1, Mode};

impl Bbr1 {
    /// Processes an ACK that delivered data.
    pub(super) fn update_model(&mut self, ack: &Ack<'_>) {
        if ack.sample.is_valid() {
            self.update_bw(ack);
            forget();
            self.update_aggregation(ack);
        } else {
            self.round.clear_start();
        }
        forget();
        self.update_cycle_phase(ack);
        forget();
        self.check_full_pipe(ack);
        forget();
        self.check_drain(ack);
        forget();
        self.update_min_rtt(ack);
    }

    fn update_bw(&mut self, ack: &Ack<'_>) {
        let sample = ack.sample;
        if self.round.update(sample.prior_delivered, self.sampler.delivered()) {
            self.packet_conservation = false;
        }
        self.sample_policer(self.reading(ack));
        let rate = sample.delivery_rate;
        // An application-limited sample only counts if it exceeds the current estimate (draft-00
        // §4.1.1.4).
        if !sample.is_app_limited || rate >= self.max_bw() {
            self.max_bw.update(
                MAX_BW_WINDOW_ROUNDS,
                self.round.count() as u32,
                rate.bytes_per_sec(),
            );
        }
    }

    fn reading(&self, ack: &Ack<'_>) -> AckFacts {
        AckFacts {
            now: ack.now,
            delivered: self.sampler.delivered(),
            lost: self.sampler.lost(),
            has_losses: ack.sample.newly_lost > 0,
            is_app_limited: ack.sample.is_app_limited,
            round_started: self.round.started(),
            in_probe_bw: self.mode == Mode::ProbeBw,
        }
    }

    fn sample_policer(&mut self, reading: AckFacts) {
        if self.policer.update(reading) {
            self.enter_probe_bw(reading.now);
        }
    }

    /// A timeout counts as the end of a round with losses.
    pub(super) fn sample_policer_on_timeout(&mut self, now: Time) {
        self.sample_policer(AckFacts {
            now,
            delivered: self.sampler.delivered(),
            lost: self.sampler.lost(),
            has_losses: true,
            is_app_limited: false,
            round_started: true,
            in_probe_bw: self.mode == Mode::ProbeBw,
        });
    }

    fn update_aggregation(&mut self, ack: &Ack<'_>) {
        let burst = AckBurst {
            acked: ack.sample.newly_acked,
            round_started: self.round.started(),
            bw: self.bw(),
            cwnd: self.cwnd,
            epoch_limit: saturating_mul(EXTRA_ACKED_EPOCH_PACKETS, self.mss),
        };
        self.aggregation.update(ack.now, burst);
    }

    /// The highest delivery rate of the last ten rounds.
    pub(super) fn max_bw(&self) -> Rate {
        Rate::from_bytes_per_sec(self.max_bw.get())
    }

    /// The bandwidth to send at: max_bw, or the policer's rate.
    pub(super) fn bw(&self) -> Rate {
        self.policer.bw().unwrap_or(self.max_bw())
    }

    /// `gain` times the BDP in bytes; the initial window before the first RTT sample.
    pub(super) fn bdp(&self, bw: Rate, gain: Ratio) -> u64 {
        match self.min_rtt.get() {
            Some(min_rtt) => gain.of(bw.bytes_in(min_rtt)),
            None => self.initial_window,
        }
    }

    /// How much of `in_flight` will still be in the network when the pacer releases the next
    /// packet. While inflight rises, that packet is counted too.
    pub(super) fn in_network_at_departure(&self, now: Time, in_flight: u64) -> u64 {
        let wait: TimeDelta = self.next_departure.since(now);
        let is_raising = self.pacing_gain().num() > self.pacing_gain().den();
        let departing = if is_raising { self.send_quantum() } else { 0 };
        in_flight.saturating_add(departing).saturating_sub(self.bw().bytes_in(wait))
    }
}
