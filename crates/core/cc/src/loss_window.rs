//! Shared code of NewReno and CUBIC: the window, slow start, and the response to a congestion
//! event.

mod convergence;
mod resume;
mod timeout;

use uncork_units::{Rate, Time, TimeDelta};

use crate::controller::{Control, Settings, Snapshot};
use crate::event::{Feedback, Lost, RttSample, SentPacket, Token};
use crate::inheritance::Inheritance;
use crate::prr::Prr;
use crate::recovery::{RecoveryChange, RecoveryEpisode};
use crate::resume::trial::Trial;
use crate::resume::{Reconnaissance, ResumePhase};
use crate::round::RoundCounter;
use crate::start::{SlowStart, StartAck};
use convergence::Convergence;
use resume::Jumped;

/// Maximum segments one ACK may count for in slow start without pacing (RFC 9406 §4.3). Pacing
/// removes the limit.
//= rfc9406 4.3-1
const L: u64 = 8;

/// A congestion window that shrinks on loss.
///
/// It grows only while it is used (RFC 9002 §7.8), and stays unchanged while idle: RFC 9002 has no
/// restart after idle. RFC 5681 §4.1 restarts after an RTO, but controllers do not know the RTO.
/// The host's pacing keeps such a window from leaving as one burst
/// ([`crate::Control::pacing_rate`]).
#[derive(Clone, Debug)]
pub(crate) struct LossWindow {
    cwnd: u64,
    ssthresh: u64,
    initial_window: u64,
    /// Bytes in flight as last reported.
    in_flight: u64,
    /// Bytes delivered so far.
    delivered: u64,
    rounds: RoundCounter,
    recovery: RecoveryEpisode,
    rule: WindowRule,
    /// The reduction by this episode's congestion event, in case it turns out to be spurious.
    undo: LossUndo,
    mss: u32,
    /// How the window was used in this round, and in the previous one.
    usage: [Usage; 2],
    /// The largest flight of this round, and of the previous one, in bytes.
    largest_flight: [u64; 2],
    jump: Jumped,
    /// Whether the host paces by itself.
    paced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usage {
    /// There was always room.
    Part,
    /// The window was full at some time.
    Full,
    /// It counts as full: the host still keeps data back that it has room for.
    Deferring,
}

/// The rule that currently controls the window.
#[derive(Clone, Copy, Debug)]
enum WindowRule {
    /// The algorithm's growth.
    Growth,
    /// Growth, with a hint that waits until this much has been delivered and the path is confirmed.
    Reconnaissance(Reconnaissance, u64),
    /// Careful Resume: slow start with a different upper limit.
    Trial(Trial),
    /// Loss recovery.
    Recovery(Prr),
    /// Recovery after a start that triples the window.
    Convergence(Convergence),
}

#[derive(Clone, Copy, Debug, Default)]
struct LossUndo {
    cwnd: u64,
    ssthresh: u64,
}

/// How the algorithm must react to a feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossReaction {
    /// A congestion event: answer with [`LossWindow::reduce`].
    Congestion(Congestion),
    /// Recovery is over; the window is ssthresh.
    Recovered,
    /// Recovery after a start that triples the window is over: the window is `beta` of what path and buffer hold.
    Converged,
    /// This many bytes were delivered to a sender that uses its window.
    Grow(u64),
    /// The window was not used, so it must not grow.
    Underused,
    /// No change: PRR controls the window, or no delivery counted.
    Hold,
}

/// The window at a congestion event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Congestion {
    /// The congestion window in bytes.
    pub(crate) cwnd: u64,
    /// Bytes of it that were used.
    pub(crate) used: u64,
}

impl LossWindow {
    //= rfc5681 3.1-2
    //= rfc9002 7.3.1-1
    pub(crate) fn new(settings: &Settings) -> Self {
        let mss = settings.mss.max(1);
        let initial_window = settings.initial_window.max(u64::from(mss));
        let inherited = settings.inherited.map(|inherited| {
            let window = inherited.window.max(2 * u64::from(mss));
            // A model's window may have been cut for the moment, and a timeout has left one segment: the path carries more.
            let carried = inherited.bw.bytes_in(inherited.min_rtt).max(window);
            (window, if inherited.has_filled_pipe { carried } else { u64::MAX })
        });
        let (cwnd, ssthresh) = inherited.unwrap_or((initial_window, u64::MAX));
        Self {
            cwnd,
            ssthresh,
            initial_window,
            in_flight: 0,
            delivered: 0,
            rounds: RoundCounter::default(),
            recovery: RecoveryEpisode::default(),
            rule: WindowRule::Growth,
            undo: LossUndo::default(),
            mss,
            usage: [Usage::Part; 2],
            largest_flight: [0; 2],
            jump: Jumped::Never,
            paced: settings.paced,
        }
    }

    /// State handed over to another controller. The only measure of the rate is the window per RTT.
    pub(crate) fn bequeath(&self, rtt: RttSample) -> Inheritance {
        let window = if self.is_repairing() { self.ssthresh } else { self.cwnd };
        Inheritance {
            window,
            min_rtt: rtt.min,
            bw: Rate::of(window, rtt.smoothed),
            has_filled_pipe: !self.is_initial(),
        }
    }

    /// The congestion window in bytes.
    pub(crate) fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The slow start threshold in bytes, `u64::MAX` until it is set.
    pub(crate) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Bytes delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Sender maximum segment size in bytes.
    pub(crate) fn mss(&self) -> u64 {
        u64::from(self.mss)
    }

    /// Packet-timed round trips so far.
    pub(crate) fn round(&self) -> u64 {
        self.rounds.count()
    }

    /// RFC 5681 §3.1. ssthresh starts "arbitrarily high"; until it is set, every window is below
    /// it.
    //= rfc5681 3.1-3
    //= rfc9438 4.10-1
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh || self.is_initial()
    }

    /// Whether there was no congestion so far.
    pub(crate) fn is_initial(&self) -> bool {
        self.ssthresh == u64::MAX
    }

    /// Whether the window was taken over from an earlier connection (Careful Resume).
    pub(crate) fn has_jumped(&self) -> bool {
        self.jump != Jumped::Never
    }

    /// Whether packets are paced over the round trip: by the host, or because of a Careful Resume
    /// jump earlier in the connection.
    pub(crate) fn is_paced(&self) -> bool {
        self.paced || self.has_jumped()
    }

    //= ratelimited-11 3-1
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, packet: SentPacket) -> Token {
        self.in_flight = packet.in_flight;
        let is_full = packet.in_flight.saturating_add(self.mss()) > self.cwnd;
        self.largest_flight[0] = self.largest_flight[0].max(packet.in_flight);
        self.end_deferring();
        if is_full {
            self.usage[0] = Usage::Full;
        }
        if !matches!(self.rule, WindowRule::Growth) {
            self.depart(now, packet.bytes, is_full);
        }
        Token::new(now, (self.delivered, now, TimeDelta::ZERO, 0), packet.in_flight, false)
    }

    /// A packet leaves under a rule other than growth. Not inlined, so that [`Self::on_sent`] is.
    #[inline(never)]
    fn depart(&mut self, now: Time, bytes: u32, is_full: bool) {
        match &mut self.rule {
            WindowRule::Recovery(prr) => prr.on_sent(bytes),
            WindowRule::Trial(trial) if trial.ends_with_departure(now, is_full) => {
                self.end_unvalidated(now);
            }
            _ => {}
        }
    }

    //= rfc5681 3.2-3
    //= rfc9002 7.3.1-2 7.3.2-2
    //= rfc9937 6.4-1
    pub(crate) fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) -> LossReaction {
        self.in_flight = feedback.in_flight;
        self.count_round(feedback);
        let change = self.update_episode(now, feedback);
        if let WindowRule::Trial(trial) = self.rule {
            let is_new = change == RecoveryChange::Entered;
            if !(is_new && trial.phase() == ResumePhase::SafeRetreat) {
                return self.follow_trial(now, trial, is_new, feedback);
            }
        }
        if change == RecoveryChange::Entered {
            return LossReaction::Congestion(self.congestion(feedback));
        }
        let (ssthresh, mss) = (self.ssthresh, self.mss());
        match &mut self.rule {
            WindowRule::Recovery(_) if change == RecoveryChange::Exited => {
                self.rule = WindowRule::Growth;
                self.cwnd = ssthresh;
                LossReaction::Recovered
            }
            WindowRule::Convergence(_) if change == RecoveryChange::Exited => {
                self.rule = WindowRule::Growth;
                LossReaction::Converged
            }
            WindowRule::Recovery(prr) => {
                self.cwnd = prr.on_feedback(feedback, ssthresh, mss);
                LossReaction::Hold
            }
            WindowRule::Convergence(rule) => {
                let rule = *rule;
                self.follow_convergence(rule, feedback);
                LossReaction::Hold
            }
            _ => {
                self.follow_timeout(feedback);
                let step = self.growth(feedback);
                match self.confirms_path(step) {
                    Some(hint) if self.jump(now, hint, feedback) => LossReaction::Hold,
                    _ => step,
                }
            }
        }
    }

    fn count_round(&mut self, feedback: &Feedback<'_>) {
        let Some(newest) = feedback.acked.last() else { return };
        self.delivered = self.delivered.saturating_add(feedback.acked_bytes());
        if self.rounds.update(newest.token.delivered, self.delivered) {
            self.usage = [Usage::Part, self.usage[0]];
            self.largest_flight = [0, self.largest_flight[0]];
        }
    }

    /// Losses begin an episode. So do a CE mark and a loss repaired by a probe, unless the packet
    /// belongs to the flight of the current episode (RFC 9002 §7.1, RFC 8985 §7.4.2). Marks and
    /// repaired losses are always real congestion and are never undone.
    //= rfc9002 7.1-1 7.3.2-4
    //= rfc9959 3.2-2
    fn update_episode(&mut self, now: Time, feedback: &Feedback<'_>) -> RecoveryChange {
        let change = self.recovery.on_feedback(now, feedback);
        if feedback.ce_packets == 0 && !feedback.repaired_by_probe {
            return change;
        }
        let is_new = change != RecoveryChange::Entered && self.counts(feedback);
        if is_new {
            self.recovery.enter(now);
        }
        self.recovery.confirm();
        if is_new { RecoveryChange::Entered } else { change }
    }

    /// Whether the newest acknowledged packet left after the latest congestion event.
    fn counts(&self, feedback: &Feedback<'_>) -> bool {
        feedback.acked.last().is_some_and(|newest| !self.recovery.covers(newest.token.send_time))
    }

    /// Growth of the window. ACKs of packets sent before the latest congestion event do not count
    /// (RFC 9002 §7.3.2), nor do ACKs while the window is underused (§7.8). A window counts as used in the round in
    /// which it was full and in the next: so it grows by what one full window allows, and no further.
    //= rfc9002 7.8-1
    //= ratelimited-11 3-3
    //= rfc9438 4.6-3 4.6-4 5.8-1
    fn growth(&self, feedback: &Feedback<'_>) -> LossReaction {
        if !self.counts(feedback) {
            LossReaction::Hold
        } else if self.usage == [Usage::Part; 2] {
            LossReaction::Underused
        } else {
            LossReaction::Grow(feedback.acked_bytes())
        }
    }

    fn congestion(&self, feedback: &Feedback<'_>) -> Congestion {
        let settled = feedback.acked_bytes().saturating_add(feedback.lost_bytes());
        self.congestion_at(feedback.in_flight.saturating_add(settled))
    }

    /// A congestion event with `flight` bytes in flight. In recovery PRR limits the window
    /// temporarily; the algorithm's window is ssthresh.
    //= rfc9002 7.8-3
    //= rfc9438 4.6-3
    fn congestion_at(&self, flight: u64) -> Congestion {
        let cwnd = if self.is_repairing() { self.ssthresh } else { self.cwnd };
        // A window on trial counts only as far as it has been validated (RFC 9959 §3.5). Of another one the
        // largest flight counts, as a pacer may only be late to fill it again (RFC 9002 §7.8); in recovery
        // that would be the flight before it.
        let flight = match self.rule {
            WindowRule::Trial(trial) => flight.min(trial.pipe_size(self.delivered)),
            WindowRule::Recovery(_) | WindowRule::Convergence(_) => flight,
            _ => self.largest_flight.iter().fold(flight, |most, one| most.max(*one)),
        };
        // With less than a segment of room the window is full: hosts send whole segments. So is one with room that
        // the host leaves by itself.
        let is_full = self.is_deferring() || flight.saturating_add(self.mss()) > cwnd;
        Congestion { cwnd, used: if is_full { cwnd } else { flight } }
    }

    /// Response to [`LossReaction::Congestion`]: reduces the window to `ssthresh` through PRR, with a
    /// minimum of two segments ([`Self::least_ssthresh`]). RFC 9438 §4.6 and RFC 3168 allow marks to reduce it to one segment;
    /// RFC 9002 §7.2 does not, and the window does not know the transport.
    //= rfc5681 3.2-1
    //= rfc9002 7.2-4 7.3.2-3
    //= rfc9438 4.6-5 4.9.2-2
    //= rfc9937 5-1 6.1-1 6.1-2
    pub(crate) fn reduce(&mut self, event: Congestion, ssthresh: u64, feedback: &Feedback<'_>) {
        self.undo = LossUndo { cwnd: event.cwnd, ssthresh: self.ssthresh };
        self.ssthresh = ssthresh.max(self.least_ssthresh());
        let mut prr = Prr::start(feedback.unacked.saturating_add(feedback.acked_bytes()));
        self.cwnd = prr.on_feedback(feedback, self.ssthresh, self.mss());
        self.rule = WindowRule::Recovery(prr);
    }

    /// Grows by a delivery of `acked` bytes in slow start, limited by appropriate byte counting (RFC 3465), up to
    /// ssthresh. The initial one grows and ends as `start` says; slow start that resumes after a Safe Retreat is not
    /// the initial one (RFC 9406 §4.3).
    //= rfc9002 7.3.1-1
    //= rfc9406 4.2-3
    #[inline]
    pub(crate) fn grow_in_slow_start<S: SlowStart>(
        &mut self,
        start: &mut S,
        now: Time,
        acked: u64,
        rtt: Option<RttSample>,
    ) {
        let counted = if self.paced { acked } else { acked.min(L * self.mss()) };
        let is_initial = self.is_initial();
        let growth = if is_initial { start.growth(counted, self.round(), rtt) } else { counted };
        self.cwnd = self.cwnd.saturating_add(growth).min(self.ssthresh).max(self.cwnd);
        if is_initial {
            let ack = StartAck {
                now,
                round: self.round(),
                rtt,
                delivered: self.delivered,
                cwnd: self.cwnd,
                mss: self.mss(),
                is_paced: self.is_paced(),
            };
            if start.on_ack(&ack) {
                self.end_slow_start();
            }
        }
    }

    /// Ends slow start without a loss. A window below two segments, the minimum ssthresh, first
    /// grows to two. A waiting hint is dropped: it would replace slow start, and slow start has
    /// just found its end.
    //= rfc9406 4.2-9
    pub(crate) fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd.max(2 * self.mss());
        if matches!(self.rule, WindowRule::Reconnaissance(..)) {
            self.rule = WindowRule::Growth;
        }
    }

    /// Reduces the window to `cwnd` because of marks, so without a recovery. It ends slow start; a waiting hint is dropped.
    /// The undo of an earlier loss would take the reduction back, so there is none.
    pub(crate) fn reduce_without_loss(&mut self, cwnd: u64) {
        self.recovery.confirm();
        self.cwnd = cwnd;
        self.ssthresh = cwnd;
        self.rule = WindowRule::Growth;
    }

    /// Congestion sets ssthresh to at least this: two segments (RFC 5681 §3.1, RFC 9002 §7.2), or less where marks have
    /// reduced the window below two, so that no congestion raises it (RFC 9331 §4.3).
    //= rfc9331 4.3-8
    fn least_ssthresh(&self) -> u64 {
        self.ssthresh.min(2 * self.mss())
    }

    /// Whether marks have reduced the window below two segments. The host's rate limits such a window.
    fn is_below_two_segments(&self) -> bool {
        self.ssthresh < 2 * self.mss()
    }

    /// The window that a rate follows from. PRR's is at least a segment, also where it shall be less.
    pub(crate) fn paced_window(&self) -> u64 {
        if self.is_repairing() && self.is_below_two_segments() { self.ssthresh } else { self.cwnd }
    }

    /// Whether the window is on trial, or waits for it (Careful Resume).
    pub(crate) fn is_on_trial(&self) -> bool {
        matches!(self.rule, WindowRule::Trial(_) | WindowRule::Reconnaissance(..))
    }

    /// Sets the window of congestion avoidance, in bytes.
    pub(crate) fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd;
    }

    /// `packets` declared lost had been delivered. Returns true if that undoes the congestion event
    /// of the current episode (RFC 9438 §4.9).
    //= rfc9438 4.9.1-1 4.9.1-2 4.9.2-3 4.9.2-4
    pub(crate) fn on_spurious(&mut self, packets: &[Lost]) -> bool {
        if !self.recovery.on_spurious(packets) {
            return false;
        }
        let is_reduced = self.is_repairing() || self.cwnd < self.undo.cwnd;
        if is_reduced {
            let reached = self.paced_window();
            self.rule = WindowRule::Growth;
            self.cwnd = self.undo.cwnd.max(reached);
            self.ssthresh = self.undo.ssthresh;
        }
        is_reduced
    }

    /// Packets have another size. The window has room for one and ssthresh for two, unless marks have reduced them further.
    pub(crate) fn on_mtu(&mut self, mss: u32) {
        let before = 2 * self.mss();
        self.mss = mss.max(1);
        if self.ssthresh >= before {
            self.cwnd = self.cwnd.max(self.mss());
            self.ssthresh = self.ssthresh.max(2 * self.mss());
        }
        if self.undo.ssthresh >= before {
            self.undo.ssthresh = self.undo.ssthresh.max(2 * self.mss());
        }
    }

    /// Migration: the window is reset, and packets in flight on the old path are not evidence about
    /// the new one (RFC 9000 §9.4).
    //= rfc9959 3.2-4
    pub(crate) fn on_migration(&mut self, now: Time) {
        self.cwnd = self.initial_window.max(self.mss());
        self.ssthresh = u64::MAX;
        self.rule = WindowRule::Growth;
        self.recovery.forget(now);
        self.usage = [Usage::Part; 2];
        self.largest_flight = [0; 2];
        self.jump = Jumped::Never;
    }

    pub(crate) fn is_repairing(&self) -> bool {
        matches!(self.rule, WindowRule::Recovery(_) | WindowRule::Convergence(_))
    }

    /// A loss-based sender is ACK-clocked, except while a Careful Resume jump is unvalidated.
    //= rfc9959 4.3.2-1
    #[inline]
    pub(crate) fn control(&self) -> Control {
        match &self.rule {
            WindowRule::Trial(trial) => self.control_of_trial(trial),
            _ => Control::new(self.cwnd),
        }
    }

    #[inline(never)]
    fn control_of_trial(&self, trial: &Trial) -> Control {
        let (control, rate) = (Control::new(self.cwnd), trial.pacing_rate(self.cwnd));
        rate.map_or(control, |rate| control.with_pacing(rate, 2 * self.mss()))
    }

    fn resume_phase(&self) -> Option<ResumePhase> {
        match self.rule {
            WindowRule::Reconnaissance(..) => Some(ResumePhase::Reconnaissance),
            WindowRule::Trial(trial) => Some(trial.phase()),
            WindowRule::Growth | WindowRule::Recovery(_) | WindowRule::Convergence(_) => {
                (self.jump == Jumped::InVain).then_some(ResumePhase::SafeRetreat)
            }
        }
    }

    /// `state`, or recovery while losses are being repaired.
    pub(crate) fn snapshot(&self, state: &'static str) -> Snapshot {
        let is_retreating = matches!(self.rule, WindowRule::Trial(trial) if trial.phase() == ResumePhase::SafeRetreat);
        let repairing = self.is_repairing() || is_retreating;
        Snapshot {
            in_recovery: self.recovery.is_active(),
            ssthresh: (!self.is_initial()).then_some(self.ssthresh),
            resume: self.resume_phase(),
            round_count: self.round(),
            ..Snapshot::of_state(if repairing { "Recovery" } else { state })
        }
    }

    /// The host waits for a larger burst: it uses the window, although there is room.
    pub(crate) fn on_deferred(&mut self) {
        self.usage[0] = Usage::Deferring;
    }

    fn is_deferring(&self) -> bool {
        self.usage.contains(&Usage::Deferring)
    }

    #[inline]
    fn end_deferring(&mut self) {
        for usage in self.usage.iter_mut().filter(|usage| **usage == Usage::Deferring) {
            *usage = Usage::Full;
        }
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::Time;

    use crate::Controller;
    use crate::event::SentPacket;
    use crate::newreno::NewReno;
    use crate::script::{Host, MSS, segments, settings};

    #[test]
    fn slow_start_ends_at_no_less_than_two_segments() {
        let mut window = super::LossWindow::new(&settings(1));
        window.end_slow_start();
        assert_eq!(window.snapshot("").ssthresh, Some(segments(2)));
        assert!(window.in_slow_start(), "up to there");
    }

    #[test]
    fn a_window_that_waits_for_room_for_a_burst_grows() {
        let grown = |defers: bool| {
            let mut host = Host::new(NewReno::new(&settings(20)));
            (0..15).for_each(|_| host.send());
            if defers {
                host.cc.on_deferred();
            }
            host.advance(host.rtt);
            host.ack(1);
            host.cwnd() - segments(20)
        };
        assert_eq!((grown(false), grown(true)), (0, segments(1)));
    }

    #[test]
    //= rfc9002 7.8-3 test
    //= rfc9438 4.6-3 test
    fn a_window_that_waits_for_room_for_a_burst_is_reduced_as_a_whole() {
        let reduced = |defers: bool, sends_on: bool| {
            let mut host = Host::new(NewReno::new(&settings(20)));
            (0..12).for_each(|_| host.send());
            if defers {
                host.cc.on_deferred();
            }
            if sends_on {
                host.send();
            }
            host.advance(host.rtt);
            host.lose(1);
            host.cc.snapshot().ssthresh
        };
        assert_eq!(reduced(false, false), Some(segments(6)), "half of what is used");
        assert_eq!(reduced(true, false), Some(segments(10)));
        assert_eq!(reduced(true, true), Some(segments(13) / 2), "it no longer waits");
    }

    /// 12 GB in flight: 100 Gbit/s over a second.
    #[test]
    //= rfc9002 7.8-3 test
    fn reduction_of_a_flight_above_4_gib_counts_all_of_it() {
        let flight = 12_000_000_000;
        let mut window = super::LossWindow::new(&settings(10_000_000));
        window.on_sent(Time::ZERO, SentPacket { bytes: MSS, in_flight: flight, unacked: flight });
        assert_eq!(window.congestion_at(flight / 2).used, flight);
    }

    /// neqo #3753: after a pause of the path ACKs open the window faster than the pacer fills it.
    #[test]
    //= rfc9002 7.8-2 test
    fn a_pacer_that_is_late_does_not_deepen_the_reduction() {
        let mut host = Host::new(NewReno::new(&settings(20)));
        host.fill();
        host.advance(host.rtt);
        host.ack(12);
        host.lose(1);
        assert_eq!(
            host.cc.snapshot().ssthresh,
            Some(segments(10)),
            "half of the largest flight, not of 8"
        );
    }

    #[test]
    //= rfc9438 4.9.2-4 test
    fn late_undo_has_no_effect() {
        let mut host = Host::new(NewReno::new(&settings(20)));
        host.fill();
        host.advance(host.rtt);
        host.lose(2);
        let missing = host.missing();
        host.advance(host.rtt);
        while host.cc.snapshot().in_recovery {
            host.fill();
            host.ack(1);
        }
        (0..12).for_each(|_| host.round());
        let (cwnd, ssthresh) = (host.cwnd(), host.cc.snapshot().ssthresh);
        assert!(cwnd > segments(20), "{cwnd}");
        host.cc.on_spurious(host.now, &missing);
        assert_eq!((host.cwnd(), host.cc.snapshot().ssthresh), (cwnd, ssthresh));
    }
}
