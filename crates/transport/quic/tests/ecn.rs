//! ECN of real connections of the stack, in virtual time: codepoints, validation, and a path that mangles.
mod pair;

use std::time::Duration;

use noq_proto::EcnCodepoint::{self, Ce, Ect0, Ect1};
use pair::{Pair, Spec, choice};
use uncork_cc::EcnMode;
use uncork_quic::{Choice, Observation};

type Remark = fn(Option<EcnCodepoint>) -> Option<Option<EcnCodepoint>>;

/// Fetches 3 MB over 20 Mbit/s and 20 ms. Returns what the server's connection shows afterwards.
fn fetch(pair: &mut Pair) -> Observation {
    fetch_bytes(pair, 3_000_000)
}

fn fetch_bytes(pair: &mut Pair, bytes: u64) -> Observation {
    let stream = pair.request(bytes);
    pair.run(stream, Duration::from_mins(2)).expect("it arrives");
    pair.wait(Duration::from_secs(2));
    pair.handle.observe().expect("a connection")
}

fn with(cc: &str, ecn: EcnMode) -> Spec {
    let mut spec = Spec::new(cc, 20, 20);
    spec.cc = Choice { ecn, ..choice(cc) };
    spec
}

#[test]
fn each_mode_sends_its_codepoint_alone() {
    for (ecn, of) in [(EcnMode::None, 0), (EcnMode::L4s, 1), (EcnMode::Classic, 2)] {
        let mut pair = Pair::new(with("prague", ecn));
        let seen = fetch(&mut pair);
        assert_eq!((seen.ecn, seen.has_ecn_failed), (ecn, false));
        assert!(pair.sent[of] > 2000, "{ecn}: {:?}", pair.sent);
        assert_eq!(pair.sent[of], pair.sent.iter().sum::<u64>(), "{ecn}: {:?}", pair.sent);
    }
}

#[test]
fn prague_sends_ect1_and_other_controllers_ect0_unless_chosen() {
    for (cc, of) in [("prague", 1), ("cubic", 2), ("bbr3", 2)] {
        let mut pair = Pair::new(Spec::new(cc, 20, 20));
        fetch(&mut pair);
        assert_eq!(pair.sent[of], pair.sent.iter().sum::<u64>(), "{cc}: {:?}", pair.sent);
    }
}

#[test]
fn marks_of_a_shallow_queue_are_all_counted_and_leave_a_short_queue() {
    // A threshold of 1 ms.
    let mut pair = Pair::new(Spec { mark_above: 2_500, ..with("prague", EcnMode::L4s) });
    let seen = fetch(&mut pair);
    assert_eq!((seen.ce_packets, seen.ecn, seen.lost_packets), (pair.marked, EcnMode::L4s, 0));
    assert!(pair.marked > 100, "{}", pair.marked);
    let rtt = seen.rtt.expect("a sample");
    // A queue of 1 ms, and a part of the last acknowledgement's delay.
    assert!(rtt.smoothed.as_millis_f64() < 25.0, "{rtt:?}");
}

/// RFC 9000 §13.4.1: the peer counts for the connection, not for a path.
#[test]
fn marks_before_a_change_of_address_count_once() {
    let mut pair = Pair::new(Spec { mark_above: 2_500, ..with("prague", EcnMode::L4s) });
    let before = fetch(&mut pair);
    assert!(before.ce_packets > 100, "{before:?}");
    for address in ["192.0.2.3:5000", "192.0.2.4:5000"] {
        pair.move_client(address);
        let seen = fetch(&mut pair);
        assert_eq!(seen.ce_packets, pair.marked, "{address}");
    }
}

/// RFC 9000 §13.4.2.1: the counts are missing, or those of another codepoint.
#[test]
fn a_path_that_mangles_ect1_gets_no_codepoint_and_prague_becomes_cubic() {
    let remarks: [(&str, Remark); 2] =
        [("bleached", |_| Some(None)), ("remarked to ECT(0)", |ecn| Some(ecn.map(|_| Ect0)))];
    for (what, remark) in remarks {
        for mark_above in [u64::MAX, 2_500] {
            let spec = Spec { mark_above, remark, ..with("prague", EcnMode::L4s) };
            let mut pair = Pair::new(spec);
            let seen = fetch(&mut pair);
            assert_eq!((seen.ecn, seen.has_ecn_failed), (EcnMode::None, true), "{what}");
            // Those of the handshake and the first window.
            assert!(pair.sent[1] < 40 && pair.sent[2] == 0, "{what}: {:?}", pair.sent);
        }
    }
}

/// Marks look like those of a full queue: the window falls to its minimum.
#[test]
fn a_path_that_marks_every_packet_is_believed() {
    let remark = |ecn: Option<_>| Some(ecn.map(|_| Ce));
    let mut pair = Pair::new(Spec { remark, ..with("prague", EcnMode::L4s) });
    let seen = fetch_bytes(&mut pair, 100_000);
    assert!(!seen.has_ecn_failed && seen.ce_packets > 60, "{seen:?}");
}

/// RFC 9000 §13.4.2: some networks discard packets with a codepoint that they do not know.
#[test]
fn a_path_that_discards_ect1_gets_packets_without_after_three_probe_timeouts() {
    let remark = |ecn: Option<_>| (ecn != Some(Ect1)).then_some(ecn);
    let mut pair = Pair::new(Spec { remark, ..with("prague", EcnMode::L4s) });
    let seen = fetch(&mut pair);
    assert_eq!((seen.ecn, seen.has_ecn_failed), (EcnMode::None, true));
    assert!(pair.sent[0] > 2000 && pair.sent[1] < 20, "{:?}", pair.sent);
}

#[test]
fn the_codepoint_of_an_open_connection_can_change_without_a_failure() {
    let mut pair = Pair::new(with("prague", EcnMode::Classic));
    let stream = pair.request(6_000_000);
    for ecn in [EcnMode::L4s, EcnMode::None, EcnMode::L4s, EcnMode::Classic] {
        pair.wait(Duration::from_millis(300));
        let before = pair.sent;
        pair.handle.choose(Choice { ecn, ..choice("prague") });
        pair.wait(Duration::from_millis(300));
        let seen = pair.handle.observe().expect("a connection");
        assert_eq!((seen.ecn, seen.has_ecn_failed), (ecn, false));
        assert!(pair.sent != before);
    }
    pair.run(stream, Duration::from_mins(1)).expect("it arrives");
    assert!(pair.sent.iter().all(|sent| *sent > 300), "{:?}", pair.sent);
    assert!(!pair.handle.observe().expect("a connection").has_ecn_failed);
}
