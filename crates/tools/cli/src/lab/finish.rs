//! After the runs: writes files, prints a table and checks the thresholds.

use std::io::{self, IsTerminal};
use std::path::Path;

use uncork_lab::{COMMAND_FILES, FinishedRun, SWEEP_FILES, Suite, SweepResults};
use uncork_report::lab::LabDocument;

use super::args::OutputArgs;
use super::place::Place;
use super::source::Sweep;
use crate::clock::Cost;
use crate::failure::Failure;
use crate::values::Format;
use crate::{color, output, print, stdout};

/// The places of results.
pub(super) struct Places {
    /// That of `--output`.
    pub(super) root: Option<Place>,
    /// That of each scenario.
    pub(super) each: Vec<Option<Place>>,
}

/// The places of the scenarios in `names`: `output` for a single one, otherwise a
/// subdirectory with its name. Fails if they are not writable, unless `probe` is false.
pub(super) fn places(
    output: Option<&Path>,
    names: &[&str],
    probe: bool,
) -> Result<Places, Failure> {
    let Some(output) = output else {
        return Ok(Places { root: None, each: vec![None; names.len()] });
    };
    let root = Place::open("--output <DIR>", output)?;
    let mut each = Vec::new();
    for (nth, name) in names.iter().enumerate() {
        if names[..nth].contains(name) {
            return Err(Failure::Usage(format!(
                "two scenarios are called '{name}', and so would be their directories in '{root}' of \
                 '--output <DIR>'; run one after the other"
            )));
        }
        let place = if names.len() == 1 { root.clone() } else { root.join(name) };
        if probe {
            place.probe(&SWEEP_FILES)?;
        }
        each.push(Some(place));
    }
    Ok(Places { root: Some(root), each })
}

/// Prints the reasons to distrust the results on stderr, for formats that a program reads: the table
/// starts with them.
pub(crate) fn warn_of_doubts(document: &LabDocument, format: Format) {
    if format != Format::Human {
        for doubt in &document.doubts {
            eprintln!("warning: {}: {doubt}", document.name);
        }
    }
}

/// Writes the output of programs into a separate directory, if there is any.
fn write_commands(place: &Place, results: &SweepResults) -> io::Result<()> {
    let files = results.command_files();
    if files.is_empty() {
        return Ok(());
    }
    let files: Vec<output::File<'_>> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_bytes().to_vec())).collect();
    place.join(COMMAND_FILES).write(&files)
}

/// Writes and prints the results of scenarios one by one, and counts missed thresholds.
pub(super) struct Finish<'a> {
    args: &'a OutputArgs,
    /// The place of `--output`.
    root: Option<Place>,
    /// The suite of these scenarios, and their documents.
    suite: Option<Suite>,
    documents: Vec<LabDocument>,
    printed: usize,
    missed: usize,
    thresholds: usize,
}

impl<'a> Finish<'a> {
    pub(super) fn new(args: &'a OutputArgs, root: Option<Place>, suite: Option<Suite>) -> Self {
        Self { args, root, suite, documents: Vec::new(), printed: 0, missed: 0, thresholds: 0 }
    }

    /// Writes the results of all `runs` of a scenario to `place` and prints them on stdout.
    pub(super) fn finish(
        &mut self,
        sweep: &Sweep,
        runs: Vec<FinishedRun>,
        cost: Cost,
        place: Option<&Place>,
    ) -> Result<(), Failure> {
        let Sweep { scenario, manifest } = sweep;
        let results = SweepResults::new(runs);
        let command = manifest.command.clone();
        let document = results.document(scenario, command, place.is_some());
        if let Some(place) = place {
            let contents = results.files(scenario, &document).map_err(io::Error::other);
            let files = contents.map(|contents| SWEEP_FILES.into_iter().zip(contents).collect());
            let written = files.and_then(|files: Vec<output::File<'_>>| place.write(&files));
            let written = written.and_then(|()| write_commands(place, &results));
            written.map_err(|error| place.failure(&error))?;
        }
        self.thresholds += document.thresholds.len();
        self.missed += document.thresholds.iter().filter(|threshold| !threshold.passed).count();
        if self.suite.is_some() {
            self.documents.push(document);
            return Ok(());
        }
        self.print(&document)?;
        self.note_cost(&document, cost);
        self.note(place);
        Ok(())
    }

    /// Writes the report of a suite once all of its scenarios are finished. `command` reproduces
    /// it.
    pub(super) fn suite(&mut self, command: impl FnOnce(&Suite) -> String) -> Result<(), Failure> {
        let Some(suite) = self.suite.take().filter(|_| !self.documents.is_empty()) else {
            return Ok(());
        };
        let command = command(&suite);
        let document = suite.report(std::mem::take(&mut self.documents), command);
        let place = self.root.clone();
        if let Some(place) = &place {
            let files = vec![
                ("report.html", document.html().into_bytes()),
                ("summary.json", document.to_json().into_bytes()),
            ];
            place.write(&files).map_err(|error| place.failure(&error))?;
        }
        match self.args.format {
            Format::Human => {
                stdout::styled(&document.text(color::terminal(self.args.color)))?;
            }
            Format::Json => {
                document.scenarios.iter().for_each(|one| warn_of_doubts(one, Format::Json));
                stdout::data(document.to_json().as_bytes())?;
            }
            Format::Csv => document.scenarios.iter().try_for_each(|one| self.print(one))?,
        }
        self.note(place.as_ref());
        Ok(())
    }

    fn print(&mut self, document: &LabDocument) -> Result<(), Failure> {
        let text = match self.args.format {
            Format::Human => document.text(color::terminal(self.args.color)),
            Format::Json => document.to_json(),
            Format::Csv => document.csv(),
        };
        warn_of_doubts(document, self.args.format);
        let gap = if self.printed > 0 { "\n" } else { "" };
        self.printed += 1;
        print::formatted(self.args.format, &format!("{gap}{text}"))
    }

    /// Whether notes are shown.
    fn is_watched(&self) -> bool {
        !self.args.quiet && io::stderr().is_terminal()
    }

    /// Prints the time used to stderr only, so that equal commands produce equal output.
    fn note_cost(&self, document: &LabDocument, cost: Cost) {
        if self.is_watched() {
            eprintln!("{} packets in {cost}", document.engine.packets);
        }
    }

    fn note(&self, place: Option<&Place>) {
        match place {
            _ if self.args.quiet => {}
            Some(place) => eprintln!("wrote {}", place.join("report.html")),
            None if self.args.format == Format::Human && self.is_watched() => {
                eprintln!("hint: add -o DIR for a report with pictures, and the data behind it");
            }
            None => {}
        }
    }

    /// Fails if a threshold was missed.
    pub(super) fn verdict(self) -> Result<(), Failure> {
        match (self.missed, self.thresholds) {
            (0, _) => Ok(()),
            (1, 1) => Err(Failure::Missed("the threshold is missed".to_owned())),
            (missed, all) => Err(Failure::Missed(format!("{missed} of {all} thresholds missed"))),
        }
    }
}
