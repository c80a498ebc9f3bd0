//! Shared by downloads and listeners: signals, progress, records, errors.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uncork_flow::{FlowRecord, write_json_lines};
use uncork_play::{ClientError, Tally};

use super::args::ShownArgs;
use super::watch::watch;
use crate::failure::Failure;
use crate::interrupt::flag_on_signal;

/// Runs `work` until it is done or a signal arrives, and shows the progress: how many of `total` items, called
/// `what`, are done. Appends the `records` of each item to the records file, which is opened before `work`
/// starts. Returns the items and whether a signal arrived.
pub(super) fn measure<T, R: IntoIterator<Item = FlowRecord>>(
    shown: &ShownArgs,
    (total, what): (usize, &str),
    work: impl FnOnce(&Arc<AtomicBool>, &Arc<Tally>) -> Result<Vec<T>, ClientError>,
    records: impl FnMut(&T) -> R,
) -> Result<(Vec<T>, bool), Failure> {
    let file = shown.records.as_deref().map(|path| Ok((path, open(path)?))).transpose()?;
    let stop = flag_on_signal()?;
    let tally = Arc::new(Tally::default());
    let done = watch(shown.quiet, (total, what), &tally, || work(&stop, &tally));
    let done = done.map_err(|error| refused(&error))?;
    if let Some((path, file)) = file {
        append(path, file, &done.iter().flat_map(records).collect::<Vec<_>>())?;
    }
    Ok((done, stop.load(Ordering::Relaxed)))
}

fn refused(error: &ClientError) -> Failure {
    let message = error.explained();
    match error {
        _ if error.is_usage() => Failure::Usage(message),
        ClientError::File(..) | ClientError::System(_) => Failure::Environment(message),
        // The server's or the network's fault, as when a download fails.
        _ => Failure::Missed(message),
    }
}

fn open(path: &Path) -> Result<impl Write + use<>, Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map(BufWriter::new).map_err(|error| unwritable(path, &error))
}

fn append(path: &Path, mut file: impl Write, records: &[FlowRecord]) -> Result<(), Failure> {
    let written = write_json_lines(&mut file, records).map_err(io::Error::other);
    written.and_then(|()| file.flush()).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::Environment(format!("cannot write records to '{path}': {error}"))
}
