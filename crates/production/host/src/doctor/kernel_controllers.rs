//! Checks the controllers that `uncork kernel` loads.

use uncork_cc::is_kernel_controller;

use super::finding::{Finding, connections};
use super::kubernetes::is_pod;
use super::{ExaminedHost, FindingId};
use crate::facts::Namespace;

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    findings.extend(not_loaded(host));
    findings.extend(loaded(host));
    findings.extend(host.facts.namespaces.iter().filter_map(|one| old_default(host, one)));
    findings.extend(old_sockets(host));
}

fn not_loaded(host: ExaminedHost<'_>) -> Option<Finding> {
    let ExaminedHost { own, wanted, .. } = host;
    // As the default it is an old copy, which is a finding of its own.
    if !is_kernel_controller(wanted) || own.has(wanted) || own.default == wanted {
        return None;
    }
    let place = if own.is_initial {
        ""
    } else if is_pod(host) {
        "on the node: "
    } else {
        "on the host: "
    };
    Some(
        Finding::problem(FindingId::KernelControllerNotLoaded, format!("{wanted} is not loaded."))
            .why("It is not a part of Linux: `uncork kernel` loads it, until the next boot.")
            .remedy(format!("{place}uncork kernel load {wanted}"))
            .remedy(format!(
                "{place}systemctl enable uncork-kernel.service, to load it at each boot"
            ))
            .remedy(format!(
                "{place}uncork kernel status, if it does not load: it says what is missing"
            )),
    )
}

fn loaded(host: ExaminedHost<'_>) -> Option<Finding> {
    let names: Vec<&str> = host
        .own
        .available
        .iter()
        .map(String::as_str)
        .filter(|name| is_kernel_controller(name))
        .collect();
    if names.is_empty() {
        return None;
    }
    let what = format!("Loaded by BPF: {}.", names.join(", "));
    Some(
        Finding::note(FindingId::KernelControllers, what)
            .why("They are gone after a reboot, unless a unit loads them."),
    )
}

/// A namespace keeps what was its default when a controller was unloaded, also when it is loaded again.
fn old_default(host: ExaminedHost<'_>, namespace: &Namespace) -> Option<Finding> {
    let default = &namespace.default;
    let is_loaded = namespace.has(default);
    if !is_kernel_controller(default) || (is_loaded && namespace.default_is_old != Some(true)) {
        return None;
    }
    let default_of = if namespace.inode == host.own.inode {
        "The default".to_owned()
    } else {
        format!("The default of the namespace of {}", super::namespaces::name(namespace))
    };
    let what = if is_loaded {
        format!("{default_of} is an old copy of {default}, not the loaded one.")
    } else {
        format!(
            "{default_of} is {default}, which is not loaded any more: new connections get an old copy."
        )
    };
    let load = if is_loaded { String::new() } else { format!("uncork kernel load {default}; ") };
    Some(
        Finding::warning(FindingId::OldCopyIsDefault, what)
            .why("A namespace keeps its default when the controller is unloaded, until the default is set again.")
            .remedy(format!("{load}sysctl -w net.ipv4.tcp_congestion_control={default}"))
            .remedy("or: sysctl -w net.ipv4.tcp_congestion_control=cubic"),
    )
}

fn old_sockets(host: ExaminedHost<'_>) -> Option<Finding> {
    let own = host.own;
    let is_old = |cc: &str| is_kernel_controller(cc) && !own.has(cc);
    let count = own.connections().filter(|socket| is_old(&socket.cc)).count();
    (count > 0).then(|| {
        let run = if count == 1 { "runs" } else { "run" };
        let what =
            format!("{} {run} a controller that is not loaded any more.", connections(count));
        Finding::note(FindingId::OldCopies, what)
            .why("Connections keep their controller until they end.")
    })
}
