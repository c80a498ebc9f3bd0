//! Names of metrics and statistics in scenarios, and the units of their bounds.

use super::question::{Metric, Quantity, Statistic};

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricUnit {
    /// Seconds, written as a time span.
    Seconds,
    /// Bits per second, written as a rate.
    BitsPerSecond,
    /// 0 to 1, written in percent.
    Share,
    /// A plain number.
    Number,
}

impl Metric {
    /// Every metric.
    pub(crate) const ALL: [Self; 18] = [
        Self::Completion,
        Self::FirstByte,
        Self::Goodput,
        Self::Bandwidth,
        Self::Utilisation,
        Self::Share,
        Self::Rtt,
        Self::RttTime,
        Self::QueueDelay,
        Self::Retransmitted,
        Self::Dropped,
        Self::Timeouts,
        Self::Jain,
        Self::PlaybackLatency,
        Self::Stutters,
        Self::Stalled,
        Self::PlayedRate,
        Self::Switches,
    ];

    /// How its values are written.
    pub(crate) const fn written_in(self) -> MetricUnit {
        match self {
            Self::Completion
            | Self::FirstByte
            | Self::Rtt
            | Self::RttTime
            | Self::QueueDelay
            | Self::PlaybackLatency => MetricUnit::Seconds,
            Self::Goodput | Self::Bandwidth | Self::PlayedRate => MetricUnit::BitsPerSecond,
            Self::Utilisation
            | Self::Share
            | Self::Retransmitted
            | Self::Dropped
            | Self::Stalled => MetricUnit::Share,
            Self::Timeouts | Self::Jain | Self::Stutters | Self::Switches => MetricUnit::Number,
        }
    }

    /// The traffic it requires, if not all.
    pub(crate) const fn needs(self) -> &'static str {
        match self {
            Self::Completion | Self::FirstByte | Self::Bandwidth => {
                "of transfers, requests, arrivals and players"
            }
            Self::PlaybackLatency | Self::Stutters | Self::Stalled => "of audio and video",
            Self::PlayedRate | Self::Switches => "of video",
            Self::Utilisation => "of classes that share a link",
            Self::Jain => "of several flows",
            Self::Goodput
            | Self::Share
            | Self::Rtt
            | Self::RttTime
            | Self::QueueDelay
            | Self::Retransmitted
            | Self::Dropped
            | Self::Timeouts => "of all traffic",
        }
    }

    /// The metric of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}

impl Statistic {
    /// The statistic of this name: `mean`, `sum`, or `p` with a percentage of less than 100.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "mean" => Some(Self::Mean),
            "sum" => Some(Self::Sum),
            _ => {
                let digits = name.strip_prefix('p')?;
                let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
                let plain = digits.starts_with(|first: char| first.is_ascii_digit())
                    && digits.bytes().all(plain);
                // Parsed in decimal: dividing two floating-point numbers would not always give the
                // same value.
                let share: f64 = format!("{digits}e-2").parse().ok().filter(|_| plain)?;
                (share > 0.0 && share < 1.0).then_some(Self::Quantile(share))
            }
        }
    }
}

impl Quantity {
    /// Parses `METRIC.STATISTIC`, such as `completion.p50`.
    ///
    /// # Errors
    ///
    /// Which part is unknown.
    pub(crate) fn named(text: &str) -> Result<Self, UnknownName<'_>> {
        let (metric, statistic) = text.split_once('.').unwrap_or((text, ""));
        let found = Metric::named(metric).ok_or(UnknownName::Metric(metric))?;
        let statistic = Statistic::named(statistic).ok_or(UnknownName::Statistic(statistic))?;
        Ok(Self { metric: found, statistic })
    }
}

/// An unknown part of a quantity's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownName<'a> {
    /// The metric.
    Metric(&'a str),
    /// The statistic.
    Statistic(&'a str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_found_by_its_name() {
        for metric in Metric::ALL {
            assert_eq!(Metric::named(metric.name()), Some(metric));
        }
        assert_eq!(Metric::named("speed"), None);
    }

    #[test]
    fn statistics_are_parsed_in_decimal() {
        assert_eq!(Statistic::named("p50"), Some(Statistic::Quantile(0.5)));
        assert_eq!(Statistic::named("p99.9"), Some(Statistic::Quantile(0.999)));
        assert_eq!(Statistic::named("mean"), Some(Statistic::Mean));
        assert_eq!(Statistic::named("sum"), Some(Statistic::Sum));
        for text in ["", "p", "p0", "p100", "p-1", "p5e1", "50", "P50", "median", "p.5"] {
            assert_eq!(Statistic::named(text), None, "{text}");
        }
    }
}
