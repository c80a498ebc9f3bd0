//! `uncork lab from-log`.

use std::fs;
use std::io;
use std::path::Path;

use super::args::FromLogArgs;
use crate::failure::Failure;
use crate::stdout;

const ARGUMENT: &str = "<FILE>";

pub(super) fn run(args: &FromLogArgs) -> Result<(), Failure> {
    let text = read(&args.file)?;
    let refused = |error: String| Failure::value(ARGUMENT, args.file.display(), error);
    let found = args.kind.format().paths(&text).map_err(refused)?;
    let notes: Vec<String> =
        found.notes.iter().map(|(note, count)| format!("{note}: {count}")).collect();
    if found.paths.is_empty() {
        let reason = if notes.is_empty() { "it is empty".to_owned() } else { notes.join("; ") };
        return Err(refused(format!("no line shows a path: {reason}")));
    }
    for note in &notes {
        eprintln!("note: {note}");
    }
    stdout::write(found.text().as_bytes())
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
