//! Applications over connections: requests, players, constant-rate media.

use crate::common::{case, spec};
use uncork_apps::{AudioSpec, CbrSpec, ClientSpec, FetchSpec, ObjectSizes, Think, Track};
use uncork_path::{Buffer, LinkSpec, RateSpec};
use uncork_sim::{FlowSpec, MSS_BYTES, RunResult, RunSpec, Workload, run};
use uncork_units::{Rate, Time, TimeDelta};

fn secs(secs: u64) -> Time {
    Time::ZERO + TimeDelta::from_secs(secs)
}

/// One client over `case`'s path with BBRv3.
fn client(case: &crate::common::Case, client: ClientSpec) -> RunResult {
    client_of("bbr3", case, client)
}

fn client_of(cc: &str, case: &crate::common::Case, client: ClientSpec) -> RunResult {
    let flows = vec![FlowSpec::new(spec(cc), Workload::Client(0))];
    let over = RunSpec::over(case.path.clone(), flows, 1, secs(600));
    run(&RunSpec { clients: vec![client], ..over })
}

fn fetch(bytes: u64, requests: u64, think_ms: u64) -> ClientSpec {
    ClientSpec::Fetch(FetchSpec {
        sizes: ObjectSizes::fixed(bytes),
        requests: Some(requests),
        think: Think::Fixed(TimeDelta::from_millis(think_ms)),
        ..FetchSpec::once(bytes)
    })
}

/// A round trip for the handshake, one for the first answer; each later answer takes one, with the
/// client's think time in between. Objects of one segment do not depend on the window.
#[test]
fn requests_take_a_round_trip_each() {
    let result = client(&case(100, 40, 1000), fetch(1000, 5, 250));
    let packet = Rate::from_mbit(100).time_for(1052).as_nanos();
    let rtt = 40_000_000;
    let times: Vec<u64> =
        result.requests.iter().map(|request| request.completion_ns.expect("answered")).collect();
    let first = 2 * rtt + Rate::from_mbit(100).time_for(52).as_nanos() + packet;
    assert_eq!(times, [first, rtt + packet, rtt + packet, rtt + packet, rtt + packet]);
    let starts: Vec<u64> = result.requests.iter().map(|request| request.start_ns).collect();
    for pair in 1..5 {
        assert_eq!(starts[pair], starts[pair - 1] + times[pair - 1] + 250_000_000);
    }
    let flow = &result.flows[0];
    assert_eq!((flow.bytes_delivered, flow.packets_sent), (5000, 5));
    assert_eq!(flow.completion_ns, Some(starts[4] + times[4]));
    // The last answer's ACK arrives too late to count; think time does not count as busy.
    assert!(flow.busy_ns.abs_diff(4 * (rtt + packet)) < 1_000_000, "{}", flow.busy_ns);
}

/// Answers that end with a partial segment: each starts with a new segment.
#[test]
fn answers_of_partial_segments_are_complete() {
    let bytes = 10 * u64::from(MSS_BYTES) + 7;
    for loss in ["0%", "5%"] {
        let result = client(&case(20, 40, 1000).loss(loss), fetch(bytes, 50, 0));
        let flow = &result.flows[0];
        assert_eq!(flow.bytes_delivered, 50 * bytes, "{loss}");
        assert_eq!(flow.bytes_sent - flow.bytes_retransmitted, 50 * bytes);
        assert!(result.requests.iter().all(|request| request.bytes_delivered == bytes));
        assert!(flow.completion_ns.is_some());
    }
}

/// An uplink that loses ACKs and requests: requests are retried.
#[test]
fn requests_survive_a_lossy_uplink() {
    let mut case = case(20, 40, 1000);
    case.path.uplink = Some(LinkSpec::new(Rate::from_bits_per_sec(64_000), Buffer::Packets(1)));
    let result = client_of("cubic", &case, fetch(3_000_000, 5, 10));
    let flow = &result.flows[0];
    assert!(flow.lab().acks_dropped > 20, "{}", flow.lab().acks_dropped);
    assert_eq!((flow.bytes_delivered, result.requests.len()), (15_000_000, 5));
}

fn song(seconds: u64) -> ClientSpec {
    let track = Track {
        duration: TimeDelta::from_secs(seconds),
        bitrate: Rate::from_bits_per_sec(160_000),
    };
    ClientSpec::Audio(AudioSpec { tracks: vec![track], ..AudioSpec::default() })
}

#[test]
fn song_plays_without_stalls_with_enough_bandwidth() {
    let result = client(&case(20, 50, 1000), song(210));
    let playback = result.flows[0].playback.expect("a player");
    assert_eq!((playback.stutters, playback.stalled_ns, playback.items), (0, 0, 1));
    assert_eq!(playback.played_ns, 210_000_000_000);
    let startup = playback.startup_ns.expect("it was heard");
    // Handshake, request, and the first seconds of the song in slow start.
    assert!((100_000_000..400_000_000).contains(&startup), "{startup}");
    assert_eq!(result.flows[0].bytes_delivered, 210 * 20_000);
}

/// A link slower than the song's bitrate: each second of the song takes 160/112 s to arrive.
#[test]
fn song_on_a_slow_link_stalls_for_the_missing_time() {
    let mut case = case(1, 50, 1000);
    case.path.link.rate = RateSpec::Constant(Rate::from_bits_per_sec(116_022)); // 112 kbit/s of payload
    case.path.link.buffer = Buffer::Packets(20);
    let result = client(&case, song(120));
    let playback = result.flows[0].playback.expect("a player");
    let wall = playback.played_ns + playback.stalled_ns + playback.startup_ns.expect("heard");
    let expected = 120.0 * 160.0 / 112.0;
    let took = wall as f64 / 1e9;
    assert!((took / expected - 1.0).abs() < 0.06, "{took} s instead of {expected} s");
    assert!(playback.stutters > 1);
}

/// 2 Mbit/s in frames of 20 ms over 20 Mbit/s: everything arrives, without a standing queue.
#[test]
fn media_arrive_at_their_own_rate() {
    let media = CbrSpec {
        rate: Rate::from_mbit(2),
        interval: TimeDelta::from_millis(20),
        duration: TimeDelta::from_secs(60),
    };
    for cc in ["cubic", "bbr1", "bbr3"] {
        let flows = vec![FlowSpec::new(spec(cc), Workload::Media(media))];
        let result = run(&RunSpec::over(case(20, 50, 1000).path, flows, 1, secs(61)));
        let flow = &result.flows[0];
        assert_eq!(flow.bytes_sent - flow.bytes_retransmitted, 15_000_000, "{cc}");
        assert_eq!(flow.bytes_delivered, 15_000_000, "{cc}");
        assert!(flow.rtt_ms.expect("samples").p95 < 60.0, "{cc}");
        assert_eq!(flow.timeouts, 0, "{cc}");
    }
}

/// Deliveries in the first 5 of 20 s are counted separately; the rest is 15 s of the link's rate.
#[test]
fn warm_up_is_counted_separately() {
    let case = case(20, 50, 1000);
    let flows = vec![FlowSpec::new(spec("cubic"), Workload::Until(secs(20)))];
    let over = RunSpec::over(case.path.clone(), flows, 1, secs(20));
    let flow = run(&RunSpec { warmup: secs(5), ..over.clone() }).flows.remove(0);
    let rest = (flow.delivered_after_warmup()) as f64;
    let capacity = 20e6 / 8.0 * 15.0 * 1448.0 / 1500.0;
    assert!((0.97..=1.001).contains(&(rest / capacity)), "{}", rest / capacity);
    assert_eq!(run(&over).flows[0].lab().bytes_delivered_early, 0);
}
