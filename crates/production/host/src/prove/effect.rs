//! The difference between the arms, with an interval that comes from the pairs of windows.

use serde::Serialize;
use uncork_flow::mean;
use uncork_units::Rng;

use super::schedule::{Arm, Window};
use super::windows::{Traffic, WindowFigures};
use super::within::{Comparison, MIN_SAMPLES, Pair};

/// Fewer pairs have no 95 % interval: the widest that five differences can give has 94 %.
pub const MIN_PAIRS: usize = 6;
/// Number of subsets. Their means bound an interval.
const SUBSETS: usize = 4095;
/// Pairs up to which there are no more subsets than these.
const ENUMERATED: usize = 12;
/// Share of the subsets beyond each end of a 95 % interval.
const TAIL: f64 = 0.025;
/// Stream of the seed's random numbers.
const STREAM: u64 = 0x7375_6273;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Throughput of large transfers, 10th percentile.
    ThroughputP10,
    /// Throughput of large transfers, median.
    ThroughputP50,
    /// Throughput of large transfers, 90th percentile.
    ThroughputP90,
    /// Completion time of small transfers, median.
    CompletionP50,
    /// Completion time of small transfers, 90th percentile.
    CompletionP90,
    /// Share of the payload sent that was sent again.
    Retransmitted,
}

/// What the second arm changes in one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Effect {
    /// The metric.
    pub metric: Metric,
    /// Unit of `levels`.
    #[cfg_attr(test, schemars(extend("enum" = ["bit/s", "s", "share"])))]
    pub unit: &'static str,
    /// What is compared.
    pub comparison: Comparison,
    /// Share of the traffic in client networks with traffic in both windows of a pair; null without traffic.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub common: Option<f64>,
    /// Pairs that have a value in both windows.
    pub pairs: usize,
    /// The arms' means over these pairs: geometric, of shares arithmetic.
    pub levels: Option<[f64; 2]>,
    /// The second arm's level relative to the first, less 1; of shares their difference.
    pub change: Option<f64>,
    /// The ends of its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of no effect; null without an interval.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub p: Option<f64>,
    /// Why the interval is missing.
    pub missing: Option<String>,
}

/// Which transfers of a client network a metric is about.
pub(super) type SamplesOf = fn(&Traffic) -> &[f64];

impl Metric {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::ThroughputP10,
        Self::ThroughputP50,
        Self::ThroughputP90,
        Self::CompletionP50,
        Self::CompletionP90,
        Self::Retransmitted,
    ];

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThroughputP10 => "throughput of large transfers, p10",
            Self::ThroughputP50 => "throughput of large transfers, p50",
            Self::ThroughputP90 => "throughput of large transfers, p90",
            Self::CompletionP50 => "completion of small transfers, p50",
            Self::CompletionP90 => "completion of small transfers, p90",
            Self::Retransmitted => "retransmitted share of payload",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::ThroughputP10 | Self::ThroughputP50 | Self::ThroughputP90 => "bit/s",
            Self::CompletionP50 | Self::CompletionP90 => "s",
            Self::Retransmitted => "share",
        }
    }

    /// The transfers that it is a quantile of, and which; `None` of a share of payload.
    pub(super) const fn sample(self) -> Option<(SamplesOf, f64)> {
        const LARGE: SamplesOf = |traffic| &traffic.throughputs_bps;
        const SMALL: SamplesOf = |traffic| &traffic.completions_s;
        match self {
            Self::ThroughputP10 => Some((LARGE, 0.1)),
            Self::ThroughputP50 => Some((LARGE, 0.5)),
            Self::ThroughputP90 => Some((LARGE, 0.9)),
            Self::CompletionP50 => Some((SMALL, 0.5)),
            Self::CompletionP90 => Some((SMALL, 0.9)),
            Self::Retransmitted => None,
        }
    }

    /// On the scale on which the arms differ by a sum.
    fn on_scale(self, value: f64) -> f64 {
        if self == Self::Retransmitted { value } else { value.ln() }
    }

    fn off_scale(self, value: f64) -> f64 {
        if self == Self::Retransmitted { value } else { value.exp() }
    }

    fn change_of(self, difference: f64) -> f64 {
        if self == Self::Retransmitted { difference } else { difference.exp_m1() }
    }

    fn needs(self) -> String {
        let class = match self {
            Self::Retransmitted => return "traffic in both windows".to_owned(),
            Self::CompletionP50 | Self::CompletionP90 => "small",
            _ => "large",
        };
        format!("{MIN_SAMPLES} {class} transfers in each window")
    }
}

/// The effects on all metrics. `figures` has what complete windows measured, window by window as `schedule` has them.
pub fn effects(schedule: &[Window], figures: &[Option<WindowFigures>], seed: u64) -> Vec<Effect> {
    Metric::ALL.into_iter().map(|metric| effect(metric, schedule, figures, seed)).collect()
}

fn effect(
    metric: Metric,
    schedule: &[Window],
    figures: &[Option<WindowFigures>],
    seed: u64,
) -> Effect {
    let complete = pairs(schedule, figures);
    let (comparison, common) = Comparison::of(metric, &complete);
    let scaled: Vec<[f64; 2]> = complete
        .iter()
        .filter_map(|pair| comparison.values(metric, pair))
        .map(|values| values.map(|value| metric.on_scale(value)))
        .collect();
    let differences: Vec<f64> = scaled.iter().map(|[a, b]| b - a).collect();
    let level = |arm: Arm| mean(&scaled.iter().map(|pair| pair[arm.index()]).collect::<Vec<_>>());
    let levels = level(Arm::A).zip(level(Arm::B));
    let means = typical_values(&differences, seed);
    let missing = || {
        let (needs, has) = (metric.needs(), differences.len());
        format!("an interval needs {MIN_PAIRS} pairs with {needs}, and {has} of them have that")
    };
    Effect {
        metric,
        unit: metric.unit(),
        comparison,
        common,
        pairs: differences.len(),
        levels: levels.map(|(a, b)| [a, b].map(|level| metric.off_scale(level))),
        change: mean(&differences).map(|difference| metric.change_of(difference)),
        missing: means.is_none().then(missing),
        interval: means.as_deref().map(|means| ends(means).map(|end| metric.change_of(end))),
        p: means.as_deref().map(p_value),
    }
}

/// The pairs with two complete windows, A's window first.
fn pairs<'a>(schedule: &[Window], figures: &'a [Option<WindowFigures>]) -> Vec<Pair<'a>> {
    let two = schedule.chunks_exact(2).zip(figures.chunks_exact(2));
    two.filter_map(|(windows, figures)| {
        let (first, second) = (figures[0].as_ref()?, figures[1].as_ref()?);
        Some(if windows[0].arm == Arm::A { [first, second] } else { [second, first] })
    })
    .collect()
}

/// A 95 % interval of the centre of independent `differences`, each symmetric about it; `None` for fewer than
/// [`MIN_PAIRS`].
///
/// The random order makes a pair's difference symmetric about a constant effect, although other conditions change with time.
/// The means of all subsets of the differences then divide the line into parts that contain the centre with equal probability
/// (Hartigan, Using Subsample Values as Typical Values, JASA 64, 1969): no assumption about distribution or load. Of many
/// pairs it takes random subsets, for which the same holds.
pub fn interval(differences: &[f64], seed: u64) -> Option<[f64; 2]> {
    typical_values(differences, seed).map(|means| ends(&means))
}

/// The means of the subsets, in ascending order.
fn typical_values(differences: &[f64], seed: u64) -> Option<Vec<f64>> {
    if differences.len() < MIN_PAIRS {
        return None;
    }
    let mut means: Vec<f64> = if differences.len() <= ENUMERATED {
        let subsets = 1_u64..1 << differences.len();
        subsets.map(|subset| mean_where(differences, |index| subset >> index & 1 == 1)).collect()
    } else {
        let mut rng = Rng::new(seed, STREAM);
        let mut bits = 0;
        let mut coin = |index: usize| {
            bits = if index.is_multiple_of(64) { rng.next_u64() } else { bits >> 1 };
            bits & 1 == 1
        };
        let mut draw = || mean_where(differences, &mut coin);
        // An empty subset has no mean; it is one of 8192 or more.
        std::iter::repeat_with(&mut draw).filter(|mean| !mean.is_nan()).take(SUBSETS).collect()
    };
    means.sort_unstable_by(f64::total_cmp);
    Some(means)
}

/// The ends of the interval between typical values.
fn ends(means: &[f64]) -> [f64; 2] {
    let beyond = ((means.len() + 1) as f64 * TAIL) as usize;
    [means[beyond - 1], means[means.len() - beyond]]
}

/// Two-sided p-value of no effect: below 5 % if and only if the interval excludes zero.
fn p_value(means: &[f64]) -> f64 {
    let below = means.partition_point(|mean| *mean < 0.0);
    let above = means.len() - means.partition_point(|mean| *mean <= 0.0);
    let beyond = means.len() - below.max(above) + 1;
    (2.0 * beyond as f64 / (means.len() + 1) as f64).min(1.0)
}

/// NaN of none.
fn mean_where(differences: &[f64], mut has: impl FnMut(usize) -> bool) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for (index, difference) in differences.iter().enumerate() {
        if has(index) {
            sum += difference;
            count += 1;
        }
    }
    sum / f64::from(count)
}
