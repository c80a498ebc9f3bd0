//! Names and units of metrics in documents and texts.

use uncork_report::lab::{Better, Estimate, quantity};

use crate::scenario::{Metric, MetricUnit, Quantity, Statistic};

impl Metric {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::FirstByte => "first_byte",
            Self::Goodput => "goodput",
            Self::Bandwidth => "bandwidth",
            Self::Utilisation => "utilisation",
            Self::Share => "share",
            Self::Rtt => "rtt",
            Self::RttTime => "rtt_time",
            Self::QueueDelay => "queue_delay",
            Self::Retransmitted => "retransmitted",
            Self::Dropped => "dropped",
            Self::Timeouts => "timeouts",
            Self::Jain => "jain",
            Self::PlaybackLatency => "playback_latency",
            Self::Stutters => "stutters",
            Self::Stalled => "stalled",
            Self::PlayedRate => "played_rate",
            Self::Switches => "switches",
        }
    }

    /// Whether higher or lower is better. Not defined for shares, which are another flow's loss.
    pub(crate) fn better(self) -> Option<Better> {
        match self {
            Self::Goodput | Self::Bandwidth | Self::Utilisation | Self::Jain | Self::PlayedRate => {
                Some(Better::Higher)
            }
            Self::Completion
            | Self::FirstByte
            | Self::Rtt
            | Self::RttTime
            | Self::QueueDelay
            | Self::Retransmitted
            | Self::Dropped
            | Self::Timeouts
            | Self::PlaybackLatency
            | Self::Stutters
            | Self::Stalled => Some(Better::Lower),
            Self::Share | Self::Switches => None,
        }
    }

    /// The unit in documents, and the factor to convert a value to it.
    pub(crate) fn unit(self) -> (&'static str, f64) {
        match self.written_in() {
            MetricUnit::Seconds => ("s", 1.0),
            MetricUnit::BitsPerSecond => ("bit/s", 1.0),
            MetricUnit::Share => ("%", 100.0),
            MetricUnit::Number => ("", 1.0),
        }
    }

    /// The unit in figures and the factor to convert a value to it.
    pub(crate) fn figure_unit(self) -> (&'static str, f64) {
        match (self, self.written_in()) {
            (Self::Rtt | Self::RttTime | Self::QueueDelay, _) => ("ms", 1e3),
            (_, MetricUnit::BitsPerSecond) => ("Mbit/s", 1e-6),
            _ => self.unit(),
        }
    }
}

impl Statistic {
    /// Its name in files: `p50`, `p99.9`, `mean`, `sum`.
    pub fn name(self) -> String {
        match self {
            Self::Mean => "mean".into(),
            Self::Sum => "sum".into(),
            // Thousandths of a percent: removes rounding errors of binary fractions.
            Self::Quantile(quantile) => format!("p{}", (quantile * 1e5).round() / 1e3),
        }
    }
}

impl Quantity {
    /// Its name in files, such as `completion_p50`.
    pub fn name(self) -> String {
        format!("{}_{}", self.metric.name(), self.statistic.name())
    }

    /// The unit in documents and the conversion factor; quotients have none.
    pub(crate) fn unit(self, is_quotient: bool) -> (&'static str, f64) {
        if is_quotient { ("", 1.0) } else { self.metric.unit() }
    }

    /// [`Metric::figure_unit`]; quotients have none.
    pub(crate) fn figure_unit(self, is_quotient: bool) -> (&'static str, f64) {
        if is_quotient { ("", 1.0) } else { self.metric.figure_unit() }
    }
}

/// An estimate in another unit.
pub(crate) fn scaled(estimate: Estimate, scale: f64) -> Estimate {
    let times = |value: f64| value * scale;
    Estimate {
        value: times(estimate.value),
        low: estimate.low.map(times),
        high: estimate.high.map(times),
        n: estimate.n,
    }
}

/// An estimate as text, with its interval if it has one.
pub(crate) fn shown_estimate(estimate: &Estimate, unit: &str) -> String {
    let value = quantity(estimate.value, unit);
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            format!("{value} ({} to {})", quantity(low, unit), quantity(high, unit))
        }
        _ => value,
    }
}

/// A quotient as a change: 1.1 as +10 %.
pub(crate) fn change(quotient: f64) -> String {
    match ((quotient - 1.0) * 1e3).round() {
        0.0 => "0 %".to_owned(),
        tenths => format!("{:+.1} %", tenths / 10.0),
    }
}

/// An estimated quotient as a change, with its interval if it has one.
pub(crate) fn shown_change(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            format!("{} ({} to {})", change(estimate.value), change(low), change(high))
        }
        _ => change(estimate.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_those_in_files() {
        let quantity = |quantile| Quantity {
            metric: Metric::PlaybackLatency,
            statistic: Statistic::Quantile(quantile),
        };
        let names = [0.5, 0.01, 0.999].map(|quantile| quantity(quantile).name());
        assert_eq!(
            names,
            ["playback_latency_p50", "playback_latency_p1", "playback_latency_p99.9"]
        );
    }

    #[test]
    fn changes_have_a_sign() {
        let estimate = |value, interval: Option<(f64, f64)>| Estimate {
            value,
            low: interval.map(|interval| interval.0),
            high: interval.map(|interval| interval.1),
            n: 10,
        };
        assert_eq!(shown_change(&estimate(1.1, Some((0.95, 1.25)))), "+10.0 % (-5.0 % to +25.0 %)");
        assert_eq!(shown_change(&estimate(0.5, None)), "-50.0 %");
        assert_eq!(shown_change(&estimate(0.9999, None)), "0 %");
    }
}
