//! Prague: draft-briscoe-iccrg-prague-congestion-control-04, for L4S (RFC 9330, RFC 9331).

mod additive;
mod classic_queue;
mod marks;
mod virtual_rtt;

use uncork_units::wide::saturating_mul;
use uncork_units::{Rate, Time, TimeDelta};

use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::cubic::Cubic;
use crate::event::{AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token};
use crate::inheritance::Inheritance;
use crate::loss_window::LossReaction;
use crate::resume::ResumeHint;
use additive::AdditiveIncrease;
use classic_queue::ClassicQueueTest;
use marks::Marks;
use virtual_rtt::VirtualRtt;

/// 1 / MAX_BURST_DELAY: a burst may occupy the bottleneck for 250 us (§2.5, RFC 9331 §4.3).
const BURSTS_PER_SEC: u64 = 4_000;

/// A window below this rate would never be probed again: 100 kbit/s, a byte in [`MIN_RATE_BYTE_US`].
const MIN_RATE: Rate = Rate::from_bits_per_sec(8_000_000 / MIN_RATE_BYTE_US);
const MIN_RATE_BYTE_US: u64 = 80;

const NANOS_PER_SEC: u64 = 1_000_000_000;
/// Of larger windows, 17 GB, this much is paced over a round trip.
const MAX_PER_ROUND: u64 = u64::MAX / NANOS_PER_SEC;

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
    /// Zero before the first RTT.
    pacing_rate: Rate,
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
            test: ClassicQueueTest::new(settings.now),
            rtt: VirtualRtt::new(settings.initial_rtt),
            reduced_at: settings.now,
            reduced_in: 0,
            regime: if settings.scalable_marks { Regime::Loss } else { Regime::Classic },
            pacing_rate: Rate::ZERO,
        };
        prague.update_pacing();
        prague
    }

    /// State handed over to another controller.
    #[doc(hidden)]
    pub fn bequeath(&self, rtt: RttSample) -> Inheritance {
        self.base.bequeath(rtt)
    }

    /// Whether marks get Prague's response. A window that is resumed from an earlier connection is on trial: a mark ends it, as a
    /// loss does (RFC 9959).
    #[inline]
    fn answers_marks(&self) -> bool {
        self.regime != Regime::Classic && !self.base.window.is_on_trial()
    }

    /// Bytes that this feedback reports as marked, at most.
    #[inline]
    fn marked(&self, feedback: &Feedback<'_>) -> u64 {
        let packets = u64::from(feedback.ce_packets);
        saturating_mul(self.base.window.mss(), packets).min(feedback.acked_bytes())
    }

    /// [`PathEvent::Resume`] alone, for a host that must keep its functions small.
    #[doc(hidden)]
    #[inline]
    pub fn take_in_hint(&mut self, hint: ResumeHint) {
        self.base.take_in_hint(hint);
    }

    /// Whether the window was taken over from an earlier connection, for a host that has no observer of starts.
    #[doc(hidden)]
    #[inline]
    pub fn has_jumped(&self) -> bool {
        self.base.has_jumped()
    }

    /// The first part of [`Controller::on_feedback`], for hosts that limit the size of a function: marks.
    #[doc(hidden)]
    #[inline]
    pub fn take_in_marks(&mut self, now: Time, feedback: &Feedback<'_>) {
        if let Some(rtt) = feedback.rtt {
            self.rtt.on_sample(rtt, self.base.window.round(), self.base.window.is_initial());
        }
        if !self.answers_marks() {
            return;
        }
        let marked = self.marked(feedback);
        self.count(now, feedback.acked_bytes(), marked, feedback.rtt);
        if marked > 0 {
            self.on_marks(now);
        }
    }

    /// The second part: losses, growth, and the pacing rate.
    //= prague-04 2.4.1-1
    //= rfc9331 4.3-1 4.3-3
    #[doc(hidden)]
    #[inline]
    pub fn take_in_losses(&mut self, now: Time, feedback: &Feedback<'_>) {
        let answers_marks = self.answers_marks();
        let ce_packets = if answers_marks { 0 } else { feedback.ce_packets };
        let reaction = self.base.window.on_feedback(now, &Feedback { ce_packets, ..*feedback });
        match reaction {
            LossReaction::Grow(bytes) if answers_marks && self.regime == Regime::Marks => {
                self.increase(bytes.saturating_sub(self.marked(feedback)));
            }
            LossReaction::Congestion(_) if answers_marks => {
                self.regime = Regime::Loss;
                self.base.react(now, reaction, feedback);
            }
            _ => self.base.react(now, reaction, feedback),
        }
        self.update_pacing();
    }

    /// Updates alpha, and what follows from it, once per virtual round trip.
    //= prague-04 2.3.2-1 2.4.4-1
    fn count(&mut self, now: Time, acked: u64, marked: u64, rtt: Option<RttSample>) {
        self.marks.count(acked, marked);
        if acked >= self.base.window.mss() {
            self.test.on_ack(rtt);
        }
        let round = self.base.window.round() as u32;
        if !self.marks.ends_period(now, round, self.rtt.virtual_rtt()) {
            return;
        }
        let had_marks = self.marks.end_period(now, round);
        let quiet = self.marks.quiet_periods();
        self.test.end_period(now, had_marks, self.packet_time());
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
        // Alpha is not known before a mark was answered, and the window of the first slow start may be far too large.
        let is_start = is_first && window.is_initial();
        let reduction = if is_start { cwnd / 2 } else { self.marks.reduction(cwnd) };
        let floor = (self.rtt.smoothed().as_micros() / MIN_RATE_BYTE_US).max(1);
        window.reduce_without_loss(cwnd.saturating_sub(reduction).max(floor.min(cwnd)));
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
        match self.pacing_rate {
            Rate::ZERO => TimeDelta::ZERO,
            rate => rate.time_for(self.base.window.mss()),
        }
    }

    /// The window, spread over a round trip; twice that in slow start, as the window doubles.
    //= prague-04 2.5-1
    fn update_pacing(&mut self) {
        if self.rtt.smoothed().is_zero() {
            return;
        }
        let window = &self.base.window;
        let cwnd = window.paced_window();
        let is_starting = cwnd < window.ssthresh() / 2;
        let per_round = if is_starting { cwnd * 2 } else { cwnd };
        // In 64 bits: the kernel's verifier looks at each path through a wider division, after each path through CUBIC.
        let rate = per_round.min(MAX_PER_ROUND) * NANOS_PER_SEC / self.rtt.smoothed().as_nanos();
        self.pacing_rate = Rate::from_bytes_per_sec(rate).max(MIN_RATE);
    }
}

/// Virtual round trips without a mark after which a flow of this rate takes marks to have ceased: the longer, the faster
/// the flow, because each mark of a fast flow is worth more (RTT_TO_GROWTH of udp_prague).
fn quiet_periods(rate: Rate) -> u32 {
    const MIN_PERIODS: u64 = 7;
    const BYTES_PER_PERIOD: u64 = 1_920_000;
    let periods = rate.bytes_per_sec() / BYTES_PER_PERIOD + MIN_PERIODS;
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
        self.take_in_marks(now, feedback);
        self.take_in_losses(now, feedback);
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
        match event {
            PathEvent::Migrated => {
                self.marks = Marks::new(now);
                self.test = ClassicQueueTest::new(now);
                self.rtt = VirtualRtt::new(None);
                self.pacing_rate = Rate::ZERO;
                // The host no longer sends ECT(1) once a queue was a classic one.
                if self.regime == Regime::Marks {
                    self.regime = Regime::Loss;
                }
            }
            PathEvent::ClassicEcn => {
                if self.regime == Regime::Marks {
                    self.base.restart_curve(now);
                }
                self.regime = Regime::Classic;
            }
            _ => {}
        }
        self.update_pacing();
    }

    //= prague-04 2.5-2
    //= rfc9331 4.3-8 4.3-10
    #[inline]
    fn control(&self) -> Control {
        let (control, mss) = (self.base.control(), self.base.window.mss());
        let rate = self.pacing_rate;
        if rate == Rate::ZERO || control.pacing_rate.is_some() {
            return control;
        }
        // Below two segments the rate alone limits the flow (RFC 9331 §4.3).
        let cwnd = control.cwnd.max(2 * mss);
        Control::new(cwnd).with_pacing(rate, (rate.bytes_per_sec() / BURSTS_PER_SEC).max(mss))
    }

    //= rfc9331 4.3-6
    fn found_classic_queue(&self) -> bool {
        self.regime == Regime::Classic
    }

    fn has_left_start(&self) -> bool {
        self.base.has_left_start()
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
