//! Checks whether the wanted algorithm is available and is the default.

use uncork_cc::{InLinux, Missing, is_kernel_controller};

use super::boot_value::{DEFAULT, in_effect, place};
use super::finding::Finding;
use super::kubernetes::{self, is_pod};
use super::{ExaminedHost, FindingId, bbr_version, pacing};
use crate::facts::{Container, Interface, Module};

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    findings.extend(missing(host));
    findings.extend(forbidden(host));
    findings.extend(not_default(host));
    findings.extend(restricted(host));
    findings.extend(old_kernel(host));
    findings.extend(version(host));
    findings.extend(features(host));
    findings.extend(loss_recovery(host));
    findings.extend(marks(host));
}

fn missing(host: ExaminedHost<'_>) -> Option<Finding> {
    let ExaminedHost { facts, own, wanted } = host;
    if own.has(wanted) || host.is_too_old() || is_kernel_controller(wanted) {
        return None;
    }
    if own.available.is_empty() {
        return (own.default != wanted).then(|| not_shown(wanted));
    }
    let state = facts.kernel.module(&format!("tcp_{wanted}"));
    let is_known = InLinux::named(wanted).is_some();
    if matches!(state, Module::File | Module::Unknown) && forbidding_line(host).is_some() {
        return None;
    }
    Some(match state {
        Module::File if own.is_initial => not_loaded(host),
        Module::File | Module::Unknown if !own.is_initial && is_known => not_in_container(host),
        Module::Unknown if is_known => not_known(host),
        Module::BuiltIn | Module::Loaded => not_offered(host, state),
        _ => absent(host),
    })
}

/// The line of modprobe.d that keeps the wanted algorithm from being loaded. In a container these are not the host's files.
fn forbidding_line(host: ExaminedHost<'_>) -> Option<&str> {
    let ExaminedHost { facts, own, wanted } = host;
    let is_hosts = own.is_initial && facts.container.is_none();
    facts.kernel.forbidden(&format!("tcp_{wanted}")).filter(|_| is_hosts)
}

fn forbidden(host: ExaminedHost<'_>) -> Option<Finding> {
    let (line, wanted) = (forbidding_line(host)?, host.wanted);
    if host.facts.kernel.module(&format!("tcp_{wanted}")) == Module::Absent {
        return None;
    }
    let has = host.own.has(wanted);
    let finding = if has {
        let what =
            format!("{line} forbids tcp_{wanted}: after the next boot this host has no {wanted}.");
        Finding::warning(FindingId::ModuleForbidden, what)
    } else {
        let what = format!("{wanted} is not loaded, and {line} forbids to load it.");
        Finding::problem(FindingId::ModuleForbidden, what)
    };
    let finding = finding.why(
        "`install MODULE /bin/false` (modprobe.d(5)) replaces loading: modprobe, modules-load.d and root's sysctl fail.",
    );
    let (file, number) = line.rsplit_once(':').unwrap_or((line, "1"));
    let finding = finding.remedy(format!("sed -i '{number}s/^/# /' {file}"));
    Some(if has { finding } else { loading(host, finding) })
}

/// Before Linux 5.7 only the initial namespace has the list of algorithms.
fn not_shown(wanted: &str) -> Finding {
    let what = format!("Whether {wanted} is available here is not known.");
    Finding::warning(FindingId::ModuleUnknown, what)
        .why("This namespace has no net.ipv4.tcp_available_congestion_control: before Linux 5.7 only the host's has it.")
        .remedy("on the host: sysctl net.ipv4.tcp_available_congestion_control")
        .remedy(format!("on the host, if it lacks {wanted}: modprobe tcp_{wanted}"))
}

fn not_loaded(host: ExaminedHost<'_>) -> Finding {
    let wanted = host.wanted;
    let finding = Finding::warning(FindingId::ModuleNotLoaded, format!("{wanted} is not loaded."))
        .why(
            "Root's sysctl loads the module, but nothing in a container can: there the name is \
         \"No such file or directory\".",
        );
    loading(host, finding)
}

/// Nothing says whether the kernel can load it: modules may be kept elsewhere, or belong to the container's host.
fn not_known(host: ExaminedHost<'_>) -> Finding {
    let (wanted, release) = (host.wanted, &host.facts.kernel.release);
    let what = format!("{wanted} is not loaded, and whether this kernel has it is not known.");
    let why = format!(
        "/lib/modules/{release} cannot be read here, so the list of the kernel's modules is missing."
    );
    let finding = loading(host, Finding::warning(FindingId::ModuleUnknown, what).why(why));
    finding.remedy(format!("If it cannot be loaded: install a kernel with {}.", option(wanted)))
}

/// With the steps that load a module, now and at boot. From a container they are its host's.
fn loading(host: ExaminedHost<'_>, finding: Finding) -> Finding {
    let wanted = host.wanted;
    let place = match host.facts.container {
        Some(Container::Kubernetes) => "on the node: ",
        Some(Container::Other) => "on the host: ",
        None => "",
    };
    finding
        .remedy(format!("{place}modprobe tcp_{wanted}"))
        .remedy(format!("{place}echo tcp_{wanted} > /etc/modules-load.d/tcp_{wanted}.conf"))
        .remedy(format!("{place}sysctl -w net.ipv4.tcp_congestion_control={wanted}"))
}

fn not_in_container(host: ExaminedHost<'_>) -> Finding {
    let wanted = host.wanted;
    let outside = if is_pod(host) { "node" } else { "host" };
    Finding::problem(FindingId::AlgorithmMissing, format!("{wanted} is not available here."))
        .why(format!(
            "A container uses the algorithms that its {outside} has loaded, and cannot load one."
        ))
        .remedy(format!("on the {outside}: modprobe tcp_{wanted}"))
        .remedy(format!(
            "on the {outside}: echo tcp_{wanted} > /etc/modules-load.d/tcp_{wanted}.conf"
        ))
}

/// The module is there, and has not registered the algorithm.
fn not_offered(host: ExaminedHost<'_>, state: Module) -> Finding {
    let wanted = host.wanted;
    let state = if state == Module::BuiltIn { "built in" } else { "loaded" };
    let what = format!("tcp_{wanted} is {state}, but the kernel does not offer {wanted}.");
    Finding::problem(FindingId::AlgorithmMissing, what)
        .why(format!(
            "It offers: {}. The module may have failed to register.",
            host.own.available.join(", ")
        ))
        .remedy(format!("dmesg | grep -i {wanted}"))
}

fn absent(host: ExaminedHost<'_>) -> Finding {
    let wanted = host.wanted;
    let what = format!("This kernel has no {wanted}.");
    let finding = Finding::problem(FindingId::AlgorithmMissing, what)
        .why(format!("It offers: {}.", host.own.available.join(", ")));
    match InLinux::named(wanted) {
        Some(_) => {
            finding.remedy(format!("Install a kernel with tcp_{wanted} ({}).", option(wanted)))
        }
        None => finding.remedy(format!("For {wanted}: {}.", Missing(wanted))),
    }
}

/// The option that builds an algorithm into the kernel, or its module (net/ipv4/Kconfig).
fn option(algorithm: &str) -> String {
    let name = if algorithm == "highspeed" { "hstcp" } else { algorithm };
    format!("CONFIG_TCP_CONG_{}", name.to_uppercase())
}

fn not_default(host: ExaminedHost<'_>) -> Option<Finding> {
    let ExaminedHost { facts, own, wanted } = host;
    if own.default == wanted || !own.has(wanted) {
        return None;
    }
    let finding = Finding::problem(
        FindingId::NotDefault,
        format!("New connections run {}, not {wanted}.", own.default),
    )
    .why("The default applies to connections opened and accepted from now on; servers need no restart.");
    let is_written = in_effect(host, DEFAULT).filter(|setting| setting.value == wanted);
    let finding = match is_written {
        Some(setting) => Finding {
            why: format!(
                "{} sets it at boot; it is not applied yet. {}",
                place(setting),
                finding.why
            ),
            ..finding
        },
        None => finding,
    };
    Some(if is_pod(host) {
        kubernetes::with_remedies(finding, wanted)
    } else if own.is_initial {
        let place =
            if facts.container == Some(Container::Kubernetes) { "on the node: " } else { "" };
        finding
            .remedy(format!("{place}sysctl -w net.ipv4.tcp_congestion_control={wanted}"))
            .remedy(format!(
                "or, to roll it back in 10 minutes unless confirmed: {place}echo 'algorithm = \"{wanted}\"' > host.toml; \
                 uncork host apply host.toml --ttl 10min"
            ))
    } else {
        let set = format!("net.ipv4.tcp_congestion_control={wanted}");
        if facts.container.is_none() {
            return Some(
                finding.remedy(format!("in this namespace, for it alone: sysctl -w {set}")),
            );
        }
        finding.remedy(format!("for this container alone: docker run --sysctl {set} …")).remedy(
            format!("or on the host, for all, then start the container again: sysctl -w {set}"),
        )
    })
}

fn restricted(host: ExaminedHost<'_>) -> Option<Finding> {
    let ExaminedHost { facts, own, wanted } = host;
    let is_restricted = own.has(wanted) && !own.allowed.iter().any(|name| name == wanted);
    let others = facts.namespaces.len() + facts.unread_namespaces.len() > 1 || !own.is_initial;
    let outside = if is_pod(host) { "node" } else { "host" };
    (is_restricted && others).then(|| {
        Finding::warning(
            FindingId::Restricted,
            format!("{wanted} is restricted on this {outside}."),
        )
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

fn old_kernel(host: ExaminedHost<'_>) -> Option<Finding> {
    let release = &host.facts.kernel.release;
    if !host.wants_bbr() {
        return None;
    }
    let without_fq: Vec<&Interface> = pacing::without_fq(host).collect();
    if host.is_too_old() {
        let finding =
            Finding::problem(FindingId::KernelTooOld, format!("Linux {release} has no BBR."));
        Some(finding.why("BBR is part of Linux since 4.9.").remedy("Install a newer kernel."))
    } else if host.is_before((4, 13)) && !without_fq.is_empty() {
        let names: Vec<_> = without_fq.iter().map(|it| it.name.as_str()).collect();
        let what = format!("Linux {release} needs fq for BBR, and {} has none.", names.join(", "));
        let finding = Finding::problem(FindingId::KernelNeedsFq, what)
            .why("Before 4.13 TCP cannot pace by itself: BBR then sends in bursts.");
        // A vendor that has added BBR may have added pacing.
        let finding = if host.is_before((4, 9)) { finding.likely() } else { finding };
        Some(without_fq.into_iter().map(pacing::replacing).fold(finding, Finding::remedy))
    } else {
        None
    }
}

fn version(host: ExaminedHost<'_>) -> Option<Finding> {
    let version = bbr_version(host.facts).filter(|version| host.wants_bbr() && *version > 1)?;
    let what = format!("`bbr` is BBRv{version} here, from a vendor's patch.");
    Some(Finding::note(FindingId::VendorBbr, what).why(
        "Mainline Linux has BBRv1 only. Versions 2 and 3 react to loss and ECN; compare such hosts \
         apart from others.",
    ))
}

/// RACK and TLP (RFC 8985). TLP runs with 3 or 4 (linux net/ipv4/tcp_output.c, `tcp_schedule_loss_probe`), RACK if the first bit
/// is set (Documentation/networking/ip-sysctl.rst).
fn loss_recovery(host: ExaminedHost<'_>) -> Vec<Finding> {
    const RACK: &str = "net.ipv4.tcp_recovery";
    const TLP: &str = "net.ipv4.tcp_early_retrans";
    let own = host.own;
    let off = [
        (
            RACK,
            "RACK",
            1,
            "Losses are found by three duplicate ACKs: lost retransmissions wait for a timeout.",
        ),
        (
            TLP,
            "Tail loss probes (TLP)",
            3,
            "The loss of a transfer's last packets waits for a timeout.",
        ),
    ];
    let is_off = |key: &str| match (key, own.number(key)) {
        (_, None) => false,
        (RACK, Some(value)) => value & 1 == 0,
        (_, Some(value)) => !matches!(value, 3 | 4),
    };
    let off = off.into_iter().filter(|(key, ..)| is_off(key));
    off.map(|(key, name, usual, why)| {
        let value = own.number(key).unwrap_or(0);
        let verb = if key == TLP { "are" } else { "is" };
        Finding::warning(FindingId::LossRecoveryOff, format!("{name} {verb} off ({key}={value})."))
            .why(why)
            .remedy(format!("sysctl -w {key}={usual}"))
    })
    .collect()
}

fn features(host: ExaminedHost<'_>) -> Vec<Finding> {
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
        Finding::problem(FindingId::TcpFeatureOff, format!("TCP works without {name} ({key}=0)."))
            .why(*why)
            .remedy(format!("sysctl -w {key}=1"))
    })
    .collect()
}

fn marks(host: ExaminedHost<'_>) -> Option<Finding> {
    let ecn = host.own.number("net.ipv4.tcp_ecn")?;
    let asks = matches!(ecn, 1 | 3 | 4);
    (asks && host.wanted == "bbr" && bbr_version(host.facts) == Some(1)).then(|| {
        Finding::warning(
            FindingId::Bbr1IgnoresEcn,
            format!("Connections ask for ECN (tcp_ecn={ecn}) and run BBRv1."),
        )
        .why("BBRv1 ignores CE marks. A router that marks instead of dropping cannot slow it down.")
        .remedy("sysctl -w net.ipv4.tcp_ecn=2")
    })
}
