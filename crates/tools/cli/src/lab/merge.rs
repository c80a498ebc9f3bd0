//! `uncork lab merge`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use uncork_lab::{FinishedRun, Item, Manifest, Scenario, Shard, Suite};

use super::args::{MergeArgs, run_command};
use super::directory::{DirectoryError, RunDirectory, RunReader};
use super::finish::{Finish, Places, places};
use super::place::Place;
use super::source::Sweep;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::scenario;
use crate::values::Color;

/// The argument that names directories.
const ARGUMENT: &str = "<DIR>...";
/// Maximum runs or shards named in a message.
const NAMED: usize = 10;

pub(super) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let groups = groups(&args.directories)?;
    let names: Vec<&str> = groups.keys().map(String::as_str).collect();
    let Places { root, each } = places(args.output.output.as_deref(), &names, true)?;
    let suite = Suite::of_members(&names);
    let mut commands = Vec::new();
    let mut finish = Finish::new(&args.output, root, suite);
    for (group, place) in groups.values().zip(&each) {
        let Some((first, others)) = group.split_first() else { continue };
        let merged = RunGroup::of(first, others, args.output.color)?;
        let runs = merged.runs(args.output.quiet)?;
        finish.finish(&merged.sweep, runs, stopwatch.cost(1), place.as_ref())?;
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
        let place = Place::open(ARGUMENT, directory)?;
        let found = found(&place).map_err(|error| refused(&place, &error))?;
        if found.is_empty() {
            let message = "there are no runs in it, nor in what it contains";
            return Err(Failure::value(ARGUMENT, place, message));
        }
        for (runs, manifest) in found {
            groups.entry(manifest.name.clone()).or_default().push((runs, manifest));
        }
    }
    Ok(groups)
}

fn refused(place: &Place, error: &DirectoryError) -> Failure {
    match error {
        DirectoryError::Io(error) => {
            Failure::Environment(format!("cannot read '{place}': {error}"))
        }
        reason => Failure::value(ARGUMENT, place, reason),
    }
}

/// The runs in `directory`, or else those in its subdirectories: the output of several scenarios.
fn found(place: &Place) -> Result<Vec<StoredRuns>, DirectoryError> {
    if let Some(found) = RunDirectory::existing(place)? {
        return Ok(vec![found]);
    }
    let Some(below) = place.places()? else {
        return Err(DirectoryError::Other("no such directory".to_owned()));
    };
    let found = below.iter().map(RunDirectory::existing);
    found.filter_map(Result::transpose).collect()
}

/// The directories of one scenario.
struct RunGroup<'a> {
    sweep: Sweep,
    directories: Vec<&'a RunDirectory>,
    /// The number of shards, if all directories have the same.
    shards: Option<u64>,
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
                    other.results(),
                    first.results()
                )));
            }
        }
        let scenario =
            manifest.scenario().map_err(|error| scenario::wrong(&error, &manifest.name, color))?;
        let directories = std::iter::once(first).chain(others.iter().map(|(other, _)| other));
        let sweep = Sweep { scenario, manifest: manifest.clone() };
        let mut counts = std::iter::once(manifest).chain(others.iter().map(|(_, its)| its));
        let shards = manifest.shards.filter(|_| counts.all(|its| its.shards == manifest.shards));
        Ok(Self { sweep, directories: directories.collect(), shards })
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
            for (directory, reader) in self.directories.iter().zip(&mut readers) {
                let found = reader.copies(*item);
                for copy in found.map_err(|error| refused(directory.results(), &error.into()))? {
                    match copy.run {
                        Ok(run) => copies.push((copy.path, *run)),
                        Err(damage) => {
                            let run = run_in_words(&self.sweep.scenario, *item);
                            note(quiet, &format!("{}: {run}: {damage}", copy.path));
                        }
                    }
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
        if missing.is_empty() { Ok(runs) } else { Err(self.incomplete(&missing, &items)) }
    }

    fn incomplete(&self, missing: &[Item], all: &[Item]) -> Failure {
        let names = match self.shards {
            Some(count) => named(&incomplete_shards(count, missing, all)),
            None => self.named(missing),
        };
        Failure::Usage(format!(
            "{} of {} runs of '{}' are missing; use the directories of all shards, and complete \
             them with --resume:\n  {}",
            missing.len(),
            all.len(),
            self.sweep.scenario.name,
            names.replace("; ", "\n  ")
        ))
    }

    /// A description of `items`, at least of the first ones.
    fn named(&self, items: &[Item]) -> String {
        let name = |item: &Item| run_in_words(&self.sweep.scenario, *item);
        named(&items.iter().map(name).collect::<Vec<_>>())
    }
}

/// The first of `names`, and how many more there are.
fn named(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let first = first.join("; ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}

/// What is `missing` of each of `count` shards of `all` runs, such as `shard 3/8: all 18 runs`.
fn incomplete_shards(count: u64, missing: &[Item], all: &[Item]) -> Vec<String> {
    let missing: BTreeSet<&Item> = missing.iter().collect();
    let shards = (1..=count).filter_map(|nth| Shard::new(nth, count).ok());
    let in_words = |shard: Shard| {
        let runs = shard.of(all);
        let lacks = runs.iter().filter(|item| missing.contains(item)).count();
        match runs.len() {
            _ if lacks == 0 => None,
            all if lacks == all => Some(format!("shard {shard}: all {all} runs")),
            all => Some(format!("shard {shard}: {lacks} of {all} runs")),
        }
    };
    shards.filter_map(in_words).collect()
}

/// `seed 3 of path.loss=1%, flow.main.cc=cubic`
pub(super) fn run_in_words(scenario: &Scenario, Item { cell, seed }: Item) -> String {
    match uncork_lab::cell_name(scenario, cell).as_str() {
        "" => format!("seed {seed}"),
        cell => format!("seed {seed} of {cell}"),
    }
}

fn differing(run: &str, one: &str, other: &str) -> Failure {
    Failure::Usage(format!(
        "'{one}' and '{other}' have different results of {run}; one of them was changed: run it again"
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
    fn shards_with_missing_runs_are_named() {
        let all: Vec<Item> = (1..=7).map(|seed| Item { cell: 0, seed }).collect();
        let missing: Vec<Item> =
            all.iter().filter(|it| [2, 5, 6].contains(&it.seed)).copied().collect();
        let named = incomplete_shards(3, &missing, &all);
        assert_eq!(named, ["shard 2/3: all 2 runs", "shard 3/3: 1 of 2 runs"]);
    }

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
