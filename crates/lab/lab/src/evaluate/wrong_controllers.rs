//! Verdicts about BBRv1 turn if something else runs in its place.

use std::collections::BTreeSet;
use std::fmt;

use uncork_cc::{
    AnyController, AppState, CcSpec, Control, Controller, ControllerSpec, Feedback, Lost,
    PathEvent, SentPacket, Settings, Snapshot, Timeout, Token,
};
use uncork_report::lab::Verdict;
use uncork_sim::{FlowSpec, RunSpec, Simulation};
use uncork_units::Time;

use super::answers::published;
use super::outcome::outcome;
use super::results::RunResults;
use crate::builtin::Builtin;
use crate::engine::PlayedRun;
use crate::scenario::{Published, Scenario};
use crate::sweep::Item;

/// The controller that runs under the name `bbr1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InPlaceOfBbr {
    Bbr,
    Cubic,
    /// BBR with a window of 1.5 instead of 2 estimated BDPs.
    LowGain,
}

#[derive(Clone, Copy, Debug)]
struct Spec {
    named: CcSpec,
    built: CcSpec,
    is_low_gain: bool,
}

impl Spec {
    fn new(named: CcSpec, replacement: InPlaceOfBbr) -> Self {
        let is_bbr = named.to_string() == "bbr1";
        let built = match replacement {
            InPlaceOfBbr::Cubic if is_bbr => "cubic".parse().expect("a controller"),
            _ => named,
        };
        Self { named, built, is_low_gain: is_bbr && replacement == InPlaceOfBbr::LowGain }
    }
}

impl ControllerSpec for Spec {
    type Controller = Replaced;

    fn name(&self) -> impl fmt::Display {
        self.named.name().to_string()
    }

    fn build(&self, settings: &Settings) -> Replaced {
        Replaced { inner: self.built.build(settings), is_low_gain: self.is_low_gain }
    }
}

#[derive(Debug)]
struct Replaced {
    inner: AnyController,
    is_low_gain: bool,
}

impl Controller for Replaced {
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        self.inner.on_sent(now, packet, app)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        self.inner.on_feedback(now, feedback);
    }

    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        self.inner.on_spurious(now, packets);
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        self.inner.on_timeout(now, timeout);
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        self.inner.on_path(now, event);
    }

    fn control(&self) -> Control {
        let mut control = self.inner.control();
        if self.is_low_gain {
            control.cwnd = control.cwnd / 4 * 3;
        }
        control
    }

    fn found_classic_queue(&self) -> bool {
        self.inner.found_classic_queue()
    }

    fn has_left_start(&self) -> bool {
        self.inner.has_left_start()
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }
}

fn replaced(run: RunSpec, replacement: InPlaceOfBbr) -> RunSpec<Spec> {
    let flow = |flow: FlowSpec| FlowSpec {
        cc: Spec::new(flow.cc, replacement),
        path: flow.path,
        host: flow.host,
        ecn: flow.ecn,
        accecn: flow.accecn,
        start: flow.start,
        rtt: flow.rtt,
        workload: flow.workload,
        initial_window: flow.initial_window,
        receive_window: flow.receive_window,
        receive_window_steps: flow.receive_window_steps,
        migrations: flow.migrations,
        acks: flow.acks,
        resume: flow.resume,
    };
    RunSpec {
        links: run.links,
        paths: run.paths,
        clients: run.clients,
        commands: run.commands,
        receive_window_steps: run.receive_window_steps,
        migrations: run.migrations,
        flows: run.flows.into_iter().map(flow).collect(),
        seed: run.seed,
        warmup: run.warmup,
        end: run.end,
        host_jitter: run.host_jitter,
        offload: run.offload,
        card: run.card,
        sample_every: None,
    }
}

/// The rows that compare a measurement of BBRv1 with a range.
fn is_about_bbr(scenario: &Scenario, row: &Published) -> bool {
    let chosen = |(axis, value): &(usize, usize)| &*scenario.axes[*axis].values[*value] == "bbr1";
    row.range.is_some() && row.of.at.iter().any(chosen)
}

/// The verdicts of the rows about BBRv1 in a built-in scenario.
fn verdicts(name: &str, replacement: InPlaceOfBbr) -> Vec<(String, Verdict)> {
    let builtin = Builtin::find(name).expect("it is built in");
    let mut scenario = builtin.parse(&[]).expect("it is valid");
    scenario.published = {
        let rows = std::mem::take(&mut scenario.published);
        rows.into_iter().filter(|row| is_about_bbr(&scenario, row)).collect()
    };
    let no_runs = RunResults::new(&scenario, &[]);
    let needed = |row: &Published| no_runs.cells(&row.of, &[]);
    let cells: BTreeSet<usize> = scenario.published.iter().flat_map(needed).collect();
    let items = crate::items(&scenario);
    let items = items.into_iter().filter(|item| cells.contains(&item.cell));
    let play = |Item { cell, seed }| {
        let instance = scenario.instance(cell, seed);
        let result = Simulation::new(&replaced(instance.run.clone(), replacement)).run();
        let played = PlayedRun { result, doubts: Vec::new(), commands: Vec::new() };
        outcome(&scenario, (cell, seed), &instance, played).0
    };
    let runs: Vec<_> = items.map(play).collect();
    let rows = published(&RunResults::new(&scenario, &runs));
    let row = |row: uncork_report::lab::Published| {
        (row.what, row.judgement.expect("the row has a range").verdict)
    };
    rows.into_iter().map(row).collect()
}

fn with(name: &str, replacement: InPlaceOfBbr) -> Vec<Verdict> {
    let verdicts = verdicts(name, replacement);
    println!("{name}, {replacement:?}: {verdicts:#?}");
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}

use Verdict::{Agrees, Differs};

#[test]
fn cubic_in_the_place_of_bbr_turns_the_verdicts_on_a_lossy_path() {
    assert_eq!(with("litespeed-loss", InPlaceOfBbr::Bbr), [Agrees; 5]);
    // Without loss the two are equally fast.
    let cubic = [Agrees, Differs, Differs, Differs, Differs];
    assert_eq!(with("litespeed-loss", InPlaceOfBbr::Cubic), cubic);
}

#[test]
fn cubic_in_the_place_of_bbr_turns_the_verdict_on_a_deep_buffer() {
    assert_eq!(with("litespeed-latency", InPlaceOfBbr::Bbr), [Agrees]);
    assert_eq!(with("litespeed-latency", InPlaceOfBbr::Cubic), [Differs]);
}

#[test]
fn a_gain_of_one_and_a_half_turns_the_verdicts_on_the_queue() {
    assert_eq!(with("bbr-queue", InPlaceOfBbr::Bbr)[..2], [Agrees; 2]);
    assert_eq!(with("bbr-queue", InPlaceOfBbr::LowGain)[..2], [Differs; 2]);
    assert_eq!(with("bbr-queue", InPlaceOfBbr::Cubic)[..2], [Differs; 2]);
}
