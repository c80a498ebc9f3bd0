//! Prague: draft-briscoe-iccrg-prague-congestion-control-04, for L4S (RFC 9330, RFC 9331).

mod additive;
mod classic_queue;
mod marks;
mod virtual_rtt;

use uncork_units::wide::saturating_mul;
use uncork_units::{Rate, Ratio, Time, TimeDelta};

use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::cubic::Cubic;
use crate::event::{AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token};
use crate::inheritance::Inheritance;
use crate::loss_window::LossReaction;
use additive::AdditiveIncrease;
use classic_queue::ClassicQueueTest;
use marks::Marks;
use virtual_rtt::VirtualRtt;

/// MAX_BURST_DELAY: how long a burst may occupy the bottleneck (§2.5, RFC 9331 §4.3).
const MAX_BURST_DELAY: TimeDelta = TimeDelta::from_micros(250);

/// A window below this rate would never be probed again.
const MIN_RATE: Rate = Rate::from_bits_per_sec(100_000);

/// Prague answers each mark by as much as marks are frequent, so it can live with the many marks of a queue of a
/// millisecond.
///
/// It is [`Cubic`] until the first mark, after a loss, and when marks have ceased for long: these are signs of a queue
/// without L4S. After a mark the window grows by Prague's additive increase.
///
/// Where marks come from a classic queue, which expects the response to a loss (RFC 3168 §5), it becomes CUBIC for the
/// rest of the connection ([`Controller::found_classic_queue`]). So it is from the start on a host that does not send
/// ECT(1) ([`Settings::scalable_marks`]).
#[derive(Clone, Debug)]
pub struct Prague {
    base: Cubic,
    marks: Marks,
    growth: AdditiveIncrease,
    test: ClassicQueueTest,
    rtt: VirtualRtt,
    /// When a reduction because of marks was last made, and the round trip that it was made in.
    reduced_at: Time,
    reduced_in: u32,
    regime: Regime,
    pacing_rate: Option<Rate>,
}

const _: () = assert!(size_of::<Prague>() <= 400, "servers keep one per connection");

/// What the latest sign of congestion was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Regime {
    /// A loss, or none yet: CUBIC.
    Loss,
    /// Marks: additive increase.
    Marks,
    /// Marks of a queue that is not for L4S: CUBIC, for which they are losses.
    Classic,
}

impl Prague {
    /// Creates a controller for a new connection.
    pub fn new(settings: &Settings) -> Self {
        let mut prague = Self {
            base: Cubic::new(&settings.with_paced(true)),
            marks: Marks::new(settings.now),
            growth: AdditiveIncrease::default(),
            test: ClassicQueueTest::default(),
            rtt: VirtualRtt::new(settings.initial_rtt),
            reduced_at: settings.now,
            reduced_in: 0,
            regime: if settings.scalable_marks { Regime::Loss } else { Regime::Classic },
            pacing_rate: None,
        };
        prague.update_pacing();
        prague
    }

    /// State handed over to another controller.
    pub(crate) fn bequeath(&self, rtt: RttSample) -> Inheritance {
        self.base.bequeath(rtt)
    }

    /// The feedback of a queue that marks for L4S.
    //= prague-04 2.4.1-1
    //= rfc9331 4.3-1 4.3-3
    fn on_scalable_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        let acked = feedback.acked_bytes();
        let marked =
            saturating_mul(self.base.window.mss(), u64::from(feedback.ce_packets)).min(acked);
        let reaction = self.base.window.on_feedback(now, &Feedback { ce_packets: 0, ..*feedback });
        self.count(now, acked, marked, feedback.rtt);
        match reaction {
            LossReaction::Grow(bytes) if self.regime == Regime::Marks => {
                self.increase(bytes.saturating_sub(marked));
            }
            LossReaction::Congestion(_) => {
                self.regime = Regime::Loss;
                self.base.react(now, reaction, feedback);
            }
            _ => self.base.react(now, reaction, feedback),
        }
        if marked > 0 {
            self.on_marks(now);
        }
    }

    /// Updates alpha, and what follows from it, once per virtual round trip.
    //= prague-04 2.3.2-1 2.4.4-1
    fn count(&mut self, now: Time, acked: u64, marked: u64, rtt: Option<RttSample>) {
        self.marks.count(acked, marked);
        self.test.on_ack(rtt);
        let round = self.base.window.round() as u32;
        if !self.marks.ends_period(now, round, self.rtt.virtual_rtt()) {
            return;
        }
        let had_marks = self.marks.end_period(now, round);
        let quiet = self.marks.quiet_periods();
        self.test.end_period(had_marks, self.packet_time());
        if self.test.is_classic() {
            self.regime = Regime::Classic;
            self.base.restart_curve(now);
        } else if self.regime == Regime::Marks && quiet > quiet_periods(self.pacing_rate) {
            self.regime = Regime::Loss;
            self.base.restart_curve(now);
        }
    }

    /// Marks reduce the window at most once per virtual round trip, and not while a loss does.
    //= prague-04 2.4.2-1 2.4.2-2 2.4.4-1
    fn on_marks(&mut self, now: Time) {
        let window = &mut self.base.window;
        let round = window.round() as u32;
        let is_first = !self.marks.is_answered();
        let is_due =
            round != self.reduced_in && now.since(self.reduced_at) >= self.rtt.virtual_rtt();
        if window.is_repairing() || self.regime == Regime::Classic || !(is_first || is_due) {
            return;
        }
        let cwnd = window.cwnd();
        let reduction = if window.in_slow_start() { cwnd / 2 } else { self.marks.reduction(cwnd) };
        let floor = MIN_RATE.bytes_in(self.rtt.smoothed()).max(1);
        window.reduce_without_loss(cwnd.saturating_sub(reduction).max(floor));
        self.reduced_at = now;
        self.reduced_in = round;
        self.marks.answer();
        self.regime = Regime::Marks;
        self.base.restart_curve(now);
    }

    //= prague-04 2.4.3-1 2.4.3-2 2.4.4-2
    fn increase(&mut self, unmarked: u64) {
        let window = &mut self.base.window;
        let growth = self.growth.on_ack(unmarked, window.cwnd(), window.mss(), self.rtt.growth());
        window.set_cwnd(window.cwnd().saturating_add(growth));
    }

    /// How long a packet takes at the rate of this flow.
    fn packet_time(&self) -> TimeDelta {
        self.pacing_rate.map_or(TimeDelta::ZERO, |rate| rate.time_for(self.base.window.mss()))
    }

    /// The window, spread over a round trip; twice that in slow start, as the window doubles.
    //= prague-04 2.5-1
    fn update_pacing(&mut self) {
        let window = &self.base.window;
        let rate = Rate::of(window.cwnd(), self.rtt.smoothed());
        let is_starting = window.cwnd() < window.ssthresh() / 2;
        let gain = if is_starting { Ratio::new(2, 1) } else { Ratio::ONE };
        self.pacing_rate =
            (!self.rtt.smoothed().is_zero()).then(|| rate.scaled(gain).max(MIN_RATE));
    }
}

/// Virtual round trips without a mark after which a flow of this rate takes marks to have ceased: the longer, the faster
/// the flow, because each mark of a fast flow is worth more (RTT_TO_GROWTH of udp_prague).
fn quiet_periods(rate: Option<Rate>) -> u32 {
    const MIN_PERIODS: u64 = 7;
    const BYTES_PER_PERIOD: u64 = 1_920_000;
    let periods = rate.map_or(0, |rate| rate.bytes_per_sec() / BYTES_PER_PERIOD) + MIN_PERIODS;
    u32::try_from(periods).unwrap_or(u32::MAX)
}

impl Controller for Prague {
    #[inline]
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        let token = self.base.on_sent(now, packet, app);
        // Pacing spreads the window over a smoothed round trip, so a shorter one has less than the window in flight.
        let cwnd = self.base.window.cwnd();
        if packet.in_flight.saturating_add(cwnd / 16) >= cwnd {
            self.base.on_deferred();
        }
        token
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        if let Some(rtt) = feedback.rtt {
            self.rtt.on_sample(rtt, self.base.window.round(), self.base.window.is_initial());
        }
        // A window that is resumed from an earlier connection is on trial: a mark ends it, as a loss does (RFC 9959).
        if self.regime == Regime::Classic || self.base.window.is_on_trial() {
            self.base.on_feedback(now, feedback);
        } else {
            self.on_scalable_feedback(now, feedback);
        }
        self.update_pacing();
    }

    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        self.base.on_spurious(now, packets);
        self.update_pacing();
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        self.base.on_timeout(now, timeout);
        if timeout != Timeout::Probe && self.regime == Regime::Marks {
            self.regime = Regime::Loss;
        }
        self.update_pacing();
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        self.base.on_path(now, event);
        if event == PathEvent::Migrated {
            self.marks = Marks::new(now);
            self.test = ClassicQueueTest::default();
            self.rtt = VirtualRtt::new(None);
            // The host no longer sends ECT(1) once a queue was a classic one.
            if self.regime == Regime::Marks {
                self.regime = Regime::Loss;
            }
        }
        self.update_pacing();
    }

    //= prague-04 2.5-2
    //= rfc9331 4.3-8 4.3-10
    #[inline]
    fn control(&self) -> Control {
        let (control, mss) = (self.base.control(), self.base.window.mss());
        let Some(rate) = self.pacing_rate.filter(|_| control.pacing_rate.is_none()) else {
            return control;
        };
        // Below two segments the rate alone limits the flow (RFC 9331 §4.3).
        let cwnd = control.cwnd.max(2 * mss);
        Control::new(cwnd).with_pacing(rate, rate.bytes_in(MAX_BURST_DELAY).max(mss))
    }

    //= rfc9331 4.3-6
    fn found_classic_queue(&self) -> bool {
        self.regime == Regime::Classic
    }

    fn snapshot(&self) -> Snapshot {
        self.base.snapshot()
    }

    fn on_deferred(&mut self) {
        self.base.on_deferred();
    }
}

#[cfg(test)]
mod tests;
