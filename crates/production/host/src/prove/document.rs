//! The result of a test, for programs.

use serde::Serialize;

use super::effect::{Effect, Metric, effects};
use super::schedule::{Arm, Window};
use super::spec::ProveSpec;
use super::verdict::{End, Verdict};
use super::windows::{LeftOut, WindowFigures, Windows};
use super::within::of_window;

/// Schema of a [`ProveDocument`].
pub const PROVE_SCHEMA: &str = "uncork.host-prove/1";

const ESTIMAND: &str = "total effect on this host in this time, within client networks (/24 of IPv4, /48 of IPv6): all its connections \
                        run the second controller, compared with all running the first, and a network has the same weight in both";

/// What another controller is worth on a host: a switchback experiment.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProveDocument {
    /// `uncork.host-prove/1`.
    #[cfg_attr(test, schemars(extend("const" = PROVE_SCHEMA)))]
    pub schema: &'static str,
    /// Its name in the records (`arm_experiment`).
    pub experiment: String,
    /// The names of the arms in the records, the one to compare with first.
    pub arms: [String; 2],
    /// Their controllers.
    pub controllers: [String; 2],
    /// Routes that chose the controller; none: the host's default did.
    pub routes: Vec<String>,
    /// What the effects are effects of; with `all-transfers` as `comparison`, not within client networks.
    pub estimand: &'static str,
    /// When the first window began, in nanoseconds since 1970 (UTC).
    pub start_unix_ns: u64,
    /// Seed of the order of windows.
    pub seed: u64,
    /// Pairs of windows that were planned.
    pub pairs: u32,
    /// Length of a window.
    pub window_ns: u64,
    /// Time at the start of each window. Connections that begin in it do not count.
    pub burn_in_ns: u64,
    /// Payload from which a transfer is large.
    pub large_bytes: u64,
    /// Guardrail: how much more of the payload the second controller may retransmit, as a share.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub max_retransmitted_increase: f64,
    /// Why the test ended early.
    pub stopped: Option<String>,
    /// Settings that were left as somebody else had set them.
    pub left: Vec<String>,
    /// How often close events were lost, and short connections with them.
    pub close_events_lost: u64,
    /// The windows in which connections began to count.
    pub windows: Vec<WindowDocument>,
    /// Connections that did not count, by reason.
    pub left_out: LeftOut,
    /// What the second controller changes.
    pub effects: Vec<Effect>,
    /// The answer.
    pub verdict: Verdict,
}

/// A window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WindowDocument {
    /// Index of its pair.
    pub pair: u32,
    /// Name of its arm.
    pub arm: String,
    /// When connections began to count, in nanoseconds since 1970 (UTC).
    pub counted_from_unix_ns: u64,
    /// When they ceased to; null if the window was not completed.
    pub counted_until_unix_ns: Option<u64>,
    /// Large transfers counted.
    pub large: u64,
    /// Small transfers counted.
    pub small: u64,
    /// Counted connections that lived between two passes, so that no pass saw their controller.
    pub unseen: u64,
    /// The metrics over all counted transfers, in the order of `effects`; null with too few transfers.
    pub values: [Option<f64>; 6],
}

/// What only a live test knows.
#[derive(Clone, Debug, Default)]
pub(super) struct RunContext {
    /// Name of the test.
    pub(super) experiment: String,
    /// When the session began, in nanoseconds since 1970 (UTC).
    pub(super) session_unix_ns: u64,
    /// When its first window began.
    pub(super) start_unix_ns: u64,
    pub(super) stopped: Option<String>,
    pub(super) end: End,
    pub(super) left: Vec<String>,
    pub(super) close_events_lost: u64,
}

impl ProveDocument {
    /// The result from what connections did in each window.
    pub(super) fn of(spec: &ProveSpec, windows: &Windows, outcome: RunContext) -> Self {
        let schedule = spec.schedule();
        let (figures, left_out) = windows.figures();
        let effects = effects(&schedule, &figures, spec.seed);
        let begun = schedule.iter().zip(&figures).enumerate();
        let documents = begun.filter_map(|(index, (window, figures))| {
            let counted = windows.counted(index)?;
            let counted = (
                outcome.session_unix_ns + counted.0,
                counted.1.map(|end| outcome.session_unix_ns + end),
            );
            Some(WindowDocument::of(spec, *window, counted, figures.as_ref()))
        });
        Self {
            schema: PROVE_SCHEMA,
            experiment: outcome.experiment,
            arms: Arm::BOTH.map(|arm| spec.name(arm)),
            controllers: spec.controllers.clone(),
            routes: spec.routes.iter().map(ToString::to_string).collect(),
            estimand: ESTIMAND,
            start_unix_ns: outcome.start_unix_ns,
            seed: spec.seed,
            pairs: spec.pairs,
            window_ns: spec.window.as_nanos(),
            burn_in_ns: spec.burn_in.as_nanos(),
            large_bytes: spec.large.as_u64(),
            max_retransmitted_increase: spec.max_retransmitted_increase.as_f64(),
            stopped: outcome.stopped,
            left: outcome.left,
            close_events_lost: outcome.close_events_lost,
            windows: documents.collect(),
            left_out,
            verdict: Verdict::of(spec, &effects, outcome.end),
            effects,
        }
    }
}

impl WindowDocument {
    fn of(
        spec: &ProveSpec,
        window: Window,
        (from, until): (u64, Option<u64>),
        figures: Option<&WindowFigures>,
    ) -> Self {
        let count = |of: fn(&WindowFigures) -> usize| figures.map_or(0, of) as u64;
        Self {
            pair: window.pair,
            arm: spec.name(window.arm),
            counted_from_unix_ns: from,
            counted_until_unix_ns: until,
            large: count(WindowFigures::large),
            small: count(WindowFigures::small),
            unseen: figures.map_or(0, |figures| figures.unseen),
            values: Metric::ALL.map(|metric| of_window(metric, figures?)),
        }
    }
}
