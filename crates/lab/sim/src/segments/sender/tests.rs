use std::num::NonZeroU64;

use super::*;
use crate::segments::accecn::EcnCounters;
use crate::segments::ranges::Range;
use uncork_cc::{AnyController, CcSpec};
use uncork_path::Ecn;

const RTT: TimeDelta = TimeDelta::from_millis(50);
const HOST: Host = Host {
    handshake_rtt: RTT,
    initial_window: None,
    offload: Offload::None,
    scalable_marks: false,
    accecn: AccEcn::None,
    seed: 1,
};

fn at(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

/// A Reno sender of `segments`, 50 ms from its receiver, which has just sent its initial window.
fn sender(segments: u64) -> (Sender<AnyController>, Vec<Segment>) {
    let cc: CcSpec = "reno".parse().expect("a controller");
    let size = Stream::of(segments * u64::from(MSS_BYTES));
    let mut sender = Sender::new(at(0), cc, size, u64::MAX, HOST);
    let sent = burst(&mut sender, at(0));
    (sender, sent)
}

/// Everything that may leave now.
fn burst(sender: &mut Sender<AnyController>, now: Time) -> Vec<Segment> {
    std::iter::from_fn(|| sender.poll_segment(now)).collect()
}

fn numbers(segments: &[Segment]) -> Vec<u64> {
    segments.iter().map(|segment| segment.seq).collect()
}

/// The ACK of a receiver that has everything below `cumulative` and, except for one hole,
/// everything from there to `trigger`; without a hole if `trigger` is below `cumulative`.
fn ack(cumulative: u64, trigger: Segment) -> Ack {
    let hole = trigger.seq > cumulative;
    let block = Range { start: cumulative + 1, end: trigger.seq + 1 };
    Ack::new(cumulative, hole.then_some(block), trigger)
}

#[test]
//= rfc9002 7-3 test
//= bbr-06 2.4-1 test
fn inflight_does_not_exceed_the_window() {
    let (mut sender, sent) = sender(100);
    let mss = u64::from(MSS_BYTES);
    assert_eq!((sent.len(), sender.control().cwnd), (10, 10 * mss));
    for cumulative in 1..=10 {
        let window = sender.control().cwnd;
        sender.on_ack(
            at(50),
            &ack(cumulative, sent[cumulative as usize - 1]),
            &mut AckScratch::default(),
        );
        assert_eq!(sender.control().cwnd, window + mss);
        burst(&mut sender, at(50));
        let in_flight = sender.in_flight();
        assert!(in_flight <= sender.control().cwnd && in_flight + mss > sender.control().cwnd);
    }
}

#[test]
fn three_segments_above_a_hole_trigger_retransmission() {
    let (mut sender, sent) = sender(10);
    assert_eq!(numbers(&sent), (0..10).collect::<Vec<_>>());
    for segment in &sent[1..3] {
        sender.on_ack(at(50), &ack(0, *segment), &mut AckScratch::default());
        assert_eq!((burst(&mut sender, at(50)), sender.counters.packets_lost), (Vec::new(), 0));
    }
    sender.on_ack(at(50), &ack(0, sent[3]), &mut AckScratch::default());
    assert_eq!(sender.counters.packets_lost, 1);
    assert!(sent.iter().all(|segment| !segment.repeats));
    let again = sender.poll_segment(at(50)).expect("the window has room");
    assert_eq!((again.seq, again.tx, again.repeats), (0, 10, true));
    assert_eq!(sender.recovery_point, NonZeroU64::new(10));
}

/// With two segments above the hole, a quarter of min_rtt is allowed for reordering (RFC 8985
/// §6.2).
#[test]
fn fewer_segments_wait_for_the_reordering_window() {
    let (mut sender, sent) = sender(10);
    sender.on_ack(at(50), &ack(0, sent[2]), &mut AckScratch::default());
    let due = at(50) + RTT.divided_by(4);
    assert_eq!(sender.next_timer(), due);
    sender.on_timer(due, &mut AckScratch::default());
    assert_eq!(sender.counters.packets_lost, 1);
    assert_eq!(sender.poll_segment(due).map(|segment| segment.seq), Some(0));
}

#[test]
//= rfc9002 7.5-1 7.5-2 test
fn a_probe_repeats_the_last_segment_and_a_timeout_follows() {
    let (mut sender, _) = sender(3);
    let probe_at = sender.next_timer();
    assert_eq!(probe_at, at(100), "two round trips");
    sender.on_timer(probe_at, &mut AckScratch::default());
    let probe = burst(&mut sender, probe_at);
    assert_eq!(numbers(&probe), [2]);
    assert!(probe[0].repeats);
    assert_eq!((sender.in_flight(), sender.counters.timeouts), (3 * u64::from(MSS_BYTES), 0));
    let rto_at = sender.next_timer();
    assert_eq!(rto_at, probe_at + sender.rtt.rto(0));
    sender.on_timer(rto_at, &mut AckScratch::default());
    assert_eq!((sender.counters.timeouts, sender.in_flight()), (1, 0));
    assert_eq!(numbers(&burst(&mut sender, rto_at)), [0], "a window of one segment");
    assert_eq!(sender.next_timer(), rto_at + sender.rtt.rto(1), "backed off");
}

/// RFC 6298 §5.3: a SACK is not cumulative, so the timer of the segment below it keeps running.
#[test]
fn sack_does_not_postpone_the_timeout_of_missing_segments() {
    let (mut sender, sent) = sender(10);
    let rto_at = sender.rto_at;
    for (after, segment) in (50..).zip(&sent[1..3]) {
        sender.on_ack(at(after), &ack(0, *segment), &mut AckScratch::default());
        assert_eq!(sender.rto_at, rto_at);
    }
    sender.on_ack(at(60), &ack(0, sent[3]), &mut AckScratch::default());
    assert_eq!(sender.poll_segment(at(70)).map(|again| again.seq), Some(0));
    let repaired = sender.rto_at;
    assert_eq!(repaired, at(70) + sender.rtt.rto(0), "from the retransmission");
    sender.on_ack(at(80), &ack(0, sent[4]), &mut AckScratch::default());
    assert_eq!(sender.rto_at, at(80) + sender.rtt.rto(0), "sent before the retransmission");
    sender.on_ack(at(90), &ack(1, sent[5]), &mut AckScratch::default());
    assert_eq!(sender.rto_at, at(90) + sender.rtt.rto(0), "SND.UNA advances");
}

/// The original arrives late: the probe was spurious, and no declared loss can be undone.
#[test]
fn spurious_probe_has_no_effect() {
    let (mut sender, sent) = sender(3);
    let window = sender.control().cwnd;
    sender.on_timer(at(100), &mut AckScratch::default());
    assert_eq!(numbers(&burst(&mut sender, at(100))), [2]);
    let mut scratch = AckScratch::default();
    let rtt = sender.on_ack(at(120), &ack(3, sent[2]), &mut scratch);
    assert_eq!(rtt, Some(TimeDelta::from_millis(120)), "of the transmission that arrived");
    assert!(scratch.spurious.is_empty());
    assert!(sender.control().cwnd >= window);
    assert_eq!((sender.in_flight(), sender.next_timer()), (0, Time::NEVER));
}

#[test]
fn timeout_extends_recovery_until_everything_sent_is_repaired() {
    let (mut sender, sent) = sender(100);
    for segment in &sent[1..8] {
        sender.on_ack(at(50), &ack(0, *segment), &mut AckScratch::default());
        burst(&mut sender, at(50));
    }
    let next = sender.board.next();
    assert!(sender.recovery_point < NonZeroU64::new(next), "new data sent in recovery");
    sender.on_timer(sender.rto_at, &mut AckScratch::default());
    assert_eq!(sender.counters.timeouts, 1);
    assert_eq!(sender.recovery_point, NonZeroU64::new(next));
}

/// A Prague sender with AccECN after the ACK of its first packet, which arrived with this field, and whether it leaves ECT(1).
fn after_first(ecn: Ecn) -> (Sender<AnyController>, bool) {
    let cc: CcSpec = "prague".parse().expect("a controller");
    let host = Host { scalable_marks: true, accecn: AccEcn::Option, ..HOST };
    let size = Stream::of(100 * u64::from(MSS_BYTES));
    let mut sender = Sender::new(at(0), cc, size, u64::MAX, host);
    let sent = burst(&mut sender, at(0));
    let mut counters = EcnCounters::new(true);
    counters.on_segment(ecn, MSS_BYTES);
    let ack = Ack { ecn: EcnEcho::AccEcn(counters.report(0)), ..ack(1, sent[0]) };
    sender.on_ack(at(50), &ack, &mut AckScratch::default());
    let leaves = sender.leaves_ect1(at(50));
    (sender, leaves)
}

/// The window halves with the first mark in slow start.
#[test]
fn marks_reach_the_controller_from_the_ace_field() {
    let [(marked, leaves), (unmarked, _)] = [Ecn::Ce, Ecn::Ect1].map(after_first);
    let windows = [marked, unmarked].map(|sender| sender.control().cwnd);
    assert!(windows[0] * 3 < windows[1] * 2, "{windows:?}");
    assert!(!leaves, "ECT(1) and CE are what it expects");
}

#[test]
fn bytes_with_ect0_end_ect1() {
    let (sender, leaves) = after_first(Ecn::Ect0);
    assert!(leaves && sender.controller().found_classic_queue(), "Prague is CUBIC from now on");
}
