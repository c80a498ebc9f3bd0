//! Checks the configuration for the next boot.

use std::collections::BTreeMap;

use super::Host;
use super::finding::Finding;
use crate::facts::Setting;

const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
/// Sysctls without effect on a flow that BBR controls: BBR has its own pacing and its own TSO size.
const IDLE: [(&str, &str); 4] = [
    ("net.ipv4.tcp_pacing_ss_ratio", "BBR sets the pacing rate itself."),
    ("net.ipv4.tcp_pacing_ca_ratio", "BBR sets the pacing rate itself."),
    ("net.ipv4.tcp_slow_start_after_idle", "Algorithms with their own rate control ignore it."),
    ("net.ipv4.tcp_min_tso_segs", "BBR chooses its own minimum, one or two segments."),
];

pub(super) fn check(host: Host<'_>, findings: &mut Vec<Finding>) {
    let mut last: BTreeMap<&str, &Setting> = BTreeMap::new();
    for setting in &host.facts.boot_sysctls {
        let before = last.insert(&setting.key, setting);
        findings.extend(
            before.filter(|before| contradicts(before, setting)).map(|it| conflict(it, setting)),
        );
        if !setting.exists {
            findings.push(unknown(host, setting));
        }
    }
    if host.own.is_initial {
        findings.extend(after_reboot(host, last.get(DEFAULT).copied()));
    }
    let idle = IDLE.iter().filter(|_| host.wants_bbr());
    findings
        .extend(idle.filter_map(|(key, why)| last.get(key).map(|setting| no_effect(setting, why))));
}

/// A file in /etc may override one of the distribution: that is what it is for (sysctl.d(5)).
fn contradicts(before: &Setting, setting: &Setting) -> bool {
    let is_vendors = |it: &Setting| ["/usr/lib/", "/lib/"].iter().any(|at| it.file.starts_with(at));
    let is_override = is_vendors(before) && !is_vendors(setting);
    before.value != setting.value && !is_override
}

fn place(setting: &Setting) -> String {
    format!("{}:{}", setting.file, setting.line)
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
    Finding::warning("set-twice", what)
        .why(why)
        .remedy(format!("Remove one of them: {}", place(before)))
}

fn unknown(host: Host<'_>, setting: &Setting) -> Finding {
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
    Finding::warning("unknown-sysctl", what)
        .why(why)
        .remedy(format!("Remove the line: {}", place(setting)))
}

fn no_effect(setting: &Setting, why: &str) -> Finding {
    let what = format!("{} sets {}, which has no effect on BBR.", place(setting), setting.key);
    Finding::note("no-effect-on-bbr", what).why(why)
}

/// Whether new connections will run the same algorithm after the next boot.
fn after_reboot(host: Host<'_>, setting: Option<&Setting>) -> Option<Finding> {
    let default = &host.own.default;
    let (next, certain) = match (setting, &host.facts.kernel.compiled_default) {
        (Some(setting), _) => (Some(&setting.value), true),
        (None, compiled) => (compiled.as_ref(), compiled.is_some()),
    };
    let what = match next {
        Some(next) if next == default => return None,
        Some(next) => format!("After the next boot new connections run {next}, not {default}."),
        // Most kernels are compiled with cubic or reno as their default.
        None if matches!(&**default, "cubic" | "reno") => return None,
        None => format!("No file sets {default} as the default: the next boot may bring another."),
    };
    let why = setting.map_or_else(
        || "The default was set by hand or by a program; sysctl does not persist.".to_owned(),
        |setting| format!("{} sets it.", place(setting)),
    );
    let finding = Finding::warning("lost-at-boot", what).why(why);
    let finding = if certain { finding } else { finding.possible() };
    Some(
        finding
            .remedy(format!("echo {DEFAULT}={default} > /etc/sysctl.d/99-congestion-control.conf")),
    )
}
