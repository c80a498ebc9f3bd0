//! Generates a scenario, runs it and prints a short table.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use clap::ArgMatches;
use uncork_lab::{
    CompareError, CompareSpec, Engine, FinishedRun, Item, Preset, SWEEP_FILES, Scenario,
    SweepResults, items, run_items,
};
use uncork_report::lab::LabDocument;

use super::args::CompareArgs;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::lab::warn_of_doubts;
use crate::progress::{ProgressTracker, ProgressWatcher};
use crate::values::{Format, is_given, jobs, shown};
use crate::{color, output, print, stdout};

pub(crate) fn run(args: &CompareArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let given = |id: &str| is_given(matches, id);
    let spec = args.spec(given);
    let wrong = |error: CompareError| refused(matches, &spec, &error);
    let mut scenario = spec.scenario(None).map_err(wrong)?;
    if args.scenario {
        return stdout::data(scenario.text.as_bytes());
    }
    if let Some(directory) = &args.output {
        output::probe(directory, &SWEEP_FILES)
            .map_err(|error| Failure::output(directory, &error))?;
    }
    let stopwatch = Stopwatch::start();
    let mut runs = simulate(&scenario, &items(&scenario), args)?;
    if args.output.is_some() {
        scenario = spec.scenario(Some(spec.sample_every(&runs))).map_err(wrong)?;
        runs = sampled(&spec, &scenario, runs, args)?;
    }
    let results = SweepResults::new(runs);
    let document = results.comparison_document(&scenario, spec.command(), args.output.is_some());
    if let Some(directory) = &args.output {
        write(directory, &results, &scenario, &document)
            .map_err(|error| Failure::output(directory, &error))?;
    }
    warn_of_doubts(&document, args.format);
    print::formatted(args.format, &text(&document, args))?;
    if !args.quiet && io::stderr().is_terminal() {
        let cost = stopwatch.cost(jobs(args.jobs));
        eprintln!("{} packets in {cost}", document.engine.packets);
        note(args);
    }
    Ok(())
}

fn simulate(
    scenario: &Scenario,
    items: &[Item],
    args: &CompareArgs,
) -> Result<Vec<FinishedRun>, Failure> {
    let of = (scenario, Engine::Sim);
    let stop = AtomicBool::new(false);
    let watcher = ProgressWatcher::of_stderr(args.quiet);
    let tracker = ProgressTracker::of([scenario]);
    tracker.begin(0, items);
    let runs = watcher.watch(&tracker, None, || {
        run_items(of, items, jobs(args.jobs), &stop, &|run, progress| {
            tracker.finished(run, progress);
        })
    });
    runs.map_err(|error| Failure::Usage(error.message))
}

/// Repeats the runs of the first seed with time series. Sampling does not change results.
fn sampled(
    spec: &CompareSpec,
    scenario: &Scenario,
    runs: Vec<FinishedRun>,
    args: &CompareArgs,
) -> Result<Vec<FinishedRun>, Failure> {
    let is_first = |item: &Item| item.seed == spec.first_seed;
    let first: Vec<Item> = items(scenario).into_iter().filter(is_first).collect();
    let mut all = simulate(scenario, &first, args)?;
    all.extend(runs.into_iter().filter(|run| !is_first(&run.item())));
    Ok(all)
}

fn write(
    directory: &Path,
    results: &SweepResults,
    scenario: &Scenario,
    document: &LabDocument,
) -> io::Result<()> {
    let contents = results.files(scenario, document).map_err(io::Error::other)?;
    let files: Vec<output::File<'_>> = SWEEP_FILES.into_iter().zip(contents).collect();
    output::write(directory, &files)
}

fn text(document: &LabDocument, args: &CompareArgs) -> String {
    match args.format {
        Format::Human => {
            let table = document.short_text(color::terminal(args.color));
            args.preset().map(preset_line).unwrap_or_default() + &table
        }
        Format::Json => document.to_json(),
        Format::Csv => document.csv(),
    }
}

fn preset_line(preset: Preset) -> String {
    let Preset { name, title, .. } = preset;
    format!("preset    {name}: {title}; sources: uncork lab presets {name}\n")
}

fn note(args: &CompareArgs) {
    match &args.output {
        Some(directory) => eprintln!("wrote {}", directory.join("report.html").display()),
        None if args.format == Format::Human => {
            eprintln!("hint: add -o DIR for a report with pictures, and the data behind it");
        }
        None => {}
    }
}

/// `error` with the argument that caused it, as written by the user.
fn refused(matches: &ArgMatches, spec: &CompareSpec, error: &CompareError) -> Failure {
    let argument = spec.option_of(error);
    let raw = matches.get_raw(argument).into_iter().flatten();
    let value: Vec<_> = raw.map(|text| text.to_string_lossy()).collect();
    Failure::value(&shown::<CompareArgs>(argument), value.join(","), error)
}
