//! Paths so short and fast that the pacer's waits round down to zero.

use std::sync::atomic::AtomicBool;

use uncork_path::{Buffer, PathSpec};
use uncork_sim::{FlowSpec, RunSpec, Workload};
use uncork_units::{Rate, Rng, Time, TimeDelta};

/// A bulk flow of `cc` for 50 ms.
fn bulk(mbit: u64, rtt_micros: u64, queue: &str, cc: &str, receive_window: u64) -> RunSpec {
    let end = Time::ZERO + TimeDelta::from_millis(50);
    let rtt = TimeDelta::from_micros(rtt_micros);
    let mut path = PathSpec::new(Rate::from_mbit(mbit), rtt, Buffer::Packets(100));
    path.link.queue = queue.parse().expect("a queue");
    let cc = cc.parse().expect("a controller");
    let flow = FlowSpec { receive_window, ..FlowSpec::new(cc, Workload::Until(end)) };
    RunSpec::over(path, vec![flow], 1, end)
}

/// Payload that arrives, in Mbit/s.
fn goodput(spec: &RunSpec) -> f64 {
    let played = uncork_quic_sim::run(spec, &AtomicBool::new(false)).expect("a run that ends");
    assert_eq!(played.failures, Vec::<String>::new());
    played.result.flows[0].bytes_delivered as f64 * 8.0 / 50e-3 / 1e6
}

#[test]
fn small_receive_window_over_40_us_does_not_stop_time() {
    let reached = goodput(&bulk(975, 40, "codel", "cubic", 30_000));
    assert!((500.0..975.0).contains(&reached), "{reached} Mbit/s");
}

/// 300 scenarios: every run ends and delivers data.
#[test]
fn random_short_paths_end() {
    let mut rng = Rng::new(1, 1);
    let mut pick = |from: u64, to: u64| from + rng.next_u64() % (to - from);
    for _ in 0..300 {
        let (mbit, rtt) = (pick(600, 10_000), pick(10, 60));
        let queue = ["droptail", "codel", "fq_codel"][pick(0, 3) as usize];
        let cc = ["cubic", "reno", "bbr1", "bbr3"][pick(0, 4) as usize];
        let window = [30_000, 100_000, 1_000_000, FlowSpec::WIDE_OPEN][pick(0, 4) as usize];
        let mut spec = bulk(mbit, rtt, queue, cc, window);
        spec.end = Time::ZERO + TimeDelta::from_millis(5);
        spec.flows[0].workload = Workload::Until(spec.end);
        let reached = goodput(&spec);
        assert!(reached > 0.0, "{mbit} Mbit/s, {rtt} us, {queue}, {cc}, window {window}");
    }
}

/// The initial window of ten packets leaves at once, and five find room. A card of the link's rate sends
/// them one after the other.
#[test]
fn a_card_sends_the_initial_window_in_a_row() {
    let dropped = |card: Option<Rate>| {
        let mut spec = bulk(100, 5000, "droptail", "cubic", 30_000);
        spec.paths[0].link.buffer = Buffer::Packets(4);
        spec.card = card;
        let played = uncork_quic_sim::run(&spec, &AtomicBool::new(false)).expect("a run that ends");
        assert_eq!(played.failures, Vec::<String>::new());
        let flow = &played.result.flows[0];
        assert!(flow.bytes_delivered > 50_000, "{} B", flow.bytes_delivered);
        flow.lab.as_ref().expect("of a simulator").packets_dropped_queue
    };
    assert!(dropped(None) > 0);
    assert_eq!(dropped(Some(Rate::from_mbit(100))), 0);
}
