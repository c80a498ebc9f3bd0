//! The results of a run as JSON.

use std::fmt;

use serde::Serialize;
use uncork_emu::{Emulation, EmulationSpec, HostSpec, Namespace, Report};

use crate::failure::Failure;

/// The contents of summary.json.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    /// The command line.
    pub(super) command: String,
    /// Exit status of COMMAND; `None` without one.
    pub(super) status: Option<u8>,
    #[serde(flatten)]
    pub(super) report: Report,
}

/// A host and the path to it.
#[derive(Debug, Serialize)]
pub(super) struct Host {
    side: &'static str,
    name: String,
    v4: String,
    v6: Option<String>,
    #[serde(flatten)]
    way: Option<Way>,
}

/// The path from the far side to a host on the near side.
#[derive(Debug, Serialize)]
struct Way {
    rtt_ms: f64,
    /// Name of its link in reports.
    path: String,
    /// The scenario's classes of clients that the host represents.
    classes: Vec<String>,
}

impl Host {
    /// The hosts of `emulation` with their `names`: first the far side, then the near side with
    /// their `classes`.
    pub(super) fn all<'a>(
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

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { side, name, v4, v6, way } = self;
        let v6 = v6.as_deref().unwrap_or("-");
        write!(f, "{side:4}  {name:24}  {v4:14}  ")?;
        let Some(Way { rtt_ms, path, classes }) = way else { return f.write_str(v6) };
        write!(f, "{v6:16}  {path}, round trip {rtt_ms} ms")?;
        if classes.is_empty() { Ok(()) } else { write!(f, ": {}", classes.join(", ")) }
    }
}

/// A document on one line, or pretty-printed.
pub(super) fn json(value: &impl Serialize, pretty: bool) -> Result<Vec<u8>, Failure> {
    let text = if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    let text = text.map_err(|error| Failure::Environment(format!("no JSON: {error}")));
    text.map(|mut text| {
        text.push(b'\n');
        text
    })
}
