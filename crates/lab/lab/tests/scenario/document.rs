//! Parts of the result document that require a run.

use std::sync::atomic::AtomicBool;

use uncork_lab::{Engine, SweepResults, items, run_items};
use uncork_report::lab::{AnswerKind, LabDocument, Plot};

use crate::common::scenario;

const COMPETING: &str = r#"
[run]
end = "4s"
seeds = 6
sample = "20ms"
[path]
rate = "10mbit"
rtt = "20ms"
buffer = "1bdp"
[flow.ours]
cc = "bbr3"
bulk = "end"
[flow.theirs]
cc = "reno"
bulk = "end"
"#;

fn document(set: &[&str]) -> LabDocument {
    let scenario = scenario(COMPETING, set);
    let stop = AtomicBool::new(false);
    let runs = run_items((&scenario, Engine::Sim), &items(&scenario), 2, &stop, &|_, _| {});
    SweepResults::new(runs.expect("runs")).document(&scenario, String::new(), true)
}

#[test]
fn competing_classes_are_compared() {
    let document = document(&[]);
    let [answer] = document.answers.as_slice() else { panic!("{:?}", document.answers) };
    assert_eq!((answer.class.as_str(), answer.baseline_class.as_str()), ("ours", "theirs"));
    assert_eq!((answer.choice.as_str(), answer.baseline.as_str()), ("bbr3", "reno"));
    assert_eq!((answer.metric.as_str(), answer.kind), ("goodput_mean", AnswerKind::Better));
    let ratio = answer.ratio.expect("a ratio");
    assert!(ratio.low.is_some_and(|low| low > 1.0), "{ratio:?}");
    assert_eq!(document.check().ok(), Some(()));
    assert_eq!(self::document(&["run.seeds=5"]).answers[0].kind, AnswerKind::Open);
    assert_eq!(self::document(&["flow.theirs.cc=bbr3"]).answers, []);
}

#[test]
fn series_show_limits_and_states() {
    let document = document(&["run.seeds=1"]);
    let series = document.figures.iter().find_map(|figure| match &figure.plot {
        Plot::TimeSeries(series) => Some(series),
        _ => None,
    });
    let series = series.expect("a series");
    let limits = series.panels.iter().map(|panel| match panel.limits.as_slice() {
        [] => "",
        [limit] => limit.label.as_str(),
        several => panic!("{several:?}"),
    });
    let limits: Vec<&str> = limits.collect();
    assert_eq!(limits, ["link rate 10 Mbit/s", "empty path 20 ms", "", "buffer 25 kB"]);
    let rows: Vec<&str> = series.states.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(rows, ["bbr3 1", "reno 2"]);
    let spans = &series.states[0].spans;
    assert_eq!(spans[0].0, "Startup");
    assert!(spans.is_sorted_by(|one, next| one.2 <= next.1), "{spans:?}");
}
