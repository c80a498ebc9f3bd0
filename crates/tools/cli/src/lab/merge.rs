//! `uncork lab merge`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uncork_lab::{FinishedRun, Item, Manifest, Scenario, Suite};

use super::args::{MergeArgs, run_command};
use super::directory::{DirectoryError, RunDirectory, RunReader, StoredRun};
use super::finish::{Finish, places};
use super::source::Sweep;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::scenario;
use crate::values::Color;

/// Maximum runs named in a message.
const NAMED: usize = 10;

pub(super) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let groups = groups(&args.directories)?;
    let names: Vec<&str> = groups.keys().map(String::as_str).collect();
    let places = places(args.output.output.as_deref(), &names, true)?;
    let suite = Suite::of_members(&names);
    let mut commands = Vec::new();
    let mut finish = Finish::new(&args.output, suite);
    for (group, place) in groups.values().zip(&places) {
        let Some((first, others)) = group.split_first() else { continue };
        let merged = RunGroup::of(first, others, args.output.color)?;
        let runs = merged.runs(args.output.quiet)?;
        finish.finish(&merged.sweep, runs, stopwatch.cost(1), place.as_deref())?;
        commands.push((merged.sweep.scenario.name, merged.sweep.manifest.command));
    }
    finish.suite(|suite| command_of(suite.name, &commands))?;
    finish.verdict()
}

/// The command that runs the suite `name` the way its scenarios were run, from their names and
/// `commands`. If the commands differ in more than the name, all of them.
fn command_of(name: &str, commands: &[(String, String)]) -> String {
    let whole = |(member, command): &(String, String)| {
        let rest = command.strip_prefix(&run_command(&[member]))?;
        Some(run_command(&[name]) + rest)
    };
    let mut wholes = commands.iter().map(whole);
    let first = wholes.next().flatten();
    first.filter(|first| wholes.all(|other| other.as_ref() == Some(first))).unwrap_or_else(|| {
        let all = commands.iter().map(|(_, command)| command.as_str());
        all.collect::<Vec<_>>().join(" && ")
    })
}

/// A directory of runs and its manifest.
type StoredRuns = (RunDirectory, Manifest);

/// All given directories of runs, grouped by scenario.
fn groups(given: &[PathBuf]) -> Result<BTreeMap<String, Vec<StoredRuns>>, Failure> {
    let mut groups: BTreeMap<String, Vec<StoredRuns>> = BTreeMap::new();
    for directory in given {
        let found = found(directory).map_err(|error| refused(directory, &error))?;
        if found.is_empty() {
            let message = "there are no runs in it, nor in what it contains";
            return Err(Failure::value("<DIR>...", directory.display(), message));
        }
        for (runs, manifest) in found {
            groups.entry(manifest.name.clone()).or_default().push((runs, manifest));
        }
    }
    Ok(groups)
}

fn refused(directory: &Path, error: &DirectoryError) -> Failure {
    match error {
        DirectoryError::Io(error) => {
            Failure::Environment(format!("cannot read '{}': {error}", directory.display()))
        }
        reason => Failure::value("<DIR>...", directory.display(), reason),
    }
}

/// The runs in `directory`, or else those in its subdirectories: the output of several scenarios.
fn found(directory: &Path) -> Result<Vec<StoredRuns>, DirectoryError> {
    if let Some(found) = RunDirectory::existing(directory)? {
        return Ok(vec![found]);
    }
    let mut below = Vec::new();
    match fs::read_dir(directory) {
        Ok(entries) => {
            for entry in entries {
                below.push(entry?.path());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(DirectoryError::Other("no such directory".to_owned()));
        }
        Err(error) => return Err(error.into()),
    }
    below.sort();
    let directories = below.iter().filter(|path| path.is_dir());
    let found = directories.map(|path| RunDirectory::existing(path));
    found.filter_map(Result::transpose).collect()
}

/// The directories of one scenario.
struct RunGroup<'a> {
    sweep: Sweep,
    directories: Vec<&'a RunDirectory>,
}

impl<'a> RunGroup<'a> {
    /// The group of `first` and `others`, if they belong together.
    fn of(
        (first, manifest): &'a StoredRuns,
        others: &'a [StoredRuns],
        color: Color,
    ) -> Result<Self, Failure> {
        for (other, its) in others {
            if let Some(difference) = its.difference(manifest) {
                return Err(Failure::Usage(format!(
                    "the runs in '{}' and in '{}' do not belong together: the first have \
                     {difference}",
                    other.results().display(),
                    first.results().display()
                )));
            }
        }
        let scenario =
            manifest.scenario().map_err(|error| scenario::wrong(&error, &manifest.name, color))?;
        let directories = std::iter::once(first).chain(others.iter().map(|(other, _)| other));
        let sweep = Sweep { scenario, manifest: manifest.clone() };
        Ok(Self { sweep, directories: directories.collect() })
    }

    /// All runs of the scenario; fails if some are missing.
    fn runs(&self, quiet: bool) -> Result<Vec<FinishedRun>, Failure> {
        let items = uncork_lab::items(&self.sweep.scenario);
        let (mut runs, mut missing, mut twice) = (Vec::new(), Vec::new(), Vec::new());
        let mut readers = Vec::new();
        for directory in &self.directories {
            let reader = directory.reader();
            readers.push(reader.map_err(|error| refused(directory.results(), &error.into()))?);
        }
        for damage in readers.iter().flat_map(RunReader::damage) {
            note(quiet, &damage);
        }
        for item in &items {
            let mut copies = Vec::new();
            for reader in &mut readers {
                match reader.kept(*item) {
                    Ok(StoredRun::Run(run)) => copies.push((reader.path.clone(), *run)),
                    Ok(StoredRun::Missing) => {}
                    Ok(StoredRun::Damaged(damage)) => {
                        let run = run_in_words(&self.sweep.scenario, *item);
                        note(quiet, &format!("{}: {run}: {damage}", reader.path.display()));
                    }
                    Err(error) => return Err(refused(&reader.path, &error.into())),
                }
            }
            let mut copies = copies.into_iter();
            match (copies.next(), copies.next()) {
                (None, _) => missing.push(*item),
                (Some((_, run)), None) => runs.push(run),
                (Some((path, run)), Some((other_path, other))) => {
                    if run != other {
                        let run = run_in_words(&self.sweep.scenario, *item);
                        return Err(differing(&run, &path, &other_path));
                    }
                    twice.push(*item);
                    runs.push(run);
                }
            }
        }
        if !twice.is_empty() {
            let twice = self.named(&twice);
            note(quiet, &format!("some runs are there more than once, and alike: {twice}"));
        }
        if missing.is_empty() { Ok(runs) } else { Err(self.incomplete(&missing, items.len())) }
    }

    fn incomplete(&self, missing: &[Item], all: usize) -> Failure {
        Failure::Usage(format!(
            "{} of {all} runs of '{}' are missing; use the directories of all shards, and complete \
             them with --resume:\n  {}",
            missing.len(),
            self.sweep.scenario.name,
            self.named(missing).replace("; ", "\n  ")
        ))
    }

    /// A description of `items`, at least of the first ones.
    fn named(&self, items: &[Item]) -> String {
        let name = |item: &Item| run_in_words(&self.sweep.scenario, *item);
        let names: Vec<String> = items.iter().take(NAMED).map(name).collect();
        let names = names.join("; ");
        match items.len().saturating_sub(NAMED) {
            0 => names,
            more => format!("{names}; and {more} more"),
        }
    }
}

/// `seed 3 of path.loss=1%, flow.main.cc=cubic`
pub(super) fn run_in_words(scenario: &Scenario, Item { cell, seed }: Item) -> String {
    match uncork_lab::cell_name(scenario, cell).as_str() {
        "" => format!("seed {seed}"),
        cell => format!("seed {seed} of {cell}"),
    }
}

fn differing(run: &str, one: &Path, other: &Path) -> Failure {
    Failure::Usage(format!(
        "'{}' and '{}' have different results of {run}; one of them was changed: run it again",
        one.display(),
        other.display()
    ))
}

fn note(quiet: bool, text: &str) {
    if !quiet {
        eprintln!("note: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_of_a_suite_follows_from_its_scenarios() {
        let command = |pairs: &[(&str, &str)]| {
            let owned = |(name, rest): &(&str, &str)| {
                ((*name).to_owned(), format!("uncork lab run {name}{rest}"))
            };
            command_of("suite", &pairs.iter().map(owned).collect::<Vec<_>>())
        };
        let set = " --set path.loss=2% --seeds 3";
        assert_eq!(command(&[("a", set), ("b", set)]), format!("uncork lab run suite{set}"));
        assert_eq!(command(&[("a", ""), ("b", "")]), "uncork lab run suite");
        let apart = "uncork lab run a && uncork lab run b --seed 2";
        assert_eq!(command(&[("a", ""), ("b", " --seed 2")]), apart);
    }
}
