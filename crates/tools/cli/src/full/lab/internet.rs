//! `uncork lab internet`.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uncork_flow::{Labelled, TableHead, write_flows};
use uncork_internet::{Day, DayOutcome, OracleSpec, POLICY, World, WorldSpec};
use uncork_policy::{Policy, UnixTime};
use uncork_records::stamp;

use super::args::{InternetArgs, InternetCommand, LinesArgs, OracleArgs, RecordsArgs, WorldArgs};
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::full::file;
use crate::full::policy;
use crate::interrupt::flag_on_signal;
use crate::output;
use crate::values::{Color, jobs};

const DAY_SECONDS: i64 = 86_400;
/// The last day that a record's nanoseconds can have: in the year 2500.
const LAST_DAY: i64 = 193_000;

pub(super) fn run(args: &InternetArgs) -> Result<(), Failure> {
    match &args.command {
        InternetCommand::Records(args) => records(args),
        InternetCommand::Oracle(args) => oracle(args),
        InternetCommand::Lines(args) => lines(args),
    }
}

fn records(args: &RecordsArgs) -> Result<(), Failure> {
    let stop = flag_on_signal()?;
    let world = world(&args.world)?;
    let policy = policy(args)?;
    let first = first_day(&args.from)?;
    let unwritable = |error| Failure::output(&args.output, &error);
    fs::create_dir_all(&args.output).map_err(unwritable)?;
    let stopwatch = Stopwatch::start();
    let mut total = DayOutcome::default();
    for day in first..first + args.days {
        let of = Day {
            world: &world,
            policy: &policy,
            day,
            connections: args.connections,
            others: args.others,
        };
        for hour in 0..24 {
            let outcome = of.hour(hour, jobs(args.jobs), &stop);
            if stop.load(Ordering::Relaxed) {
                return Err(interrupted(&args.output));
            }
            let begin = u64::from(day) * DAY_SECONDS as u64 + u64::from(hour) * 3_600;
            write(&args.output, UNIX_EPOCH + Duration::from_secs(begin), &outcome)?;
            total.drawn += outcome.drawn;
            total.simulated += outcome.simulated;
            total.packets += outcome.packets;
            total.records.clear();
        }
    }
    if !args.quiet {
        let cost = stopwatch.cost(jobs(args.jobs));
        eprintln!(
            "{} connections, {} simulated with {} packets; {cost}",
            total.drawn, total.simulated, total.packets
        );
    }
    Ok(())
}

/// Writes the records of the hour that begins then, if there are any, to a file as a server names it.
fn write(directory: &Path, begin: SystemTime, outcome: &DayOutcome) -> Result<(), Failure> {
    if outcome.records.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    let rows = outcome.records.iter().map(Labelled::plain);
    let name = format!("responses-{}.parquet", stamp(begin));
    write_flows(&mut bytes, &TableHead::default(), rows)
        .map_err(|error| Failure::Environment(format!("cannot write {name}: {error}")))?;
    output::replace(directory, &name, &bytes).map_err(|error| Failure::output(directory, &error))
}

fn oracle(args: &OracleArgs) -> Result<(), Failure> {
    let stop = flag_on_signal()?;
    let world = world(&args.world)?;
    if let Some(group) = args.only.iter().find(|group| !group.is_in(&world)) {
        let reason =
            "no network is in this group: the oracle's file has the world's ASes and profiles";
        return Err(Failure::value("--only <AS:PROFILE>", group.to_string(), reason));
    }
    let OracleArgs { control, treated, connections, draw, .. } = *args;
    let spec = OracleSpec { control, treated, connections, draw };
    let found = uncork_internet::oracle(&world, &spec, &args.only, jobs(args.jobs), &stop);
    let csv = found.ok_or_else(|| interrupted(&args.output))?.csv();
    file::replace(&args.output, csv.as_bytes())
}

fn lines(args: &LinesArgs) -> Result<(), Failure> {
    let csv = uncork_internet::lines(&world(&args.world)?, args.count);
    file::replace(&args.output, csv.as_bytes())
}

fn interrupted(place: &Path) -> Failure {
    Failure::Interrupted(format!("what is in '{}' is complete; run it again", place.display()))
}

fn world(args: &WorldArgs) -> Result<World, Failure> {
    let WorldArgs { seed, networks, systems } = *args;
    World::new(WorldSpec { seed, networks, systems })
        .map_err(|error| Failure::Usage(error.to_string()))
}

/// The policy of `--policy`, or a default that only tries both controllers.
fn policy(args: &RecordsArgs) -> Result<Policy, Failure> {
    match &args.policy {
        Some(file) => policy::read(file, None, Color::Auto),
        None => Policy::parse("uncork lab internet", POLICY)
            .map_err(|error| Failure::Shown(error.render("uncork lab internet", false))),
    }
}

/// The day since 1970.
fn first_day(text: &str) -> Result<u32, Failure> {
    let reason = "expected a day from 1970 to 2498, such as 2026-11-02";
    let refused = || Failure::value("--from <DAY>", text, reason);
    let midnight: UnixTime = format!("{text}T00:00:00Z").parse().map_err(|_| refused())?;
    let day = midnight.0.div_euclid(DAY_SECONDS);
    u32::try_from(day).ok().filter(|_| day < LAST_DAY).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read() {
        for (text, day) in [
            ("1970-01-01", 0),
            ("2024-02-29", 19_782),
            ("2026-11-02", 20_759),
            ("2100-03-01", 47_541),
        ] {
            assert_eq!(first_day(text).unwrap(), day);
        }
        for text in ["2026-13-01", "1969-12-31", "yesterday", "2600-01-01"] {
            assert!(matches!(first_day(text), Err(Failure::Value(_))), "{text}");
        }
    }

    #[test]
    fn without_a_policy_both_controllers_are_tried() {
        let policy = Policy::parse("", POLICY).unwrap();
        let arms: Vec<(&str, &str)> = policy.arms().collect();
        assert_eq!(arms, [("explore", "control"), ("explore", "bbr")]);
    }
}
