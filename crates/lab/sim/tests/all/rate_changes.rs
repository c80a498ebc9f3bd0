//! BBRv3 when the link's rate changes.

use crate::common::{Run, case, payload_rate, seconds};
use uncork_flow::SeriesPoint;

/// When max_bw first came within 2 % of `mbit` after `from` and stayed there for 2 s.
fn settled(run: &Run, mbit: u64, from: f64) -> Option<f64> {
    let right = |point: &SeriesPoint| {
        let max_bw = point.max_bw_bps.unwrap_or(0) as f64 / payload_rate(mbit);
        (0.93..=1.05).contains(&max_bw)
    };
    let points: Vec<&SeriesPoint> = run.between(0, from, f64::INFINITY).collect();
    points.iter().enumerate().find_map(|(index, first)| {
        let until = seconds(first) + 2.0;
        let mut run = points[index..].iter().take_while(|point| seconds(point) <= until);
        run.all(|point| right(point)).then(|| seconds(first))
    })
}

/// A tenfold increase is found in one probe. Each bandwidth sample averages over a round, so the
/// rate grows by e^x per round with x = g e^-x (1 - e^-x), g = 0.99 · 1.25 (the argument behind
/// Startup's 4 ln 2 for doubling): 1.156 per round, or 15.9 rounds for a factor of ten plus one for
/// the first feedback.
#[test]
fn tenfold_rate_is_found_in_one_probe() {
    for seed in 1..=3 {
        let run = case(10, 40, 2000).step(20, 100).flow("bbr3", 60, seed);
        let up = run.between(0, 20.0, 60.0).find(|point| point.state == "ProbeBW_UP");
        let up = seconds(up.expect("probes again"));
        let found = settled(&run, 100, 20.0).expect("found");
        println!(
            "seed {seed}: UP at {up:.2} s, found at {found:.2} s: {:.1} RTT",
            (found - up) / 0.04
        );
        assert!(found - up <= 17.5 * 0.04, "{:.2} s", found - up);
    }
}

#[test]
fn hundredfold_rate_is_found_within_50_s() {
    let run = case(2, 40, 4000).step(20, 200).flow("bbr3", 90, 1);
    let found = settled(&run, 200, 20.0).expect("found");
    println!("100x: found {:.1} s after the step", found - 20.0);
    assert!(found <= 70.0, "{found:.1} s");
}

/// After a decrease max_bw must fall, and the queue must drain. The literal draft fails if its
/// probing cycle grows beyond the ProbeRTT interval (DEVIATIONS.md (n)).
#[test]
fn tenth_of_the_rate_is_found() {
    for (milli_bdp, limit) in [(500, 20.0), (1000, 20.0), (2000, 30.0), (4000, 30.0), (8000, 45.0)]
    {
        let run = case(100, 40, milli_bdp).step(30, 10).flow("bbr3", 150, 1);
        let found = settled(&run, 10, 30.0).map(|time| time - 30.0);
        let new_bdp = run.path.bdp_bytes() / 10;
        let drained = run.between(0, 30.5, 150.0).find(|point| point.queue_bytes <= new_bdp);
        let drained = drained.map(|point| seconds(point) - 30.0);
        println!("{} BDP: found {found:.1?} s, drained {drained:.1?} s", milli_bdp as f64 / 1e3);
        assert!(found.is_some_and(|seconds| seconds <= limit), "{milli_bdp}: {found:?}");
        assert!(drained.is_some_and(|seconds| seconds <= 90.0), "{milli_bdp}: {drained:?}");
    }
}
