//! How often a twin's answer is true, over random paths: BBRv1's median time relative to CUBIC's.
//!
//! Each path has downloads with CUBIC and BBRv1, or with CUBIC alone. The truth is the same comparison on the path that the
//! records were simulated with. CI runs a few paths; the whole table is made by
//! `UNCORK_TWINS=400 cargo test -p uncork-twin --test twin twin_truth -- --nocapture`.

use std::fmt::Write as _;

use uncork_flow::{FlowRecord, quantile};
use uncork_lab::Scenario;
use uncork_twin::{Twin, TwinSpec};
use uncork_units::Rng;

use super::from_logs::served;
use crate::scenario;

/// Paths of CI.
const PATHS: u64 = 10;
/// A ratio that is wrong by more than this factor.
const WRONG: f64 = 1.5;
const CCS: [&str; 2] = ["cubic:linux", "bbr1"];

/// A random path with fifteen downloads for each controller.
fn drawn(case: u64) -> String {
    let mut rng = Rng::new(3_838, case);
    let mut uniform = || rng.below(1 << 32) as f64 / 2f64.powi(32);
    let mut log = |low: f64, high: f64| low * (high / low).powf(uniform());
    let (rate, rtt, loss) = (log(4.0, 80.0), log(8.0, 120.0), log(0.02, 2.0));
    let bytes = (log(0.1, 5.0) * rate * rtt * 125.0).max(6_000.0);
    let megabytes = log(3.2, 16.0);
    let loss = if rng.below(2) == 0 { 0.0 } else { loss };
    let ccs = if rng.below(3) == 0 { "\"cubic:linux\"".to_owned() } else { format!("{CCS:?}") };
    let count = if ccs.contains("bbr1") { 30 } else { 15 };
    format!(
        "title = \"t\"\n[run]\nseeds = 1\n[path.as1]\nown_per_flow = true\nrate = \"{rate:.2}mbit\"\n\
         rtt = \"{rtt:.1}ms\"\nloss = \"{loss:.3}%\"\nbuffer = \"{bytes:.0}B\"\n[flow.as1]\npath = \"as1\"\n\
         cc = {ccs}\ncount = {count}\ntransfer = \"{megabytes:.1}MB\"\n"
    )
}

fn simulated(of: &Scenario) -> Vec<FlowRecord> {
    let mut flows = uncork_sim::run(&of.instance(0, 1).run).flows;
    for flow in &mut flows {
        flow.group = "as1".into();
    }
    flows.into_iter().map(served).collect()
}

/// The median time of 10 MB with BBRv1 relative to CUBIC.
fn ratio(text: &str) -> f64 {
    let ccs = format!("flow.as1.cc={CCS:?}");
    let both = ["flow.as1.transfer=10MB", "flow.as1.count=30", "flow.as1.paired=true", &ccs];
    let flows = simulated(&scenario(&text.replace("as64500", "as1"), &both));
    let median = |cc| {
        let times = flows.iter().filter(|flow| flow.cc == cc).filter_map(|flow| flow.completion_ns);
        quantile(&times.map(|time| time as f64).collect::<Vec<_>>(), 0.5).expect("completions")
    };
    median(CCS[1]) / median(CCS[0])
}

#[test]
fn twins_of_random_paths_are_true_or_refused() {
    let paths =
        std::env::var("UNCORK_TWINS").map_or(PATHS, |count| count.parse().expect("a number"));
    let controllers = CCS.map(|cc| cc.parse().expect("a controller")).to_vec();
    let spec = TwinSpec { controllers, clients: 15, by_network: None, only: None };
    let (mut kept, mut wrong) = (0, String::new());
    for case in 0..paths {
        let path = drawn(case);
        let twin = match Twin::of(&simulated(&scenario(&path, &[])), &spec) {
            Ok(twin) => twin,
            Err(error) => {
                println!("{case}: {}", error.to_string().replace('\n', " "));
                continue;
            }
        };
        kept += 1;
        let (predicted, truth) = (ratio(&twin.text), ratio(&path));
        println!("{case}: {predicted:.2} of {truth:.2}");
        if !(1.0 / WRONG..WRONG).contains(&(predicted / truth)) {
            let _infallible =
                writeln!(wrong, "{case}: {predicted:.2} of {truth:.2}\n{path}{}", twin.text);
        }
    }
    println!("{kept} of {paths} have a twin");
    assert!(wrong.is_empty(), "{wrong}");
}
