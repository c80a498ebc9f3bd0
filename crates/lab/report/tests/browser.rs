//! The page of a lab run in a real browser: its script runs and no other can, curves are zoomable,
//! and the content fits the page on large and small screens.
//!
//! `UNCORK_CHROMIUM` is the path of the browser, `UNCORK_SCREENSHOTS` a directory for screenshots.

#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

#[path = "browser/driver.rs"]
mod driver;

use driver::{Browser, Scratch};
use serde_json::Value;
use uncork_report::lab::{LabDocument, Plot, SuiteDocument};

/// Maximum virtual milliseconds for the probe.
const BUDGET: &str = "--virtual-time-budget=20000";

fn document() -> LabDocument {
    LabDocument::from_json(include_str!("lab.json")).unwrap()
}

/// The probe's findings about the page.
fn probe(browser: &Browser, page: &str) -> Value {
    let scratch = Scratch::new("browser");
    scratch.write("page.html", page);
    let probe = scratch.write("probe.html", include_str!("browser/probe.html"));
    // The probe needs access to the page, and every file is a separate origin.
    let flags = ["--allow-file-access-from-files", BUDGET, "--dump-dom"];
    let run = browser.run(&scratch, &flags, &probe);
    assert!(!run.stderr.contains("CONSOLE"), "the console has errors:\n{}", run.stderr);
    let (_, rest) = run.stdout.split_once("<pre id=\"result\">").expect("the probe's element");
    let (result, _) = rest.split_once("</pre>").unwrap();
    serde_json::from_str(result).unwrap_or_else(|error| panic!("{error}: {result}\n{}", run.stderr))
}

#[test]
fn runs_without_errors_and_fits_the_window() {
    let Some(browser) = Browser::find() else { return };
    let document = document();
    let report = probe(&browser, &document.html());
    let views = report.as_array().unwrap();
    assert_eq!(views.len(), 3, "{report}");
    for view in views {
        assert_eq!(view["errors"], Value::Null, "{view:#}");
        assert_eq!(view["ready"], "3", "figures with curves: {view:#}");
        assert_eq!(view["plots"], 5, "a distribution, lines, and three panels of a run: {view:#}");
        assert_eq!(view["blank"], 0, "canvases without a stroke: {view:#}");
        assert_eq!(view["wider"], Value::Array(Vec::new()), "sticks out of the page: {view:#}");
        assert_eq!(
            view["outside"],
            Value::Array(Vec::new()),
            "text outside of its picture: {view:#}"
        );
        assert_eq!(
            view["scrolled"],
            Value::Array(Vec::new()),
            "costs are visible next to gains without scrolling: {view:#}"
        );
        assert_eq!(view["zoomed"], 3, "all panels of a run follow one drag: {view:#}");
        assert_eq!(view["closed"], true, "pictures come back: {view:#}");
        assert_eq!(view["copies"], 8, "commands to copy: {view:#}");
    }
}

/// Nine of each with long names, a map of 24 columns, a named axis, and events close to each other.
fn crowd() -> LabDocument {
    let mut document = document();
    for figure in &mut document.figures {
        figure.title = figure.title.repeat(3);
        match &mut figure.plot {
            Plot::HeatMap(map) => {
                map.x = (1..=24).map(|n| format!("{} Mbit/s", 5 * n)).collect();
                map.values
                    .iter_mut()
                    .for_each(|row| *row = row.iter().cycle().take(24).copied().collect());
            }
            Plot::Cdf(cdf) => thrice(&mut cdf.curves, |curve| &mut curve.label),
            Plot::Lines(lines) => {
                thrice(&mut lines.curves, |curve| &mut curve.label);
                lines.x_names =
                    (0..12).map(|n| format!("bbr{n} 20 and 100 milliseconds")).collect();
                for curve in &mut lines.curves {
                    (0..).zip(&mut curve.points).for_each(|(n, point)| point.x = f64::from(n));
                }
                lines.log_x = false;
            }
            Plot::Bars(bars) => bars
                .groups
                .iter_mut()
                .for_each(|group| thrice(&mut group.bars, |bar| &mut bar.label)),
            Plot::TimeSeries(series) => {
                series
                    .panels
                    .iter_mut()
                    .for_each(|panel| thrice(&mut panel.curves, |curve| &mut curve.label));
                series.marks = (0..8)
                    .map(|n| (2.5 * f64::from(n), "handover to a satellite".to_owned()))
                    .collect();
            }
            Plot::Table(_) => {}
        }
    }
    document
}

fn thrice<T: Clone>(items: &mut Vec<T>, label: fn(&mut T) -> &mut String) {
    let copies = (0..3).flat_map(|n| items.iter().cloned().map(move |item| (n, item)));
    let named = copies.map(|(n, mut item)| {
        *label(&mut item) += [" in town", " on a train", " over the sea"][n];
        item
    });
    *items = named.collect();
}

#[test]
fn crowded_pages_fit() {
    let Some(browser) = Browser::find() else { return };
    for view in probe(&browser, &crowd().html()).as_array().unwrap() {
        for place in ["wider", "outside"] {
            assert_eq!(view[place], Value::Array(Vec::new()), "{view:#}");
        }
        assert_eq!(view["plots"], 5, "{view:#}");
    }
}

/// A suite of the sample and a crowded document.
#[test]
fn suite_page_fits() {
    let Some(browser) = Browser::find() else { return };
    let named = |document: LabDocument, name: &str| LabDocument {
        name: name.to_owned(),
        title: format!("Section 5.1.{name}: {}", document.title),
        ..document
    };
    let scenarios = vec![named(document(), "one"), named(crowd(), "two")];
    let suite = SuiteDocument {
        schema: SuiteDocument::SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        name: "both".to_owned(),
        title: "An evaluation report".to_owned(),
        about: "What is asked.\n\n    uncork lab run both".to_owned(),
        command: "uncork lab run both".to_owned(),
        suite: String::new(),
        not_judged: vec!["What no scenario can run.".to_owned()],
        engine: scenarios[0].engine.clone(),
        scenarios,
    };
    for view in probe(&browser, &suite.html()).as_array().unwrap() {
        for place in ["wider", "outside", "scrolled"] {
            assert_eq!(view[place], Value::Array(Vec::new()), "{view:#}");
        }
        assert_eq!((&view["errors"], &view["ready"]), (&Value::Null, &"6".into()), "{view:#}");
        assert_eq!((&view["plots"], &view["blank"]), (&10.into(), &0.into()), "{view:#}");
    }
}

/// A script injected by hostile text does not run.
#[test]
fn no_other_script_runs() {
    let Some(browser) = Browser::find() else { return };
    let intruder = "<script>document.documentElement.dataset.intruder = 'ran'</script></main>";
    let page = document().html().replace("</main>", intruder);
    let scratch = Scratch::new("browser");
    let page = scratch.write("page.html", &page);
    let run = browser.run(&scratch, &[BUDGET, "--dump-dom"], &page);
    assert!(run.stdout.contains("data-ready"), "the page's own script does not: {}", run.stderr);
    assert!(!run.stdout.contains("data-intruder"), "another does not");
    assert!(run.stderr.contains("Content Security Policy"), "{}", run.stderr);
}

#[test]
fn page_works_in_light_and_dark_mode() {
    let Some(browser) = Browser::find() else { return };
    let scratch = Scratch::new("browser");
    let page = scratch.write("page.html", document().html());
    let mut pictures = Vec::new();
    for (name, scheme, size) in
        [("light", 1, "1280,5400"), ("dark", 0, "1280,5400"), ("narrow", 1, "400,7000")]
    {
        let picture = scratch.path(&format!("{name}.png"));
        let flags = [
            format!("--screenshot={}", picture.display()),
            format!("--window-size={size}"),
            format!("--blink-settings=preferredColorScheme={scheme}"),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        browser.run(&scratch, &[&flags[..], &["--hide-scrollbars", BUDGET]].concat(), &page);
        let bytes = std::fs::read(&picture).unwrap();
        assert_eq!(bytes[1..4], *b"PNG");
        assert!(bytes.len() > 100_000, "{name} is almost empty: {} bytes", bytes.len());
        if let Some(directory) = std::env::var_os("UNCORK_SCREENSHOTS") {
            std::fs::copy(&picture, std::path::Path::new(&directory).join(format!("{name}.png")))
                .unwrap();
        }
        pictures.push(bytes);
    }
    assert_ne!(pictures[0], pictures[1]);
}
