//! Paths that change, lose packets on the way back or clear marks: over both kinds of endpoints.

use uncork_apps::{ClientSpec, FetchSpec, ObjectSizes};
use uncork_flow::FlowRecord;
use uncork_path::{Buffer, Ecn, EcnChange, LossPosition, LossSpec, PathSpec, Step};
use uncork_sim::{AckPolicy, FlowSpec, Migration, RunResult, RunSpec, Workload};
use uncork_units::{Time, TimeDelta};

use super::{flow, path, played, secs};

/// The results of QUIC endpoints and of segments.
fn both(spec: &RunSpec) -> [RunResult; 2] {
    [played(spec).result, uncork_sim::run(spec)]
}

fn millis(millis: u64) -> TimeDelta {
    TimeDelta::from_millis(millis)
}

fn steps<T: Copy>(steps: &[(u64, T)]) -> Vec<Step<T>> {
    steps.iter().map(|(at, value)| Step { at: Time::ZERO + millis(*at), value: *value }).collect()
}

fn loss(text: &str) -> LossSpec {
    text.parse().expect("a loss")
}

fn transfer(path: PathSpec, bytes: u64) -> RunSpec {
    RunSpec::over(path, vec![flow("cubic", Workload::Transfer(bytes))], 1, secs(60))
}

fn completion_s(flow: &FlowRecord) -> f64 {
    flow.completion_ns.expect("complete") as f64 / 1e9
}

/// A flow that its window keeps from queueing has the round trips of the path. None of the steps loses or
/// reorders a packet.
#[test]
fn round_trips_follow_the_steps_in_order() {
    let mut path = path(20, 40);
    path.rtt_steps = steps(&[(2000, millis(120)), (4000, millis(40))]);
    let bulk = flow("cubic", Workload::Until(secs(6)));
    let flows = vec![FlowSpec { receive_window: 50_000, ..bulk }];
    let mut spec = RunSpec::over(path, flows, 1, secs(6));
    spec.sample_every = Some(millis(50));
    for RunResult { flows, series, .. } in both(&spec) {
        let during = |from: u64, to: u64| {
            let span = from * 1_000_000..to * 1_000_000;
            let of_span = series.iter().filter(|point| span.contains(&point.time_ns));
            let rtts: Vec<u64> =
                of_span.filter_map(|point| Some(point.rtt_ns? / 1_000_000)).collect();
            (*rtts.iter().min().expect("samples"), *rtts.iter().max().expect("samples"))
        };
        for (from, to, rtt) in [(1000, 2000, 40), (2500, 4000, 120), (4500, 6000, 40)] {
            let (min, max) = during(from, to);
            assert!(min >= rtt && max <= rtt + 6, "{from} ms: {min} to {max} ms");
        }
        assert_eq!(flows[0].packets_lost, 0);
    }
}

/// An outage that drops costs its length and the time to find out.
#[test]
fn an_outage_drops_in_both_directions() {
    let alone = both(&transfer(path(20, 40), 5_000_000)).map(|run| completion_s(&run.flows[0]));
    let mut cut = path(20, 40);
    cut.loss_steps = steps(&[(1000, loss("100%")), (1300, loss("0%"))]);
    // What leaves a client behind the uplink is lost at once, and packets to it when they arrive.
    cut.uplink_loss_steps = steps(&[(950, loss("100%")), (1300, loss("0%"))]);
    for (run, alone) in both(&transfer(cut, 5_000_000)).iter().zip(alone) {
        let flow = &run.flows[0];
        let took = completion_s(flow);
        assert!((alone + 0.3..alone + 1.6).contains(&took), "{took} s, alone {alone} s");
        let lab = flow.lab();
        assert!(lab.packets_dropped_random > 0 && lab.acks_dropped > 5, "{lab:?}");
    }
}

/// Lost acknowledgements cost little, because later ones carry the same. Lost requests are repeated.
#[test]
fn the_way_back_loses_acknowledgements_and_requests() {
    let mut lossy = path(20, 40);
    lossy.uplink_loss = loss("20%");
    let alone = both(&transfer(path(20, 40), 5_000_000)).map(|run| completion_s(&run.flows[0]));
    for (run, alone) in both(&transfer(lossy.clone(), 5_000_000)).iter().zip(alone) {
        let (flow, lab) = (&run.flows[0], run.flows[0].lab());
        assert!((0.9..1.5).contains(&(completion_s(flow) / alone)), "{flow:?}, alone {alone} s");
        assert!(lab.acks_dropped > 100 && lab.packets_dropped_random == 0, "{lab:?}");
    }
    let fetch =
        FetchSpec { sizes: ObjectSizes::fixed(1000), requests: Some(20), ..FetchSpec::once(1) };
    let flows = vec![flow("cubic", Workload::Client(0))];
    let over = RunSpec::over(lossy, flows, 1, secs(60));
    for run in both(&RunSpec { clients: vec![ClientSpec::Fetch(fetch)], ..over }) {
        assert!(
            run.requests.len() == 20 && run.requests.iter().all(|it| it.completion_ns.is_some())
        );
    }
}

/// A queue that would mark drops what has no ECN field any more; a mark that is cleared behind it is lost.
#[test]
fn marks_are_cleared_before_or_after_the_queue() {
    let run = |bleaches: Option<LossPosition>| {
        let mut path = path(20, 40);
        path.link.queue = "codel:ecn".parse().expect("a queue");
        path.ecn_change = bleaches.map(|_| EcnChange::Bleach);
        path.ecn_position = bleaches.unwrap_or(LossPosition::Before);
        let mut spec = transfer(path, 5_000_000);
        spec.flows[0].ecn = Ecn::Ect0;
        both(&spec)
            .map(|run| (run.flows[0].packets_marked, run.flows[0].lab().packets_dropped_queue))
    };
    for (marked, _) in run(None) {
        assert!(marked > 0);
    }
    for (marked, dropped) in run(Some(LossPosition::Before)) {
        assert!(marked == 0 && dropped > 0, "{marked} {dropped}");
    }
    // A QUIC stack stops sending ECT when no mark is reported (RFC 9000 §13.4.2), and then has drops.
    let [quic, segments] = run(Some(LossPosition::After));
    assert!(quic.0 == 0 && quic.1 > 0, "{quic:?}");
    assert_eq!(segments.0, 0);
}

/// A tenth of the acknowledgements is lost, which counts them. The client's other packets are few, and there are
/// no holes to acknowledge: BBRv3 loses nothing in a deep buffer.
#[test]
fn clients_acknowledge_as_their_policy_says() {
    let packets_per_ack = |acks| {
        let mut path = path(20, 40);
        path.uplink_loss = loss("every:10");
        path.link.buffer = Buffer::MilliBdp(4000);
        let flow = FlowSpec { acks, ..flow("bbr3", Workload::Transfer(5_000_000)) };
        let spec = RunSpec::over(path, vec![flow], 1, secs(60));
        both(&spec).map(|run| {
            let flow = &run.flows[0];
            assert!(flow.completion_ns.is_some());
            flow.packets_sent as f64 / (10 * flow.lab().acks_dropped) as f64
        })
    };
    for (every, range) in [(1, 0.9..1.2), (2, 1.6..2.3), (8, 5.5..9.0)] {
        let acks = AckPolicy { every, ..AckPolicy::USUAL };
        for (per_ack, engine) in packets_per_ack(acks).into_iter().zip(["quic-sim", "sim"]) {
            assert!(range.contains(&per_ack), "{engine}, every {every}: {per_ack}");
        }
    }
}

/// 100 kB per 40 ms are 20 Mbit/s, of a link of 100. The end of a window never moves back, and no step stops a
/// flow.
#[test]
fn receive_windows_follow_their_steps() {
    let bulk = flow("cubic", Workload::Until(secs(6)));
    let flow = FlowSpec { receive_window: 100_000, receive_window_steps: Some(0), ..bulk };
    let windows = vec![steps(&[(2000, 300_000), (4000, 50_000)])];
    let over = RunSpec::over(path(100, 40), vec![flow], 1, secs(6));
    let sample_every = Some(millis(100));
    let spec = RunSpec { receive_window_steps: windows, sample_every, ..over };
    for RunResult { series, .. } in both(&spec) {
        let delivered = |at_ms: u64| {
            let point = series.iter().find(|point| point.time_ns == at_ms * 1_000_000);
            point.expect("a sample").delivered_bytes
        };
        for (from, to, mbit) in [(1000, 2000, 20.0), (3000, 4000, 60.0), (5000, 5900, 10.0)] {
            let reached =
                (delivered(to) - delivered(from)) as f64 * 8.0 / ((to - from) as f64 * 1e3);
            assert!((0.85..1.05).contains(&(reached / mbit)), "{from} ms: {reached} Mbit/s");
        }
    }
}

/// Both ends ignore the copy of a packet, and the sender does not take it for a loss.
#[test]
fn copies_of_packets_change_little() {
    let alone = both(&transfer(path(20, 40), 5_000_000)).map(|run| completion_s(&run.flows[0]));
    let mut copying = path(20, 40);
    copying.duplicates = loss("every:10");
    for (run, alone) in both(&transfer(copying, 5_000_000)).iter().zip(alone) {
        let flow = &run.flows[0];
        assert_eq!(flow.bytes_delivered, 5_000_000);
        assert!((0.8..1.25).contains(&(completion_s(flow) / alone)), "{flow:?}, alone {alone} s");
    }
}

/// RFC 9000 §14.3: larger packets are probes first, and their loss does not indicate congestion.
#[test]
fn a_quic_stack_finds_the_largest_packet_of_a_path() {
    let mean_packet = |max_packet| {
        let mut path = path(20, 40);
        path.max_packet = max_packet;
        let run = played(&transfer(path, 5_000_000)).result;
        let flow = &run.flows[0];
        let dropped = flow.lab().packets_dropped_random;
        (flow.bytes_sent / flow.packets_sent, dropped, completion_s(flow))
    };
    let (any, none, alone) = mean_packet(None);
    let (small, probes, took) = mean_packet(Some(1350));
    assert!(any > 1350 && none == 0, "{any} B, {none} lost");
    assert!((1200..1350).contains(&small) && (1..20).contains(&probes), "{small} B, {probes} lost");
    assert!(took < 1.2 * alone, "{took} s, with larger packets {alone} s");
}

/// A bulk flow with a migration at 5 s, and samples of its window each 20 ms.
fn migrated(cc: &str, migration: Migration) -> RunSpec {
    let flows = vec![FlowSpec { migrations: Some(0), ..flow(cc, Workload::Until(secs(10))) }];
    let over = RunSpec::over(path(20, 40), flows, 1, secs(10));
    let migrations = vec![vec![Step { at: secs(5), value: migration }]];
    RunSpec { migrations, sample_every: Some(millis(20)), ..over }
}

/// The server sends to the old host until the client's first packet from the new one arrives: a round trip of packets
/// is lost, and the connection goes on. A NAT still delivers what comes to the old port.
#[test]
fn packets_to_the_old_host_are_lost() {
    for cc in ["cubic", "bbr3"] {
        for migration in [Migration::Address, Migration::Port] {
            let spec = migrated(cc, migration);
            let stays = RunSpec { migrations: vec![Vec::new()], ..spec.clone() };
            let [moved, stays] = [spec, stays].map(|spec| played(&spec).result.flows.remove(0));
            let lost = moved.lab().packets_dropped_random;
            // 20 Mbit/s for 20 to 80 ms.
            let expected = if migration == Migration::Address { 30..=170 } else { 0..=0 };
            assert!(expected.contains(&lost), "{cc} {migration:?}: {lost} lost");
            assert_eq!(stays.lab().packets_dropped_random, 0);
            let part = moved.bytes_delivered as f64 / stays.bytes_delivered as f64;
            assert!((0.85..1.0).contains(&part), "{cc} {migration:?}: {part:.3} of the bytes");
        }
    }
}

/// Another host is another path: the server begins with an initial window (RFC 9000 §9.4). Another port is not.
#[test]
fn a_new_host_resets_the_window_and_a_new_port_does_not() {
    let smallest = |migration| {
        let series = played(&migrated("bbr3", migration)).result.series;
        let after = series.iter().filter(|it| (5_000..5_300).contains(&(it.time_ns / 1_000_000)));
        after.map(|point| point.cwnd_bytes).min().expect("samples")
    };
    let (address, port) = (smallest(Migration::Address), smallest(Migration::Port));
    assert!(address < 20_000 && port > 40_000, "{address} {port}");
}
