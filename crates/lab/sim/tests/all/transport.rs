//! Checks of the transport from first principles, with every controller.

use crate::common::{case, spec};
use uncork_cc::InitialWindow;
use uncork_flow::FlowRecord;
use uncork_sim::{FlowSpec, MSS_BYTES, PACKET_BYTES, Workload};
use uncork_units::{Time, TimeDelta};

const CONTROLLERS: [&str; 6] = ["reno", "cubic", "bbr1", "bbr2", "bbr3", "prague"];

fn transfer(case: &crate::common::Case, cc: &str, bytes: u64, seed: u64) -> FlowRecord {
    let flow = FlowSpec::new(spec(cc), Workload::Transfer(bytes));
    let end = Time::ZERO + TimeDelta::from_secs(10_000);
    case.run(vec![flow], seed, end).result.flows.remove(0)
}

/// SYN, SYN/ACK, request, first segment: two round trips until the first byte, and enough for one
/// segment.
#[test]
fn small_object_takes_two_round_trips() {
    let record = transfer(&case(100, 40, 1000), "cubic", 1000, 1);
    let seconds = record.completion_ns.expect("finished") as f64 / 1e9;
    assert!((0.0800..0.0802).contains(&seconds), "{seconds}");
    assert_eq!(record.completion_ns, record.first_byte_ns);
    assert_eq!((record.packets_sent, record.bytes_delivered), (1, 1000));
}

/// The window leaves within half of the handshake's round trip, so a buffer of four packets loses nothing. The default
/// window of ten leaves at once.
#[test]
fn initial_window_of_an_object_saves_its_further_round_trips() {
    let (bytes, end) = (50_000, Time::ZERO + TimeDelta::from_secs(10));
    for cc in CONTROLLERS {
        let run = |initial_window, milli_bdp| {
            let default = FlowSpec::new(spec(cc), Workload::Transfer(bytes));
            let flow = FlowSpec { initial_window, ..default };
            let record = case(100, 100, milli_bdp).run(vec![flow], 1, end).result.flows.remove(0);
            let milliseconds = record.completion_ns.expect("finished") / 1_000_000;
            (milliseconds, record.bytes_retransmitted)
        };
        let (large, resent) = run(Some(InitialWindow::Packets(40)), 5);
        assert!((200..=260).contains(&large) && resent == 0, "{cc}: {large} ms, {resent} B");
        let (usual, _) = run(None, 1000);
        assert!((350..=420).contains(&usual), "{cc}: {usual} ms");
    }
}

#[test]
fn no_transfer_is_faster_than_the_link() {
    for cc in CONTROLLERS {
        let bytes = 5_000_000;
        let record = transfer(&case(20, 50, 2000), cc, bytes, 1);
        let wire = bytes as f64 * f64::from(PACKET_BYTES) / f64::from(MSS_BYTES);
        let ideal = wire * 8.0 / 20e6 + 0.1;
        let seconds = record.completion_ns.expect("finished") as f64 / 1e9;
        assert!(seconds >= ideal, "{cc}: {seconds} s, ideal {ideal} s");
        assert!(seconds <= 1.15 * ideal, "{cc}: {seconds} s, ideal {ideal} s");
    }
}

/// All bytes arrive once; any other bytes sent are retransmissions.
#[test]
fn bytes_are_conserved() {
    for cc in CONTROLLERS {
        for (loss, seed) in [("0%", 1), ("0.1%", 2), ("3%", 3), ("20%", 4)] {
            let bytes = 1_000_000;
            let record = transfer(&case(20, 50, 500).loss(loss), cc, bytes, seed);
            assert_eq!(record.bytes_delivered, bytes, "{cc} at {loss}");
            assert_eq!(record.bytes_sent - record.bytes_retransmitted, bytes, "{cc} at {loss}");
        }
    }
}

/// Loss of retransmissions is detected by time order, not by waiting for the retransmission timer.
#[test]
//= rfc9937 5-3 test
fn lost_retransmissions_need_no_timeout() {
    let record = case(100, 40, 2000).every_nth_lost(5).flow("bbr1", 20, 1).result.flows.remove(0);
    assert!(record.lab().packets_dropped_random > 400, "{}", record.lab().packets_dropped_random);
    assert_eq!(record.timeouts, 0);
}

/// Hundreds of three-packet transfers that overflow a queue: probes, SACKs and timeouts of all
/// kinds.
#[test]
fn many_small_transfers_complete() {
    for cc in CONTROLLERS {
        let flows = vec![FlowSpec::new(spec(cc), Workload::Transfer(3000)); 500];
        let end = Time::ZERO + TimeDelta::from_secs(600);
        let run = case(5, 20, 1000).loss("5%").run(flows, 1, end);
        assert!(run.result.flows.iter().all(|flow| flow.completion_ns.is_some()), "{cc}");
        assert!(run.result.flows.iter().any(|flow| flow.timeouts > 0), "{cc}");
    }
}

/// The SYN/ACK is packet 1, so the tenth packet is the ninth and last segment. A probe repairs it
/// after about two round trips, long before the retransmission timer.
#[test]
fn lost_tail_is_repaired_by_a_probe() {
    let bytes = 9 * u64::from(MSS_BYTES);
    let record = transfer(&case(100, 40, 2000).every_nth_lost(10), "cubic", bytes, 1);
    let seconds = record.completion_ns.expect("finished") as f64 / 1e9;
    assert_eq!((record.lab().packets_dropped_random, record.timeouts), (1, 0));
    assert_eq!(record.bytes_retransmitted, u64::from(MSS_BYTES));
    assert!((0.16..0.48).contains(&seconds), "{seconds} s");
}

#[test]
fn timeouts_back_off_and_the_transfer_still_ends() {
    for cc in CONTROLLERS {
        let record = transfer(&case(10, 20, 1000).loss("50%"), cc, 100_000, 1);
        assert!(record.completion_ns.is_some(), "{cc}");
        assert!(record.timeouts > 0, "{cc}");
    }
}

/// A segment takes 187 ms on a link of 64 kbit/s, and a full queue 1.9 s: several times the timeout
/// from the handshake. The ACKs that arrive must correct it.
#[test]
//= rfc9406 4.3-3 test
//= bbr-06 4.2-2 4.2-3 test
fn too_short_timeout_is_corrected() {
    for cc in CONTROLLERS {
        let mut slow = case(1, 50, 1000).packets(10);
        slow.path.link.rate =
            uncork_path::RateSpec::Constant(uncork_units::Rate::from_bits_per_sec(64_000));
        let record = transfer(&slow, cc, 300_000, 1);
        let rtt = record.rtt_ms.expect("measured");
        assert!(rtt.min >= 237.0 && rtt.p95 <= 2_300.0, "{cc}: {rtt:?}");
        let resent = record.bytes_retransmitted as f64 / record.bytes_sent as f64;
        assert!(resent < 0.25, "{cc}: {resent:.2}");
        assert!(record.timeouts <= 5, "{cc}: {} timeouts", record.timeouts);
    }
}

/// Data that arrives after the flow's end does not count as goodput.
#[test]
fn timed_flow_counts_nothing_after_its_end() {
    let until = Time::ZERO + TimeDelta::from_millis(100);
    let flow = FlowSpec::new(spec("cubic"), Workload::Until(until));
    let end = Time::ZERO + TimeDelta::from_secs(1);
    let run = case(100, 1, 1000).packets(1000).run(vec![flow], 1, end);
    let record = &run.result.flows[0];
    let capacity = run.path.link.nominal_rate().bytes_in(TimeDelta::from_millis(100));
    assert!(record.bytes_delivered <= capacity, "{} of {capacity}", record.bytes_delivered);
    assert_eq!(record.lab().packets_dropped_queue, 0);
    assert!(record.bytes_delivered + 50_000 < record.bytes_sent, "the queue was not empty");
}

/// One window per round trip.
#[test]
//= bbr-06 4.1.1.3-4 test
fn receive_window_limits_the_rate() {
    let window = 64 * u64::from(MSS_BYTES);
    for cc in CONTROLLERS {
        let end = Time::ZERO + TimeDelta::from_secs(20);
        let mut flow = FlowSpec::new(spec(cc), Workload::Until(end));
        flow.receive_window = window;
        let run = case(100, 100, 1000).run(vec![flow], 1, end);
        let limit = window as f64 * 8.0 / 0.1;
        let goodput = run.goodput(0, 5.0, 20.0);
        assert!(goodput <= 1.001 * limit, "{cc}: {goodput:.0} bit/s of {limit:.0}");
        assert!(goodput >= 0.85 * limit, "{cc}: {goodput:.0} bit/s of {limit:.0}");
    }
}

#[test]
fn flows_have_their_own_rtts_and_starts() {
    let end = Time::ZERO + TimeDelta::from_secs(5);
    let flows = [(20, 0), (80, 2)].map(|(rtt_ms, start_s)| FlowSpec {
        rtt: Some(TimeDelta::from_millis(rtt_ms)),
        start: Time::ZERO + TimeDelta::from_secs(start_s),
        ..FlowSpec::new(spec("cubic"), Workload::Until(end))
    });
    let run = case(50, 40, 1000).run(flows.to_vec(), 1, end);
    let [first, second] = &run.result.flows[..] else { panic!("two flows") };
    assert_eq!(first.first_byte_ns.expect("sent") / 1_000_000, 40);
    assert!(second.first_byte_ns.expect("sent") >= 160_000_000);
    assert!(second.rtt_ms.expect("measured").min >= 80.0);
    assert!(first.rtt_ms.expect("measured").min < 22.0);
    assert_eq!(second.start_ns, 2_000_000_000);
}

/// Short flows of the past must not make each sample longer.
#[test]
fn a_connection_that_is_over_has_one_last_point() {
    let end = Time::ZERO + TimeDelta::from_secs(20);
    let short = vec![FlowSpec::new(spec("cubic"), Workload::Transfer(3000)); 50];
    let long = FlowSpec::new(spec("cubic"), Workload::Until(end));
    let run = case(5, 20, 100).run([vec![long], short].concat(), 1, end);
    let points = |flow: u32| run.result.series.iter().filter(move |point| point.flow == flow);
    assert!(points(0).count() > 1900);
    // Of 2,000 each, if the past were repeated.
    let all: usize = (1..=50).map(|flow| points(flow).count()).sum();
    assert!(all < 50 * 500, "{all}");
    for flow in 1..=50 {
        let last = points(flow).next_back().expect("its last state");
        assert_eq!((last.delivered_bytes, last.inflight_bytes), (3000, 0), "{flow}");
    }
}
