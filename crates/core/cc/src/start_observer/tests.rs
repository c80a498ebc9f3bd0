extern crate std;

use std::vec::Vec;

use uncork_units::TimeDelta;

use super::*;
use crate::event::{Acked, AppState, Lost, RttSample, SentPacket, Timeout};
use crate::resume::ResumeHint;
use crate::script::{MSS, segments, settings};
use crate::{AnyController, CcSpec, PathEvent, Token};

const RTT: TimeDelta = TimeDelta::from_millis(100);

/// A connection that sends a window each round trip and learns of it at once, with what it observes.
struct Connection {
    cc: AnyController,
    observer: StartObserver,
    now: Time,
    sent: u64,
    acked: u64,
    flight: Vec<Token>,
}

impl Connection {
    fn new(spec: &str, window: u64) -> Self {
        let spec: CcSpec = spec.parse().expect("a controller");
        let observer = StartObserver::new(Time::ZERO);
        // Paced, so that one acknowledgement of a whole window doubles it.
        let (cc, now) = (spec.build(&settings(window).with_paced(true)), Time::ZERO);
        Self { cc, observer, now, sent: 0, acked: 0, flight: Vec::new() }
    }

    fn fill(&mut self) {
        while segments(self.flight.len() as u64 + 1) <= self.cc.control().cwnd {
            let in_flight = segments(self.flight.len() as u64 + 1);
            let packet = SentPacket { bytes: MSS, in_flight, unacked: in_flight };
            self.flight.push(self.cc.on_sent(self.now, packet, AppState::Backlogged));
            self.sent += u64::from(MSS);
        }
    }

    /// All in flight but the first `lost` packets is acknowledged, after `rtt`.
    fn conclude(&mut self, rtt: TimeDelta, lost: usize, ce_packets: u32, has_timed_out: bool) {
        let window = self.cc.control().cwnd;
        if has_timed_out {
            self.cc.on_timeout(self.now, Timeout::Retransmission);
        }
        let mut flight = std::mem::take(&mut self.flight);
        let acked: Vec<Acked> =
            flight.split_off(lost).into_iter().map(|token| Acked { token, bytes: MSS }).collect();
        let lost: Vec<Lost> =
            flight.into_iter().map(|token| Lost { token, bytes: MSS, contiguous: true }).collect();
        self.acked += acked.len() as u64 * u64::from(MSS);
        let mut feedback = Feedback::new(&acked, &lost, 0, Time::NEVER).with_ce_packets(ce_packets);
        if !acked.is_empty() {
            feedback = feedback.with_rtt(RttSample { latest: rtt, smoothed: rtt, min: RTT });
        }
        self.cc.on_feedback(self.now, &feedback);
        let counts = StartCounts { sent: self.sent, acked: self.acked, window, has_timed_out };
        self.observer.on_feedback(self.now, &feedback, &counts, &self.cc);
    }

    fn round(&mut self, lost: usize) {
        self.fill();
        self.now += RTT;
        self.conclude(RTT, lost, 0, false);
    }

    fn report(&self) -> StartReport {
        self.observer.report(self.sent, self.acked)
    }
}

#[test]
fn a_loss_ends_the_start_with_the_window_and_flight_before_it() {
    for cc in ["reno", "cubic", "cubic:linux", "prague"] {
        let mut host = Connection::new(cc, 20);
        host.round(0);
        assert_eq!(host.report().exit, None, "{cc}");
        let sent = host.report().sent;
        host.fill();
        let (window, flight) = (host.cc.control().cwnd, segments(host.flight.len() as u64));
        host.now += RTT;
        host.conclude(RTT, 3, 0, false);
        let report = host.report();
        assert_eq!(report.exit, Some(StartExit::Loss), "{cc}");
        let known = (report.exit_window, report.exit_in_flight);
        assert_eq!(known, (Some(window), Some(flight)), "{cc}");
        assert_eq!((report.sent, report.lost), (sent + flight, segments(3)), "{cc}");
    }
}

#[test]
fn marks_and_timeouts_have_their_own_names() {
    let mut host = Connection::new("cubic", 20);
    host.fill();
    host.now += RTT;
    host.conclude(RTT, 0, 1, false);
    assert_eq!(host.report().exit, Some(StartExit::Mark));
    let mut host = Connection::new("cubic", 20);
    host.fill();
    host.now += RTT.times(10);
    host.conclude(RTT, 20, 0, true);
    let report = host.report();
    assert_eq!((report.exit, report.lost), (Some(StartExit::Timeout), segments(20)));
}

/// HyStart++ needs several samples per round trip.
#[test]
fn a_longer_delay_ends_slow_start_before_a_loss() {
    let mut host = Connection::new("cubic", 40);
    for round in 0..10 {
        host.fill();
        let rtt = RTT + TimeDelta::from_millis(15 * round);
        host.now += rtt;
        while !host.flight.is_empty() {
            let rest = host.flight.split_off(host.flight.len().min(2));
            host.conclude(rtt, 0, 0, false);
            host.flight = rest;
        }
    }
    let report = host.report();
    assert_eq!((report.exit, report.lost), (Some(StartExit::Delay), 0));
}

/// On a path that delivers 100 packets per round trip, and no more.
#[test]
fn bbr_ends_at_the_plateau_of_the_rate() {
    for cc in ["bbr1", "bbr2", "bbr3"] {
        let mut host = Connection::new(cc, 20);
        for _ in 0..30 {
            host.fill();
            let packets = host.flight.len() as u64;
            let rtt = RTT.max(TimeDelta::from_millis(packets));
            host.now += rtt;
            host.conclude(rtt, 0, 0, false);
        }
        let report = host.report();
        assert_eq!((report.exit, report.lost), (Some(StartExit::Plateau), 0), "{cc}");
        assert!(report.exit_window > Some(segments(100)), "{cc}: {report:?}");
    }
}

#[test]
fn rounds_to_100_kb_follow_the_initial_window() {
    for (window, rounds) in [(10, 3), (20, 3), (24, 2), (69, 2), (70, 1)] {
        let mut host = Connection::new("cubic", window);
        (0..5).for_each(|_| host.round(0));
        assert_eq!(host.report().rounds_to_100kb, Some(rounds), "{window}");
    }
}

#[test]
fn early_bytes_are_those_of_two_round_trips() {
    let mut host = Connection::new("cubic", 10);
    host.round(2);
    host.round(0);
    let early = host.sent;
    host.round(4);
    let report = host.report();
    assert_eq!((report.early_sent, report.early_lost), (early, segments(2)));
    assert_eq!(report.sent, segments(10), "the start ended with the first loss");
}

#[test]
fn a_loss_that_is_found_later_counts_for_the_round_trip_of_its_packet() {
    let mut host = Connection::new("cubic", 10);
    host.fill();
    let late = host.flight.pop().expect("ten packets");
    host.now += RTT;
    host.conclude(RTT, 0, 0, false);
    (0..2).for_each(|_| host.round(0));
    assert_eq!(host.report().early_lost, 0);
    let lost = [Lost { token: late, bytes: MSS, contiguous: false }];
    let counts =
        StartCounts { sent: host.sent, acked: host.acked, window: 0, has_timed_out: false };
    let feedback = Feedback::new(&[], &lost, 0, Time::NEVER);
    host.observer.on_feedback(host.now, &feedback, &counts, &host.cc);
    assert_eq!(host.report().early_lost, u64::from(MSS));
}

#[test]
fn a_connection_that_ends_within_two_round_trips_reports_all_that_it_sent() {
    let mut host = Connection::new("cubic", 10);
    host.fill();
    let report = host.report();
    assert_eq!((report.early_sent, report.sent), (segments(10), segments(10)));
    assert_eq!((report.rounds_to_100kb, report.exit_window), (None, None));
}

#[test]
fn bytes_that_have_arrived_without_an_acknowledgement_are_those_of_one_more_round_trip() {
    let mut host = Connection::new("cubic", 10);
    (0..2).for_each(|_| host.round(0));
    host.fill();
    let rounds = |arrived| host.observer.report(host.sent, arrived).rounds_to_100kb;
    assert_eq!((rounds(99_999), rounds(100_000)), (None, Some(3)));
}

#[test]
fn observation_ends_once_the_packets_of_the_start_are_settled() {
    let mut host = Connection::new("cubic", 20);
    assert!(!host.observer.is_over());
    (0..2).for_each(|_| host.round(0));
    host.round(1);
    assert_eq!(host.report().exit, Some(StartExit::Loss));
    (0..8).for_each(|_| host.round(0));
    assert!(host.observer.is_over());
    let report = host.report();
    (0..8).for_each(|_| host.round(1));
    assert_eq!(host.report(), report);
}

#[test]
fn a_hint_is_unused_used_or_retreated_from() {
    let resumed = |saved_cwnd: u64, lost: usize| {
        let mut host = Connection::new("cubic", 10);
        let hint = ResumeHint { saved_cwnd, saved_rtt: RTT };
        host.cc.on_path(Time::ZERO, PathEvent::Resume(hint));
        host.observer.on_resume();
        host.round(0);
        host.round(lost);
        host.report().resume
    };
    assert_eq!(resumed(segments(4), 0), Some(ResumeOutcome::Unused));
    assert_eq!(resumed(segments(400), 0), Some(ResumeOutcome::Used));
    assert_eq!(resumed(segments(400), 5), Some(ResumeOutcome::Retreated));
    assert_eq!(Connection::new("cubic", 10).report().resume, None);
}
