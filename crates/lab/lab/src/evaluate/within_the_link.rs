//! No sum of goodputs exceeds the link, and no utilisation 100 %, for any link and any starts.

use std::sync::atomic::AtomicBool;

use uncork_report::lab::{AnswerKind, LabDocument};
use uncork_units::Rng;

use crate::builtin::NoFiles;
use crate::scenario::Scenario;
use crate::sweep::{SweepResults, items, run_items};
use crate::{CompareSpec, Engine};

fn document(text: &str) -> LabDocument {
    let scenario = Scenario::parse("t", text, &[], &NoFiles).expect(text);
    played(&scenario)
}

fn played(scenario: &Scenario) -> LabDocument {
    let stop = AtomicBool::new(false);
    let runs = run_items((scenario, Engine::Sim), &items(scenario), 2, &stop, &|_, _| {});
    SweepResults::new(runs.expect("runs")).document(scenario, "uncork".into(), false)
}

/// The metric `name` of each class and controller, in the document's unit.
fn metrics(document: &LabDocument, name: &str) -> Vec<(String, f64)> {
    let classes = document.cells.iter().flat_map(|cell| &cell.classes);
    let of_class = |class: &uncork_report::lab::ClassResult| {
        let metric = class.metrics.iter().find(|metric| metric.name == name)?;
        Some((format!("{} {}", class.class, class.cc), metric.estimate.value))
    };
    classes.filter_map(of_class).collect()
}

const LINKS: [&str; 6] = [
    "rate = \"4mbit\"",
    "rate = \"12mbit\"",
    "rate = \"8mbit\"\nrate_steps = [[\"1s\", \"1mbit\"], [\"2s\", \"0mbit\"], [\"2500ms\", \"12mbit\"]]",
    "trace = \"fcc-2016-1\"\ntrace_start = \"random\"",
    "trace = \"fcc-2016-3\"\ntrace_scale = \"300%\"",
    "lte = { mean = \"8mbit\", outage_every = \"3s\" }",
];

/// A small scenario of streams that share a random link.
fn drawn(rng: &mut Rng) -> String {
    let mut one_of = |texts: &[&str]| texts[rng.below(texts.len() as u64) as usize].to_owned();
    let link = one_of(&LINKS);
    let cc = one_of(&["\"cubic\"", "\"bbr1\"", "\"bbr3\"", "[\"bbr1\", \"cubic\"]"]);
    let other = one_of(&[
        "",
        "[flow.b]\ncc = \"reno\"\nbulk = \"3s\"\n",
        "[flow.b]\ncc = \"bbr3\"\nstart = \"1s\"\nbulk = \"2s\"\n",
    ]);
    let (count, bulk) = (one_of(&["2", "4", "6"]), one_of(&["3s", "4s"]));
    let (warmup, jitter) = (one_of(&["0s", "1s"]), one_of(&["", "jitter = \"5ms\"\n"]));
    let (rtt, buffer) = (one_of(&["10ms", "60ms"]), one_of(&["15kB", "120kB"]));
    format!(
        "title = \"t\"\n[run]\nend = \"5s\"\nseeds = 2\nwarmup = \"{warmup}\"\n[path]\n{link}\nrtt = \"{rtt}\"\n\
         buffer = \"{buffer}\"\n{jitter}[flow.a]\ncc = {cc}\ncount = {count}\nbulk = \"{bulk}\"\n{other}"
    )
}

#[test]
fn no_utilisation_is_above_the_link() {
    let mut rng = Rng::new(38, 5);
    for _ in 0..60 {
        let text = drawn(&mut rng);
        let document = document(&text);
        for (class, percent) in metrics(&document, "utilisation_mean") {
            assert!(percent <= 100.0, "{class} uses {percent} % of\n{text}");
        }
        let shares = metrics(&document, "share_mean");
        assert!(shares.iter().all(|(_, percent)| *percent <= 100.0 + 1e-9), "{shares:?}");
    }
}

/// Flows of 10 s that start within a second deliver more than the link by their own times.
#[test]
fn sums_of_flows_with_times_of_their_own_are_within_the_link() {
    let of = |flow: &str| {
        document(&format!(
            "title = \"t\"\n[run]\nend = \"11s\"\nseeds = 2\n[path]\nrate = \"10mbit\"\nrtt = \"20ms\"\n{flow}"
        ))
    };
    let flow =
        "[flow.a]\ncc = [\"reno\", \"cubic\"]\ncount = 20\nspread = \"1s\"\nbulk = \"10s\"\n";
    let document = of(flow);
    let sums = metrics(&document, "goodput_sum");
    let payload = 10e6 * 1448.0 / 1500.0;
    let sum = |name: &str| sums.iter().find(|(class, _)| class == name).expect("a row").1;
    assert!(sum("a reno+cubic") <= payload, "{sums:?}");
    assert!(sum("a reno+cubic") > 0.8 * payload, "{sums:?}");
    let parts = sum("a reno") + sum("a cubic");
    assert!((parts / sum("a reno+cubic") - 1.0).abs() < 1e-9, "one window: {sums:?}");
    let means = metrics(&document, "goodput_mean");
    assert!(means[0].1 * 20.0 <= payload, "{means:?}");
    // Flows that come and go keep times of their own.
    let brief = of("[flow.a]\ncc = \"reno\"\ncount = 2\nspread = \"9s\"\nbulk = \"1s\"\n");
    assert!(metrics(&brief, "goodput_mean")[0].1 > 0.5 * payload);
}

/// `trace_start` decides which part of a trace a run sees: 1.4 Mbit/s here, 1.7 on average.
#[test]
fn utilisation_of_a_trace_is_of_the_part_that_was_run() {
    let document = document(
        "title = \"t\"\n[run]\nend = \"60s\"\nseeds = 1\n[path]\ntrace = \"fcc-2016-1\"\nrtt = \"60ms\"\n\
         buffer = \"200kB\"\n[flow.main]\ncc = \"cubic\"\nbulk = \"60s\"\n",
    );
    let used = metrics(&document, "utilisation_mean")[0].1;
    assert!((99.0..=100.0).contains(&used), "{used}");
}

/// One flow that has eight times the share of its neighbours is no "no difference".
#[test]
fn one_among_nine_is_compared_per_flow() {
    let spec = CompareSpec {
        preset: None,
        rates: vec!["20mbit".parse().expect("a rate")],
        rtts: vec!["40ms".parse().expect("a time")],
        losses: vec!["0%".parse().expect("a loss")],
        loss_position: None,
        buffers: vec!["4bdp".parse().expect("a buffer")],
        queue: None,
        jitter: None,
        host_jitter: uncork_path::HostJitter::Usual,
        initial_window: None,
        start: None,
        workload: crate::Workload::Duration("10s".parse().expect("a time")),
        columns: vec![
            ["bbr1"; 1]
                .iter()
                .chain(&["cubic"; 9])
                .copied()
                .collect::<Vec<_>>()
                .join("+")
                .parse()
                .expect("a column"),
        ],
        flows: 1,
        seeds: 6,
        first_seed: 1,
    };
    let document = played(&spec.scenario(None).expect("a scenario"));
    let answer = &document.answers[0];
    assert_eq!((answer.metric.as_str(), answer.kind), ("goodput_mean", AnswerKind::Worse));
    let (share, other) = (answer.share.expect("a share"), answer.baseline_share.expect("a share"));
    assert!(other > 25.0 && share < 9.0, "{share} and {other}");
    assert!((9.0 * share + other - 100.0).abs() < 0.01, "{share} and {other}");
    let jain = answer.prices.iter().find(|price| price.metric == "jain_mean").expect("a price");
    assert_eq!(jain.payer, Some(uncork_report::lab::Payer::Baseline));
    assert!(jain.baseline_value < 0.8, "{jain:?}");
    let text = document.short_text(uncork_terminal::Style::Plain);
    assert!(text.contains("bbr1 gets ") && text.contains("Jain 0."), "{text}");
}
