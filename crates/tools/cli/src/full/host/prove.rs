//! `uncork host prove`: what another controller is worth on this host.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

use uncork_host::change::{ChangeError, PlanError};
use uncork_host::prove::{
    self, AbortReason, Answer, Limits, ProveDocument, ProveError, ProveSpec, Prover, TestResult,
    Tick, Verdict,
};
use uncork_watch::RecordsSpec;

use super::change;
use super::prove_args::ProveArgs;
use crate::failure::Failure;
use crate::interrupt::flag_on_signal;
use crate::values::TextFormat;
use crate::{output, print, stdout};

const RESULT: &str = "summary.json";
/// How the names of its records begin.
const RECORDS: &str = "connections-";

pub(super) fn run(args: &ProveArgs) -> Result<(), Failure> {
    let spec = spec(args);
    prove::check(&spec, &mut change::host(&args.state)).map_err(failure)?;
    if args.dry_run {
        return stdout::write(spec.to_string().as_bytes());
    }
    if let Some(warning) = spec.warning() {
        eprintln!("warning: {warning}");
    }
    let directory = args.output.as_deref();
    let records = directory.map(records).transpose()?;
    let stop = flag_on_signal()?;
    let _lock = change::lock(&args.state)?;
    let mut prover = Prover::start(spec, change::host(&args.state), records).map_err(failure)?;
    if let Some(warning) = prover.warning() {
        eprintln!("note: {warning}");
    }
    while !stop.load(Ordering::Relaxed) {
        match prover.tick() {
            Tick::Wait(time) => thread::sleep(time),
            Tick::Window(text) if !args.quiet => eprintln!("{text}"),
            Tick::Window(_) => {}
            Tick::Ended => break,
        }
    }
    let ended = prover.end(stop.load(Ordering::Relaxed));
    let printed = report(&ended, args.format, directory);
    ended.failure.map_or(printed, |error| Err(failure(error)))
}

fn spec(args: &ProveArgs) -> ProveSpec {
    ProveSpec {
        controllers: [args.a.clone(), args.b.clone()],
        routes: args.to.clone(),
        pairs: args.pairs,
        window: args.window,
        burn_in: args.burn_in,
        large: args.large,
        limits: Limits { retransmitted: args.max_retransmitted, rtt_p95: args.max_rtt_p95 },
        max_retransmitted_increase: args.max_retransmitted_increase,
        period: args.every,
        // Below 2^53, as JSON numbers are exact.
        seed: args.seed.unwrap_or_else(|| RandomState::new().hash_one(0) >> 11),
    }
}

/// Records in a directory that has no other test's.
fn records(directory: &Path) -> Result<RecordsSpec, Failure> {
    if let Some(name) = left_by_a_test(directory) {
        let reason = format!("it has {name} of another test; choose another directory");
        return Err(Failure::value("--output <DIR>", directory.display(), reason));
    }
    fs::create_dir_all(directory).map_err(|error| Failure::output(directory, &error))?;
    Ok(RecordsSpec::new(directory))
}

/// A file of another test. One that was killed has records, but no result.
fn left_by_a_test(directory: &Path) -> Option<String> {
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.find(|name| name == RESULT || name.starts_with(RECORDS))
}

/// Prints the result before it is written: the disk may be full. It is written if it cannot be printed, too.
fn report(ended: &TestResult, format: TextFormat, directory: Option<&Path>) -> Result<(), Failure> {
    let TestResult { document, stop, records, .. } = ended;
    let result = print::json(document)?;
    let text = match format {
        TextFormat::Json => result.clone(),
        TextFormat::Human => document.text(),
    };
    let printed = stdout::write(text.as_bytes());
    if let Some(directory) = directory {
        output::replace(directory, RESULT, result.as_bytes())
            .map_err(|error| Failure::output(directory, &error))?;
    }
    if let Some(summary) = records.filter(|summary| summary.lost > 0) {
        eprintln!(
            "warning: {} records were lost: the disk was full, or they came faster than they are written",
            summary.lost
        );
    }
    printed.and_then(|()| status(document, stop.as_ref()))
}

fn status(document: &ProveDocument, stop: Option<&AbortReason>) -> Result<(), Failure> {
    match stop {
        Some(AbortReason::Interrupted) => Err(Failure::Interrupted(
            "the host is restored; the windows until then count".to_owned(),
        )),
        Some(stop @ (AbortReason::Change(_) | AbortReason::Watch(_))) => {
            Err(Failure::Environment(stop.to_string()))
        }
        Some(AbortReason::Breach { .. } | AbortReason::Disturbed(_)) => Err(Failure::Status(1)),
        None => {
            let Verdict { answer, status, .. } = &document.verdict;
            let is_done = *answer != Answer::Open && *status == 0 && document.left.is_empty();
            if is_done { Ok(()) } else { Err(Failure::Status(1)) }
        }
    }
}

fn failure(error: ProveError) -> Failure {
    match error {
        ProveError::Spec(error) => Failure::Value(error.to_string()),
        ProveError::Change(ChangeError::Plan(PlanError::Impossible(_))) | ProveError::Watch(_) => {
            Failure::Environment(error.to_string())
        }
        ProveError::Change(error) => change::failure(error),
    }
}
