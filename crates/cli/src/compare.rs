//! `uncork compare`: runs it, prints it, writes it.

use std::io::{self, IsTerminal};
use std::path::Path;

use clap::ArgMatches;
use uncork_lab::{CompareError, CompareSpec, FILE_NAMES, Outcome, Preset};
use uncork_path::PathSpecError;
use uncork_report::{CompareDocument, EngineFigures};

use crate::args::{self, CompareArgs, Format};
use crate::failure::Failure;
use crate::progress::Watcher;
use crate::{clock, color, output, stdout};

pub(crate) fn compare(args: &CompareArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let given = |id: &str| args::is_given(matches, id);
    let spec = args.spec(given);
    spec.check().map_err(|error| refused(matches, &error))?;
    if let Some(directory) = &args.output {
        output::probe(directory, &FILE_NAMES)
            .map_err(|error| Failure::output(directory, &error))?;
    }
    let (outcome, engine) = run(&spec, args).map_err(|error| refused(matches, &error))?;
    let document = uncork_lab::document(&spec, &outcome, args.command(given), engine);
    if let Some(directory) = &args.output {
        write_report(directory, &outcome, &document)?;
    }
    stdout::write(print(&document, args).as_bytes())?;
    note(args);
    Ok(())
}

fn run(spec: &CompareSpec, args: &CompareArgs) -> Result<(Outcome, EngineFigures), CompareError> {
    let jobs = args::jobs(args.jobs);
    let start = clock::now();
    let watcher = Watcher::of_stderr(args.quiet);
    let outcome = watcher.watch(None, |progress| uncork_lab::run(spec, jobs, progress))?;
    let wall_s = start.elapsed().as_secs_f64();
    let packets = outcome.packets;
    let packets_per_s = (packets as f64 / wall_s.max(1e-9)) as u64;
    Ok((outcome, EngineFigures { packets, wall_s, packets_per_s }))
}

fn write_report(
    directory: &Path,
    outcome: &Outcome,
    document: &CompareDocument,
) -> Result<(), Failure> {
    let contents = uncork_lab::files(outcome, document).map_err(io::Error::other);
    let files = contents.map(|contents| FILE_NAMES.into_iter().zip(contents).collect::<Vec<_>>());
    let written = files.and_then(|files| output::write(directory, &files));
    written.map_err(|error| Failure::output(directory, &error))
}

fn print(document: &CompareDocument, args: &CompareArgs) -> String {
    match args.format {
        Format::Human => {
            let table = uncork_report::compare_table(document, color::style(args.color));
            args.preset().map(preset_line).unwrap_or_default() + &table
        }
        Format::Json => document.to_json(),
        Format::Csv => uncork_report::compare_csv(document),
    }
}

fn preset_line(preset: Preset) -> String {
    let Preset { name, title, .. } = preset;
    format!("preset    {name}: {title}; sources: uncork lab presets {name}\n")
}

fn note(args: &CompareArgs) {
    if args.quiet || !io::stderr().is_terminal() {
        return;
    }
    match &args.output {
        Some(directory) => eprintln!("wrote {}", directory.join(FILE_NAMES[0]).display()),
        None if args.format == Format::Human => {
            eprintln!("hint: add -o DIR for a report with pictures, and the data behind it");
        }
        None => {}
    }
}

/// The argument that is behind `error` as the user wrote it, and what is wrong with it.
fn refused(matches: &ArgMatches, error: &CompareError) -> Failure {
    let argument = match error {
        CompareError::Path(PathSpecError::Rate(_)) => "rate",
        CompareError::Path(PathSpecError::Rtt(_)) => "rtt",
        CompareError::Path(PathSpecError::LosesEverything) => "loss",
        CompareError::Path(_) => "buffer",
        CompareError::Duration(_) => "duration",
        CompareError::NoColumns | CompareError::Twice(_) => "cc",
        CompareError::Flows { .. } => "flows",
        CompareError::Seeds(_) | CompareError::TooManyFlows(_) => "seeds",
        CompareError::FirstSeed(_) => "seed",
        CompareError::TooManyPackets(_) if matches.contains_id("duration") => "duration",
        _ => "size",
    };
    let raw = matches.get_raw(argument).into_iter().flatten();
    let value: Vec<_> = raw.map(|text| text.to_string_lossy()).collect();
    Failure::value(&args::shown("compare", argument), value.join(","), error)
}
