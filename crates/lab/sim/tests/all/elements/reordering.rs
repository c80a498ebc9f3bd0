//! Jitter, with and without reordering.
//!
//! RACK waits for a late packet for a quarter of min_rtt, plus another quarter after each round
//! trip with a spurious retransmission (RFC 8985 §6.2, step 4).

use uncork_path::{JitterDistribution, JitterSpec};
use uncork_sim::{FlowSpec, MSS_BYTES, PACKET_BYTES, Workload};
use uncork_units::TimeDelta;

use crate::common::{Case, Run, case, spec};
use crate::elements::scene::{CONTROLLERS, at, go};

const SECS: u64 = 30;
const RTT_MS: u64 = 40;
/// In segments: 1.5 BDP of 20 Mbit/s, which the buffer can hold, so no packet is lost.
const WINDOW: u64 = 100;

fn jittery(max_ms: u64, reorder: bool) -> Case {
    let mut case = case(20, RTT_MS, 4000);
    let max = TimeDelta::from_millis(max_ms);
    let distribution = JitterDistribution::Uniform;
    case.path.jitter = (max_ms > 0).then_some(JitterSpec { distribution, max, reorder });
    case
}

fn flow(cc: &str, max_ms: u64, reorder: bool) -> Run {
    let mut bulk = FlowSpec::new(spec(cc), Workload::Until(at(1000 * SECS)));
    bulk.receive_window = WINDOW * u64::from(MSS_BYTES);
    let run = go(&jittery(max_ms, reorder), vec![bulk], SECS);
    let flow = &run.result.flows[0];
    assert_eq!(flow.lab().packets_dropped_queue, 0, "{cc}: no packet is really lost");
    println!(
        "{cc:5} {max_ms:2} ms{}: used {:.3}, declared lost {}, sent again {}, timeouts {}",
        if reorder { ", overtaking" } else { "" },
        run.utilisation(5.0, SECS as f64),
        flow.packets_lost,
        flow.bytes_retransmitted / u64::from(MSS_BYTES),
        flow.timeouts,
    );
    run
}

/// Without reordering no packet is declared lost, however large the jitter.
#[test]
fn jitter_without_reordering_causes_no_losses() {
    for cc in CONTROLLERS {
        for max_ms in [5, 20, 60] {
            let run = flow(cc, max_ms, false);
            let flow = &run.result.flows[0];
            assert_eq!((flow.packets_lost, flow.timeouts), (0, 0), "{cc}, {max_ms} ms");
        }
    }
}

/// Packets overtake each other by less than RACK's initial window, and by up to four of those
/// windows. Three packets above a hole trigger a retransmission until the first late packet is
/// seen; after that, time decides. Spurious retransmissions are undone, otherwise the window would
/// not be this large.
#[test]
fn reordering_is_detected_and_spurious_losses_undone() {
    for cc in CONTROLLERS {
        for max_ms in [RTT_MS / 5, RTT_MS] {
            let run = flow(cc, max_ms, true);
            let flow = &run.result.flows[0];
            assert!(flow.packets_lost > 0, "{cc}, {max_ms} ms: no packet was declared lost");
            let late = run.lost_bytes(0, 10.0, SECS as f64) / u64::from(MSS_BYTES);
            assert!(late <= WINDOW / 10, "{cc}, {max_ms} ms: {late} after 10 s");
            assert_eq!(flow.timeouts, 0, "{cc}, {max_ms} ms");
            let used = run.utilisation(5.0, SECS as f64);
            assert!(used >= 0.95 * least_use(max_ms), "{cc}, {max_ms} ms: {used:.3}");
        }
    }
}

/// Minimum utilization of 20 Mbit/s by a window that advances with its latest packet, minus what
/// BBR leaves unused.
fn least_use(max_ms: u64) -> f64 {
    let bits = WINDOW as f64 * f64::from(PACKET_BYTES) * 8.0;
    let rate = bits / ((RTT_MS + max_ms) as f64 / 1e3);
    (rate / 20e6).min(0.97)
}

/// Ten packets at once, each up to 40 ms late: the first arrival is the minimum of ten draws, 40 /
/// 11 ms on average. The SYN/ACK before them is 20 ms late on average.
#[test]
fn packet_with_the_least_jitter_arrives_first() {
    let case = jittery(40, true);
    let late = |seed: u64| {
        let transfer = FlowSpec::new(spec("reno"), Workload::Transfer(10 * u64::from(MSS_BYTES)));
        let run = case.run(vec![transfer], seed, at(10_000));
        run.result.flows[0].first_byte_ns.expect("it arrived") as f64 / 1e6 - 80.0
    };
    let seeds = 200;
    let mean = (0..seeds).map(late).sum::<f64>() / seeds as f64;
    assert!((20.0..28.0).contains(&mean), "{mean:.1} ms");
}
