//! Measures the tables of `crates/core/cc/KNOWN_WEAKNESSES.md`.
//!
//! `cargo test` measures the first row of each table for some of the controllers and compares it
//! with the page. `UPDATE_DOCS=1 cargo test --release -p uncork-sim --test all weaknesses` measures
//! everything and updates the tables.
mod tables;

use crate::common::page::{self, line};
use tables::{TABLES, Table};

/// The columns of every table.
const CONTROLLERS: [&str; 6] =
    ["bbr3", "bbr3:rtt_fair", "bbr3:loss_floor", "bbr2", "bbr1", "cubic"];
/// The controllers measured in every test run.
const SAMPLED: [&str; 2] = ["bbr3", "cubic"];

fn header(table: &Table) -> String {
    let names = CONTROLLERS.map(|cc| format!("`{cc}`"));
    line([table.what.to_owned()].into_iter().chain(names))
}

fn measured(table: &Table) -> String {
    let rule = line(std::iter::repeat_n("---".to_owned(), CONTROLLERS.len() + 1));
    let rows = table.rows.iter().map(|row| {
        let cells = CONTROLLERS.map(|cc| (table.cell)(cc, *row));
        line([row.label.to_owned()].into_iter().chain(cells))
    });
    let lines: Vec<String> = [header(table), rule].into_iter().chain(rows).collect();
    lines.join("\n")
}

/// Checks the page's table: its header, its rows, and these cells of the first row.
fn check(table: &Table, shown: &str) {
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], header(table), "{}", table.name);
    let rows: Vec<Vec<&str>> = lines[2..]
        .iter()
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let labels: Vec<&str> = table.rows.iter().map(|row| row.label).collect();
    assert_eq!(rows.iter().map(|cells| cells[0]).collect::<Vec<_>>(), labels, "{}", table.name);
    for (cc, cell) in CONTROLLERS.iter().zip(&rows[0][1..]) {
        if SAMPLED.contains(cc) {
            assert_eq!((table.cell)(cc, table.rows[0]), *cell, "{}, {cc}", table.name);
        }
    }
}

#[test]
fn page_matches_the_measurements() {
    let page = page::page("crates/core/cc/KNOWN_WEAKNESSES.md");
    for table in &TABLES {
        if page::is_update() {
            page::write(&page, table.name, &measured(table));
        } else {
            check(table, page::shown(&page::read(&page), table.name));
        }
    }
}
