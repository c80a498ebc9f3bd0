//! The sample document's figures come from real runs of `uncork compare`; its scenario, thresholds
//! and run description are made up.

use uncork_terminal::{Style, Terminal};

use super::*;
use crate::json::DocumentError;

pub(super) fn sample() -> LabDocument {
    LabDocument::from_json(include_str!("../../tests/lab.json")).unwrap()
}

/// A suite of two: the sample, and a copy that missed no threshold.
pub(super) fn suite() -> SuiteDocument {
    let named = |name: &str| LabDocument {
        name: name.to_owned(),
        title: format!("The {name}"),
        ..sample()
    };
    let mut scenarios = vec![named("first"), named("second")];
    scenarios[1].thresholds.iter_mut().for_each(|threshold| threshold.passed = true);
    SuiteDocument {
        schema: SuiteDocument::SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        name: "both".to_owned(),
        title: "Both of them".to_owned(),
        about: "Two scenarios.".to_owned(),
        command: "uncork lab run both".to_owned(),
        suite: "suite = [\"first\", \"second\"]\n".to_owned(),
        not_judged: vec!["What no scenario runs.".to_owned()],
        engine: scenarios[0].engine.clone(),
        scenarios,
    }
}

/// The sample with only the cell at 1 % loss and a buffer of 1 BDP.
fn one_cell() -> LabDocument {
    let mut document = sample();
    document.cells.retain(|cell| cell.point == [2, 1]);
    document
}

#[test]
fn written_documents_read_back() {
    let document = sample();
    let text = document.to_json();
    assert_eq!(LabDocument::from_json(&text).unwrap(), document);
    assert_eq!(LabDocument::from_json(&text).unwrap().to_json(), text);
}

#[test]
fn each_point_has_its_own_line() {
    let text = sample().to_json();
    let first = "\n            \"points\": [\n              [21.1489, 0.05],\n              [21.6007, 0.1],\n";
    assert!(text.contains(first), "{text}");
}

/// Names and order are a contract.
#[test]
fn field_names_follow_the_contract() {
    let value: serde_json::Value = serde_json::from_str(&sample().to_json()).unwrap();
    let names = |value: &serde_json::Value| {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(
        names(&value),
        "about answers assumptions axes cells command doubts engine figures files first_seed intervals name \
         published scenario schema seeds thresholds title version"
    );
    let class = &value["cells"][0]["classes"][0];
    assert_eq!(names(class), "cc class endless finished flows metrics");
    assert_eq!(names(&class["metrics"][0]), "estimate name unit");
    assert_eq!(names(&class["metrics"][0]["estimate"]), "high low n value");
    assert_eq!(
        names(&value["thresholds"][0]),
        "bound cc cell class high low measured passed text unit"
    );
    assert_eq!(names(&value["engine"]), "name packets");
    let figures = value["figures"].as_array().unwrap();
    assert_eq!(names(&figures[0]), "caption id plot provenance title");
    let kinds: Vec<&str> = figures.iter().map(|f| f["plot"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["heat_map", "heat_map", "cdf", "bars", "lines", "time_series", "table"]);
    assert_eq!(figures[0]["plot"]["scale"]["diverging"], 1.0);
    assert_eq!(figures[1]["plot"]["scale"], "sequential");
}

#[test]
fn unknown_fields_are_skipped_and_other_schemas_rejected() {
    let text = sample().to_json();
    let later = text.replacen("\"seeds\"", "\"later\": [1],\n  \"seeds\"", 1);
    assert_eq!(LabDocument::from_json(&later).unwrap(), sample());
    let other = text.replace("uncork.lab/2", "uncork.lab/1");
    let error = LabDocument::from_json(&other).unwrap_err();
    let expected = "schema is \"uncork.lab/1\", expected \"uncork.lab/2\"";
    assert_eq!(error.to_string(), expected);
}

fn heat_map(document: &mut LabDocument) -> &mut HeatMap {
    match &mut document.figures[0].plot {
        Plot::HeatMap(map) => map,
        other => panic!("{other:?}"),
    }
}

fn distributions(document: &mut LabDocument) -> &mut [Curve] {
    match &mut document.figures[2].plot {
        Plot::Cdf(cdf) => &mut cdf.curves,
        other => panic!("{other:?}"),
    }
}

/// The document with an answer about its first cell.
fn answered() -> LabDocument {
    let mut document = sample();
    let classes = &document.cells[0].classes;
    let ratio = Estimate { value: 0.5, low: Some(0.4), high: Some(0.6), n: 10 };
    document.answers = vec![Answer {
        class: classes[0].class.clone(),
        baseline_class: classes[0].class.clone(),
        cell: 0,
        place: String::new(),
        choice: classes[1].cc.clone(),
        baseline: classes[0].cc.clone(),
        of: String::new(),
        metric: "completion_p50".to_owned(),
        unit: "s".to_owned(),
        less_is_better: true,
        value: Some(1.0),
        baseline_value: Some(2.0),
        share: None,
        baseline_share: None,
        share_range: None,
        baseline_share_range: None,
        ratio: Some(ratio),
        kind: AnswerKind::Better,
        transfers: Transfers::default(),
        baseline_transfers: Transfers::default(),
        prices: vec![Price {
            class: String::new(),
            metric: "retransmitted_mean".to_owned(),
            unit: "%".to_owned(),
            less_is_better: true,
            value: 1.0,
            baseline_value: 2.0,
            payer: None,
        }],
    }];
    document
}

#[test]
fn inconsistent_parts_are_named() {
    type Case = (&'static str, fn(&mut LabDocument));
    let cases: [Case; 22] = [
        ("cell 3", |d| d.cells[3].point = vec![1, 3]),
        ("cell 2", |d| d.cells[2].classes[0].metrics[1].estimate.low = Some(f64::NAN)),
        ("cell 2", |d| d.cells[2].classes[0].metrics[1].estimate.low = Some(1e9)),
        ("figure \"goodput-ratio\"", |d| d.figures[1].id = d.figures[0].id.clone()),
        ("figure \"goodput-ratio\"", |d| _ = heat_map(d).values[0].pop()),
        ("figure \"completion\"", |d| distributions(d)[0].points[0].0 = f64::INFINITY),
        ("figure \"completion\" has a curve \"BBRv1\"", |d| distributions(d)[1].points.reverse()),
        ("figure \"completion\"", |d| distributions(d)[1].points[19].1 = 100.0),
        ("figure \"loss\" has a point at 0.001", |d| {
            if let Plot::Lines(lines) = &mut d.figures[4].plot {
                lines.x_names = ["none", "some"].map(str::to_owned).to_vec();
            }
        }),
        ("threshold \"completion_p50 < 6 s\"", |d| d.thresholds[0].measured = Some(f64::NAN)),
        ("threshold \"completion_p50 < 6 s\"", |d| d.thresholds[0].low = Some(1e9)),
        ("answer 0 has no cell 99", |d| d.answers[0].cell = 99),
        ("answer 0", |d| d.answers[0].class = "nosuch".to_owned()),
        ("answer 0", |d| d.answers[0].baseline_class = "nosuch".to_owned()),
        ("answer 0", |d| d.answers[0].of = "nosuch".to_owned()),
        ("answer 0", |d| d.answers[0].prices[0].class = "nosuch".to_owned()),
        ("answer 0", |d| d.answers[0].choice = "nosuch".to_owned()),
        ("answer 0", |d| d.answers[0].value = Some(f64::NAN)),
        ("answer 0", |d| d.answers[0].prices[0].value = f64::INFINITY),
        ("answer 0", |d| d.answers[0].ratio.as_mut().unwrap().high = Some(0.3)),
        ("answer 0 decides without interval", |d| {
            let ratio = d.answers[0].ratio.as_mut().unwrap();
            (ratio.low, ratio.high) = (None, None);
        }),
        ("answer 0 has no shares over the orders of starts", |d| {
            d.answers[0].kind = AnswerKind::ByOrder;
        }),
    ];
    assert!(answered().check().is_ok());
    for (nth, (place, change)) in cases.into_iter().enumerate() {
        let mut document = answered();
        change(&mut document);
        match document.check() {
            Err(DocumentError::Content(problem)) => {
                assert!(problem.starts_with(place), "{problem}");
            }
            other => panic!("case {nth}, {place}: {other:?}"),
        }
    }
}

#[test]
fn csv_has_long_form() {
    let mut document = one_cell();
    document.cells[0].classes.truncate(1);
    document.cells[0].classes[0].metrics.truncate(2);
    document.cells[0].classes[0].metrics[1].estimate.low = None;
    document.cells[0].classes[0].class = "a \"class\", quoted".to_owned();
    let expected = "\
path.loss.probability,path.queue.limit,class,cc,flows,finished,metric,unit,value,low,high,n
1 %,1 BDP,\"a \"\"class\"\", quoted\",cubic,20,20,completion_p10,s,22.431,21.1489,24.9196,20
1 %,1 BDP,\"a \"\"class\"\", quoted\",cubic,20,20,completion_p50,s,26.4307,,28.6462,20
";
    assert_eq!(document.csv(), expected);
    assert_eq!(sample().csv().lines().count(), 1 + 15 * 3 * 8);
}

#[test]
fn text_starts_with_missed_thresholds() {
    let mut document = one_cell();
    document.thresholds.retain(|threshold| threshold.unit == "s" && threshold.bound > 1.0);
    document.thresholds[0].measured = None;
    document.thresholds[0].passed = false;
    document.published.truncate(1);
    let expected = "\
3 of 5 thresholds missed.
          threshold             class     controller  where                     measured
✗ missed  completion_p50 < 6 s  download  bbr3        loss 0 %, buffer 1 BDP     nothing
✗ missed  completion_p50 < 6 s  download  bbr3        loss 3 %, buffer 1 BDP      6.49 s
✗ missed  completion_p50 < 6 s  download  bbr3        loss 10 %, buffer 1 BDP     64.3 s
✓ met     completion_p50 < 6 s  download  bbr3        loss 0.1 %, buffer 1 BDP    4.47 s
✓ met     completion_p50 < 6 s  download  bbr3        loss 1 %, buffer 1 BDP      4.83 s

Random loss and shallow buffers: 20 seeds from 1

                                    completion, s   RTT, ms  queue delay, ms  retransmitted, %
loss  buffer  controller  finished   p10  p50  p90      p95              p95              mean
1 %   1 BDP   cubic       20/20     22.4 26.4 29.6     51.8             1.20             0.961
1 %   1 BDP   bbr1        20/20     4.41 4.47 4.69      100             49.6              3.52
1 %   1 BDP   bbr3        20/20     4.69 4.83 5.07     99.6             45.6              1.18
2 columns left out: see --format csv, or the report of -o DIR.

Published results
          what                 published           agrees if              here
✓ agrees  CUBIC, 0.1 % random  goodput falls to a  5 Mbit/s to 20 Mbit/s  12.1 of 100 Mbit/s
          loss                 tenth of the link
";
    assert_eq!(document.text(Style::Plain), expected);
}

/// The sample with everything that makes lines long.
fn crowded() -> LabDocument {
    let mut document = one_cell();
    for class in &mut document.cells[0].classes {
        class.class = "clients behind a mobile link".to_owned();
        let bulk = ["jain_mean", "share_mean", "stutters_mean", "playback_latency_p50"];
        let copies = bulk.map(|name| Metric { name: name.to_owned(), ..class.metrics[0].clone() });
        class.metrics.extend(copies);
    }
    document.cells[0].classes[0].class = "main".to_owned();
    document.doubts = vec!["1 of 2 runs was disturbed by this machine. ".repeat(5)];
    document.published[0].note = "Why they differ, in many words. ".repeat(8);
    let judgement = document.published[0].judgement.as_mut().expect("it is judged");
    judgement.verdict = Verdict::Differs;
    document
}

#[test]
fn no_line_is_longer_than_the_terminal() {
    let suite = SuiteDocument { scenarios: vec![sample(), crowded()], ..suite() };
    for width in [60, 80, 100, 200] {
        let terminal = Terminal { style: Style::Plain, width };
        for text in [crowded().text(terminal), suite.text(terminal)] {
            let long = text.lines().find(|line| line.chars().count() > width);
            assert_eq!(long, None, "{width}");
        }
    }
    let narrow = crowded().text(Terminal { style: Style::Plain, width: 60 });
    assert!(narrow.matches("\nloss").count() >= 2, "parts between groups: {narrow}");
    let wide = one_cell().text(Terminal { style: Style::Plain, width: 200 });
    assert!(wide.contains("timeouts") && !wide.contains("left out"), "{wide}");
}

/// A second class, next to a class with the controller that an axis selects.
fn with_another_class() -> LabDocument {
    let mut document = sample();
    document.axes = vec![MatrixAxis {
        key: "flow.large.cc".to_owned(),
        name: "cc".to_owned(),
        values: ["cubic", "bbr1", "bbr3"].map(str::to_owned).to_vec(),
        columns: Vec::new(),
    }];
    document.cells.truncate(3);
    for (n, cell) in document.cells.iter_mut().enumerate() {
        cell.point = vec![n];
        cell.classes.truncate(2);
        cell.classes[0].class = "small".to_owned();
        cell.classes[0].cc = "cubic".to_owned();
        cell.classes[1].class = "large".to_owned();
        cell.classes[1].cc = document.axes[0].values[n].clone();
    }
    document
}

/// Cell, class and controller of each row.
fn names(document: &LabDocument) -> Vec<Vec<String>> {
    let results = super::results::ResultRows::of(document);
    results.rows.into_iter().map(|row| row.labels).collect()
}

#[test]
fn rows_name_the_controller_of_the_other_class() {
    let document = with_another_class();
    let rows = names(&document);
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[2][..3], ["bbr1", "small", "cubic"]);
    assert_eq!(rows.iter().collect::<std::collections::HashSet<_>>().len(), 6, "{rows:?}");
    let text = document.text(Style::Plain);
    assert!(text.contains("\ncc of large  class  controller"), "{text}");
    // For the large class alone, its controller identifies the rows.
    let mut alone = document;
    alone.cells.iter_mut().for_each(|cell| drop(cell.classes.remove(0)));
    assert_eq!(names(&alone)[1], ["bbr1", "20/20"]);
}

#[test]
fn flows_that_cannot_finish_are_not_counted_as_finished() {
    let mut document = with_another_class();
    for cell in &mut document.cells {
        (cell.classes[1].endless, cell.classes[1].finished) = (true, 0);
    }
    assert_eq!(names(&document)[1][3], "–");
    document.cells.iter_mut().for_each(|cell| cell.classes[0].endless = true);
    assert_eq!(names(&document)[1].len(), 3);
    assert!(!document.text(Style::Plain).contains("finished"));
}

#[test]
fn a_single_sample_is_printed_once() {
    let mut document = one_cell();
    for class in &mut document.cells[0].classes {
        let estimate = Estimate { low: None, high: None, n: 1, ..class.metrics[1].estimate };
        class.metrics.iter_mut().take(3).for_each(|metric| metric.estimate = estimate);
    }
    let text = document.text(Terminal { style: Style::Plain, width: 200 });
    let headings = text.lines().find(|line| line.starts_with("loss")).unwrap();
    assert_eq!(headings.matches("p10").count(), 1, "{text}");
    assert!(!headings.contains("p90"), "{text}");
}

#[test]
fn times_use_one_unit_per_column() {
    let mut document = one_cell();
    let times = [(0.0876, 1.5), (0.051, 0.0901), (0.000_608, 0.05)];
    for (class, (low, high)) in document.cells[0].classes.iter_mut().zip(times) {
        let metric = |name: &str, value| Metric {
            name: name.to_owned(),
            unit: "s".to_owned(),
            estimate: Estimate { value, low: None, high: None, n: 20 },
        };
        class.metrics = vec![metric("rtt_p50", low), metric("rtt_p95", high)];
    }
    let text = document.text(Style::Plain);
    assert!(text.contains("RTT, ms") && text.contains("87.6") && text.contains("1500"), "{text}");
}

#[test]
fn escape_sequences_are_removed() {
    let hostile = "\u{1b}]0;owned\u{7}\r\u{9b}2J";
    let mut document = one_cell();
    document.title = hostile.to_owned();
    document.axes[0].name = hostile.to_owned();
    document.axes[0].values[2] = hostile.to_owned();
    for class in &mut document.cells[0].classes {
        hostile.clone_into(&mut class.cc);
        hostile.clone_into(&mut class.metrics[0].name);
        hostile.clone_into(&mut class.metrics[3].unit);
    }
    hostile.clone_into(&mut document.thresholds[0].text);
    hostile.clone_into(&mut document.thresholds[0].cell);
    hostile.clone_into(&mut document.thresholds[0].class);
    hostile.clone_into(&mut document.thresholds[0].cc);
    hostile.clone_into(&mut document.thresholds[0].unit);
    hostile.clone_into(&mut document.published[0].measured);
    let text = document.text(Style::Plain);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn several_classes_are_named() {
    let mut document = one_cell();
    "video".clone_into(&mut document.cells[0].classes[1].class);
    let text = document.text(Style::Plain);
    assert!(text.contains("loss  buffer  class     controller  finished"), "{text}");
    assert!(text.contains("1 %   1 BDP   video     bbr1        20/20"), "{text}");
}

#[test]
fn suite_reads_back_and_checks_each_scenario() {
    let text = suite().to_json();
    assert_eq!(SuiteDocument::from_json(&text).unwrap(), suite());
    let mut unsound = suite();
    unsound.scenarios[1].cells[3].point = vec![9, 9];
    let error = SuiteDocument::from_json(&unsound.to_json()).unwrap_err();
    assert!(matches!(error, DocumentError::Content(_)), "{error}");
}

#[test]
fn suite_text_lists_missed_thresholds_and_their_cells() {
    let mut suite = suite();
    suite.scenarios.iter_mut().for_each(|scenario| scenario.published.clear());
    let expected = "\
2 of 18 thresholds missed, in 1 of 2 scenarios.
          scenario    thresholds     missed by
✗ missed  The first   2 of 9 missed  2 by bbr3 (class download)
✓ met     The second  all 9 met

The first
          threshold             class     controller  where                    measured
✗ missed  completion_p50 < 6 s  download  bbr3        loss 3 %, buffer 1 BDP     6.49 s
✗ missed  completion_p50 < 6 s  download  bbr3        loss 10 %, buffer 1 BDP    64.3 s
";
    assert_eq!(suite.text(Style::Plain), expected);
    suite.scenarios.remove(0);
    let text = suite.text(Style::Plain);
    assert!(text.starts_with("9 thresholds in 1 scenario: all met.\n"), "{text}");
}

#[test]
fn bound_within_the_interval_is_reported_as_noise() {
    let mut document = sample();
    document.thresholds.truncate(2);
    (document.thresholds[0].low, document.thresholds[0].high) = (Some(4.1), Some(5.9));
    let sure = document.text(Style::Plain);
    assert!(sure.starts_with("Both thresholds met.\n") && !sure.contains("noise"), "{sure}");
    (document.thresholds[1].low, document.thresholds[1].high) = (Some(4.2), Some(6.1));
    let open = document.text(Style::Plain);
    let verdict = "Both thresholds met; 1 within the noise: run more seeds.\n";
    assert!(open.starts_with(verdict), "{open}");
    assert!(open.contains("4.47 s, within the noise: 4.20 s to 6.10 s"), "{open}");
}

#[test]
fn many_met_thresholds_are_counted() {
    let mut document = sample();
    document.thresholds.retain(|threshold| threshold.passed);
    let met = document.thresholds[0].clone();
    document.thresholds = vec![met.clone(); 20];
    let listed = document.text(Style::Plain);
    assert_eq!(listed.matches("✓ met").count(), 20, "{listed}");
    document.thresholds.push(met.clone());
    let counted = document.text(Style::Plain);
    let expected =
        "All 21 thresholds met.\nNot listed: 21 met; the report and the JSON have them.\n";
    assert!(counted.starts_with(expected), "{counted}");
    document.thresholds.push(super::document::Threshold { passed: false, ..met });
    let failed = document.text(Style::Plain);
    assert!(failed.contains("✗ missed") && !failed.contains("✓ met"), "{failed}");
    assert!(failed.contains("Not listed: 21 met"), "{failed}");
}
