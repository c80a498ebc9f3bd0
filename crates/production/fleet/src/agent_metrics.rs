//! What an agent's polls were, as metrics.

use crate::{HostState, MetricsText, Report};

/// The states that a report has, by their names in metrics.
pub(crate) const STATES: [(&str, HostState); 5] = [
    ("active", HostState::Active),
    ("waiting", HostState::Waiting),
    ("failed", HostState::Failed),
    ("refused", HostState::Refused),
    ("away", HostState::Away),
];

/// Counts the polls of this process. Times are those of the host's clock, so that a reader computes ages.
#[derive(Clone, Debug, Default)]
pub struct AgentMetrics {
    polls: u64,
    failed_polls: u64,
    /// When the store was read last; 0 if never.
    store_unix_s: u64,
    undelivered_reports: u64,
    last: Option<Report>,
}

impl AgentMetrics {
    /// Counts a poll, by its report. `is_delivered` says whether the store has the report, or needs none.
    pub fn record(&mut self, report: &Report, is_delivered: bool) {
        self.polls += 1;
        self.undelivered_reports += u64::from(!is_delivered);
        if !matches!(report.state, HostState::Active | HostState::Waiting) {
            self.failed_polls += 1;
        }
        if report.state != HostState::Away {
            self.store_unix_s = report.unix_s;
        }
        self.last = Some(report.clone());
    }

    /// The text for Prometheus; empty before the first poll.
    pub fn text(&self) -> String {
        let Some(report) = &self.last else { return String::new() };
        let mut text = MetricsText::new("uncork_agent_");
        text.counter("polls_total", "Polls of the store.", self.polls);
        let help = "Polls after which the host does not run what it should.";
        text.counter("failed_polls_total", help, self.failed_polls);
        let help = "Reports that the store did not take.";
        text.counter("undelivered_reports_total", help, self.undelivered_reports);
        text.gauge("poll_timestamp_seconds", "When the last poll was.", report.unix_s as f64);
        let help = "When the store was read last; 0 is never.";
        text.gauge("store_timestamp_seconds", help, self.store_unix_s as f64);
        let states = STATES.map(|(name, state)| (name, usize::from(report.state == state)));
        text.gauges("state", "The state after the last poll.", "state", states);
        of_versions(report, &mut text);
        let help = "TCP controllers of the active version that the kernel lacks.";
        text.gauge("unsupported_controllers", help, report.unsupported.len() as f64);
        text.gauge("rollout_serial", "The serial of the accepted rollout.", report.serial as f64);
        text.into_text()
    }
}

fn of_versions(report: &Report, text: &mut MetricsText) {
    let wanted = report.wanted.unwrap_or(0) as f64;
    text.gauge("wanted_version", "The version that the host should run; 0 is its default.", wanted);
    let help = "The active version; 0 is the default of the host.";
    let Some(there) = &report.active else { return text.gauge("active_version", help, 0.) };
    text.gauge("active_version", help, there.version as f64);
    let since = there.since_unix_s as f64;
    text.gauge("active_timestamp_seconds", "When the version became active.", since);
    let expires = there.expires_unix_s as f64;
    text.gauge("expires_timestamp_seconds", "When the active version expires.", expires);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ActiveVersion;

    fn report(unix_s: u64, state: HostState) -> Report {
        let active = ActiveVersion {
            version: 7,
            sha256: "ab".into(),
            since_unix_s: 1000,
            expires_unix_s: 605_800,
        };
        Report {
            schema: String::new(),
            host: "edge1".parse().unwrap(),
            place: None,
            agent: String::new(),
            kernel: String::new(),
            unix_s,
            every_s: 600,
            serial: 9,
            wanted: Some(8),
            state,
            active: Some(active),
            error: None,
            unsupported: vec!["bbr3".into()],
        }
    }

    fn value(text: &str, name: &str) -> f64 {
        let prefix = format!("uncork_agent_{name} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&prefix));
        value.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
    }

    #[test]
    fn metrics_before_the_first_poll_are_empty() {
        assert_eq!(AgentMetrics::default().text(), "");
    }

    #[test]
    fn metrics_after_polls_have_counts_times_and_versions() {
        let mut metrics = AgentMetrics::default();
        metrics.record(&report(1060, HostState::Active), true);
        metrics.record(&report(1120, HostState::Refused), false);
        metrics.record(&report(1180, HostState::Away), false);
        let text = metrics.text();
        for (name, expected) in [
            ("polls_total", 3.),
            ("failed_polls_total", 2.),
            ("undelivered_reports_total", 2.),
            ("poll_timestamp_seconds", 1180.),
            ("store_timestamp_seconds", 1120.),
            ("state{state=\"away\"}", 1.),
            ("state{state=\"active\"}", 0.),
            ("active_version", 7.),
            ("wanted_version", 8.),
            ("active_timestamp_seconds", 1000.),
            ("expires_timestamp_seconds", 605_800.),
            ("unsupported_controllers", 1.),
            ("rollout_serial", 9.),
        ] {
            assert!((value(&text, name) - expected).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn metrics_of_a_host_on_its_default_have_version_0_and_no_expiry() {
        let mut metrics = AgentMetrics::default();
        let report = Report { active: None, wanted: None, ..report(1060, HostState::Active) };
        metrics.record(&report, true);
        let text = metrics.text();
        assert_eq!((value(&text, "active_version"), value(&text, "wanted_version")), (0., 0.));
        assert!(!text.contains("expires_timestamp_seconds"), "{text}");
    }
}
