//! Which hosts run which version: `docs/schemas/fleet-status-1.json`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use uncork_config::visible;

use crate::agent_metrics::STATES;
use crate::{ActiveVersion, HostName, HostState, MetricsText, Report, Rollout, Stage, Target};

const SCHEMA: &str = "uncork.fleet-status/1";
/// The state of a host is unknown after this number of missing reports.
const MISSED: u64 = 3;
/// A clock that is off by less is not named: a report takes a while to the store.
const CLOCK_S: u64 = 60;

/// A host's report in the store, with the time of the store.
#[derive(Clone, Debug)]
pub struct Reported {
    /// The host, by the object's name.
    pub host: HostName,
    /// The report, or why it cannot be read.
    pub report: Result<(Report, u64), String>,
}

/// What `uncork fleet status` shows.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetStatus {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// When the store was read.
    pub unix_s: u64,
    /// The serial of the rollout.
    pub serial: u64,
    /// The version of the hosts that no stage has; null is the default of each host.
    pub stable: Option<VersionStatus>,
    /// The version that goes out.
    pub next: Option<NextStatus>,
    /// Whether all hosts stay where they are.
    pub frozen: bool,
    /// The highest version that was rolled back.
    pub rolled_back: Option<u64>,
    /// How many hosts that report run each version; `default` is that of the host.
    pub versions: BTreeMap<String, usize>,
    /// The hosts that have reported.
    pub hosts: Vec<HostStatus>,
    /// What needs attention. If there is any, the exit status is 1.
    pub attention: Vec<String>,
}

/// A version.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VersionStatus {
    /// Its number.
    pub version: u64,
    /// Until when it counts.
    pub expires_unix_s: u64,
}

/// A version that goes out.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NextStatus {
    /// Its number.
    pub version: u64,
    /// Until when it counts.
    pub expires_unix_s: u64,
    /// Its stages, such as `10%` or `place:fra1`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub stages: Vec<Stage>,
    /// The index of the current one.
    pub stage: usize,
    /// Since when.
    pub since_unix_s: u64,
    /// How long it is held at least.
    pub hold_s: u64,
}

/// A host.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostStatus {
    /// Its name.
    #[cfg_attr(test, schemars(with = "String"))]
    pub host: HostName,
    /// Its place.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub place: Option<HostName>,
    /// The version that it shall run by the rollout; null is its default.
    pub wanted: Option<u64>,
    /// The version that its report is about: perhaps one of an earlier rollout.
    #[serde(skip)]
    reported: Option<u64>,
    /// Until when its report counts.
    #[serde(skip)]
    counts_until_unix_s: u64,
    /// The active version; null is its default.
    pub active: Option<ActiveVersion>,
    /// What it says of that; null if its report cannot be read.
    pub state: Option<HostState>,
    /// Whether its reports have stopped.
    pub unknown: bool,
    /// The age of its report in seconds, by the clock of the reader.
    pub age_s: Option<u64>,
    /// How many seconds its clock is ahead of the store's, if it is off.
    pub clock_s: Option<i64>,
    /// Whether it runs another version than it shall. Frozen hosts stay where they are.
    pub drift: bool,
    /// Whether it still does so after a time in which it must have seen the rollout.
    #[serde(skip)]
    is_late: bool,
    /// TCP controllers of its version that its kernel does not have.
    pub unsupported: Vec<String>,
    /// Its kernel's release.
    pub kernel: Option<String>,
    /// Why its state is what it is.
    pub error: Option<String>,
}

impl HostStatus {
    fn new(reported: Reported, rollout: &Rollout, now: u64) -> Self {
        let host = reported.host;
        let (report, modified) = match reported.report {
            Ok(read) => read,
            Err(error) => return Self::unreadable(host, rollout, error),
        };
        let wanted = rollout.target_of(&host, report.place.as_ref());
        let age_s = now.saturating_sub(modified);
        let clock = report.unix_s.cast_signed().saturating_sub(modified.cast_signed());
        let runs = report.active.as_ref().map(|there| &there.sha256);
        let drift = !rollout.frozen && runs != wanted.map(|target| &target.sha256);
        let is_late = drift && modified > rollout.made_unix_s.saturating_add(report.every_s);
        let counts_until_unix_s = modified.saturating_add(report.every_s.saturating_mul(MISSED));
        Self {
            wanted: wanted.map(|target| target.version),
            reported: report.wanted,
            state: Some(report.state),
            counts_until_unix_s,
            unknown: now > counts_until_unix_s,
            age_s: Some(age_s),
            clock_s: (clock.unsigned_abs() > CLOCK_S).then_some(clock),
            drift,
            is_late,
            unsupported: report.unsupported,
            kernel: Some(report.kernel),
            error: report.error,
            place: report.place,
            active: report.active,
            host,
        }
    }

    fn unreadable(host: HostName, rollout: &Rollout, error: String) -> Self {
        let wanted = rollout.target_of(&host, None).map(|target| target.version);
        Self {
            host,
            place: None,
            wanted,
            reported: None,
            counts_until_unix_s: 0,
            active: None,
            state: None,
            unknown: true,
            age_s: None,
            clock_s: None,
            drift: true,
            is_late: false,
            unsupported: Vec::new(),
            kernel: None,
            error: Some(error),
        }
    }

    /// Whether it was unknown at this time already, and has not reported since.
    pub(crate) fn is_gone_since(&self, unix_s: u64) -> bool {
        self.counts_until_unix_s < unix_s
    }

    pub(crate) fn runs(&self, version: u64) -> bool {
        let is_there = self.active.as_ref().is_some_and(|there| there.version == version);
        is_there && self.state == Some(HostState::Active)
    }

    /// Whether its latest report says that it cannot activate this version, also if the host is unknown by now. A report about
    /// another version says nothing of this one.
    pub(crate) fn is_failing(&self, version: u64) -> bool {
        let fails = matches!(self.state, Some(HostState::Failed | HostState::Refused));
        fails && self.reported == Some(version)
    }
}

impl FleetStatus {
    /// The state of a fleet, by its rollout and reports.
    pub fn new(rollout: &Rollout, reported: Vec<Reported>, now: u64) -> Self {
        let hosts: Vec<HostStatus> =
            reported.into_iter().map(|it| HostStatus::new(it, rollout, now)).collect();
        let mut versions = BTreeMap::new();
        for host in hosts.iter().filter(|host| !host.unknown) {
            let there = host.active.as_ref().map(|there| there.version.to_string());
            *versions.entry(there.unwrap_or_else(|| "default".to_owned())).or_default() += 1;
        }
        let version = |target: &Target| VersionStatus {
            version: target.version,
            expires_unix_s: target.expires_unix_s,
        };
        let next = rollout.next.as_ref().map(|next| NextStatus {
            version: next.target.version,
            expires_unix_s: next.target.expires_unix_s,
            stages: next.stages.clone(),
            stage: next.stage,
            since_unix_s: next.since_unix_s,
            hold_s: next.hold_s,
        });
        let mut status = Self {
            schema: SCHEMA,
            unix_s: now,
            serial: rollout.serial,
            stable: rollout.stable.as_ref().map(version),
            next,
            frozen: rollout.frozen,
            rolled_back: rollout.rolled_back,
            versions,
            hosts,
            attention: Vec::new(),
        };
        status.attention = status.needs_attention();
        status
    }

    fn count(&self, is_it: impl Fn(&HostStatus) -> bool) -> usize {
        self.hosts.iter().filter(|host| is_it(host)).count()
    }

    /// What an operator has to look at, with the first hosts.
    fn needs_attention(&self) -> Vec<String> {
        type Test = fn(&HostStatus) -> bool;
        let tests: [(&str, Test); 8] = [
            ("version not activated", |host| {
                matches!(host.state, Some(HostState::Failed | HostState::Refused))
            }),
            ("report not readable", |host| host.state.is_none()),
            ("no report", |host| host.unknown && host.state.is_some()),
            ("store or version not readable", |host| host.state == Some(HostState::Away)),
            ("another version than the rollout says", |host| {
                host.is_late && host.state == Some(HostState::Active)
            }),
            ("controller not in the kernel", |host| !host.unsupported.is_empty()),
            ("clock off by more than a minute", |host| host.clock_s.is_some()),
            ("default instead of a version", |host| {
                host.wanted.is_some() && host.active.is_none() && host.state.is_some()
            }),
        ];
        let line = |(what, is_it): (&str, Test)| {
            let names: Vec<&str> = (self.hosts.iter().filter(|host| is_it(host)))
                .map(|host| host.host.as_str())
                .collect();
            (!names.is_empty()).then(|| format!("{what}: {}", first_hosts(&names)))
        };
        let mut attention: Vec<String> = tests.into_iter().filter_map(line).collect();
        attention.extend(self.expiry());
        attention
    }

    /// A stable version that expires within a day.
    fn expiry(&self) -> Option<String> {
        let stable = self.stable.as_ref()?;
        let left = stable.expires_unix_s.saturating_sub(self.unix_s);
        let version = stable.version;
        (left < 86_400).then(|| {
            format!("version {version} expires in {left} s; publish it again: hosts then run their default")
        })
    }

    /// Lines for a terminal: the rollout, the versions, the hosts that need attention or all.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "rollout      {}{}",
            self.serial,
            if self.frozen { ", frozen" } else { "" }
        );
        let stable =
            self.stable.as_ref().map_or("none: the default of each host".to_owned(), |it| {
                format!(
                    "version {}, expires in {}",
                    it.version,
                    span(it.expires_unix_s, self.unix_s)
                )
            });
        let _ = writeln!(text, "stable       {stable}");
        if let Some(version) = self.rolled_back {
            let _ = writeln!(text, "rolled back  version {version}");
        }
        if let Some(next) = &self.next {
            let stage = next.stages.get(next.stage).map(ToString::to_string).unwrap_or_default();
            let (at, of) = (next.stage + 1, next.stages.len());
            let since = span(self.unix_s, next.since_unix_s);
            let version = next.version;
            let _ = writeln!(
                text,
                "next         version {version}, stage {at} of {of} ({stage}), since {since}"
            );
        }
        for (version, hosts) in &self.versions {
            let name = if version == "default" {
                "default".to_owned()
            } else {
                format!("version {version}")
            };
            let run = if *hosts == 1 { "host runs" } else { "hosts run" };
            let _ = writeln!(text, "             {hosts} {run} {name}");
        }
        for host in &self.hosts {
            let _ = writeln!(text, "{}", host.line(self.unix_s));
        }
        for line in &self.attention {
            let _ = writeln!(text, "attention    {}", visible(line));
        }
        text
    }

    /// Metrics for Prometheus, as a file that node_exporter reads.
    pub fn metrics(&self) -> String {
        let mut text = MetricsText::new("uncork_fleet_");
        let versions = self.versions.iter().map(|(version, hosts)| (version.as_str(), *hosts));
        text.gauges("hosts", "Hosts by the active version.", "version", versions);
        let reports = |host: &HostStatus, of| !host.unknown && host.state == Some(of);
        let states = STATES.map(|(name, of)| (name, self.count(|host| reports(host, of))));
        text.gauges("state_hosts", "Hosts by what they report.", "state", states);
        let unknown = self.count(|it| it.unknown) as f64;
        text.gauge("unknown_hosts", "Hosts without recent reports.", unknown);
        let drift = self.count(|it| it.drift && !it.unknown) as f64;
        text.gauge("drifted_hosts", "Hosts that run another version than they shall.", drift);
        let unsupported = self.count(|it| !it.unsupported.is_empty()) as f64;
        let help = "Hosts with a kernel that lacks a controller.";
        text.gauge("unsupported_hosts", help, unsupported);
        text.gauge("rollout_serial", "The serial of the rollout.", self.serial as f64);
        let frozen = f64::from(u8::from(self.frozen));
        text.gauge("frozen", "Whether the fleet is frozen.", frozen);
        if let Some(stable) = &self.stable {
            let expires = stable.expires_unix_s as f64;
            text.gauge("expires_timestamp_seconds", "When the stable version expires.", expires);
        }
        text.gauge("status_timestamp_seconds", "When the store was read.", self.unix_s as f64);
        text.into_text()
    }
}

impl HostStatus {
    fn line(&self, now: u64) -> String {
        let version = self.active.as_ref().map_or("default".to_owned(), |there| {
            format!("version {} for {}", there.version, span(now, there.since_unix_s))
        });
        let state = match self.state {
            _ if self.unknown => "unknown",
            Some(HostState::Active) => "active",
            Some(HostState::Waiting) => "waiting",
            Some(HostState::Failed) => "failed",
            Some(HostState::Refused) => "refused",
            Some(HostState::Away) => "store away",
            None => "unreadable",
        };
        let place = self.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let error = self.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let line = format!("{:<24} {version:<24} {state}{error}", format!("{}{place}", self.host));
        visible(&line).into_owned()
    }
}

/// From one time to a later one, in the largest unit that fits.
fn span(later: u64, earlier: u64) -> String {
    match later.saturating_sub(earlier) {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86_400),
    }
}

/// The first names of a list, and how many more there are.
pub fn first_hosts(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    let first = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        assert_schema!(FleetStatus, "fleet-status-1", "`uncork fleet status --format json`");
    }
}
