//! Runs of the segment simulator, executed by real QUIC endpoints.

mod changes;
mod recovery;
mod starts;

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use uncork_apps::{AudioSpec, CbrSpec, ClientSpec, FetchSpec, ObjectSizes, Track};
use uncork_path::{Buffer, Ecn, LinkSpec, PathSpec};
use uncork_quic_sim::QuicRun;
use uncork_sim::{FlowSpec, RunSpec, Workload};
use uncork_units::{Rate, Time, TimeDelta};

fn secs(secs: u64) -> Time {
    Time::ZERO + TimeDelta::from_secs(secs)
}

fn path(rate_mbit: u64, rtt_ms: u64) -> PathSpec {
    let rtt = TimeDelta::from_millis(rtt_ms);
    PathSpec::new(Rate::from_mbit(rate_mbit), rtt, Buffer::MilliBdp(1000))
}

fn flow(cc: &str, workload: Workload) -> FlowSpec {
    FlowSpec::new(cc.parse().expect("a controller"), workload)
}

fn played(spec: &RunSpec) -> QuicRun {
    let played = uncork_quic_sim::run(spec, &AtomicBool::new(false)).expect("a run");
    assert_eq!(played.failures, Vec::<String>::new());
    played
}

#[test]
fn transfers_last_as_with_segments() {
    for cc in ["reno", "cubic", "bbr1", "bbr2", "bbr3", "prague"] {
        let flows = vec![flow(cc, Workload::Transfer(10_000_000))];
        let spec = RunSpec::over(path(20, 50), flows, 1, secs(30));
        let quic = &played(&spec).result.flows[0];
        let tcp = &uncork_sim::run(&spec).flows[0];
        let [quic_s, tcp_s] = [quic, tcp].map(|flow| flow.completion_ns.unwrap_or(0) as f64 / 1e9);
        println!("{cc}: {quic_s:.3} s, with segments {tcp_s:.3} s");
        assert!((quic_s / tcp_s - 1.0).abs() < 0.05, "{cc}: {quic_s} {tcp_s}");
        assert_eq!(quic.bytes_delivered, 10_000_000);
        assert_eq!(quic.bytes_acked, 10_000_000);
        assert!(quic.bytes_sent > quic.bytes_acked, "frames and headers count");
        let rtt = quic.rtt_ms.expect("round trips");
        assert!((50.0..52.0).contains(&rtt.min), "{rtt:?}");
        let queue = quic.lab().queue_ms.expect("a queue");
        assert!((0.0..60.0).contains(&queue.p95), "{queue:?}");
        // From the server's first packet to the acknowledgement of its last.
        let idle_ms = (quic.completion_ns.unwrap_or(0) as f64 - quic.busy_ns as f64) / 1e6;
        assert!(idle_ms.abs() < 60.0, "{cc}: {idle_ms}");
    }
}

#[test]
fn equal_runs_are_equal() {
    let mut lossy = path(20, 40);
    lossy.loss = "1%".parse().expect("a loss");
    let spec = |seed| {
        let two = [("bbr3", 1_000_000), ("cubic", 500_000)];
        let flows = two.map(|(cc, bytes)| flow(cc, Workload::Transfer(bytes))).to_vec();
        let mut spec = RunSpec::over(lossy.clone(), flows, seed, secs(30));
        spec.sample_every = Some(TimeDelta::from_millis(10));
        spec
    };
    let (one, same, other) = (played(&spec(1)), played(&spec(1)), played(&spec(2)));
    assert_eq!(one.result, same.result);
    assert_ne!(one.result.flows, other.result.flows);
    assert!(one.result.series.len() > 40, "{}", one.result.series.len());
    assert!(one.result.flows[0].lab().packets_dropped_random > 3);
}

#[test]
fn timed_flows_fill_the_path_and_count_after_the_warm_up() {
    let flows = vec![flow("bbr3", Workload::Until(secs(10)))];
    let mut spec = RunSpec::over(path(20, 40), flows, 1, secs(10));
    spec.warmup = secs(2);
    let record = &played(&spec).result.flows[0];
    assert_eq!(record.completion_ns, None);
    let after = record.delivered_after_warmup() as f64 * 8.0 / 8.0 / 20e6;
    // Headers take 5 %.
    assert!((0.9..0.96).contains(&after), "{after}");
}

/// The flow has half of the link for three seconds, then all of it for seven.
#[test]
fn timed_flow_frees_the_path_at_its_end() {
    let flows = [3, 10].map(|end| flow("cubic", Workload::Until(secs(end)))).to_vec();
    let played = played(&RunSpec::over(path(20, 40), flows, 1, secs(10)));
    let [short, long] = [0, 1].map(|flow| played.result.flows[flow].bytes_delivered);
    assert!((2_000_000..7_500_000).contains(&short), "{short}");
    assert!(long > 17_000_000, "{long}");
}

#[test]
fn requests_are_sequential() {
    let sizes = ObjectSizes::fixed(100_000);
    let fetch = FetchSpec { sizes, requests: Some(5), ..FetchSpec::once(1) };
    let flows = vec![flow("cubic", Workload::Client(0))];
    let mut spec = RunSpec::over(path(20, 40), flows, 1, secs(30));
    spec.clients = vec![ClientSpec::Fetch(fetch)];
    let played = played(&spec);
    assert_eq!(played.result.requests.len(), 5);
    for request in &played.result.requests {
        assert_eq!(request.bytes_delivered, 100_000);
        let took = request.completion_ns.expect("it arrived") as f64 / 1e6;
        // One round trip, three more of slow start, and 40 ms of data. The first request also waits
        // for the handshake.
        assert!((80.0..260.0).contains(&took), "{took} ms");
    }
    assert!(played.result.flows[0].completion_ns.is_some());
}

#[test]
fn media_arrive_at_their_own_rate() {
    let media = CbrSpec {
        rate: Rate::from_mbit(2),
        interval: TimeDelta::from_millis(20),
        duration: TimeDelta::from_secs(5),
    };
    let flows = vec![flow("bbr3", Workload::Media(media))];
    let record = &played(&RunSpec::over(path(20, 40), flows, 1, secs(10))).result.flows[0];
    assert_eq!(record.bytes_delivered, 1_250_000);
    assert!(record.lab().queue_ms.expect("a queue").p95 < 3.0);
}

#[test]
fn audio_player_plays_music() {
    let flows = vec![flow("cubic", Workload::Client(0))];
    let mut spec = RunSpec::over(path(5, 40), flows, 1, secs(90));
    let track =
        Track { duration: TimeDelta::from_secs(60), bitrate: Rate::from_bits_per_sec(160_000) };
    let audio = AudioSpec { tracks: vec![track], ..AudioSpec::default() };
    spec.clients = vec![ClientSpec::Audio(audio)];
    let playback = played(&spec).result.flows[0].playback.expect("a listener");
    assert_eq!((playback.stutters, playback.played_ns), (0, 60_000_000_000));
}

#[test]
fn queues_mark_ecn_capable_packets() {
    for (ecn, marks) in [(Ecn::Ect0, true), (Ecn::NotEct, false)] {
        let mut spec_path = path(20, 40);
        spec_path.link.queue = "codel:ecn".parse().expect("a queue");
        let flows = vec![FlowSpec { ecn, ..flow("cubic", Workload::Until(secs(10))) }];
        let record = &played(&RunSpec::over(spec_path, flows, 1, secs(10))).result.flows[0];
        assert_eq!(record.packets_marked > 0, marks, "{ecn:?}: {record:?}");
        assert!(record.lab().packets_dropped_queue > 0, "slow start overflows it: {record:?}");
    }
}

#[test]
fn receive_window_limits_the_rate() {
    let mut narrow = flow("cubic", Workload::Until(secs(10)));
    narrow.receive_window = 50_000;
    let record = &played(&RunSpec::over(path(20, 100), vec![narrow], 1, secs(10))).result.flows[0];
    // 50 kB in 100 ms.
    let mbit = record.bytes_delivered as f64 * 8.0 / 10.0 / 1e6;
    assert!((3.0..4.1).contains(&mbit), "{mbit}");
}

#[test]
fn a_run_can_be_stopped() {
    let spec =
        RunSpec::over(path(20, 40), vec![flow("reno", Workload::Until(secs(9)))], 1, secs(9));
    let stopped = uncork_quic_sim::run(&spec, &AtomicBool::new(true)).expect("a run");
    assert_eq!(stopped.result.flows[0].bytes_delivered, 0);
}

/// ECT(1) is marked in DualPI2's queue of a millisecond, ECT(0) in the other.
#[test]
fn a_flow_sends_its_codepoint_and_prague_keeps_an_l4s_queue_short() {
    let mut path = path(40, 20);
    path.link.queue = "dualpi2".parse().expect("a queue");
    let queued = |cc, ecn| {
        let flow = FlowSpec { ecn, ..flow(cc, Workload::Until(secs(10))) };
        let spec = RunSpec::over(path.clone(), vec![flow], 1, secs(10));
        let run = uncork_quic_sim::run(&spec, &AtomicBool::new(false)).expect("a run");
        let flow = &run.result.flows[0];
        let queue = flow.lab.as_ref().and_then(|lab| lab.queue_ms).expect("a distribution");
        (flow.packets_marked, queue.p95, flow.bytes_delivered as f64 * 8.0 / 10.0 / 40e6)
    };
    let (marked, p95, share) = queued("prague", Ecn::Ect1);
    assert!(marked > 100 && p95 < 1.5 && share > 0.85, "{marked} marks, {p95} ms, {share}");
    let (_, classic, _) = queued("cubic", Ecn::Ect0);
    assert!(classic > 2.0 * p95, "{classic} ms");
}

fn any_path() -> impl Strategy<Value = PathSpec> {
    let ends = (1_u64..200, 1_u64..80, 5_u64..100, 0_u64..8);
    (ends, 0_usize..3, any::<bool>()).prop_map(|((mbit, rtt, packets, loss), queue, has_uplink)| {
        let rtt = TimeDelta::from_millis(rtt);
        let mut path = PathSpec::new(Rate::from_mbit(mbit), rtt, Buffer::Packets(packets));
        path.loss = format!("{loss}%").parse().expect("a loss");
        path.link.queue = ["droptail", "codel", "fq_codel:ecn"][queue].parse().expect("a queue");
        path.link.policer = (packets % 4 == 0).then(|| "2mbit:20kB".parse().expect("a policer"));
        path.uplink = has_uplink.then(|| LinkSpec::new(Rate::from_mbit(1), Buffer::Packets(4)));
        path
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whether a flow ends or is cut off: acknowledged bytes have arrived, and dropped packets were
    /// sent.
    #[test]
    fn counts_add_up(path in any_path(), bytes in 1_u64..300_000, end_ms in 50_u64..3000, seed: u64) {
        let ccs = ["cubic", "bbr3", "reno"];
        let flows = ccs.map(|cc| flow(cc, Workload::Transfer(bytes))).to_vec();
        let end = Time::ZERO + TimeDelta::from_millis(end_ms);
        let run = uncork_quic_sim::run(&RunSpec::over(path, flows, seed, end), &AtomicBool::new(false));
        for flow in run.expect("a run").result.flows {
            let lab = flow.lab();
            prop_assert!(lab.dropped_by_links() + lab.packets_dropped_random <= flow.packets_sent, "{flow:?}");
            prop_assert!(flow.bytes_acked <= flow.bytes_delivered, "{flow:?}");
            prop_assert!(flow.bytes_delivered <= bytes);
        }
    }
}
