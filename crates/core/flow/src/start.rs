//! How the start of a connection went.

use serde::{Deserialize, Serialize};
use uncork_cc::{ResumeOutcome, StartReport};

/// The start of a connection: until its first slow start or Startup ended. A field is null if the source does not know
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemars"), derive(schemars::JsonSchema))]
pub struct StartRecord {
    /// The initial window.
    pub window_bytes: Option<u64>,
    /// Whether the initial window was paced.
    pub paced: Option<bool>,
    /// What ended the start: `loss`, `mark` (ECN), `timeout`, `delay` (the test of HyStart++ or SEARCH) or `plateau` (the rate of
    /// BBR); null if it went on to the end.
    pub exit: Option<StartExit>,
    /// The congestion window when the start ended.
    pub exit_window_bytes: Option<u64>,
    /// The bytes in flight when the start ended.
    pub exit_in_flight_bytes: Option<u64>,
    /// Payload sent in the start.
    pub sent_bytes: Option<u64>,
    /// Part of `sent_bytes` that was declared lost.
    pub lost_bytes: Option<u64>,
    /// Payload sent in the first two round trips.
    pub early_sent_bytes: Option<u64>,
    /// Part of `early_sent_bytes` that was declared lost, to be sent again.
    pub early_resent_bytes: Option<u64>,
    /// Round trips until 100 kB were acknowledged.
    pub rounds_to_100kb: Option<u32>,
    /// What became of the observations of an earlier connection (RFC 9959): `unused`, `used` or `retreated`; null
    /// without any.
    pub resume: Option<ResumeUse>,
    /// Age of these observations.
    pub resume_age_ns: Option<u64>,
}

/// What ended the start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemars"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StartExit {
    /// Packets were lost.
    Loss,
    /// Packets were marked (ECN).
    Mark,
    /// A retransmission timeout, or persistent congestion.
    Timeout,
    /// A longer round-trip time or a slower delivery, before a loss: HyStart++, SEARCH.
    Delay,
    /// The delivery rate stopped to grow: BBR.
    Plateau,
}

/// What became of the observations of an earlier connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemars"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResumeUse {
    /// The window did not jump.
    Unused,
    /// The window jumped.
    Used,
    /// The window jumped and met congestion.
    Retreated,
}

impl StartRecord {
    /// What an observer in the sender knows. Initial window, pacing and the age of a hint are the host's.
    pub fn of(report: &StartReport) -> Self {
        Self {
            exit: report.exit.map(StartExit::from),
            exit_window_bytes: report.exit_window,
            exit_in_flight_bytes: report.exit_in_flight,
            sent_bytes: Some(report.sent),
            lost_bytes: Some(report.lost),
            early_sent_bytes: Some(report.early_sent),
            early_resent_bytes: Some(report.early_lost),
            rounds_to_100kb: report.rounds_to_100kb.map(u32::from),
            resume: report.resume.map(ResumeUse::from),
            ..Self::default()
        }
    }
}

impl StartExit {
    const ALL: [Self; 5] = [Self::Loss, Self::Mark, Self::Timeout, Self::Delay, Self::Plateau];

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        use uncork_cc::StartExit as Exit;
        match self {
            Self::Loss => Exit::Loss.name(),
            Self::Mark => Exit::Mark.name(),
            Self::Timeout => Exit::Timeout.name(),
            Self::Delay => Exit::Delay.name(),
            Self::Plateau => Exit::Plateau.name(),
        }
    }

    /// The exit of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl ResumeUse {
    const ALL: [Self; 3] = [Self::Unused, Self::Used, Self::Retreated];

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Used => "used",
            Self::Retreated => "retreated",
        }
    }

    /// The outcome of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl From<uncork_cc::StartExit> for StartExit {
    fn from(exit: uncork_cc::StartExit) -> Self {
        use uncork_cc::StartExit as Exit;
        match exit {
            Exit::Loss => Self::Loss,
            Exit::Mark => Self::Mark,
            Exit::Timeout => Self::Timeout,
            Exit::Delay => Self::Delay,
            Exit::Plateau => Self::Plateau,
        }
    }
}

impl From<ResumeOutcome> for ResumeUse {
    fn from(outcome: ResumeOutcome) -> Self {
        match outcome {
            ResumeOutcome::Unused => Self::Unused,
            ResumeOutcome::Used => Self::Used,
            ResumeOutcome::Retreated => Self::Retreated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for exit in StartExit::ALL {
            assert_eq!(serde_json::to_value(exit).unwrap(), exit.name());
            assert_eq!(StartExit::named(exit.name()), Some(exit));
        }
        for outcome in ResumeUse::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
            assert_eq!(ResumeUse::named(outcome.name()), Some(outcome));
        }
        assert_eq!((StartExit::named("luck"), ResumeUse::named("")), (None, None));
    }
}
