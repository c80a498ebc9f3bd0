//! Which controllers are loaded, and who uses them: `docs/schemas/kernel-1.json`.

use std::collections::BTreeMap;

use serde::Serialize;
use uncork_terminal::{Column, Style, Table};

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::host::{available, default};
use crate::pin::Pins;
use crate::resume::ResumeStatus;

const SCHEMA: &str = "uncork.kernel/1";

/// The library's controllers in the kernel.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KernelStatus {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Why this machine cannot load controllers; null if it can.
    missing: Option<String>,
    /// By name.
    pub controllers: Vec<ControllerStatus>,
}

/// A controller.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ControllerStatus {
    /// The name by which sockets choose it.
    #[cfg_attr(test, schemars(extend("enum" = Algorithm::ALL.map(Algorithm::name))))]
    pub name: &'static str,
    /// Whether sockets can choose it.
    pub loaded: bool,
    /// Whether it is the default of this network namespace.
    pub default: bool,
    /// TCP connections that use it, with Careful Resume and without, in all network namespaces that the user may enter.
    pub connections: u64,
    /// Maximum number of instructions that the kernel's verifier processed for one of its programs (its limit is a million).
    /// Null if it is not loaded, or without `CAP_SYS_ADMIN`.
    verified_instructions: Option<u32>,
    /// Careful Resume since the controller was loaded. Null if it is not loaded, was loaded without `--resume`, or without
    /// `CAP_SYS_ADMIN`.
    resume: Option<ResumingController>,
}

/// A controller with Careful Resume.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ResumingController {
    /// The name by which sockets choose it.
    #[cfg_attr(test, schemars(extend("enum" = Algorithm::ALL.map(Algorithm::resuming_name))))]
    name: &'static str,
    /// TCP connections that use it, as above.
    connections: u64,
    #[serde(flatten)]
    status: ResumeStatus,
}

impl KernelStatus {
    /// The controllers with their `users`, connections by controller, and what is `missing` to load them.
    pub fn new(pins: &Pins, users: &BTreeMap<String, u64>, missing: Option<&Error>) -> Self {
        let (default, available) = (default(), available());
        let connections = |name: &str| users.get(name).copied().unwrap_or(0);
        let controllers = Algorithm::ALL.map(|one| ControllerStatus {
            name: one.name(),
            loaded: available.iter().any(|name| name == one.name()),
            default: one.names().contains(&default.as_str()),
            connections: one.names().into_iter().map(connections).sum(),
            verified_instructions: pins.verified_instructions(one).ok(),
            resume: pins.resume_status(one).ok().flatten().map(|status| {
                let name = one.resuming_name();
                ResumingController { name, connections: connections(name), status }
            }),
        });
        Self {
            schema: SCHEMA,
            missing: missing.map(Error::to_string),
            controllers: controllers.into(),
        }
    }

    /// A table.
    pub fn text(&self) -> String {
        let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let rows = self.controllers.iter().map(|one| {
            [one.name.to_owned(), word(one.loaded), word(one.default), one.connections.to_string()]
        });
        let table =
            Table::new(["name", "loaded", "default", "connections"].map(Column::left), rows)
                .render(Style::Plain);
        let resume = self.controllers.iter().filter_map(ControllerStatus::resume_line);
        [table].into_iter().chain(resume).collect()
    }
}

impl ControllerStatus {
    fn resume_line(&self) -> Option<String> {
        let ResumingController { name, connections, status } = self.resume.as_ref()?;
        let ResumeStatus { networks_max, kept, lent, in_use, expired, retreats } = status;
        Some(format!(
            "{name}: careful resume for {networks_max} networks, {connections} connections; {kept} connections left an observation, \
             {lent} began with one ({retreats} safe retreats), {in_use} found it in use, {expired} too old\n"
        ))
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        assert_schema!(KernelStatus, "kernel-1", "`uncork kernel status --format json`");
    }
}
