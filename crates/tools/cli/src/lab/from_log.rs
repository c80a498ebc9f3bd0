//! `uncork lab from-log`.

use std::fs;
use std::io;
use std::path::Path;

use uncork_lab::{ClientPath, LogPaths};
use uncork_report::{Align, Column, Style, Table};

use super::args::FromLogArgs;
use crate::failure::Failure;
use crate::stdout;

const ARGUMENT: &str = "<FILE>";

pub(super) fn from_log(args: &FromLogArgs) -> Result<(), Failure> {
    let text = read(&args.file)?;
    let refused = |error: String| Failure::value(ARGUMENT, args.file.display(), error);
    let LogPaths { paths, notes } = args.kind.format().paths(&text).map_err(refused)?;
    let notes: Vec<String> = notes.iter().map(|(note, count)| format!("{note}: {count}")).collect();
    if paths.is_empty() {
        let reason = if notes.is_empty() { "it is empty".to_owned() } else { notes.join("; ") };
        return Err(refused(format!("no line shows a path: {reason}")));
    }
    for note in &notes {
        eprintln!("note: {note}");
    }
    stdout::write(table(&paths).as_bytes())
}

fn read(file: &Path) -> Result<String, Failure> {
    let bytes = if file == Path::new("-") {
        io::read_to_string(io::stdin()).map(Into::into)
    } else {
        fs::read(file)
    };
    let bytes: Vec<u8> = bytes.map_err(|error| Failure::unreadable(ARGUMENT, file, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A column without any value is left out.
fn table(paths: &[ClientPath]) -> String {
    type Figure = (&'static str, usize, fn(&ClientPath) -> Option<f64>);
    let figures: [Figure; 4] = [
        ("rtt, ms", 2, |path| path.rtt_ms),
        ("rate, Mbit/s", 2, |path| path.rate_bps.map(|bits| bits / 1e6)),
        ("resent, %", 2, |path| path.resent.map(|share| share * 100.0)),
        ("buffer, kB", 0, |path| path.buffer_bytes.map(|bytes| bytes / 1e3)),
    ];
    let has_any = |(.., value): &Figure| paths.iter().any(|path| value(path).is_some());
    let figures: Vec<Figure> = figures.into_iter().filter(has_any).collect();
    let numbers = figures.iter().map(|(name, ..)| Column::new(name, Align::Right));
    let columns = [Column::new("client", Align::Left), Column::new("samples", Align::Right)];
    let columns = columns.into_iter().chain(numbers).collect();
    let row = |path: &ClientPath| {
        let cell = |(_, digits, value): &Figure| {
            value(path).map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let cells = [path.client.clone(), path.samples.to_string()];
        cells.into_iter().chain(figures.iter().map(cell)).collect()
    };
    Table { columns, rows: paths.iter().map(row).collect() }.render(Style::Plain)
}
