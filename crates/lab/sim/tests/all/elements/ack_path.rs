//! The return path: aggregated ACKs, and slow uplinks.

use uncork_path::{AggregationSpec, Buffer, Ecn, LinkSpec};
use uncork_sim::{FlowSpec, HEADER_BYTES, MSS_BYTES, Workload};
use uncork_units::{Rate, TimeDelta};

use crate::common::{Case, case, spec};
use crate::elements::scene::{CONTROLLERS, at, flows, go};

const SECS: u64 = 30;

/// 50 Mbit/s, 40 ms, a buffer of 2 BDP, ACKs aggregated to slots of `slot_ms`.
fn bunched(cc: &str, slot_ms: u64) -> f64 {
    let mut case = case(50, 40, 2000);
    case.path.aggregation = Some(TimeDelta::from_millis(slot_ms).into());
    go(&case, flows(&[cc], Ecn::NotEct, SECS), SECS).utilisation(5.0, SECS as f64)
}

/// BBR's window includes room for aggregated ACKs (extra_acked; draft-ietf-ccwg-bbr-06 §5.5.9). A
/// loss-based window includes the buffer: at its peak, 120 ms of the link's rate including the RTT.
/// With slots of 60 ms a round trip takes up to 100 ms, so a window reduced to 60 or 84 ms leaves
/// the link idle until it has regrown: utilization is at least 0.8 and 0.92. BBRv2 performs badly
/// with slots longer than the RTT: 0.58 to 0.60 over three seeds. Startup's losses limit its
/// inflight to 1.3 BDP, the first probe raises that to 1.7; such slots need 2.5. Later probes do
/// not raise it: ProbeBW_UP ends when min_rtt has passed and 1.25 estimated BDP are in flight,
/// which is already true at the first ACKs of each probe because a slot is longer than min_rtt, and
/// the bound grows with ACKs. BBRv3 probes until the bandwidth stops growing, and has no such bound
/// if its Startup ends early.
#[test]
fn aggregated_acks_cost_little() {
    println!("share of the link with ACKs in turns of 0, 5, 20, 60 ms");
    for cc in CONTROLLERS {
        let used = [0, 5, 20, 60].map(|slot_ms| bunched(cc, slot_ms));
        println!("{cc:5}: {used:.3?}");
        let least = match cc {
            "reno" => 0.80,
            "bbr2" => 0.50,
            _ => 0.90,
        };
        assert!(used[..3].iter().all(|used| *used >= 0.93) && used[3] >= least, "{cc}: {used:.3?}");
    }
}

/// 100 Mbit/s down, 40 ms; `kbit` up, with room for `acks` ACKs.
fn asymmetric(kbit: u64, acks: u64) -> Case {
    let mut case = case(100, 40, 1000);
    let up = Rate::from_bits_per_sec(1000 * kbit);
    case.path.uplink = Some(LinkSpec::new(up, Buffer::Packets(acks)));
    case
}

/// Payload bits per second that `kbit` of ACKs can clock out: one ACK of 52 B per two segments, if
/// no ACK is lost (RFC 3449 §2.1: the normalised bandwidth ratio).
fn ack_clocked(kbit: u64) -> f64 {
    let acks = 1000.0 * kbit as f64 / 8.0 / f64::from(HEADER_BYTES);
    acks * 2.0 * 8.0 * f64::from(MSS_BYTES)
}

fn windowed(cc: &str, segments: u64) -> FlowSpec {
    FlowSpec {
        receive_window: segments * u64::from(MSS_BYTES),
        ..FlowSpec::new(spec(cc), Workload::Until(at(1000 * SECS)))
    }
}

/// A constant window behind an uplink that queues all ACKs: each arriving ACK releases two
/// segments.
#[test]
fn lossless_slow_uplink_clocks_the_sender() {
    for (cc, kbit) in [("reno", 100), ("cubic", 100), ("cubic", 500), ("bbr1", 100), ("bbr3", 100)]
    {
        let run = go(&asymmetric(kbit, 10_000), vec![windowed(cc, 500)], SECS);
        let goodput = run.goodput(0, 10.0, SECS as f64);
        let expected = ack_clocked(kbit);
        println!("{cc:5} {kbit} kbit/s up: {:.3} Mbit/s of {:.3}", goodput / 1e6, expected / 1e6);
        assert_eq!(run.result.flows[0].lab().acks_dropped, 0);
        assert!(goodput <= 1.02 * expected, "{cc} {kbit}: {goodput:.0} of {expected:.0}");
        let least = if cc.starts_with("bbr") { 0.85 } else { 0.98 };
        assert!(goodput >= least * expected, "{cc} {kbit}: {goodput:.0} of {expected:.0}");
    }
}

/// An uplink with a small buffer loses ACKs. The ACKs that arrive cover for them: the data rate is no
/// longer limited by the ACK rate, and there are no retransmissions or timeouts.
#[test]
fn lost_acks_are_covered_by_later_ones() {
    for cc in CONTROLLERS {
        let run = go(&asymmetric(100, 10), vec![windowed(cc, 400)], SECS);
        let (goodput, flow) = (run.goodput(0, 10.0, SECS as f64), &run.result.flows[0]);
        println!(
            "{cc:5} 100 kbit/s up, room for 10 ACKs: {:.2} Mbit/s, {:.2} by the clock, {} ACKs lost, \
             {} packets lost, {} timeouts",
            goodput / 1e6,
            ack_clocked(100) / 1e6,
            flow.lab().acks_dropped,
            flow.packets_lost,
            flow.timeouts
        );
        assert!(flow.lab().acks_dropped > 1000, "{cc}: {}", flow.lab().acks_dropped);
        assert!(goodput > 2.0 * ack_clocked(100), "{cc}: {goodput:.0}");
        assert_eq!(
            (flow.packets_lost - flow.lab().packets_dropped_queue, flow.timeouts),
            (0, 0),
            "{cc}"
        );
    }
}

/// With a slightly larger buffer BBR never finds the higher rate: its window, at most 2.89 BDP at
/// the ACK-clocked rate, corresponds to 27 ACKs, which is what fits. Loss-based windows overflow
/// it.
#[test]
fn bbr_mistakes_the_ack_rate_for_the_link_rate() {
    let [cubic, bbr] = ["cubic", "bbr1"].map(|cc| {
        let run = go(&asymmetric(100, 28), vec![windowed(cc, 400)], SECS);
        (
            run.goodput(0, 10.0, SECS as f64) / ack_clocked(100),
            run.result.flows[0].lab().acks_dropped,
        )
    });
    println!("room for 28 ACKs, times the clock, ACKs lost: CUBIC {cubic:.2?}, BBRv1 {bbr:.2?}");
    assert!(cubic.0 > 2.0 && cubic.1 > 1000, "{cubic:.2?}");
    assert!((0.85..=1.02).contains(&bbr.0) && bbr.1 == 0, "{bbr:.2?}");
}

/// The uplink belongs to the path: two flows share it equally.
#[test]
fn flows_share_their_uplink() {
    let run = go(&asymmetric(100, 10_000), vec![windowed("cubic", 300); 2], SECS);
    let goodputs = [0, 1].map(|flow| run.goodput(flow, 10.0, SECS as f64));
    let (sum, expected) = (goodputs[0] + goodputs[1], ack_clocked(100));
    println!("two flows, 100 kbit/s up: {goodputs:.0?}, together {:.3}", sum / expected);
    assert!((sum / expected - 1.0).abs() <= 0.02, "{sum:.0} of {expected:.0}");
    assert!((goodputs[0] / sum - 0.5).abs() <= 0.05, "{goodputs:.0?}");
}

/// Two ACKs of 52 B per 5 ms clock out 800 segments per second, less than the link's 4166.
#[test]
fn slot_does_not_exceed_its_byte_limit() {
    let delivered = |acks: u64| {
        let mut case = case(50, 40, 2000);
        let (slot, max_bytes) = (TimeDelta::from_millis(5), acks * u64::from(HEADER_BYTES));
        case.path.aggregation = Some(AggregationSpec { slot, max_packets: u32::MAX, max_bytes });
        go(&case, vec![windowed("cubic", 200)], 10).result.flows[0].bytes_delivered
    };
    let (limited, free) = (delivered(2), delivered(1000));
    assert!(limited < free / 3, "{limited} of {free} bytes");
}
