//! Sentences and figures of several classes say no more than was measured.

use std::sync::atomic::AtomicBool;

use uncork_report::lab::{ClassResult, LabDocument};
use uncork_terminal::Style;

use crate::Engine;
use crate::builtin::NoFiles;
use crate::scenario::Scenario;
use crate::sweep::{SweepResults, items, run_items};

/// A link of 10 Mbit/s for all classes.
const ONE_LINK: &str = "[path]\nrate = \"10mbit\"\nrtt = \"30ms\"\n";

/// Wide links of two classes that lead over one of 10 Mbit/s.
const OVER_A_CORE: &str = r#"
    [link.core]
    rate = "10mbit"
    [path.near]
    via = ["core"]
    rate = "100mbit"
    rtt = "30ms"
    [path.far]
    via = ["core"]
    rate = "100mbit"
    rtt = "120ms"
    [flow.a]
    path = "near"
    cc = "cubic"
    bulk = "10s"
    [flow.b]
    path = "far"
    cc = "cubic"
    bulk = "10s"
"#;

fn document(seeds: u64, paths: &str, flows: &str) -> LabDocument {
    let text = format!("[run]\nend = \"60s\"\nseeds = {seeds}\n{paths}{flows}");
    let scenario = Scenario::parse("t", &text, &[], &NoFiles).expect(&text);
    let stop = AtomicBool::new(false);
    let runs = run_items((&scenario, Engine::Sim), &items(&scenario), 2, &stop, &|_, _| {});
    SweepResults::new(runs.expect("runs")).document(&scenario, "uncork".into(), false)
}

/// The printed result, on one line.
fn printed(document: &LabDocument) -> String {
    document.short_text(Style::Plain).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The metric `name` of a class in the first cell.
fn metric(document: &LabDocument, class: &str, name: &str) -> f64 {
    let is_class = |one: &&ClassResult| one.class == class;
    let class = document.cells[0].classes.iter().find(is_class).expect("a class");
    class.metrics.iter().find(|metric| metric.name == name).expect("a metric").estimate.value
}

#[test]
fn streams_that_send_at_different_times_are_not_compared() {
    let document = document(
        2,
        ONE_LINK,
        r#"
            [flow.a]
            cc = "cubic"
            bulk = "10s"
            [flow.b]
            cc = "bbr1"
            start = "9s"
            bulk = "2s"
        "#,
    );
    assert!(document.answers.is_empty(), "{:?}", document.answers);
    let (text, reason) =
        (printed(&document), "they send at different times, 0 to 10 s and 9 to 11 s.");
    assert!(text.contains(&format!("a is not compared with b: {reason}")), "{text}");
}

#[test]
fn media_at_its_own_pace_is_not_starved() {
    let document = document(
        2,
        ONE_LINK,
        r#"
            [flow.film]
            cc = "bbr1"
            bulk = "10s"
            [flow.call]
            cc = "cubic"
            media = { rate = "300kbit", for = "10s" }
        "#,
    );
    assert!(document.answers.is_empty(), "{:?}", document.answers);
}

#[test]
fn many_classes_are_compared_with_the_first_only() {
    let class = |n: usize| {
        let cc = ["cubic", "bbr3"][n % 2];
        format!("[flow.c{n}]\ncc = \"{cc}\"\nbulk = \"2s\"\n")
    };
    let document = document(1, ONE_LINK, &(0..12).map(class).collect::<String>());
    assert_eq!(document.answers.len(), 6, "six have another controller than the first");
    let text = printed(&document);
    assert!(text.contains("Of 12 classes each is compared with c0 only."), "{text}");
}

#[test]
fn price_of_a_class_is_not_that_of_another_with_the_controller() {
    let document = document(
        6,
        ONE_LINK,
        r#"
            [flow.a]
            cc = "cubic"
            bulk = "10s"
            [flow.b]
            cc = "bbr1"
            bulk = "10s"
            [matrix]
            "flow.b.cc" = ["bbr1", "bbr3"]
        "#,
    );
    let text = printed(&document);
    assert!(
        text.contains("a (with bbr3 for b) delivers ") && text.contains("; with bbr1, a "),
        "{text}"
    );
}

/// BBR makes page loads slow for half of the time, and they fill the other half.
#[test]
fn median_is_printed_with_the_slowest_tenth_that_contradicts_it() {
    let document = document(
        8,
        "[path]\nrate = \"5mbit\"\nrtt = \"40ms\"\n",
        r#"
            [flow.page]
            cc = "cubic"
            requests = { size = "200kB", count = 20, think = "200ms" }
            [flow.dl]
            cc = "cubic"
            bulk = "30s"
            [matrix]
            "flow.dl.cc" = ["cubic", "bbr1"]
        "#,
    );
    let text = printed(&document);
    assert!(text.contains(" at p90 against "), "{text}");
    assert!(!text.contains("cubic makes page take"), "{text}");
}

#[test]
fn utilisation_is_that_of_the_slowest_link_and_classes_of_one_controller_have_names() {
    let document = document(4, OVER_A_CORE, "");
    let used: f64 =
        ["a", "b"].map(|class| metric(&document, class, "utilisation_mean")).iter().sum();
    assert!((90.0..=101.0).contains(&used), "{used} % of the core");
    let text = printed(&document);
    assert!(!text.contains("; cubic ") && !text.contains("but cubic "), "{text}");
}

#[test]
fn utilisation_of_two_links_is_that_of_their_sum_and_they_are_not_unfair() {
    let document = document(
        2,
        "[path.slow]\nrate = \"10mbit\"\nrtt = \"30ms\"\n[path.fast]\nrate = \"50mbit\"\nrtt = \"30ms\"\n",
        r#"
            [flow.a]
            path = "slow"
            cc = "cubic"
            bulk = "10s"
            [flow.b]
            path = "fast"
            cc = "cubic"
            bulk = "10s"
            [[threshold]]
            metric = "utilisation.mean"
            max = "100%"
            [[threshold]]
            metric = "jain.mean"
            min = 0.99
        "#,
    );
    let values: Vec<Option<f64>> = document.thresholds.iter().map(|one| one.measured).collect();
    let used = values[0].expect("a utilisation");
    assert!((90.0..=101.0).contains(&used), "{used} %");
    assert_eq!(values[1], None, "flows of different links have no fairness");
}

#[test]
fn prague_sends_ect1_unless_the_scenario_says_otherwise() {
    let queue = |ecn: &str| {
        let flow = format!("[flow.a]\ncc = \"prague\"\nbulk = \"10s\"\n{ecn}");
        let document = document(1, &format!("{ONE_LINK}queue = \"dualpi2\"\n"), &flow);
        metric(&document, "a", "queue_delay_p95")
    };
    let (usual, without) = (queue(""), queue("ecn = \"none\"\n"));
    assert!(usual < without / 2.0, "{usual} and {without}");
}

/// In some runs no object arrives.
#[test]
fn shares_of_runs_without_a_flow_are_nothing_and_all_add_up() {
    let document = document(
        12,
        ONE_LINK,
        r#"
            [flow.web]
            cc = "cubic"
            arrivals = { rate = "0.1/s", size = "2MB", for = "10s" }
            [flow.bulk]
            cc = "bbr3"
            bulk = "10s"
        "#,
    );
    let sum = metric(&document, "web", "share_mean") + metric(&document, "bulk", "share_mean");
    assert!((sum - 100.0).abs() < 1e-6, "{sum} %");
}
