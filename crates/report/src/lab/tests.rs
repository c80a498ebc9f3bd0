//! The sample document's figures are those of real runs of `uncork compare`; its scenario, its
//! thresholds and what it says of its own run are made up.

use super::*;
use crate::json::DocumentError;
use crate::table::Style;

pub(super) fn sample() -> LabDocument {
    LabDocument::from_json(include_str!("../../tests/lab.json")).unwrap()
}

/// A suite of two: the sample, and one like it that missed nothing.
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
        not_judged: vec!["What nobody runs.".to_owned()],
        engine: scenarios[0].engine.clone(),
        scenarios,
    }
}

/// The sample with the cell at 1 % loss and a buffer of 1 BDP alone.
fn one_cell() -> LabDocument {
    let mut document = sample();
    document.cells.retain(|cell| cell.point == [2, 1]);
    document
}

#[test]
fn reading_what_was_written_gives_it_back() {
    let document = sample();
    let text = document.to_json();
    assert_eq!(LabDocument::from_json(&text).unwrap(), document);
    assert_eq!(LabDocument::from_json(&text).unwrap().to_json(), text);
}

#[test]
fn points_take_a_line_each() {
    let text = sample().to_json();
    let first = "\n            \"points\": [\n              [21.1489, 0.05],\n              [21.6007, 0.1],\n";
    assert!(text.contains(first), "{text}");
}

/// The names and their order are a contract with whoever reads the files.
#[test]
fn field_names_are_the_contract() {
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
    assert_eq!(names(class), "cc class finished flows metrics");
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
fn skips_fields_of_later_versions_and_refuses_other_schemas() {
    let text = sample().to_json();
    let later = text.replacen("\"seeds\"", "\"later\": [1],\n  \"seeds\"", 1);
    assert_eq!(LabDocument::from_json(&later).unwrap(), sample());
    let other = text.replace("uncork.lab/2", "uncork.lab/1");
    let error = LabDocument::from_json(&other).unwrap_err();
    let expected = "schema is \"uncork.lab/1\", expected \"uncork.lab/2\"";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let problem = |change: fn(&mut LabDocument)| {
        let mut document = sample();
        change(&mut document);
        match document.check() {
            Err(DocumentError::Content(problem)) => problem,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        problem(|d| d.cells[3].point = vec![1, 3]),
        "cell 3 lies at [1, 3], outside of the matrix"
    );
    assert_eq!(
        problem(|d| d.cells[2].classes[0].metrics[1].estimate.low = Some(f64::NAN)),
        "cell 2: completion_p50 is no number"
    );
    assert_eq!(
        problem(|d| d.figures[1].id = d.figures[0].id.clone()),
        "figure \"goodput-ratio\" has the name of another"
    );
    assert_eq!(
        problem(|d| {
            if let Plot::HeatMap(map) = &mut d.figures[0].plot {
                map.values[0].pop();
            }
        }),
        "figure \"goodput-ratio\" needs 3 rows of 5 values"
    );
    assert_eq!(
        problem(|d| {
            if let Plot::Cdf(cdf) = &mut d.figures[2].plot {
                cdf.curves[0].points[0].0 = f64::INFINITY;
            }
        }),
        "figure \"completion\" holds something that is no number"
    );
    assert_eq!(
        problem(|d| {
            if let Plot::Cdf(cdf) = &mut d.figures[2].plot {
                cdf.curves[1].points.reverse();
            }
        }),
        "figure \"completion\" has a curve \"BBRv1\" whose x do not ascend"
    );
    assert_eq!(
        problem(|d| {
            if let Plot::Cdf(cdf) = &mut d.figures[2].plot {
                cdf.curves[1].points[19].1 = 100.0;
            }
        }),
        "figure \"completion\" has a distribution \"BBRv1\" that does not climb from 0 to 1"
    );
    assert_eq!(
        problem(|d| {
            if let Plot::Lines(lines) = &mut d.figures[4].plot {
                lines.x_names = ["none", "some"].map(str::to_owned).to_vec();
            }
        }),
        "figure \"loss\" has a point at 0.001, where there is no name"
    );
    assert_eq!(
        problem(|d| d.thresholds[0].measured = Some(f64::NAN)),
        "threshold \"completion_p50 < 6 s\" has no number"
    );
}

#[test]
fn csv_is_long() {
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
    assert_eq!(lab_csv(&document), expected);
    assert_eq!(lab_csv(&sample()).lines().count(), 1 + 15 * 3 * 8);
}

#[test]
fn text_begins_with_what_failed() {
    let mut document = one_cell();
    document.thresholds.retain(|threshold| threshold.unit == "s" && threshold.bound > 1.0);
    document.thresholds[0].measured = None;
    document.thresholds[0].passed = false;
    document.published.truncate(1);
    let expected = "\
3 of 5 thresholds failed.
          threshold             class     controller  where                     measured
✗ FAILED  completion_p50 < 6 s  download  bbr3        loss 0 %, buffer 1 BDP     nothing
✗ FAILED  completion_p50 < 6 s  download  bbr3        loss 3 %, buffer 1 BDP      6.49 s
✗ FAILED  completion_p50 < 6 s  download  bbr3        loss 10 %, buffer 1 BDP     64.3 s
✓ met     completion_p50 < 6 s  download  bbr3        loss 0.1 %, buffer 1 BDP    4.47 s
✓ met     completion_p50 < 6 s  download  bbr3        loss 1 %, buffer 1 BDP      4.83 s

Random loss and shallow buffers: 20 seeds from 1

                                    completion, s   goodput  RTT, ms  queue, ms  resent  timeouts
loss  buffer  controller  finished   p10  p50  p90   Mbit/s      p95        p95       %
1 %   1 BDP   cubic       20/20     22.4 26.4 29.6     3.06     51.8       1.20   0.961    0.0500
1 %   1 BDP   bbr1        20/20     4.41 4.47 4.69     18.3      100       49.6    3.52    0.0500
1 %   1 BDP   bbr3        20/20     4.69 4.83 5.07     16.8     99.6       45.6    1.18    0.0500

Beside what was published
✓ agrees    CUBIC, 0.1 % random loss: goodput falls to a tenth of the link published, 12.1 of 100
            Mbit/s here (Cardwell et al., Communications of the ACM 60(2), 2017, fig. 8). The
            figure runs for 60 s, this for 20 s: the first overshoot weighs more.
";
    assert_eq!(lab_table(&document, Style::Plain), expected);
}

#[test]
fn wide_results_are_broken_between_groups() {
    let mut document = one_cell();
    for class in &mut document.cells[0].classes {
        let copies = (0..3).flat_map(|n| {
            class.metrics.iter().map(move |metric| Metric {
                name: format!("{n}_{}", metric.name),
                ..metric.clone()
            })
        });
        class.metrics = copies.collect();
    }
    document.thresholds.clear();
    let text = lab_table(&document, Style::Plain);
    assert!(!text.contains("threshold"), "nothing is said of none: {text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.matches("\nloss  buffer").count() >= 3, "{text}");
    assert_eq!(text.matches(" completion, s").count(), 3, "groups stay whole: {text}");
}

#[test]
fn terminals_get_nothing_to_obey() {
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
    let text = lab_table(&document, Style::Plain);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn classes_are_told_apart_where_there_are_several() {
    let mut document = one_cell();
    "video".clone_into(&mut document.cells[0].classes[1].class);
    let text = lab_table(&document, Style::Plain);
    assert!(text.contains("loss  buffer  class     controller  finished"), "{text}");
    assert!(text.contains("1 %   1 BDP   video     bbr1        20/20"), "{text}");
}

#[test]
fn a_suite_reads_back_and_each_of_its_scenarios_is_checked() {
    let text = suite().to_json();
    assert_eq!(SuiteDocument::from_json(&text).unwrap(), suite());
    let mut unsound = suite();
    unsound.scenarios[1].cells[3].point = vec![9, 9];
    let error = SuiteDocument::from_json(&unsound.to_json()).unwrap_err();
    assert!(matches!(error, DocumentError::Content(_)), "{error}");
}

#[test]
fn the_text_of_a_suite_says_which_scenario_failed_and_where() {
    let mut suite = suite();
    suite.scenarios.iter_mut().for_each(|scenario| scenario.published.clear());
    let expected = "\
1 of 2 scenarios failed: 2 of 18 thresholds.
          scenario    thresholds     failed by
✗ FAILED  The first   2 of 9 failed  download, bbr3: 2
✓ met     The second  all 9 met

The first
          threshold             class     controller  where                    measured
✗ FAILED  completion_p50 < 6 s  download  bbr3        loss 3 %, buffer 1 BDP     6.49 s
✗ FAILED  completion_p50 < 6 s  download  bbr3        loss 10 %, buffer 1 BDP    64.3 s
";
    assert_eq!(suite_table(&suite, Style::Plain), expected);
    suite.scenarios.remove(0);
    let text = suite_table(&suite, Style::Plain);
    assert!(text.starts_with("Nothing failed: 1 scenario with 9 thresholds.\n"), "{text}");
}

#[test]
fn a_bound_within_the_interval_leaves_a_threshold_open() {
    let mut document = sample();
    document.thresholds.truncate(2);
    (document.thresholds[0].low, document.thresholds[0].high) = (Some(4.1), Some(5.9));
    let sure = lab_table(&document, Style::Plain);
    assert!(sure.starts_with("All 2 thresholds are met.\n") && !sure.contains("open"), "{sure}");
    (document.thresholds[1].low, document.thresholds[1].high) = (Some(4.2), Some(6.1));
    let open = lab_table(&document, Style::Plain);
    let verdict = "All 2 thresholds are met. More seeds could decide 1 otherwise.\n";
    assert!(open.starts_with(verdict), "{open}");
    assert!(open.contains("4.47 s, open: 4.20 s to 6.10 s"), "{open}");
}

#[test]
fn many_thresholds_that_are_met_are_counted() {
    let mut document = sample();
    document.thresholds.retain(|threshold| threshold.passed);
    let met = document.thresholds[0].clone();
    document.thresholds = vec![met.clone(); 20];
    let listed = lab_table(&document, Style::Plain);
    assert_eq!(listed.matches("✓ met").count(), 20, "{listed}");
    document.thresholds.push(met.clone());
    let counted = lab_table(&document, Style::Plain);
    let expected = "All 21 thresholds are met.\nNot listed: 21 that are met; the report and the JSON have them.\n";
    assert!(counted.starts_with(expected), "{counted}");
    document.thresholds.push(super::document::Threshold { passed: false, ..met });
    let failed = lab_table(&document, Style::Plain);
    assert!(failed.contains("✗ FAILED") && !failed.contains("✓ met"), "{failed}");
    assert!(failed.contains("Not listed: 21 that are met"), "{failed}");
}
