//! `uncork host watch`: the connections of this host.

use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use uncork_kernel::DIRECTORY;
use uncork_steer::{Lookup, SteerPins, Steered};
use uncork_watch::{
    GroupBy, RecordsSpec, Session, Tick, View, ViewSettings, WatchError, WatchSpec,
};

use super::watch_args::WatchArgs;
use super::watch_terminal::Screen;
use crate::clock;
use crate::failure::Failure;
use crate::interrupt::flag_on_signal;
use crate::stdout;

pub(super) fn run(args: &WatchArgs) -> Result<(), Failure> {
    if args.every.is_zero() {
        return Err(Failure::value("--every <TIME>", args.every, "expected a period, such as 1s"));
    }
    if let (None, Some(period)) = (&args.records, args.rollup.period()) {
        return Err(Failure::value("--rollup <PERIOD>", period, "it needs --records DIR/"));
    }
    let stop = flag_on_signal()?;
    let has_screen = !args.plain && !args.quiet && io::stdout().is_terminal();
    let mut session = Session::start(&spec(args, has_screen)).map_err(|error| refused(&error))?;
    if !args.quiet {
        if let Some(warning) = session.warning() {
            eprintln!("note: {warning}");
        }
        if let Some(address) = session.address() {
            eprintln!("note: metrics on http://{address}/metrics");
        }
    }
    let mut view = View::new(ViewSettings {
        by: args.by,
        sort: args.sort,
        is_reversed: false,
        has_idle: args.idle,
        filter: args.filter.clone(),
    });
    let until = args.duration.map(|span| clock::now() + Duration::from(span));
    let is_over = || stop.load(Ordering::Relaxed) || until.is_some_and(|end| end <= clock::now());
    let steered = if args.replay.is_some() {
        Vec::new()
    } else {
        Steered::all(&SteerPins::in_directory(DIRECTORY)).unwrap_or_default()
    };
    let mut lookup = Lookup::of(&steered);
    let wants_policy = matches!(args.by, GroupBy::Arm | GroupBy::Rule);
    if wants_policy && args.replay.is_none() && lookup.is_empty() && !args.quiet {
        eprintln!(
            "note: no policy of `uncork steer` can be read here: none is active, or it needs root"
        );
    }
    let shown = if has_screen {
        on_screen(&mut session, &mut view, &mut lookup, is_over)
    } else {
        in_lines(&mut session, &mut view, args, &mut lookup, is_over)
    };
    // Files are whole, however the table ended.
    let summary = session.end().map_err(|error| refused(&error))?;
    shown?;
    match summary.and_then(|it| it.warning()) {
        Some(lost) => Err(Failure::Environment(lost)),
        None => Ok(()),
    }
}

fn spec(args: &WatchArgs, has_screen: bool) -> WatchSpec {
    WatchSpec {
        period: args.every.into(),
        replay: args.replay.clone(),
        in_real_time: has_screen,
        record: args.record.clone(),
        records: args.records.as_ref().map(|path| RecordsSpec {
            every: args.records_every.into(),
            ..args.rollup.apply(RecordsSpec::new(path))
        }),
        listen: args.listen,
    }
}

fn in_lines(
    session: &mut Session,
    view: &mut View,
    args: &WatchArgs,
    policies: &mut Lookup,
    is_over: impl Fn() -> bool,
) -> Result<(), Failure> {
    while !is_over() {
        match session.tick_with_policies(policies).map_err(|error| refused(&error))? {
            Tick::Wait(time) => thread::sleep(time),
            Tick::Ended => break,
            Tick::Passed if args.quiet => {}
            Tick::Passed => {
                view.update(session.tracker());
                if !stdout::stream(view.plain(args.rows as usize).as_bytes())? {
                    break;
                }
            }
        }
        if let Some(problem) = session.problem() {
            eprintln!("warning: {problem}; the watch goes on");
        }
    }
    Ok(())
}

/// Redraws after each pass and each key. A replay that is over stays until the user leaves.
fn on_screen(
    session: &mut Session,
    view: &mut View,
    policies: &mut Lookup,
    is_over: impl Fn() -> bool,
) -> Result<(), Failure> {
    const KEYS: Duration = Duration::from_millis(100);
    let mut screen = Screen::open().map_err(|error| terminal(&error))?;
    while !is_over() {
        let wait = match session.tick_with_policies(policies).map_err(|error| refused(&error))? {
            Tick::Wait(time) => time.min(KEYS),
            Tick::Ended => KEYS,
            Tick::Passed => {
                view.update(session.tracker());
                screen.draw(view).map_err(|error| terminal(&error))?;
                Duration::ZERO
            }
        };
        let keys = Screen::keys(wait).map_err(|error| terminal(&error))?;
        if keys.iter().any(|key| !view.press(*key)) {
            return Ok(());
        }
        if !keys.is_empty() {
            screen.draw(view).map_err(|error| terminal(&error))?;
        }
    }
    Ok(())
}

fn refused(error: &WatchError) -> Failure {
    match error {
        WatchError::Replay(..) => Failure::Value(error.to_string()),
        _ => Failure::Environment(error.to_string()),
    }
}

fn terminal(error: &io::Error) -> Failure {
    Failure::Environment(format!("cannot use the terminal: {error}; add --plain"))
}
