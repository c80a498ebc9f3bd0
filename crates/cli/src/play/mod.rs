//! `uncork play`: downloads and listeners over real sockets.

mod args;
mod audio;
mod get;
mod watch;

pub(crate) use args::PlayArgs;
use args::PlayCommand;

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use uncork_client::ClientError;
use uncork_flow::{FlowRecord, write_json_lines};

use crate::failure::Failure;
use crate::open_files;

pub(crate) fn play(args: &PlayArgs) -> Result<(), Failure> {
    open_files::allow_all();
    match &args.command {
        PlayCommand::Get(args) => get::get(args),
        PlayCommand::Audio(args) => audio::audio(args),
    }
}

fn refused(error: &ClientError) -> Failure {
    let message = error.to_string();
    if error.is_usage() { Failure::Usage(message) } else { Failure::Environment(message) }
}

/// A file for records, which is there before anything begins.
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
