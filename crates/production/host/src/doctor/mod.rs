//! Diagnoses the congestion control of a host.

mod algorithm;
mod boot;
mod boot_value;
mod buffers;
mod finding;
mod finding_id;
mod interfaces;
mod kernel_controllers;
mod kubernetes;
mod namespaces;
mod pacing;
mod render;
mod routes;
mod sockets;
mod steering;

use serde::Serialize;
use uncork_cc::{InLinux, is_kernel_controller};

use crate::facts::{HostFacts, Module, Namespace};
pub use finding::{Confidence, Finding, Severity};
pub use finding_id::FindingId;

/// Schema of a [`Diagnosis`].
const SCHEMA: &str = "uncork.host-doctor/1";

/// The findings about a host.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// `uncork.host-doctor/1`.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    pub schema: &'static str,
    /// A summary of the host.
    pub summary: Summary,
    /// Worst first.
    pub findings: Vec<Finding>,
}

/// A summary of a host.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
struct ExaminedHost<'a> {
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

impl ExaminedHost<'_> {
    fn wants_bbr(&self) -> bool {
        self.wanted.starts_with("bbr")
    }

    /// Whether this kernel may have the wanted algorithm, now or once it is loaded.
    fn can_have_wanted(&self) -> bool {
        let module = self.facts.kernel.module(&format!("tcp_{}", self.wanted));
        match module {
            _ if self.own.has(self.wanted) || is_kernel_controller(self.wanted) => true,
            Module::BuiltIn | Module::Loaded | Module::File => true,
            Module::Absent => false,
            Module::Unknown => !self.is_too_old() && InLinux::named(self.wanted).is_some(),
        }
    }

    /// Whether the kernel is older than BBR, which came with Linux 4.9, unless a vendor has added it.
    fn is_too_old(&self) -> bool {
        let module = self.facts.kernel.module("tcp_bbr");
        let is_there = matches!(module, Module::BuiltIn | Module::Loaded | Module::File);
        self.wants_bbr() && self.is_before((4, 9)) && !self.own.has(self.wanted) && !is_there
    }

    fn is_before(&self, version: (u32, u32)) -> bool {
        let own = self.facts.kernel.version();
        own != (0, 0) && own < version
    }
}

/// Diagnoses a host. Its new connections should run `wanted`, or its own default. `None` if the
/// snapshot has no namespace.
pub fn diagnose(facts: &HostFacts, wanted: Option<&str>) -> Option<Diagnosis> {
    let own = facts.own()?;
    let wanted = wanted.map_or(&*own.default, |written| named(facts, own, written));
    let host = ExaminedHost { facts, own, wanted };
    let mut findings = Vec::new();
    algorithm::check(host, &mut findings);
    kernel_controllers::check(host, &mut findings);
    sockets::check(host, &mut findings);
    routes::check(host, &mut findings);
    interfaces::check(host, &mut findings);
    steering::check(host, &mut findings);
    namespaces::check(host, &mut findings);
    kubernetes::check(host, &mut findings);
    pacing::check(host, &mut findings);
    buffers::check(host, &mut findings);
    boot::check(host, &mut findings);
    findings.sort_by_key(|finding| (finding.severity, finding.confidence));
    Some(Diagnosis { schema: SCHEMA, summary: summary(host), findings })
}

/// The name on this host of what is wanted: `bbr3` is `uncork_bbr3`, unless a vendor's kernel has it.
fn named<'a>(facts: &HostFacts, own: &Namespace, written: &'a str) -> &'a str {
    let is_here = |name: &str| {
        let module = facts.kernel.module(&format!("tcp_{name}"));
        own.has(name) || matches!(module, Module::BuiltIn | Module::Loaded | Module::File)
    };
    match (InLinux::named(written), bbr_version(facts)) {
        _ if is_here(written) => written,
        (Some(InLinux::Uncork("uncork_bbr3")), Some(3)) if own.has("bbr") => "bbr",
        (Some(found), _) => found.name(),
        (None, _) => written,
    }
}

fn summary(host: ExaminedHost<'_>) -> Summary {
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
