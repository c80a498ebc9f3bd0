//! Comparisons of controllers, as data.

use serde::{Deserialize, Serialize};

use super::document::Estimate;

/// A controller compared with a baseline, for one class in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// Class.
    pub class: String,
    /// Class of the baseline: the same, or another one on the same links.
    pub baseline_class: String,
    /// Index of the cell in `cells`.
    pub cell: usize,
    /// Values of the other axes; empty if there are none.
    pub place: String,
    /// Controller, or the name of an axis value that sets controllers.
    pub choice: String,
    /// Baseline: the first of the choices.
    pub baseline: String,
    /// Classes that run `choice`, if `class` is not one of them; else empty.
    pub of: String,
    /// Compared metric: `completion_p50`.
    pub metric: String,
    /// Unit of `value` and `baseline_value`.
    pub unit: String,
    /// Whether smaller values are better.
    pub less_is_better: bool,
    /// Value with the choice; null if nothing could be measured.
    pub value: Option<f64>,
    /// Value with the baseline.
    pub baseline_value: Option<f64>,
    /// If both sides share a link in the same runs: the percentage that one flow with the choice has
    /// of what all flows of the link deliver; else null.
    #[serde(default)]
    pub share: Option<f64>,
    /// The same of one flow with the baseline.
    #[serde(default)]
    pub baseline_share: Option<f64>,
    /// The least and the largest `share` of a run, if it depends on which flow starts first; else null.
    #[serde(default)]
    pub share_range: Option<[f64; 2]>,
    /// The same of one flow with the baseline.
    #[serde(default)]
    pub baseline_share_range: Option<[f64; 2]>,
    /// `value` / `baseline_value`, with its 95 % interval.
    pub ratio: Option<Estimate>,
    /// Result of the comparison.
    pub kind: AnswerKind,
    /// Transfers with the choice.
    pub transfers: Transfers,
    /// Transfers with the baseline.
    pub baseline_transfers: Transfers,
    /// Costs of both sides.
    pub prices: Vec<Price>,
}

impl Answer {
    /// The shares of the choice and of the baseline over the orders of starts, if one of them depends on
    /// the order.
    pub fn shares_by_order(&self) -> Option<[[f64; 2]; 2]> {
        self.share_range.or(self.baseline_share_range)?;
        let always = |share: f64| [share, share];
        let own = self.share_range.or(self.share.map(always))?;
        Some([own, self.baseline_share_range.or(self.baseline_share.map(always))?])
    }

    /// Whether another order of starts may give the other side more.
    pub fn is_by_order(&self) -> bool {
        let overlap = |[own, other]: [[f64; 2]; 2]| own[0] <= other[1] && other[0] <= own[1];
        self.shares_by_order().is_some_and(overlap)
    }

    /// The least and the largest ratio: of the shares over the orders of starts, if these decide.
    pub(super) fn ratios(&self) -> Option<[f64; 2]> {
        let mean = || self.ratio.map(|ratio| [ratio.value, ratio.value]);
        let of_shares = |[own, other]: [[f64; 2]; 2]| [own[0] / other[1], own[1] / other[0]];
        self.shares_by_order().map(of_shares).or_else(mean)
    }
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// The choice is better.
    Better,
    /// The choice is worse.
    Worse,
    /// Both are equal within 1 %.
    Alike,
    /// Undecided: the interval contains 1, or there is none.
    Open,
    /// The order of starts decides: the ranges of both sides' shares overlap.
    ByOrder,
    /// There is nothing to compare.
    Unknown,
}

/// Transfers of limited size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Transfers {
    /// Started.
    pub all: u64,
    /// Finished.
    pub finished: u64,
}

/// A cost of the choice and of the baseline. If both share a link in the same runs, the side that
/// gets more has Jain's index of all their flows, and the other side 1, as of equal flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Price {
    /// Another class on the same links; empty if it is the class of the answer.
    pub class: String,
    /// `retransmitted_mean`, `queue_delay_p95`, `jain_mean`, or the other class's metric.
    pub metric: String,
    /// Unit of both values.
    pub unit: String,
    /// Whether smaller values are better.
    pub less_is_better: bool,
    /// Value with the choice.
    pub value: f64,
    /// Value with the baseline.
    pub baseline_value: f64,
    /// Side with markedly higher cost; null if neither.
    pub payer: Option<Payer>,
}

/// A side of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Payer {
    /// The choice.
    Choice,
    /// The baseline.
    Baseline,
}
