//! Diagnoses the congestion control of a host.

mod algorithm;
mod boot;
mod buffers;
mod finding;
mod kernel_controllers;
mod kubernetes;
mod namespaces;
mod pacing;
mod render;
mod routes;
mod sockets;
mod steering;

use serde::Serialize;

use crate::facts::{HostFacts, Namespace};
pub use finding::{Confidence, Finding, Severity};

/// Schema of a [`Diagnosis`].
const SCHEMA: &str = "uncork.host-doctor/1";

/// The findings about a host.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// `uncork.host-doctor/1`.
    pub schema: &'static str,
    /// A summary of the host.
    pub summary: Summary,
    /// Worst first.
    pub findings: Vec<Finding>,
}

/// A summary of a host.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The kernel release, like `uname -r`.
    pub kernel: String,
    /// The algorithm that new connections should run.
    pub wanted: String,
    /// The current default algorithm.
    pub default: String,
    /// BBR's version, if known.
    pub bbr_version: Option<u8>,
    /// Connected sockets, without loopback.
    pub connections: usize,
    /// Of these, the sockets that run the wanted algorithm.
    pub connections_wanted: usize,
    /// Network namespaces examined.
    pub namespaces: usize,
    /// Network namespaces that could not be entered.
    pub namespaces_unread: usize,
}

/// The input of a check.
#[derive(Clone, Copy)]
struct Host<'a> {
    facts: &'a HostFacts,
    own: &'a Namespace,
    /// The algorithm that new connections should run.
    wanted: &'a str,
}

impl Diagnosis {
    /// Whether the operator needs to act.
    pub fn needs_action(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity != Severity::Note)
    }
}

impl Host<'_> {
    fn wants_bbr(&self) -> bool {
        self.wanted.starts_with("bbr")
    }

    fn is_before(&self, version: (u32, u32)) -> bool {
        let own = self.facts.kernel.version();
        own != (0, 0) && own < version
    }
}

/// Diagnoses a host whose new connections should run `wanted`, or its own default. `None` if the
/// snapshot has no namespace.
pub fn diagnose(facts: &HostFacts, wanted: Option<&str>) -> Option<Diagnosis> {
    let own = facts.own()?;
    let wanted = wanted.unwrap_or(&own.default);
    let host = Host { facts, own, wanted };
    let mut findings = Vec::new();
    algorithm::check(host, &mut findings);
    kernel_controllers::check(host, &mut findings);
    sockets::check(host, &mut findings);
    routes::check(host, &mut findings);
    steering::check(host, &mut findings);
    namespaces::check(host, &mut findings);
    kubernetes::check(host, &mut findings);
    pacing::check(host, &mut findings);
    buffers::check(host, &mut findings);
    boot::check(host, &mut findings);
    findings.sort_by_key(|finding| (finding.severity, finding.confidence));
    Some(Diagnosis { schema: SCHEMA, summary: summary(host), findings })
}

fn summary(host: Host<'_>) -> Summary {
    let remote = || sockets::remote(host.own);
    Summary {
        kernel: host.facts.kernel.release.clone(),
        wanted: host.wanted.to_owned(),
        default: host.own.default.clone(),
        bbr_version: bbr_version(host.facts),
        connections: remote().count(),
        connections_wanted: remote().filter(|socket| socket.cc == host.wanted).count(),
        namespaces: host.facts.namespaces.len(),
        namespaces_unread: host.facts.unread_namespaces.len(),
    }
}

/// BBR's version: from a probe, or from any socket that runs BBR.
fn bbr_version(facts: &HostFacts) -> Option<u8> {
    let sockets = facts.namespaces.iter().flat_map(|namespace| &namespace.sockets);
    let mut sockets = sockets.filter(|socket| socket.cc == "bbr");
    facts
        .kernel
        .bbr_version
        .or_else(|| sockets.find_map(|socket| socket.bbr).map(|bbr| bbr.version))
}
