//! Benefit of a right hint from an earlier connection (RFC 9959) and cost of a wrong one.

use crate::common::{Case, Run, case, spec};
use uncork_cc::ResumeHint;
use uncork_sim::{FlowSpec, Workload};
use uncork_units::{Time, TimeDelta};

const TEN_MB: u64 = 10_000_000;
const CONTROLLERS: [&str; 4] = ["reno", "cubic", "bbr1", "bbr3"];

/// 100 Mbit/s, 100 ms, a buffer of one BDP: 1.25 MB per round trip.
fn path() -> Case {
    case(100, 100, 1_000)
}

/// The path's own BDP, times `tenths` / 10.
fn hint(tenths: u64) -> ResumeHint {
    let saved_rtt = TimeDelta::from_millis(100);
    ResumeHint { saved_cwnd: 125_000 * tenths, saved_rtt }
}

fn download(cc: &str, resume: Option<ResumeHint>) -> Run {
    let flow = FlowSpec { resume, ..FlowSpec::new(spec(cc), Workload::Transfer(TEN_MB)) };
    let end = Time::ZERO + TimeDelta::from_secs(100);
    path().run(vec![flow], 1, end)
}

/// Duration in seconds and packets lost.
fn outcome(cc: &str, resume: Option<ResumeHint>) -> (f64, u64) {
    let run = download(cc, resume);
    let flow = &run.result.flows[0];
    let nanos = flow.completion_ns.expect("a download that ends");
    (nanos as f64 / 1e9, flow.packets_lost)
}

/// A download of 10 MB takes 1.0 s at the link's rate, including the handshake. Measured: reno 1.65
/// to 1.20 s, cubic 1.58 to 1.42 s, bbr1 1.77 to 1.43 s, bbr3 1.62 to 1.30 s.
#[test]
fn right_hint_saves_more_than_a_round_trip() {
    for cc in CONTROLLERS {
        let (without, _) = outcome(cc, None);
        let (with, _) = outcome(cc, Some(hint(10)));
        println!("{cc:5} {without:.3} s without a hint, {with:.3} s with it");
        assert!(with <= without - 0.15, "{cc}: {with} s, {without} s without");
    }
}

/// The jump puts half a BDP on the path and causes no loss by itself; slow start continues from
/// there and overshoots with or without a hint. CUBIC loses more with the hint: without it, the
/// length of the ACK train ends slow start, and a paced jump has no such train.
#[test]
fn right_hint_costs_reno_and_bbr_little() {
    for (cc, more) in [("reno", 10), ("bbr1", 250), ("bbr3", 200)] {
        let (_, without) = outcome(cc, None);
        let (_, with) = outcome(cc, Some(hint(10)));
        println!("{cc:5} {without} packets lost without a hint, {with} with it");
        assert!(with <= without + more, "{cc}: {with}, {without} without");
    }
}

/// A jump to five BDP with a buffer of one. It ends within a round trip and its ACKs: the loss is
/// the excess of one such flight, and the download is still faster.
#[test]
fn tenfold_hint_costs_one_flight() {
    for cc in CONTROLLERS {
        let (without, _) = outcome(cc, None);
        let (with, lost) = outcome(cc, Some(hint(100)));
        println!("{cc:5} {with:.3} s and {lost} packets lost, {without:.3} s without a hint");
        assert!(with <= without, "{cc}: {with} s, {without} s without");
        // 6.25 MB per round trip are 4316 packets; BBR's window allows a tenth more.
        assert!(lost <= 4_316 * 11 / 10, "{cc}: {lost}");
    }
}

#[test]
fn hint_for_another_path_has_no_effect() {
    for cc in CONTROLLERS {
        for saved_rtt in [TimeDelta::from_millis(9), TimeDelta::from_millis(210)] {
            let elsewhere = Some(ResumeHint { saved_cwnd: 1_250_000, saved_rtt });
            assert_eq!(outcome(cc, elsewhere), outcome(cc, None), "{cc}");
        }
    }
}
