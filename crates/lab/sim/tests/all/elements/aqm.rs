//! Single-queue AQMs: queueing delay and throughput cost.

use uncork_path::Ecn;

use crate::common::Run;
use crate::elements::scene::{behind, flows, go, total, waited};

const SECS: u64 = 30;

/// Target delays in milliseconds: RFC 8289 §5.3 (CoDel), RFC 8033 appendix A (PIE) and RFC 9332
/// figure 2 (DualPI2, here with classic packets only).
const TARGETS: [(&str, f64); 3] = [("codel", 5.0), ("pie", 15.0), ("dualpi2", 15.0)];

/// Worst-case utilization by a window that is reduced to `beta` and regrows linearly, if the queue
/// is empty at each drop: the mean of `beta` and 1. CUBIC grows non-linearly, with a better mean
/// (RFC 9438 §4.2, §4.6: 0.7); Reno halves (RFC 5681).
fn least_use(cc: &str) -> f64 {
    f64::midpoint(beta(cc), 1.0)
}

fn beta(cc: &str) -> f64 {
    if cc == "cubic" { 0.7 } else { 0.5 }
}

/// Whether a single flow still has a queue after reducing its window from RTT plus target delay.
/// Otherwise the link is idle until the window has regrown.
fn survives(cc: &str, rtt_ms: f64, target: f64) -> bool {
    beta(cc) * (rtt_ms + target) >= rtt_ms
}

struct Measured {
    p50: f64,
    used: f64,
}

fn measure(queue: &str, cc: &str, (mbit, rtt_ms, count): (u64, u64, usize)) -> Measured {
    let case = behind(queue, mbit, rtt_ms);
    report(queue, cc, &go(&case, flows(&vec![cc; count], Ecn::NotEct, SECS), SECS))
}

fn report(queue: &str, cc: &str, run: &Run) -> Measured {
    let (p50, p95) = waited(&run.result.flows[0]);
    let used = run.utilisation(5.0, SECS as f64);
    let drops = total(run, |flow| flow.lab().packets_dropped_queue);
    println!(
        "{queue:>8} {:>7} {:>5} {:>2} {cc:5}: waited p50 {p50:6.2} p95 {p95:6.2} ms, used {used:.3}, {drops} drops",
        run.path.link.rate.mean().to_string(),
        run.path.rtt.to_string(),
        run.result.flows.len()
    );
    Measured { p50, used }
}

/// The median queueing delay of a long flow is near the target, and the link is nearly full.
#[test]
fn standing_queue_is_kept_near_the_target() {
    for (queue, target) in TARGETS {
        for (rtt_ms, count) in [(10, 1), (40, 1), (40, 5)] {
            for (cc, mbit) in [("cubic", 10), ("cubic", 100), ("reno", 10), ("reno", 100)] {
                let Measured { p50, used } = measure(queue, cc, (mbit, rtt_ms, count));
                let stands = count > 1 || survives(cc, rtt_ms as f64, target);
                let least_wait = if stands { target / 2.0 } else { 0.0 };
                let least_used = if stands { 0.95 } else { least_use(cc) };
                let place = format!("{queue} {mbit} Mbit/s {rtt_ms} ms {count} {cc}");
                assert!((least_wait..=3.0 * target).contains(&p50), "{place}: {p50} ms");
                assert!(used >= least_used, "{place}: {used:.3}");
            }
        }
    }
}

/// For comparison: with drop-tail the same flows' packets wait for most of the buffer, and from one
/// BDP on the link is never idle (the rule of C. Villamizar and C. Song, CCR 24(5), 1994, for a
/// halved window).
#[test]
fn drop_tail_queue_fills_the_buffer() {
    for bdp in [1, 2, 4] {
        for cc in ["cubic", "reno"] {
            let mut case = behind("droptail", 20, 40);
            case.path.link.buffer = uncork_path::Buffer::MilliBdp(1000 * bdp);
            let run = go(&case, flows(&[cc; 5], Ecn::NotEct, SECS), SECS);
            let Measured { p50, used } = report(&format!("{bdp} BDP"), cc, &run);
            let full = 40.0 * bdp as f64;
            assert!((0.4 * full..=full + 1.0).contains(&p50), "{bdp} BDP, {cc}: {p50} ms");
            assert!(used >= 0.99, "{bdp} BDP, {cc}: {used:.3}");
        }
    }
}

/// A single BBR flow mostly keeps its queue below any target, and drops do not make the link idle.
/// Several BBRv1 flows ignore the drops and keep the queue that their windows allow: up to 1.5 BDP
/// (Hock, Bless and Zitterbart, ICNP 2017), at a loss of a tenth of their packets.
#[test]
fn bbr_works_with_and_without_aqm() {
    for (queue, target) in TARGETS {
        for cc in ["bbr1", "bbr2", "bbr3"] {
            for count in [1, 5] {
                let Measured { p50, used } = measure(queue, cc, (20, 40, count));
                let most = if (cc, count) == ("bbr1", 5) { 60.0 } else { 3.0 * target };
                assert!(p50 <= most, "{queue}, {count} {cc}: {p50} ms");
                assert!(used >= 0.85, "{queue}, {count} {cc}: {used:.3}");
            }
        }
    }
}
