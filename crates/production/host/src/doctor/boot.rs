//! Checks the configuration for the next boot.

use std::collections::BTreeMap;

use uncork_cc::is_kernel_controller;

use super::boot_value::{
    DEFAULT, in_effect, is_malformed, may_be_overridden, place, refusal, remedy, rewrite,
};
use super::finding::Finding;
use super::{ExaminedHost, FindingId};
use crate::facts::{Container, Setting};

/// Sysctls without effect on a flow that BBR controls: BBR has its own pacing and its own TSO size.
const IDLE: [(&str, &str); 4] = [
    ("net.ipv4.tcp_pacing_ss_ratio", "BBR sets the pacing rate itself."),
    ("net.ipv4.tcp_pacing_ca_ratio", "BBR sets the pacing rate itself."),
    ("net.ipv4.tcp_slow_start_after_idle", "Algorithms with their own rate control ignore it."),
    ("net.ipv4.tcp_min_tso_segs", "BBR chooses its own minimum, one or two segments."),
];

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    // What boots belongs to the host: not to a namespace, nor to a pod in its node's namespace. Another container there may be a virtual machine
    // that was made of an image.
    if host.facts.container == Some(Container::Kubernetes) || !host.own.is_initial {
        return;
    }
    let mut last: BTreeMap<&str, &Setting> = BTreeMap::new();
    for setting in &host.facts.boot_sysctls {
        let before = last.insert(&setting.key, setting);
        findings.extend(
            before.filter(|before| contradicts(before, setting)).map(|it| conflict(it, setting)),
        );
        findings.extend(fault(host, setting));
    }
    findings.extend(unread(host));
    findings.extend(after_reboot(host));
    let idle = IDLE.iter().filter(|_| host.wants_bbr());
    findings
        .extend(idle.filter_map(|(key, why)| last.get(key).map(|setting| no_effect(setting, why))));
}

/// What is wrong with one line.
fn fault(host: ExaminedHost<'_>, setting: &Setting) -> Option<Finding> {
    if !setting.exists {
        return Some(unknown(host, setting));
    }
    if is_malformed(setting) {
        return Some(malformed(setting));
    }
    let refusal = refusal(host, setting)?;
    let what = format!(
        "{} sets {} to `{}`: the kernel refuses it at boot.",
        place(setting),
        setting.key,
        setting.value
    );
    let finding = Finding::warning(FindingId::RefusedAtBoot, what).why(refusal.why);
    let finding = if refusal.is_certain { finding } else { finding.likely() };
    Some(match refusal.meant {
        Some(meant) => finding.remedy(rewrite(setting, &meant)),
        None => finding.remedy(format!("Remove or correct the line: {}", place(setting))),
    })
}

fn malformed(setting: &Setting) -> Finding {
    let Setting { key, value, .. } = setting;
    let what = format!(
        "{} sets {key} to `{value}`: it takes a minimum, a default and a maximum, in this order.",
        place(setting)
    );
    Finding::warning(FindingId::MalformedTriple, what)
        .why("The kernel takes the numbers that are there from the left: one number sets the minimum alone.")
        .remedy(rewrite(setting, &super::buffers::well_formed(key, value)))
}

/// Settings of /etc/sysctl.conf that differ from the values after the next boot.
fn unread(host: ExaminedHost<'_>) -> Option<Finding> {
    let differs = |it: &&Setting| in_effect(host, &it.key).is_none_or(|now| now.value != it.value);
    let lines: Vec<_> = host.facts.unread_sysctls.iter().filter(differs).collect();
    let first = lines.first()?;
    let settings: Vec<_> = lines.iter().map(|it| format!("{}={}", it.key, it.value)).collect();
    let what =
        format!("{} sets {}, and nothing reads it at boot.", first.file, settings.join(", "));
    Some(
        Finding::warning(FindingId::FileNotRead, what)
            .why(
                "systemd-sysctl reads /etc/sysctl.conf through the link /etc/sysctl.d/99-sysctl.conf alone, and this host has \
                 none (Debian since 13). `sysctl --system` and `sysctl -p` read it.",
            )
            .remedy("If it is meant: ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf")
            .remedy(format!("If not: remove these lines from {}", first.file)),
    )
}

/// A file in /etc may override one of the distribution: that is what it is for (sysctl.d(5)).
fn contradicts(before: &Setting, setting: &Setting) -> bool {
    let is_override = may_be_overridden(before) && !may_be_overridden(setting);
    before.value != setting.value && !is_override
}

fn conflict(before: &Setting, setting: &Setting) -> Finding {
    let Setting { key, value, .. } = setting;
    let what = format!(
        "{key} is set twice at boot: {} in {}, then {value} in {}.",
        before.value,
        place(before),
        place(setting)
    );
    let why = format!("The last one wins: {value}.");
    Finding::warning(FindingId::SetTwice, what)
        .why(why)
        .remedy(format!("Remove one of them: {}", place(before)))
}

fn unknown(host: ExaminedHost<'_>, setting: &Setting) -> Finding {
    let what = format!("{} sets {}, which this kernel does not have.", place(setting), setting.key);
    let why = match &*setting.key {
        "net.ipv4.tcp_pacing_shift" => {
            "No Linux has it: the pacing shift belongs to each socket and is set by drivers."
                .to_owned()
        }
        _ => {
            format!("Linux {} ignores the line, with an error at boot.", host.facts.kernel.release)
        }
    };
    Finding::warning(FindingId::UnknownSysctl, what)
        .why(why)
        .remedy(format!("Remove the line: {}", place(setting)))
}

fn no_effect(setting: &Setting, why: &str) -> Finding {
    let what = format!("{} sets {}, which has no effect on BBR.", place(setting), setting.key);
    Finding::note(FindingId::NoEffectOnBbr, what).why(why)
}

/// Whether new connections will run what is wanted after the next boot.
fn after_reboot(host: ExaminedHost<'_>) -> Option<Finding> {
    let ExaminedHost { facts, wanted, .. } = host;
    if is_kernel_controller(wanted) && facts.has_kernel_unit || !host.can_have_wanted() {
        return None;
    }
    let setting = in_effect(host, DEFAULT);
    let next = setting.map(|it| &it.value).or(facts.kernel.compiled_default.as_ref());
    let what = match next {
        Some(next) if next == wanted => return None,
        Some(next) => format!("After the next boot new connections run {next}, not {wanted}."),
        // Most kernels are compiled with cubic or reno as their default.
        None if matches!(wanted, "cubic" | "reno") => return None,
        None => format!("No file sets {wanted} as the default: the next boot may bring another."),
    };
    let why = match setting {
        Some(setting) => format!("{} sets it.", place(setting)),
        None if host.own.default == wanted => {
            "The default was set by hand or by a program; sysctl does not persist.".to_owned()
        }
        None => {
            "It is the kernel's own default: no file sets another that the kernel takes.".to_owned()
        }
    };
    let finding = Finding::warning(FindingId::LostAtBoot, what).why(why);
    let finding = if next.is_some() { finding } else { finding.possible() };
    if is_kernel_controller(wanted) {
        return Some(finding.remedy("systemctl enable uncork-kernel.service"));
    }
    Some(remedy(host, DEFAULT, wanted).into_iter().fold(finding, Finding::remedy))
}
