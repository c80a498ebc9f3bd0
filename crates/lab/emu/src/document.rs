//! Results as documents: `docs/schemas/emu.json` and `emu-hosts.json`.

use serde::Serialize;

use crate::emulation::Emulation;
use crate::namespace::Namespace;
use crate::report::Report;
use crate::spec::{EmulationSpec, HostSpec};

/// What an emulation did, and the command that ran in it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EmulationDocument {
    /// The command line.
    pub command: String,
    /// Exit status of the command in the emulation; null without one.
    pub status: Option<u8>,
    /// The packets.
    #[serde(flatten)]
    pub report: Report,
}

/// The network namespace of a host, and the path to it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("dependentRequired" = {"rtt_ms": ["path", "classes"]})))]
pub struct HostDocument {
    /// `near` has the clients, `far` the server.
    #[cfg_attr(test, schemars(extend("enum" = ["near", "far"])))]
    pub(crate) side: &'static str,
    /// Name of the namespace.
    pub(crate) name: String,
    /// Its IPv4 address.
    pub(crate) v4: String,
    /// Its IPv6 address; null without IPv6.
    pub(crate) v6: Option<String>,
    #[serde(flatten)]
    pub(crate) way: Option<Way>,
}

/// The path from the far side to a host on the near side.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Way {
    /// Round-trip time of the path.
    pub(crate) rtt_ms: f64,
    /// Name of its link in reports.
    pub(crate) path: String,
    /// The scenario's classes of clients that the host represents.
    pub(crate) classes: Vec<String>,
}

impl HostDocument {
    /// The hosts of `emulation` with their `names`: first the far side, then the near side with
    /// their `classes`.
    pub fn all<'a>(
        emulation: &Emulation,
        names: impl Iterator<Item = &'a str>,
        classes: &[Vec<String>],
    ) -> Vec<Self> {
        let spec = emulation.spec();
        let ways =
            spec.hosts.iter().zip(classes).map(|(host, classes)| Way::new(*host, spec, classes));
        let near = emulation.hosts().iter().zip(ways).map(|(host, way)| ("near", host, Some(way)));
        let hosts = [("far", emulation.server(), None)].into_iter().chain(near);
        hosts.zip(names).map(|((side, host, way), name)| Self::new(side, host, name, way)).collect()
    }

    fn new(side: &'static str, host: &Namespace, name: &str, way: Option<Way>) -> Self {
        let addresses = host.addresses();
        let v6 = addresses.v6.map(|address| address.to_string());
        Self { side, name: name.to_owned(), v4: addresses.v4.to_string(), v6, way }
    }
}

impl Way {
    fn new(host: HostSpec, spec: &EmulationSpec, classes: &[String]) -> Self {
        let rtt = host.rtt.unwrap_or(spec.paths[host.path].rtt);
        let path =
            if spec.paths.len() == 1 { "path".to_owned() } else { format!("path {}", host.path) };
        Self { rtt_ms: rtt.as_millis_f64(), path, classes: classes.to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schemas_are_current() {
        assert_schema!(EmulationDocument, "emu", "Results of `uncork emu`: `summary.json`");
        assert_schema!(Vec<HostDocument>, "emu-hosts", "Hosts of `uncork emu --up --format json`");
    }
}
