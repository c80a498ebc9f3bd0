//! Loss recovery where paths reorder, pause and overflow, compared with the segment simulator.

use std::iter;
use std::sync::atomic::AtomicBool;

use uncork_path::{Buffer, JitterDistribution, JitterSpec, PathSpec, RateSpec, Step};
use uncork_sim::{FlowSpec, RunSpec, Workload};
use uncork_units::{Rate, Time, TimeDelta};

const CONTROLLERS: [&str; 5] = ["reno", "cubic", "bbr1", "bbr2", "bbr3"];
const RATE: Rate = Rate::from_mbit(20);

fn at(ms: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(ms)
}

fn path(rate: Rate, rtt_ms: u64, buffer_milli_bdp: u64) -> PathSpec {
    let rtt = TimeDelta::from_millis(rtt_ms);
    PathSpec::new(rate, rtt, Buffer::MilliBdp(buffer_milli_bdp))
}

fn spec(path: PathSpec, cc: &str, workload: Workload, seed: u64, end: Time) -> RunSpec {
    let flow = FlowSpec::new(cc.parse().expect("a controller"), workload);
    RunSpec::over(path, vec![flow], seed, end)
}

/// Bytes delivered until `end` over QUIC, divided by those over segments.
fn delivered(path: &PathSpec, cc: &str, seed: u64, end: Time) -> f64 {
    let spec = spec(path.clone(), cc, Workload::Until(end), seed, end);
    let quic = uncork_quic_sim::run(&spec, &AtomicBool::new(false)).expect("a run");
    assert_eq!(quic.failures, Vec::<String>::new(), "{cc} over {path:?}");
    let bytes = [quic.result, uncork_sim::run(&spec)].map(|run| run.flows[0].bytes_delivered);
    bytes[0] as f64 / bytes[1] as f64
}

/// Completion of 8 MB over QUIC and over segments, in seconds. The link stops at 2 s and holds its queue.
fn paused(cc: &str, pause_ms: u64, buffer_milli_bdp: u64) -> [f64; 2] {
    let mut path = path(RATE, 50, buffer_milli_bdp);
    let steps = [(at(2000), Rate::ZERO), (at(2000 + pause_ms), RATE)];
    let steps = steps.map(|(at, rate)| Step { at, value: rate });
    path.link.rate = RateSpec::Steps { first: RATE, steps: steps.into() };
    let spec = spec(path, cc, Workload::Transfer(8_000_000), 1, at(300_000));
    let quic = uncork_quic_sim::run(&spec, &AtomicBool::new(false)).expect("a run");
    [quic.result, uncork_sim::run(&spec)]
        .map(|run| run.flows[0].completion_ns.map_or(f64::INFINITY, |ns| ns as f64 / 1e9))
}

fn jittery(rtt_ms: u64, jitter_ms: u64, reorder: bool, loss: &str) -> PathSpec {
    let mut path = path(RATE, rtt_ms, 4000);
    let max = TimeDelta::from_millis(jitter_ms);
    let jitter = JitterSpec { distribution: JitterDistribution::Uniform, max, reorder };
    path.jitter = (jitter_ms > 0).then_some(jitter);
    path.loss = loss.parse().expect("a loss");
    path
}

/// The mean of [`delivered`] over three seeds, in 8 s.
fn mean_delivered(path: &PathSpec, cc: &str) -> f64 {
    let ratios = [1, 2, 3].map(|seed| delivered(path, cc, seed, at(8000)));
    ratios.iter().sum::<f64>() / 3.0
}

/// The cells of the grid with the most reordering. Without a window that adapts, QUIC had 0.1 of the segments' rate;
/// with one that grows by a quarter of the RTT in each round trip, 0.55 to 0.8 at 40 ms.
#[test]
fn reordered_packets_are_not_taken_for_lost() {
    for (rtt, jitter) in [(20, 40), (50, 20), (50, 40)] {
        for cc in CONTROLLERS {
            let ratio = mean_delivered(&jittery(rtt, jitter, true, "0%"), cc);
            assert!(ratio > 0.9, "{cc}, RTT {rtt} ms, jitter {jitter} ms: {ratio}");
        }
    }
}

/// Late arrivals must not delay recovery where nothing is reordered.
#[test]
fn lossy_paths_without_reordering_are_as_fast_as_with_segments() {
    for cc in ["cubic", "bbr3"] {
        let ratio = delivered(&jittery(50, 0, true, "1%"), cc, 1, at(5000));
        assert!(ratio > 0.85, "{cc}: {ratio}");
    }
}

#[test]
fn quic_resumes_after_a_pause_as_segments_do() {
    for pause_ms in [300, 3000, 10_000, 60_000] {
        for cc in CONTROLLERS {
            let [quic, tcp] = paused(cc, pause_ms, 1000);
            assert!(quic < tcp + 1.0, "{cc}, {pause_ms} ms: {quic} and {tcp} s");
        }
    }
}

/// Slow start overflows a queue by more packets than the stack once had room for gaps: 1024.
#[test]
fn thousands_of_lost_packets_do_not_end_a_connection() {
    let ratio = delivered(&path(Rate::from_mbit(200), 200, 50), "bbr3", 1, at(2500));
    assert!(ratio > 0.6, "it is slower by the handshake's round trip: {ratio}");
}

/// The table in docs/evidence/fidelity.md: `cargo test -p uncork-quic-sim --test runs -- --ignored --nocapture grid`.
#[test]
#[ignore = "takes minutes"]
fn grid_of_reordering() {
    println!("RTT, jitter, loss, QUIC over segments: {CONTROLLERS:?}");
    for rtt in [20, 50, 100] {
        for loss in ["0%", "0.1%", "1%"] {
            let in_order = iter::once((20, false));
            for (jitter, reorder) in
                [0, 5, 10, 20, 40].map(|max| (max, true)).into_iter().chain(in_order)
            {
                let path = jittery(rtt, jitter, reorder, loss);
                let ratios = CONTROLLERS.map(|cc| mean_delivered(&path, cc));
                let order = if reorder { "" } else { " in order" };
                println!("{rtt} ms, {jitter} ms{order}, {loss}: {ratios:.2?}");
            }
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn grid_of_pauses() {
    println!("buffer, pause, seconds beyond segments: {CONTROLLERS:?}");
    for buffer in [500, 1000, 4000] {
        for pause_ms in [1, 300, 1000, 2000, 3000, 5000, 10_000, 60_000] {
            let beyond =
                CONTROLLERS.map(|cc| paused(cc, pause_ms, buffer)).map(|[quic, tcp]| quic - tcp);
            println!("{buffer} / 1000 BDP, {pause_ms} ms: {beyond:+.2?}");
        }
    }
}
