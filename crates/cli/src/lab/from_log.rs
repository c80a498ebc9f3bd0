//! `uncork lab from-log`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use uncork_lab::{ClientPath, LogPaths};

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
    let width = paths.iter().map(|path| path.client.len()).max().unwrap_or_default().max(6);
    let mut text = format!("{:<width$}  samples", "client");
    for (name, ..) in &figures {
        text.extend(["  ", name]);
    }
    for path in paths {
        let _infallible = write!(text, "\n{:<width$}  {:>7}", path.client, path.samples);
        for (name, digits, value) in &figures {
            let cell = value(path).map_or("-".to_owned(), |value| format!("{value:.digits$}"));
            let _infallible = write!(text, "  {cell:>width$}", width = name.len());
        }
    }
    text + "\n"
}
