//! The result of a test, for programs.

use serde::Serialize;

use super::blocks::{BlockFigures, Blocks, LeftOut};
use super::effect::{Effect, Metric, effects};
use super::schedule::{Arm, Block};
use super::spec::ProveSpec;

/// Schema of a [`ProveDocument`].
pub const PROVE_SCHEMA: &str = "uncork.host-prove/1";

const ESTIMAND: &str = "total effect on this host in this time: all its connections run the second controller, compared with all \
                        running the first";

/// The result of a test.
#[derive(Clone, Debug, Serialize)]
pub struct ProveDocument {
    /// [`PROVE_SCHEMA`].
    pub schema: &'static str,
    /// Its name in the records (`arm_experiment`).
    pub experiment: String,
    /// The names of the arms in the records, the one to compare with first.
    pub arms: [String; 2],
    /// Their controllers.
    pub controllers: [String; 2],
    /// Routes that chose the controller; none: the host's default did.
    pub routes: Vec<String>,
    /// What the effects are effects of.
    pub estimand: &'static str,
    /// When the first block began, in nanoseconds since 1970 (UTC).
    pub start_unix_ns: u64,
    /// Seed of the order of blocks.
    pub seed: u64,
    /// Pairs of blocks that were planned.
    pub pairs: u32,
    /// Length of a block.
    pub block_ns: u64,
    /// Time at the start of each block whose connections do not count.
    pub burn_in_ns: u64,
    /// Payload from which a transfer is large.
    pub large_bytes: u64,
    /// Why the test ended early.
    pub stopped: Option<String>,
    /// Settings that were left as somebody else had set them.
    pub left: Vec<String>,
    /// How often notices of ended connections were lost, and short connections with them.
    pub notices_lost: u64,
    /// The blocks that began.
    pub blocks: Vec<BlockDocument>,
    /// Connections that did not count, by reason.
    pub left_out: LeftOut,
    /// What the second controller changes.
    pub effects: Vec<Effect>,
    /// The answer.
    pub verdict: Verdict,
}

/// A block.
#[derive(Clone, Debug, Serialize)]
pub struct BlockDocument {
    /// Index of its pair.
    pub pair: u32,
    /// Name of its arm.
    pub arm: String,
    /// When connections began to count, in nanoseconds since 1970 (UTC).
    pub counted_from_unix_ns: u64,
    /// When they ceased to; null if the block was not completed.
    pub counted_until_unix_ns: Option<u64>,
    /// Large transfers counted.
    pub large: u64,
    /// Small transfers counted.
    pub small: u64,
    /// Counted connections that lived between two passes.
    pub unseen: u64,
    /// The metrics, in the order of `effects`; null with too few transfers.
    pub values: [Option<f64>; 6],
}

/// The answer to whether the second controller is better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// The one metric that decides, fixed before the test: the median throughput of large transfers if there are enough of them,
    /// else the median completion of small ones.
    pub metric: Metric,
}

/// Whether the second controller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The interval is on its side.
    Better,
    /// The interval is on the other's side.
    Worse,
    /// The interval contains zero.
    NotShown,
    /// There is no interval.
    Open,
}

/// What only a live test knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Name of the test.
    pub(super) experiment: String,
    /// When the session began, in nanoseconds since 1970 (UTC).
    pub(super) session_unix_ns: u64,
    /// When its first block began.
    pub(super) start_unix_ns: u64,
    pub(super) stopped: Option<String>,
    pub(super) left: Vec<String>,
    pub(super) notices_lost: u64,
}

impl ProveDocument {
    /// The result from what connections did in each block.
    pub(super) fn of(spec: &ProveSpec, blocks: &Blocks, outcome: Outcome) -> Self {
        let schedule = spec.schedule();
        let (figures, left_out) = blocks.figures();
        let effects = effects(&schedule, &figures, spec.seed);
        let begun = schedule.iter().zip(&figures).enumerate();
        let documents = begun.filter_map(|(index, (block, figures))| {
            let window = blocks.window(index)?;
            let window = (
                outcome.session_unix_ns + window.0,
                window.1.map(|end| outcome.session_unix_ns + end),
            );
            Some(BlockDocument::of(spec, *block, window, figures.as_ref()))
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
            block_ns: spec.block.as_nanos(),
            burn_in_ns: spec.burn_in.as_nanos(),
            large_bytes: spec.large.as_u64(),
            stopped: outcome.stopped,
            left: outcome.left,
            notices_lost: outcome.notices_lost,
            blocks: documents.collect(),
            left_out,
            verdict: Verdict::of(&effects),
            effects,
        }
    }
}

impl BlockDocument {
    fn of(
        spec: &ProveSpec,
        block: Block,
        (from, until): (u64, Option<u64>),
        figures: Option<&BlockFigures>,
    ) -> Self {
        let count = |of: fn(&BlockFigures) -> usize| figures.map_or(0, of) as u64;
        Self {
            pair: block.pair,
            arm: spec.name(block.arm),
            counted_from_unix_ns: from,
            counted_until_unix_ns: until,
            large: count(|figures| figures.throughputs_bps.len()),
            small: count(|figures| figures.completions_s.len()),
            unseen: figures.map_or(0, |figures| figures.unseen),
            values: Metric::ALL.map(|metric| metric.of(figures?)),
        }
    }
}

impl Verdict {
    /// One metric decides: of six intervals of 95 %, one in four sets would have one that excludes zero by chance.
    fn of(effects: &[Effect]) -> Self {
        let deciding = [Metric::ThroughputP50, Metric::CompletionP50];
        let mut known = deciding.iter().filter_map(|metric| {
            let effect = effects.iter().find(|effect| effect.metric == *metric)?;
            Some((*metric, effect.interval?))
        });
        let Some((metric, [low, high])) = known.next() else {
            return Self { answer: Answer::Open, metric: Metric::ThroughputP50 };
        };
        let (is_more, is_less) = (low > 0.0, high < 0.0);
        let answer = match metric {
            Metric::ThroughputP50 if is_more => Answer::Better,
            Metric::ThroughputP50 if is_less => Answer::Worse,
            Metric::CompletionP50 if is_less => Answer::Better,
            Metric::CompletionP50 if is_more => Answer::Worse,
            _ => Answer::NotShown,
        };
        Self { answer, metric }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(metric: Metric, interval: Option<[f64; 2]>) -> Effect {
        let (unit, missing) = ("s", None);
        Effect { metric, unit, pairs: 6, levels: None, change: None, interval, missing }
    }

    #[test]
    fn more_throughput_or_less_time_is_better() {
        use Metric::{CompletionP50, ThroughputP10, ThroughputP50};
        for (throughput, completion, expected) in [
            (Some([0.1, 0.2]), Some([0.1, 0.2]), (Answer::Better, ThroughputP50)),
            (Some([-0.2, -0.1]), None, (Answer::Worse, ThroughputP50)),
            (Some([-0.1, 0.1]), Some([0.1, 0.2]), (Answer::NotShown, ThroughputP50)),
            (None, Some([-0.2, -0.1]), (Answer::Better, CompletionP50)),
            (None, Some([0.1, 0.2]), (Answer::Worse, CompletionP50)),
            (None, None, (Answer::Open, ThroughputP50)),
        ] {
            let effects = [
                effect(ThroughputP10, Some([0.3, 0.4])),
                effect(ThroughputP50, throughput),
                effect(CompletionP50, completion),
            ];
            let Verdict { answer, metric } = Verdict::of(&effects);
            assert_eq!((answer, metric), expected);
        }
    }
}
