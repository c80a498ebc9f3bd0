//! Fair queues: sparse flows do not wait, and bulk flows get equal shares.

use uncork_apps::CbrSpec;
use uncork_path::Ecn;
use uncork_sim::{FlowSpec, Workload};
use uncork_units::{Rate, TimeDelta};

use crate::common::{Run, spec};
use crate::elements::scene::{CONTROLLERS, at, behind, flows, go};

const SECS: u64 = 30;

/// A call of 64 kbit/s in frames of 20 ms.
fn call() -> FlowSpec {
    let media = CbrSpec {
        rate: Rate::from_bits_per_sec(64_000),
        interval: TimeDelta::from_millis(20),
        duration: TimeDelta::from_secs(SECS),
    };
    FlowSpec { start: at(2000), ..FlowSpec::new(spec("cubic"), Workload::Media(media)) }
}

/// The call's queueing delay next to `bulk`: median and 95th percentile in milliseconds.
fn call_delay(queue: &str, mbit: u64, bulk: &[&str]) -> (f64, f64) {
    let mut all = flows(bulk, Ecn::NotEct, SECS);
    all.push(call());
    let run = go(&behind(queue, mbit, 40), all, SECS);
    let call = run.result.flows.last().expect("the call");
    let (waited, rtt) = (call.lab().queue_ms.expect("sent"), call.rtt_ms.expect("measured"));
    println!(
        "{queue:>9} {mbit:3} Mbit/s, a call next to {bulk:?}: waited p50 {:.2} p95 {:.2} ms, RTT p50 {:.2} ms",
        waited.p50, waited.p95, rtt.p50
    );
    (waited.p50, waited.p95)
}

/// A sparse flow has priority (RFC 8290 §4.2): it only waits for the packet in transmission, half a
/// packet time on average, and for other new flows before it. Bulk flows are new when they have emptied
/// their queue; each sends one quantum, which is one packet.
#[test]
fn sparse_flow_sees_no_queue() {
    for (mbit, bulk) in [(10, &["cubic"; 1][..]), (20, &["cubic"; 5]), (100, &CONTROLLERS)] {
        let packet_ms = 12.0 / mbit as f64;
        let (single, _) = call_delay("codel", mbit, bulk);
        for queue in ["fq_codel", "cake"] {
            let (p50, p95) = call_delay(queue, mbit, bulk);
            assert!(p50 <= packet_ms, "{queue}, {mbit} Mbit/s: {p50} ms");
            assert!(single > 2.0 * p50, "{queue}, {mbit} Mbit/s: {single} ms in a single queue");
            let most = (1 + bulk.len()) as f64 * packet_ms;
            assert!(p95 <= most.min(3.0), "{queue}, {mbit} Mbit/s: {p95} ms");
        }
    }
}

fn jain(queue: &str, flows: Vec<FlowSpec>) -> (f64, f64) {
    let run = go(&behind(queue, 50, 40), flows, SECS);
    (run.jain(5.0, SECS as f64), run.utilisation(5.0, SECS as f64))
}

/// With any controllers, flows that want more than their share get equal shares. If a controller
/// uses less, the others get it: a share below the fair one is caused by the controller itself.
#[test]
fn flows_share_evenly_with_any_controller() {
    for queue in ["fq_codel", "cake"] {
        let (fair, used) = jain(queue, flows(&CONTROLLERS, Ecn::NotEct, SECS));
        println!("{queue:>9}: five controllers, Jain {fair:.3}, used {used:.3}");
        assert!(fair >= 0.97 && used >= 0.95, "{queue}: {fair:.3}, {used:.3}");
    }
    let (unfair, _) = jain("codel", flows(&CONTROLLERS, Ecn::NotEct, SECS));
    println!("    codel: five controllers, Jain {unfair:.3}");
    assert!(unfair < 0.95, "a single queue is not fair: {unfair:.3}");
}

#[test]
fn flows_share_evenly_with_any_rtt() {
    let with_rtts = || {
        let mut all = flows(&["cubic"; 4], Ecn::NotEct, SECS);
        for (flow, rtt_ms) in all.iter_mut().zip([10, 30, 60, 120]) {
            flow.rtt = Some(TimeDelta::from_millis(rtt_ms));
        }
        all
    };
    let [fq, cake, single] = ["fq_codel", "cake", "codel"].map(|queue| jain(queue, with_rtts()));
    println!(
        "RTT 10 to 120 ms: Jain, used: fq_codel {fq:.3?}, cake {cake:.3?}, codel {single:.3?}"
    );
    for (fair, used) in [fq, cake] {
        assert!(fair >= 0.97 && used >= 0.95, "{fair:.3}, {used:.3}");
    }
    assert!(single.0 < fq.0, "{single:?}");
}

/// One flow of one host competes with ten of another: the share of the one.
fn share_of_one(queue: &str) -> f64 {
    // At 10 ms a single CUBIC flow never runs dry: CoDel keeps its queue at 5 ms.
    let mut all = flows(&["cubic"; 11], Ecn::NotEct, SECS);
    for (index, flow) in (0..).zip(&mut all) {
        flow.host = Some(u32::from(index > 0));
    }
    let run: Run = go(&behind(queue, 50, 10), all, SECS);
    let share = run.share(0, 5.0, SECS as f64);
    println!("{queue:>9}: one flow against ten of another host, share {share:.3}");
    share
}

/// CAKE shares among hosts, then among their flows: half. The others share among flows: 1/11.
#[test]
fn cake_shares_evenly_among_hosts() {
    let cake = share_of_one("cake");
    assert!((cake - 0.5).abs() <= 0.03, "{cake:.3}");
    let fq = share_of_one("fq_codel");
    assert!((fq - 1.0 / 11.0).abs() <= 0.01, "{fq:.3}");
}
