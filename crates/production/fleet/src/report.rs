//! What an agent reports: `docs/schemas/fleet-report-1.json`.

use serde::{Deserialize, Serialize};

use crate::HostName;

/// The schema of reports.
pub(crate) const SCHEMA: &str = "uncork.fleet-report/1";
/// The largest report that is read. Hosts write them, so they are not trusted.
pub(crate) const MAX_REPORT: u64 = 16 * 1024;
/// The most characters of an error.
const MAX_ERROR: usize = 500;

/// A host's state, in the store as `reports/HOST.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The name of this format.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    pub schema: String,
    /// The host.
    #[cfg_attr(test, schemars(with = "String"))]
    pub host: HostName,
    /// Its place.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub place: Option<HostName>,
    /// The version of the agent's program.
    pub agent: String,
    /// The kernel's release.
    pub kernel: String,
    /// When it was written, by the host's clock.
    pub unix_s: u64,
    /// The most seconds until the next one.
    pub every_s: u64,
    /// The serial of the accepted rollout.
    pub serial: u64,
    /// The version that the host shall run; null is its default.
    pub wanted: Option<u64>,
    /// Whether it runs that.
    pub state: HostState,
    /// The active version; null is the host's default.
    pub active: Option<ActiveVersion>,
    /// Why the state is what it is.
    pub error: Option<String>,
    /// TCP controllers of the active version that the kernel does not have.
    pub unsupported: Vec<String>,
}

/// Whether a host runs what it shall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// It does.
    Active,
    /// It was put there, and is not confirmed yet.
    Waiting,
    /// It could not be activated; the last good version is.
    Failed,
    /// What the store has is not acceptable.
    Refused,
    /// The store cannot be read, or does not have it.
    Away,
}

/// An active version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ActiveVersion {
    /// The version.
    pub version: u64,
    /// The SHA-256 of its bundle.
    pub sha256: String,
    /// Since when.
    pub since_unix_s: u64,
    /// Until when.
    pub expires_unix_s: u64,
}

impl Report {
    /// The object of a host's report.
    pub(crate) fn object(host: &HostName) -> String {
        format!("reports/{host}.json")
    }

    /// Reads the report of this host.
    pub(crate) fn read(bytes: &[u8], host: &HostName) -> Result<Self, String> {
        let report: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if report.schema != SCHEMA {
            return Err(format!("it is not {SCHEMA}"));
        }
        if report.host != *host {
            return Err(format!("it is of another host: {}", report.host));
        }
        Ok(report)
    }

    /// Whether a reader of the store learns something from it that the other one did not say.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        let at_the_time_of_other = Self { unix_s: other.unix_s, ..self.clone() };
        at_the_time_of_other != *other
    }
}

/// An error, cut for a report.
pub(crate) fn cut(error: &str) -> String {
    error.chars().take(MAX_ERROR).collect()
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        assert_schema!(Report, "fleet-report-1", "`reports/HOST.json` of `uncork agent`");
    }
}
