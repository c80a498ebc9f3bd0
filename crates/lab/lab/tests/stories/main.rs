//! `docs/evidence/stories.md`: published results compared with the measurements of the built-in scenarios.
//!
//! `cargo test` checks that the page has every scenario with its published results, and measures
//! the cheap ones again. `UPDATE_DOCS=1 cargo test --release -p uncork-lab --test stories` runs all
//! of them and updates the page.
mod page;

use std::sync::atomic::AtomicBool;

use uncork_lab::{Builtin, Engine, Scenario, SweepResults, items, run_items};
use uncork_report::lab::LabDocument;

/// Scenarios that take at most a few seconds: measured in every test run.
const CHEAP: [&str; 1] = ["litespeed-latency"];

fn scenario(builtin: &Builtin) -> Scenario {
    builtin.parse(&[]).unwrap_or_else(|error| panic!("{}: {error}", builtin.name))
}

/// The result document of a built-in scenario, as from `uncork lab run`.
fn measured(builtin: &Builtin) -> LabDocument {
    let scenario = scenario(builtin);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let stop = AtomicBool::new(false);
    let of = (&scenario, Engine::Sim);
    let runs =
        run_items(of, &items(&scenario), jobs, &stop, &|_, _| {}).expect("the simulator plays all");
    let command = format!("uncork lab run {}", builtin.name);
    SweepResults::new(runs).document(&scenario, command, false)
}

/// The scenarios with published results.
fn stories() -> Vec<&'static Builtin> {
    Builtin::all().iter().filter(|builtin| !scenario(builtin).published.is_empty()).collect()
}

/// Checks that the page has a section per scenario, in order, with the text of its file.
fn check_texts(text: &str) {
    let known: Vec<&str> = stories().iter().map(|builtin| builtin.name).collect();
    assert_eq!(page::names(text).collect::<Vec<_>>(), known, "{}", page::REMEDY);
    for builtin in stories() {
        let expected: Vec<[String; 3]> =
            scenario(builtin).published.iter().map(page::published_texts).collect();
        let rows = page::rows(page::section_of(text, builtin.name));
        let said = |row: &Vec<&str>| [row[0], row[1], row[5]].map(str::to_owned);
        let said: Vec<[String; 3]> = rows.iter().map(said).collect();
        assert_eq!(said, expected, "{}: {}", builtin.name, page::REMEDY);
    }
}

#[test]
fn page_shows_published_and_measured_results() {
    if page::is_update() {
        let sections = stories().into_iter().map(|builtin| page::section(&measured(builtin)));
        page::write(&sections.collect::<String>());
    }
    let text = page::read();
    let sections = text.find("\n## ").map_or("", |at| &text[at..]);
    assert!(text.starts_with(&page::beginning(sections)), "{}", page::REMEDY);
    check_texts(&text);
    for name in CHEAP {
        let builtin = Builtin::find(name).expect("it is built in");
        let section = page::section(&measured(builtin));
        assert_eq!(page::section_of(&text, name), section, "{name}: {}", page::REMEDY);
    }
}
