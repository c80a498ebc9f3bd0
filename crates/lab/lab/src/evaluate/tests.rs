//! Results of a scenario small enough to check by hand.

use uncork_flow::{FlowRecord, Playback, Quantiles, RequestRecord};
use uncork_path::HostJitter;
use uncork_report::lab::{Estimate, Verdict};
use uncork_units::{Time, TimeDelta};

use super::outcome::RunOutcome;
use super::results::RunResults;
use crate::scenario::{
    Axis, Carries, Cell, CellPlan, Class, Expectation, Metric, Published, PublishedRange, Quantity,
    Scenario, Selection, Statistic, Threshold,
};
use crate::testing::record;

const P50: Statistic = Statistic::Quantile(0.5);

fn class(name: &str, ccs: &[&str]) -> Class {
    Class {
        name: name.into(),
        ccs: ccs.iter().map(|cc| (*cc).to_owned()).collect(),
        carries: Carries::Objects,
        flows: 1,
        background: false,
        own_links: false,
        lasts: None,
    }
}

/// Two cells, cubic and bbr3, with downloads and background traffic.
fn scenario() -> Scenario {
    let cell = |value: usize, cc: &str| {
        let background = Class { background: true, ..class("noise", &["reno"]) };
        Cell {
            point: vec![value],
            classes: vec![class("main", &[cc]), background],
            end: Time::ZERO + TimeDelta::from_secs(100),
            host_jitter: HostJitter::NONE,
            offload: None,
            card: None,
            plan: CellPlan::default(),
        }
    };
    Scenario {
        axes: vec![Axis {
            key: "flow.main.cc".into(),
            name: "cc".into(),
            values: vec!["cubic".into(), "bbr3".into()],
            written: vec!["cubic".into(), "bbr3".into()],
            parts: Vec::new(),
        }],
        cells: vec![cell(0, "cubic"), cell(1, "bbr3")],
        ..Scenario::empty("test")
    }
}

fn download(cc: &str, seconds: u64, bytes: u64) -> FlowRecord {
    FlowRecord {
        group: "main".into(),
        cc: cc.into(),
        size_bytes: Some(bytes),
        ..record(0, Some(seconds * 1000), bytes)
    }
}

/// Eight seeds: CUBIC takes 10 to 17 s, BBRv3 half of that.
fn runs() -> Vec<RunOutcome> {
    let of = |cell: usize, cc: &str, seed: u64| {
        let seconds = (10 + 2 * seed) / (1 + cell as u64);
        let noise =
            FlowRecord { group: "noise".into(), cc: "reno".into(), flow: 1, ..record(0, None, 1) };
        let flows = vec![download(cc, seconds, 10_000_000), noise];
        RunOutcome {
            cell,
            seed,
            flows,
            requests: Vec::new(),
            clients: Vec::new(),
            packets: 7,
            doubts: Vec::new(),
            commands: Vec::new(),
        }
    };
    let cells = [(0, "cubic"), (1, "bbr3")];
    cells.iter().flat_map(|(cell, cc)| (1..=8).map(|seed| of(*cell, cc, seed))).collect()
}

/// The first run of the first cell.
fn simulated(scenario: &Scenario) -> RunOutcome {
    let instance = scenario.instance(0, 1);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let played = crate::Engine::Sim.play(&instance.run, &stop).unwrap();
    super::outcome(scenario, (0, 1), &instance, played).0
}

fn quantity(metric: Metric, statistic: Statistic) -> Quantity {
    Quantity { metric, statistic }
}

#[test]
fn background_counts_only_on_request() {
    let (scenario, runs) = (scenario(), runs());
    let results = RunResults::new(&scenario, &runs);
    let of =
        |class: Option<&str>| Selection { class: class.map(str::to_owned), ..Selection::default() };
    let goodputs = |class| {
        let samples = results.samples(&[0], &of(class), quantity(Metric::Goodput, P50));
        samples.into_values().len()
    };
    assert_eq!((goodputs(None), goodputs(Some("noise"))), (8, 8));
    let absent = Selection { cc: Some("bbr3".into()), ..of(Some("main")) };
    let share = quantity(Metric::Share, Statistic::Mean);
    assert_eq!(results.estimate(&[0], &absent, share, None), None, "no flow, no share");
}

/// Half of each link, regardless of flows elsewhere. A class with its own link has no share.
#[test]
fn shares_are_relative_to_the_same_links() {
    let text = "title = \"t\"\n[run]\nend = \"9s\"\nseeds = 1\n\
                [path.one]\nrate = \"20mbit\"\nrtt = \"20ms\"\n\
                [path.two]\nrate = \"5mbit\"\nrtt = \"20ms\"\n\
                [path.own]\nrate = \"5mbit\"\nrtt = \"20ms\"\nown_per_flow = true\n\
                [flow.a]\npath = \"one\"\ncc = \"cubic\"\ntransfer = \"1MB\"\n\
                [flow.b]\npath = \"one\"\ncc = \"cubic\"\ntransfer = \"1MB\"\n\
                [flow.c]\npath = \"two\"\ncc = \"cubic\"\ntransfer = \"1MB\"\n\
                [flow.d]\npath = \"own\"\ncc = \"cubic\"\ncount = 2\ntransfer = \"1MB\"\n";
    let files = crate::builtin::NoFiles;
    let scenario = Scenario::parse("shares", text, &[], &files).unwrap();
    let runs = [simulated(&scenario)];
    let results = RunResults::new(&scenario, &runs);
    let share = |class: &str| {
        let of = Selection { class: Some(class.into()), ..Selection::default() };
        let share = quantity(Metric::Share, Statistic::Mean);
        results.estimate(&[0], &of, share, None).map(|estimate| estimate.value)
    };
    let shares = ["a", "b", "c", "d"].map(share);
    assert_eq!(shares, [Some(0.5), Some(0.5), Some(1.0), None]);
}

#[test]
fn ratio_compares_the_same_seeds_of_two_cells() {
    let (scenario, runs) = (scenario(), runs());
    let results = RunResults::new(&scenario, &runs);
    let over = Selection { at: vec![(0, 0)], ..Selection::default() };
    let of = Selection { at: vec![(0, 1)], cc: Some("bbr3".into()), ..Selection::default() };
    let ratio = results.estimate(&[1], &of, quantity(Metric::Completion, P50), Some(&over));
    let ratio = ratio.expect("both finished");
    assert!((ratio.value - 0.5).abs() < 1e-9);
    assert!((ratio.low.expect("eight pairs") - ratio.high.expect("eight pairs")).abs() < 1e-9);
}

#[test]
fn thresholds_are_tested_in_every_cell_and_fail_without_data() {
    let threshold = |metric, min, max| Threshold {
        measures: "it".into(),
        min_text: "a".into(),
        max_text: "b".into(),
        of: Selection::default(),
        quantity: quantity(metric, P50),
        over: None,
        minus: None,
        expected: Expectation { min, max },
    };
    let thresholds = vec![
        threshold(Metric::Completion, None, Some(10.0)),
        threshold(Metric::PlaybackLatency, Some(0.0), None),
    ];
    let scenario = Scenario { thresholds, ..scenario() };
    let runs = runs();
    let rows = super::answers::thresholds(&RunResults::new(&scenario, &runs));
    let passed: Vec<(&str, &str, bool)> =
        rows.iter().map(|row| (row.text.as_str(), row.cc.as_str(), row.passed)).collect();
    assert_eq!(
        passed,
        [
            ("it ≤ b", "cubic", false),
            ("it ≤ b", "bbr3", true),
            ("it ≥ a (nothing to measure)", "cubic", false),
            ("it ≥ a (nothing to measure)", "bbr3", false)
        ]
    );
    assert!(rows.iter().all(|row| row.class == "main" && row.cell.is_empty()), "{rows:?}");
    assert_eq!(rows[2].measured, None);
}

/// The row shows which bound is missed and the controllers of both sides.
#[test]
fn each_bound_of_a_threshold_has_its_own_row() {
    let threshold = Threshold {
        measures: "share.mean".into(),
        min_text: "1%".into(),
        max_text: "2%".into(),
        of: Selection { class: Some("noise".into()), ..Selection::default() },
        quantity: quantity(Metric::Share, Statistic::Mean),
        over: None,
        minus: None,
        expected: Expectation { min: Some(0.01), max: Some(0.02) },
    };
    let mut scenario = Scenario { thresholds: vec![threshold], ..scenario() };
    scenario.axes[0].values[1] = "the other".into();
    let runs = runs();
    let rows = super::answers::thresholds(&RunResults::new(&scenario, &runs));
    let texts: Vec<[&str; 4]> =
        rows.iter().map(|row| [&*row.text, &*row.class, &*row.cc, &*row.cell]).collect();
    assert_eq!(
        texts[0],
        ["share.mean ≥ 1% (nothing to measure)", "noise", "reno", "cc of main cubic"]
    );
    assert_eq!(
        texts[1],
        ["share.mean ≤ 2% (nothing to measure)", "noise", "reno", "cc of main cubic"]
    );
    assert_eq!(texts[2][3], "cc of main the other");
}

#[test]
fn published_values_are_shown_with_measured_ones() {
    let published = Published {
        what: "BBR over CUBIC".into(),
        value: "+100 %".into(),
        source: "a paper".into(),
        of: Selection { at: vec![(0, 1)], ..Selection::default() },
        quantity: quantity(Metric::Bandwidth, P50),
        over: Some(Selection { at: vec![(0, 0)], ..Selection::default() }),
        as_change: true,
        range: Some(PublishedRange {
            bounds: Expectation { min: Some(1.9), max: Some(2.1) },
            from: "five points either way".into(),
        }),
        note: String::new(),
    };
    let scenario = Scenario { published: vec![published], ..scenario() };
    let runs = runs();
    let rows = super::answers::published(&RunResults::new(&scenario, &runs));
    assert_eq!(rows[0].measured, "+100.0 % (+100.0 % to +100.0 %)");
    let judgement = rows[0].judgement.as_ref().expect("it has a range");
    assert_eq!(judgement.verdict, Verdict::Agrees);
    assert_eq!(judgement.range, "+90.0 % to +110.0 %");
    assert_eq!(judgement.range_from, "five points either way");
}

#[test]
fn a_verdict_needs_an_interval_on_one_side_of_each_bound() {
    let verdict = |min, max, interval: Option<(f64, f64)>| {
        let (low, high) = interval.unzip();
        Expectation { min, max }.verdict(Some(Estimate { value: 2.0, low, high, n: 10 }))
    };
    let range = (Some(1.0), Some(3.0));
    assert_eq!(verdict(range.0, range.1, Some((1.0, 3.0))), Verdict::Agrees);
    assert_eq!(verdict(range.0, range.1, Some((0.9, 2.5))), Verdict::Open);
    assert_eq!(verdict(range.0, range.1, Some((0.5, 4.0))), Verdict::Open);
    assert_eq!(verdict(range.0, range.1, Some((3.1, 4.0))), Verdict::Differs);
    assert_eq!(verdict(range.0, range.1, Some((0.1, 0.9))), Verdict::Differs);
    assert_eq!(verdict(None, range.1, Some((0.1, 0.9))), Verdict::Agrees);
    assert_eq!(verdict(range.0, range.1, None), Verdict::Open);
    let range = Expectation { min: range.0, max: range.1 };
    assert_eq!(range.verdict(None), Verdict::Open);
}

#[test]
fn requests_and_listeners_are_separate_samples() {
    let playback = Playback {
        startup_ns: Some(250_000_000),
        played_ns: 90_000_000_000,
        stalled_ns: 10_000_000_000,
        stutters: 6,
        items: 3,
        bitrate_bps: None,
        switches: 0,
    };
    let player = FlowRecord {
        group: "main".into(),
        cc: "cubic".into(),
        playback: Some(playback),
        rtt_ms: Some(Quantiles { min: 50.0, p50: 60.0, p95: 90.0 }),
        ..record(0, None, 1_000_000)
    };
    let request = |millis: u64| RequestRecord {
        flow: 0,
        start_ns: 0,
        first_byte_ns: Some(50_000_000),
        completion_ns: Some(millis * 1_000_000),
        size_bytes: 512_000,
        bytes_delivered: 512_000,
    };
    let requests = vec![request(400), request(600)];
    let runs = [RunOutcome {
        cell: 0,
        seed: 1,
        flows: vec![player],
        requests,
        clients: vec![0],
        packets: 1,
        doubts: Vec::new(),
        commands: Vec::new(),
    }];
    let scenario = scenario();
    let results = RunResults::new(&scenario, &runs);
    let value = |metric, statistic| {
        let of = Selection::default();
        results
            .estimate(&[0], &of, quantity(metric, statistic), None)
            .map(|estimate| estimate.value)
    };
    let expected = [
        (Metric::Completion, P50, 0.5),
        (Metric::FirstByte, P50, 0.05),
        (Metric::Bandwidth, P50, 8_192_000.0),
        (Metric::PlaybackLatency, P50, 0.25),
        (Metric::Stutters, Statistic::Mean, 2.0),
        (Metric::Stalled, Statistic::Mean, 0.1),
        (Metric::Rtt, Statistic::Quantile(0.95), 0.09),
    ];
    for (metric, statistic, number) in expected {
        let value = value(metric, statistic).expect("measured");
        assert!((value / number - 1.0).abs() < 1e-9, "{metric:?}: {value}");
    }
}

#[test]
fn distributions_count_unfinished_samples() {
    let mut runs = runs();
    runs[0].flows[0].completion_ns = None;
    let scenario = scenario();
    let document = super::document(&scenario, &runs, &[], "uncork lab run test".into());
    let cubic = &document.cells[0].classes[0];
    assert_eq!((cubic.class.as_str(), cubic.flows, cubic.finished), ("main", 8, 7));
    let names: Vec<&str> = cubic.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert!(names.contains(&"completion_p50") && !names.contains(&"completion_p99"), "{names:?}");
    assert_eq!(document.engine.packets, 7 * 16);
}

/// A link's utilization cannot exceed 1, with any warm-up.
#[test]
fn warm_up_is_excluded_from_bytes_and_time() {
    let text = "title = \"t\"\nabout = \"a\"\n[run]\nend = \"12s\"\nwarmup = \"6s\"\nseeds = 1\n\
                [path]\nrate = \"20mbit\"\nrtt = \"20ms\"\n\
                [flow.main]\ncc = \"cubic\"\nbulk = \"end\"\n";
    let files = crate::builtin::NoFiles;
    let scenario = Scenario::parse("warm", text, &[], &files).unwrap();
    let runs = [simulated(&scenario)];
    let results = RunResults::new(&scenario, &runs);
    let of = Selection::default();
    let utilisation = quantity(Metric::Utilisation, Statistic::Mean);
    let value = results.estimate(&[0], &of, utilisation, None).unwrap().value;
    assert!((0.97..=1.001).contains(&value), "{value}");
}

const SMALL_AND_LARGE: &str = r#"title = "A small file and a large one"
[run]
seeds = 2
end = "3s"
[path]
rate = "20mbit"
rtt = "20ms"
[flow.small]
transfer = "50kB"
cc = "cubic"
[flow.large]
bulk = "end"
cc = "cubic"
[matrix]
"flow.large.cc" = ["cubic", "bbr1"]
[[threshold]]
flow = "small"
metric = "completion.p50"
max = "2s"
[[figure]]
kind = "cdf"
title = "Completion"
flow = "small"
by = "flow.large.cc"
metric = "completion"
"#;

/// The document of a custom scenario after its runs.
fn played(text: &str) -> uncork_report::lab::LabDocument {
    use crate::sweep::{SweepResults, items, run_items};
    let scenario = Scenario::parse("own", text, &[], &crate::builtin::NoFiles).unwrap();
    let (of, stop) = ((&scenario, crate::Engine::Sim), std::sync::atomic::AtomicBool::new(false));
    let runs = run_items(of, &items(&scenario), 2, &stop, &|_, _| {}).unwrap();
    SweepResults::new(runs).document(&scenario, "uncork".into(), false)
}

#[test]
fn curves_against_another_controller_are_named_and_coloured_by_it() {
    let document = played(SMALL_AND_LARGE);
    let uncork_report::lab::Plot::Cdf(cdf) = &document.figures[0].plot else { panic!() };
    let curves: Vec<(&str, &str)> =
        cdf.curves.iter().map(|curve| (curve.label.as_str(), curve.cc.as_str())).collect();
    assert_eq!(curves, [("next to cubic", "cubic"), ("next to bbr1", "bbr1")]);
}

#[test]
fn thresholds_name_the_controller_of_the_other_class() {
    let document = played(SMALL_AND_LARGE);
    let cells: Vec<&str> = document.thresholds.iter().map(|row| row.cell.as_str()).collect();
    assert_eq!(cells, ["cc of large cubic", "cc of large bbr1"]);
}

#[test]
fn bulk_flows_cannot_finish() {
    let document = played(SMALL_AND_LARGE);
    let classes = document.cells[0].classes.iter();
    let endless: Vec<(&str, bool)> =
        classes.map(|class| (class.class.as_str(), class.endless)).collect();
    assert_eq!(endless, [("small", false), ("large", true)]);
}
