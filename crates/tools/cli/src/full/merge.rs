//! `uncork records merge`: roll-ups of many hosts as one for each period.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use uncork_records::{MergeError, MergedPeriod, RollupSpec, is_named_rollup, merge_rollups};
use uncork_rollup::{Metric, Period};

use crate::failure::Failure;
use crate::stdout;
use crate::values::local_path;

pub(super) const EXAMPLES: &str = "\
Examples:
  uncork records merge /srv/rollups/fra -o /srv/merged --name fra
  uncork records merge /srv/rollups/fra -o /srv/merged --name fra --period 5min --max-rows 1000000
  uncork records merge /srv/merged -o /srv/days --name all";

pub(super) const AFTER: &str = "\
It counts each file once, also if it runs again: a merged file has the hashes of the files that it counts. So run it every few minutes, \
and remove files of hosts when a merged file has them. `uncork learn plan` gets the same from merged files as from those of the hosts \
(docs/reference/rollups.md).

A damaged file, by the hash in its name, is named and left out; everything else is merged.

Exit status: 0 done, 1 files were left out, 2 wrong usage or a file that is not a roll-up, 3 a file cannot be written, 5 a bug.";

const FILES: &str = "<FILE|DIR>...";

#[derive(Args, Debug)]
pub(super) struct MergeArgs {
    /// Roll-ups: files, or directories with them at any depth
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Write merged files to DIR
    #[arg(short, long, value_name = "DIR", value_parser = local_path())]
    output: PathBuf,
    /// Name of the merged files in place of a host, such as a place
    #[arg(long, value_name = "NAME", value_parser = plain_name)]
    name: String,
    /// Length of their periods: 1d, 1h or a divisor of 30min
    #[arg(long, value_name = "PERIOD", default_value = "1d", value_parser = Period::of_merged)]
    period: Period,
    /// Maximum rows of single clients in a merged file [default: no limit]
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    max_rows: usize,
}

/// A name as it is in names of files: two that differ elsewhere would replace each other's files.
fn plain_name(text: &str) -> Result<String, String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    if text.starts_with(|it: char| it.is_ascii_alphanumeric()) && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("expected letters, digits, '.', '_' and '-', and first a letter or digit".to_owned())
    }
}

pub(super) fn run(args: &MergeArgs) -> Result<(), Failure> {
    fs::create_dir_all(&args.output).map_err(|error| Failure::output(&args.output, &error))?;
    let files = rollups(&args.files)?;
    let spec = RollupSpec { host: args.name.clone(), period: args.period, max_rows: args.max_rows };
    let mut text = String::new();
    let each = |period: MergedPeriod| text.push_str(&line(&period));
    let done = merge_rollups(&files, &args.output, &spec, &Metric::ALL, each);
    // What was written stays, so it is shown next to a failure.
    stdout::write(text.as_bytes())?;
    done.map_err(failure)
}

fn line(of: &MergedPeriod) -> String {
    let (name, rollup) = (of.file.file_name().unwrap_or_default().to_string_lossy(), &of.rollup);
    format!(
        "{name}: {} new of {} files, {} records, {} of them folded, {} rows\n",
        of.new,
        rollup.sources().len(),
        rollup.records(),
        rollup.folded(),
        rollup.rows()
    )
}

fn failure(error: MergeError) -> Failure {
    match error {
        MergeError::Invalid(file, reason) => Failure::value(FILES, file.display(), reason),
        error @ MergeError::LeftOut(_) => Failure::Missed(error.to_string()),
        error => Failure::Environment(error.to_string()),
    }
}

/// Files as named, and roll-ups in directories at any depth, in order.
fn rollups(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        let before = files.len();
        if path.is_dir() {
            collect(path, &mut files)?;
            if files.len() == before {
                let reason =
                    "no rollup-*.parquet in it; make some with --rollup or `uncork records rollup`";
                return Err(Failure::value(FILES, path.display(), reason));
            }
            files[before..].sort();
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error| Failure::unreadable(FILES, directory, &error);
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        if entry.file_type().map_err(unreadable)?.is_dir() {
            collect(&path, files)?;
        } else if is_named_rollup(&path) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_letters_that_files_do_not_have_is_refused() {
        for text in ["fra", "fra-1.example_x", "1"] {
            assert_eq!(plain_name(text).as_deref(), Ok(text));
        }
        for text in ["", "..", "a/b", "a b", ".a", "ä"] {
            plain_name(text).unwrap_err();
        }
    }
}
