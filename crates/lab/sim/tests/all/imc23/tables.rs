//! The tables of `docs/evidence/fidelity.md`.

use crate::common::page::table;
use crate::imc23::Compared;

/// Goodput here, relative to each kernel's: by buffer and rate, and by round-trip time.
pub(crate) fn sample(compared: &[Compared]) -> String {
    let sampled: Vec<&Compared> = compared.iter().filter(|one| one.row.cell.is_sampled()).collect();
    let rtts = distinct(sampled.iter().map(|one| one.row.cell.rtt_ms));
    let links = distinct(sampled.iter().map(|one| (one.row.cell.buffer_kb, one.row.cell.mbit)));
    let rows = links.iter().map(|(buffer_kb, mbit)| {
        let cells = rtts.iter().map(|rtt_ms| {
            let is_here = |one: &&&Compared| {
                let cell = one.row.cell;
                (cell.buffer_kb, cell.mbit, cell.rtt_ms) == (*buffer_kb, *mbit, *rtt_ms)
            };
            let excesses: Vec<String> =
                sampled.iter().filter(is_here).map(|one| shown(one)).collect();
            excesses.join(" / ")
        });
        [format!("{buffer_kb} kB, {mbit} Mbit/s")].into_iter().chain(cells).collect()
    });
    let header: Vec<String> = rtts.iter().map(|rtt_ms| format!("{rtt_ms} ms")).collect();
    let header: Vec<&str> =
        ["buffer, rate"].into_iter().chain(header.iter().map(String::as_str)).collect();
    table(&header, rows)
}

/// With a sign, and without negative zero.
fn percent(excess: f64) -> String {
    format!("{:+.1}", 100.0 * excess).replace("-0.0", "+0.0")
}

/// In percent, bold if the row misses.
fn shown(one: &Compared) -> String {
    let text = percent(one.excess());
    if one.holds() { text } else { format!("**{text}**") }
}

/// Comparison over the full grid: by buffer and kernel.
pub(crate) fn grid(compared: &[Compared]) -> String {
    let parts = distinct(compared.iter().map(|one| (one.row.cell.buffer_kb, one.row.kernel)));
    let rows = parts.iter().map(|(buffer_kb, kernel)| {
        let is_part =
            |one: &&Compared| (one.row.cell.buffer_kb, one.row.kernel) == (*buffer_kb, *kernel);
        let part: Vec<&Compared> = compared.iter().filter(is_part).collect();
        let mut excesses: Vec<f64> = part.iter().map(|one| one.excess()).collect();
        excesses.sort_by(f64::total_cmp);
        let at = |tenths: usize| percent(excesses[(excesses.len() - 1) * tenths / 10]);
        let held = part.iter().filter(|one| one.holds()).count();
        vec![
            format!("{buffer_kb} kB, Linux {kernel}"),
            format!("{held} of {}", part.len()),
            at(0),
            at(1),
            at(5),
            at(9),
            at(10),
        ]
    });
    table(&["buffer", "hold", "least, %", "p10", "p50", "p90", "most, %"], rows)
}

fn distinct<T: PartialEq + Copy>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}
