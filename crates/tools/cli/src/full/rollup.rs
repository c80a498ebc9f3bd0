//! `uncork records rollup`: roll-ups from records, or from other roll-ups.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use uncork_records::{ROLLUP_PREFIX, is_named_rollup, other_rollup, rollup_damage, write_rollup};
use uncork_rollup::{Period, Rollup, RollupSpec, Rollups, content_hash, is_rollup};

use super::merge;
use super::records;
use super::rollup_args::host_name;
#[cfg(target_os = "linux")]
use super::ship;
use crate::failure::Failure;
use crate::stdout;
use crate::values::local_path;

const EXAMPLES: &str = "\
Examples:
  uncork records rollup records/ -o rollups/
  uncork records ship /var/lib/uncork/records s3://telemetry/uncork/edge1";

const ROLLUP_EXAMPLES: &str = "\
Examples:
  uncork records rollup records/ -o rollups/
  uncork records rollup monday.jsonl tuesday.jsonl -o rollups/ --host edge1 --period 10min
  uncork records rollup rollups/ -o merged/";

const AFTER: &str = "\
Files of roll-ups add up: those of one host and period become one file. Equal records give equal bytes, in any order and any \
split into files (docs/reference/rollups.md).

Exit status: 0 done, 2 wrong usage or invalid records, 3 a file cannot be read or written, 5 a bug.";

const FILES: &str = "<FILE|DIR>...";

/// Make roll-ups of flow records, merge them, and ship them to a store (docs/reference/rollups.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct RecordsArgs {
    #[command(subcommand)]
    command: RecordsCommand,
}

#[derive(Debug, Subcommand)]
enum RecordsCommand {
    /// Make roll-ups: counts by client network, arm and period that any engine can add up
    #[command(before_help = ROLLUP_EXAMPLES, after_help = AFTER)]
    Rollup(RollupFilesArgs),
    /// Merge roll-ups of many hosts into one for each day, hour or other period
    #[command(before_help = merge::EXAMPLES, after_help = merge::AFTER)]
    Merge(merge::MergeArgs),
    /// Ship finished files of a directory to a store, each once
    #[cfg(target_os = "linux")]
    #[command(before_help = ship::EXAMPLES, after_help = ship::AFTER)]
    Ship(ship::ShipArgs),
}

#[derive(Args, Debug)]
struct RollupFilesArgs {
    /// Records or roll-ups: Parquet files, JSON Lines, or directories of both
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Write roll-ups to DIR
    #[arg(short, long, value_name = "DIR", value_parser = local_path())]
    output: PathBuf,
    /// Length of the periods: a divisor of 30min
    #[arg(long, value_name = "PERIOD", default_value = "5min")]
    period: Period,
    /// Host of the records [default: this host]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Maximum rows of single clients in a roll-up; the others are folded into their AS, then into all
    #[arg(long, value_name = "N", default_value = "100000")]
    max_rows: usize,
}

pub(crate) fn run(args: &RecordsArgs) -> Result<(), Failure> {
    match &args.command {
        RecordsCommand::Rollup(args) => make(args),
        RecordsCommand::Merge(args) => merge::run(args),
        #[cfg(target_os = "linux")]
        RecordsCommand::Ship(args) => ship::run(args),
    }
}

fn make(args: &RollupFilesArgs) -> Result<(), Failure> {
    fs::create_dir_all(&args.output).map_err(|error| unwritable(&args.output, &error))?;
    let mut written = Written::default();
    let files = all_files(&args.files)?;
    let has_rollups = files.iter().any(|file| is_named_rollup(file));
    if has_rollups && files.iter().any(|file| !is_named_rollup(file)) {
        let reason =
            "records and roll-ups together would count the same traffic twice; name one of both";
        return Err(Failure::Usage(reason.to_owned()));
    }
    if has_rollups {
        merge(args, &files, &mut written)?;
    } else {
        roll_up(args, &files, &mut written)?;
    }
    stdout::write(written.text(&args.output).as_bytes())
}

/// Rolls records up.
fn roll_up(
    args: &RollupFilesArgs,
    files: &[PathBuf],
    written: &mut Written,
) -> Result<(), Failure> {
    let host = args.host.clone().unwrap_or_else(host_name);
    let spec = RollupSpec { host, period: args.period, max_rows: args.max_rows };
    let mut rollups = Rollups::new(spec);
    for file in files {
        for record in records::read_file(FILES, file)? {
            rollups.add(&record).map_err(|error| Failure::value(FILES, file.display(), error))?;
        }
    }
    written.write(&args.output, rollups.take())
}

/// Adds roll-ups of the same host and period up. A file that comes again counts once.
fn merge(args: &RollupFilesArgs, files: &[PathBuf], written: &mut Written) -> Result<(), Failure> {
    let mut by_host: Vec<(RollupSpec, Rollups)> = Vec::new();
    let mut counted = BTreeSet::new();
    for file in files {
        let bytes = fs::read(file).map_err(|error| Failure::unreadable(FILES, file, &error))?;
        if !counted.insert(content_hash(&bytes)) {
            continue;
        }
        let rollup = read_rollup(file, bytes)?;
        let spec = rollup.spec();
        let place = by_host.iter().position(|(of, _)| of == spec);
        let place = place.unwrap_or_else(|| {
            by_host.push((spec.clone(), Rollups::new(spec.clone())));
            by_host.len() - 1
        });
        let merged = by_host[place].1.merge(&rollup);
        merged.map_err(|error| Failure::value(FILES, file.display(), error))?;
    }
    let merged: Vec<Rollup> = by_host.into_iter().flat_map(|(_, mut of)| of.take()).collect();
    for rollup in &merged {
        refuse_other(&args.output, rollup)?;
    }
    written.write(&args.output, merged)
}

/// The result of fewer files must not stay next to that of more: readers would count both.
fn refuse_other(directory: &Path, rollup: &Rollup) -> Result<(), Failure> {
    let other = other_rollup(directory, rollup).map_err(|error| unwritable(directory, &error))?;
    other.map_or(Ok(()), |other| {
        let reason = "it has another roll-up of the same host and period, and both would count; name an empty directory, or use \
                      uncork records merge, which adds new files to its result";
        Err(Failure::value("--output <DIR>", other.display(), reason))
    })
}

fn read_rollup(file: &Path, bytes: Vec<u8>) -> Result<Rollup, Failure> {
    if let Some(damage) = rollup_damage(file) {
        return Err(Failure::Usage(damage));
    }
    Rollup::from_parquet(bytes).map_err(|error| Failure::value(FILES, file.display(), error))
}

/// Files as named; of directories with roll-ups these alone, because records next to them count the same traffic.
fn all_files(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            let bytes = fs::read(path).map_err(|error| Failure::unreadable(FILES, path, &error))?;
            if is_rollup(&bytes) && !is_named_rollup(path) {
                let reason = format!("a roll-up; its name must begin with {ROLLUP_PREFIX}");
                return Err(Failure::value(FILES, path.display(), reason));
            }
            files.push(path.clone());
            continue;
        }
        let unreadable = |error: io::Error| Failure::unreadable(FILES, path, &error);
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            inside.push(entry.map_err(unreadable)?.path());
        }
        inside.retain(|file| is_named_rollup(file));
        inside.sort();
        if inside.is_empty() {
            inside = records::files(FILES, std::slice::from_ref(path))?;
        }
        files.extend(inside);
    }
    Ok(files)
}

/// What was written.
#[derive(Default)]
struct Written {
    files: u64,
    bytes: u64,
    records: u64,
    rows: usize,
    folded: u64,
}

impl Written {
    fn write(&mut self, directory: &Path, rollups: Vec<Rollup>) -> Result<(), Failure> {
        for rollup in rollups {
            let file = write_rollup(directory, &rollup);
            let file = file.map_err(|error| unwritable(directory, &error))?;
            self.files += 1;
            self.bytes += fs::metadata(&file).map_err(|error| unwritable(&file, &error))?.len();
            self.records += rollup.records();
            self.rows += rollup.rows();
            self.folded += rollup.folded();
        }
        Ok(())
    }

    fn text(&self, directory: &Path) -> String {
        let Self { files, bytes, records, rows, folded } = self;
        let directory = directory.display();
        let folded = if *folded > 0 {
            format!("{folded} records are of clients without rows of their own (--max-rows)\n")
        } else {
            String::new()
        };
        format!(
            "{directory}: {records} records in {files} roll-ups, {rows} rows, {bytes} bytes\n{folded}"
        )
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Environment(format!("cannot write '{}': {error}", path.display()))
}
