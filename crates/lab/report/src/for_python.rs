//! Writes the look of the reports, which the pages of the Python package share.

use std::path::Path;

use serde_json::json;
use uncork_testkit::assert_snapshot;

use crate::lab::{CONTROLLERS, OTHERS};
use crate::svg::{COLOURS, DASHES, diverging};

const COMMAND: &str = "UPDATE_DOCS=1 cargo test -p uncork-report --lib for_python";

fn assert_written(name: &str, text: &str) {
    let folder = "python/uncork/src/uncork/experiment/report";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    assert_snapshot(&root.join(folder).join(name), text);
}

#[test]
fn style_sheet_of_the_python_package_is_current() {
    let sheets =
        [crate::page::STYLE, include_str!("lab/html/lab.css"), include_str!("svg/chart.css")];
    assert_written("laboratory.css", &format!("/* Written by: {COMMAND} */\n{}", sheets.concat()));
}

#[test]
fn palette_of_the_python_package_is_current() {
    let rows = [
        ("written_by", json!(COMMAND)),
        ("colours", json!(COLOURS)),
        ("controllers", json!(CONTROLLERS)),
        ("others", json!(OTHERS)),
        ("dashes", json!(DASHES)),
        ("diverging_light", json!(diverging(0))),
        ("diverging_dark", json!(diverging(1))),
    ];
    let rows = rows.map(|(name, value)| format!("\"{name}\": {value}"));
    assert_written("palette.json", &format!("{{\n{}\n}}\n", rows.join(",\n")));
}
