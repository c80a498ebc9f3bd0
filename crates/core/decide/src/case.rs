//! The input of the rules. The JSON of `conformance/decisions.json` has the same names.

use crate::distribution::{NORMAL_975, quantile, tail};

/// An effect on the primary measure, on the logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Logarithm of the ratio, with the sign turned so that positive is better.
    pub gain: f64,
    /// Standard error of `gain`, above zero.
    pub error: f64,
    /// Degrees of freedom of `error`; infinite: normal.
    pub df: f64,
    /// Two-sided p-value of no effect; `None`: by Student's t.
    pub p: Option<f64>,
}

impl Estimate {
    /// An estimate with the p-value of another test. Its interval by Student's t at 1 - `alpha` contains `interval`.
    pub fn of_interval(gain: f64, interval: [f64; 2], alpha: f64, df: f64, p: f64) -> Self {
        let half = (gain - interval[0]).max(interval[1] - gain);
        let error = (half / quantile(1.0 - alpha / 2.0, df)).max(f64::MIN_POSITIVE);
        Self { gain, error, df, p: Some(p) }
    }

    /// Two-sided p-value of no effect.
    pub fn p_value(&self) -> f64 {
        self.p.unwrap_or_else(|| 2.0 * tail(self.gain.abs() / self.error, self.df))
    }

    /// Two-sided interval at level 1 - `alpha`.
    pub fn interval(&self, alpha: f64) -> [f64; 2] {
        let half = quantile(1.0 - alpha / 2.0, self.df) * self.error;
        [self.gain - half, self.gain + half]
    }

    /// Standard deviation of a normal with a 95 % interval as wide as that of Student's t.
    pub(crate) fn normal_error(&self) -> f64 {
        self.error * quantile(0.975, self.df) / NORMAL_975
    }
}

/// One limit in one group. All numbers are in the limit's unit; positive is worse.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guardrail {
    /// Name of the measure.
    pub measure: String,
    /// How much worse the measure may get: a part of the control's value, or points of a share.
    pub limit: f64,
    /// How much worse it got, with its two-sided interval at the case's level; `None`: no estimate.
    pub harm: Option<Harm>,
    /// Interval that holds at every look (a confidence sequence).
    pub valid: Option<[f64; 2]>,
}

/// An estimate of harm, for one planned look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Harm {
    /// How much worse the measure got.
    pub value: f64,
    /// Its two-sided interval.
    pub interval: [f64; 2],
    /// Degrees of freedom of the interval; infinite: normal.
    pub df: f64,
    /// One-sided p-value of the limit being kept; `None`: by Student's t from the interval.
    pub p: Option<f64>,
}

/// All clients, or one cell such as a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Of all units. Shares of overlapping cells add up to more than 1.
    pub share: f64,
    /// The effect on the primary measure.
    pub estimate: Option<Estimate>,
    /// Its limits.
    pub guardrails: Vec<Guardrail>,
}

/// Why records give no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A check of the records failed.
    Blocked,
    /// Records of this kind prove nothing.
    Refused,
    /// Both arms run the same.
    AaTest,
}

/// All that a decision depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// All clients.
    pub whole: Group,
    /// The values of the key that decides.
    pub cells: Vec<Group>,
    /// Smallest relative gain that is worth a change.
    pub worth: f64,
    /// Confidence level of guardrails' intervals.
    pub level: f64,
    /// Two-sided p-value below which the primary measure counts as decided at this look.
    pub alpha: f64,
    /// Whether this is the last planned look: then guardrails' fixed intervals count.
    pub is_final: bool,
    /// Guardrails with an estimate in the cells of other keys: any of them could give the alarm, too.
    pub other_tests: usize,
    /// Why these records give no verdict.
    pub block: Option<Block>,
}

impl Case {
    /// The last planned look, without cells: worth 1 %, intervals of 95 %.
    pub fn of(whole: Group) -> Self {
        let cells = Vec::new();
        Self {
            whole,
            cells,
            worth: 0.01,
            level: 0.95,
            alpha: 0.05,
            is_final: true,
            other_tests: 0,
            block: None,
        }
    }
}
