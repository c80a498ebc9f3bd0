//! `uncork lab agree`.

use std::collections::BTreeMap;

use uncork_lab::{Engine, Manifest, mark_late_hosts};

use super::args::AgreeArgs;
use super::finish::{Finish, Places, places};
use super::source::{self, Sweep};
use super::work::{Work, open};
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::interrupt::flag_on_signal;
use crate::progress::ProgressTracker;

pub(super) fn run(args: &AgreeArgs) -> Result<(), Failure> {
    let stop = flag_on_signal()?;
    let stopwatch = Stopwatch::start();
    // The other engine first, so that unsupported scenarios are reported before anything is
    // simulated.
    let sides = [args.on.engine(), Engine::Sim].map(|engine| args.side(engine));
    let mut sweeps = Vec::new();
    for side in &sides {
        let Sweep { scenario, manifest } = source::read(side, &args.scenario)?;
        let scenario = scenario.for_comparison_with(args.on.engine());
        sweeps.push(Sweep { scenario, manifest });
    }
    let scenario = &sweeps[0].scenario;
    let scenario = scenario.compared_with_simulator(args.on.engine(), args.tolerance.as_f64());
    let Places { root, .. } = places(args.output.output.as_deref(), &[&scenario.name], true)?;
    let mut runs = Vec::new();
    let tracker = ProgressTracker::of(sweeps.iter().map(|sweep| &sweep.scenario));
    for (nth, (side, sweep)) in sides.iter().zip(&sweeps).enumerate() {
        let place = root.as_ref().map(|root| root.join(side.on.name()));
        let directory = place.map(|place| open(&place, sweep, side.runs.resume));
        let work =
            Work { args: side, sweep, directory: directory.transpose()?, again: args.again() };
        let played = work.runs(&uncork_lab::items(&sweep.scenario), (&tracker, nth), &stop)?;
        runs.extend(played.into_iter().map(|run| run.on(side.on)));
    }
    if args.on.engine().is_in_real_time() {
        mark_late_hosts(&mut runs);
    }
    let manifest = Manifest::new(&scenario, BTreeMap::new(), args.on.engine(), args.command());
    let mut finish = Finish::new(&args.output, root.clone(), None);
    let cost = stopwatch.cost(1);
    finish.finish(&Sweep { scenario, manifest }, runs, cost, root.as_ref())?;
    finish.verdict()
}
