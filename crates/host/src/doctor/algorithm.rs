//! Checks whether the wanted algorithm is available and is the default.

use super::finding::Finding;
use super::kubernetes::{self, is_pod};
use super::{Host, bbr_version};
use crate::facts::{Container, Interface, Module, is_kernel_controller};

pub(super) fn check(host: Host<'_>, findings: &mut Vec<Finding>) {
    findings.extend(missing(host));
    findings.extend(not_default(host));
    findings.extend(restricted(host));
    findings.extend(old_kernel(host));
    findings.extend(version(host));
    findings.extend(features(host));
    findings.extend(marks(host));
}

fn missing(host: Host<'_>) -> Option<Finding> {
    let Host { facts, own, wanted } = host;
    let never_had_it = host.wants_bbr() && host.is_before((4, 9));
    if own.has(wanted) || never_had_it || is_kernel_controller(wanted) {
        return None;
    }
    let module = format!("tcp_{wanted}");
    let outside = if is_pod(host) { "node" } else { "host" };
    let finding = match facts.kernel.module(&module) {
        Module::File if own.is_initial => Finding::warning(
            "module-not-loaded",
            format!("{wanted} is not loaded."),
        )
        .why(
            "Root's sysctl loads the module, but nothing in a container can: there the name is \
                 \"No such file or directory\".",
        )
        .remedy(format!("modprobe {module}"))
        .remedy(format!("echo {module} > /etc/modules-load.d/{module}.conf"))
        .remedy(format!("sysctl -w net.ipv4.tcp_congestion_control={wanted}")),
        Module::File | Module::Unknown if !own.is_initial => Finding::problem(
            "algorithm-missing",
            format!("{wanted} is not available here."),
        )
        .why(format!(
            "A container uses the algorithms that its {outside} has loaded, and cannot load one."
        ))
        .remedy(format!("on the {outside}: modprobe {module}"))
        .remedy(format!("on the {outside}: echo {module} > /etc/modules-load.d/{module}.conf")),
        _ => Finding::problem("algorithm-missing", format!("This kernel has no {wanted}."))
            .why(format!("It offers: {}.", own.available.join(", ")))
            .remedy(format!("Install a kernel with {module} (CONFIG_{}).", module.to_uppercase())),
    };
    Some(finding)
}

fn not_default(host: Host<'_>) -> Option<Finding> {
    let Host { facts, own, wanted } = host;
    if own.default == wanted || !own.has(wanted) {
        return None;
    }
    let finding = Finding::problem(
        "not-default",
        format!("New connections run {}, not {wanted}.", own.default),
    )
    .why("The default applies to connections opened and accepted from now on; servers need no restart.");
    Some(if is_pod(host) {
        kubernetes::with_remedies(finding, wanted)
    } else if own.is_initial {
        let place =
            if facts.container == Some(Container::Kubernetes) { "on the node: " } else { "" };
        finding
            .remedy(format!("{place}sysctl -w net.ipv4.tcp_congestion_control={wanted}"))
            .remedy(format!(
                "or, to undo it in 10 minutes unless confirmed: {place}echo 'algorithm = \"{wanted}\"' > host.toml; \
                 uncork host apply host.toml --ttl 10min"
            ))
    } else {
        finding.remedy(format!(
            "on the host, then start the container anew: sysctl -w \
             net.ipv4.tcp_congestion_control={wanted}"
        ))
    })
}

fn restricted(host: Host<'_>) -> Option<Finding> {
    let Host { facts, own, wanted } = host;
    let is_restricted = own.has(wanted) && !own.allowed.iter().any(|name| name == wanted);
    let others = facts.namespaces.len() + facts.unread_namespaces.len() > 1 || !own.is_initial;
    let outside = if is_pod(host) { "node" } else { "host" };
    (is_restricted && others).then(|| {
        Finding::warning("restricted", format!("{wanted} is restricted on this {outside}."))
            .why(
                "Containers cannot make it their default, not even as root with all capabilities: \
                 \"Operation not permitted\". Unprivileged programs cannot choose it either.",
            )
            .remedy(format!(
                "on the {outside}: sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{} {wanted}\"",
                own.allowed.join(" ")
            ))
    })
}

fn old_kernel(host: Host<'_>) -> Option<Finding> {
    let release = &host.facts.kernel.release;
    if !host.wants_bbr() {
        return None;
    }
    let has_fq =
        || host.own.interfaces.iter().filter(|i| i.is_up && !i.is_virtual).all(Interface::has_fq);
    if host.is_before((4, 9)) {
        let finding = Finding::problem("kernel-too-old", format!("Linux {release} has no BBR."));
        Some(finding.why("BBR is part of Linux since 4.9.").remedy("Install a newer kernel."))
    } else if host.is_before((4, 13)) && !has_fq() {
        let what = format!("Linux {release} needs fq for BBR, and an interface has none.");
        let finding = Finding::problem("kernel-needs-fq", what);
        Some(
            finding
                .why("Before 4.13 TCP cannot pace by itself: BBR then sends in bursts.")
                .remedy("tc qdisc replace dev DEVICE root fq"),
        )
    } else {
        None
    }
}

fn version(host: Host<'_>) -> Option<Finding> {
    let version = bbr_version(host.facts).filter(|version| host.wants_bbr() && *version > 1)?;
    let what = format!("`bbr` is BBRv{version} here, from a vendor's patch.");
    Some(Finding::note("vendor-bbr", what).why(
        "Mainline Linux has BBRv1 only. Versions 2 and 3 react to loss and ECN; compare such hosts \
         apart from others.",
    ))
}

fn features(host: Host<'_>) -> Vec<Finding> {
    let features = [
        ("net.ipv4.tcp_sack", "selective ACKs", "Each round trip repairs one loss only."),
        (
            "net.ipv4.tcp_timestamps",
            "timestamps",
            "RTT samples are fewer, and retransmitted data gives none.",
        ),
        ("net.ipv4.tcp_window_scaling", "window scaling", "No window is larger than 64 KiB."),
    ];
    let off = features.iter().filter(|(key, ..)| host.own.number(key) == Some(0));
    off.map(|(key, name, why)| {
        Finding::problem("tcp-feature-off", format!("TCP {name} is off ({key}=0)."))
            .why(*why)
            .remedy(format!("sysctl -w {key}=1"))
    })
    .collect()
}

fn marks(host: Host<'_>) -> Option<Finding> {
    let ecn = host.own.number("net.ipv4.tcp_ecn")?;
    let asks = matches!(ecn, 1 | 3 | 4);
    (asks && host.wanted == "bbr" && bbr_version(host.facts) == Some(1)).then(|| {
        Finding::warning(
            "bbr1-ignores-ecn",
            format!("Connections ask for ECN (tcp_ecn={ecn}) and run BBRv1."),
        )
        .why("BBRv1 ignores CE marks. A router that marks instead of dropping cannot slow it down.")
        .remedy("sysctl -w net.ipv4.tcp_ecn=2")
    })
}
