//! Faults planted in recorded hosts, and hosts without faults.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;

use uncork_host::{
    Container, Diagnosis, HostFacts, Module, Route, Setting, Severity, Socket, diagnose,
};

fn recorded(name: &str) -> HostFacts {
    let file = format!("{}/tests/hosts/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn healthy() -> HostFacts {
    recorded("healthy")
}

fn found(facts: &HostFacts, wanted: Option<&str>) -> Vec<(&'static str, Severity)> {
    let Diagnosis { findings, .. } = diagnose(facts, wanted).unwrap();
    findings.iter().map(|finding| (finding.id, finding.severity)).collect()
}

/// A connection to a client on the Internet, from port 443.
fn connection(cc: &str, change: impl FnOnce(&mut Socket)) -> Socket {
    let mut sockets = healthy().namespaces.remove(0).sockets.into_iter();
    let mut socket = sockets.find(|socket| socket.remote.is_some()).unwrap();
    cc.clone_into(&mut socket.cc);
    socket.bbr = socket.bbr.filter(|_| cc == "bbr");
    change(&mut socket);
    socket
}

fn setting(key: &str, value: &str) -> Setting {
    let (file, key, value) = ("/etc/sysctl.d/50-tuning.conf".into(), key.into(), value.into());
    Setting { file, line: 7, key, value, exists: true }
}

fn sysctl(facts: &mut HostFacts, key: &str, value: &str) {
    facts.namespaces[0].sysctls.insert(key.to_owned(), value.to_owned());
}

type FaultFn = fn(&mut HostFacts);

/// Each fault is planted alone on the healthy host, which should run `bbr`: the expected finding
/// and its severity.
const FAULTS: [(&str, Severity, FaultFn); 28] = [
    ("algorithm-missing", Severity::Problem, |host| {
        host.namespaces[0].available.retain(|name| name != "bbr");
        host.namespaces[0].default = "cubic".into();
        host.kernel.modules.insert("tcp_bbr".into(), Module::Absent);
    }),
    ("module-not-loaded", Severity::Warning, |host| {
        host.namespaces[0].available.retain(|name| name != "bbr");
        host.namespaces[0].default = "cubic".into();
        host.kernel.modules.insert("tcp_bbr".into(), Module::File);
    }),
    ("not-default", Severity::Problem, |host| host.namespaces[0].default = "cubic".into()),
    ("restricted", Severity::Warning, |host| {
        host.namespaces[0].allowed.retain(|name| name != "bbr");
        host.unread_namespaces.insert(7, vec!["nginx (812)".into()]);
    }),
    ("kernel-too-old", Severity::Problem, |host| host.kernel.release = "4.4.0-210".into()),
    ("kernel-needs-fq", Severity::Problem, |host| {
        host.kernel.release = "4.9.337".into();
        host.namespaces[0].interfaces[1].qdisc = "pfifo_fast".into();
    }),
    ("tcp-feature-off", Severity::Problem, |host| sysctl(host, "net.ipv4.tcp_sack", "0")),
    ("bbr1-ignores-ecn", Severity::Warning, |host| sysctl(host, "net.ipv4.tcp_ecn", "1")),
    ("old-sockets", Severity::Warning, |host| {
        let old = connection("cubic", |socket| socket.age_s = 6 * 86_400);
        host.namespaces[0].sockets.push(old);
    }),
    ("listener-differs", Severity::Warning, |host| {
        let listener = |socket: &mut Socket| socket.remote = None;
        host.namespaces[0].sockets =
            vec![connection("cubic", listener), connection("cubic", |_| {})];
    }),
    ("bbr1-loses", Severity::Warning, |host| {
        let loses =
            |socket: &mut Socket| (socket.sent, socket.retransmitted) = (100_000_000, 9_000_000);
        host.namespaces[0].sockets.push(connection("bbr", loses));
    }),
    ("route-overrides", Severity::Warning, |host| {
        let (destination, congctl) = ("10.0.0.0/8".into(), "cubic".into());
        let route = Route { destination, table: 254, congctl, is_locked: false };
        host.namespaces[0].routes.push(route);
    }),
    ("route-locks", Severity::Note, |host| {
        let (destination, congctl) = ("10.0.0.0/8".into(), "cubic".into());
        let route = Route { destination, table: 254, congctl, is_locked: true };
        host.namespaces[0].routes.push(route);
    }),
    ("namespace-differs", Severity::Warning, |host| {
        let mut other = host.namespaces[0].clone();
        (other.inode, other.default) = (5, "cubic".into());
        other.processes = vec!["nginx (812)".into()];
        host.namespaces.push(other);
    }),
    ("namespaces-not-examined", Severity::Note, |host| {
        host.unread_namespaces.insert(7, vec!["nginx (812)".into()]);
    }),
    ("fq-not-in-use", Severity::Warning, |host| {
        host.namespaces[0].interfaces[1].qdisc = "fq_codel".into();
    }),
    ("pacing-cap-ignored", Severity::Problem, |host| {
        host.kernel.release = "4.12.14".into();
        without_fq(host);
        let capped = connection("bbr", |socket| socket.pacing_cap = Some(1_000_000));
        host.namespaces[0].sockets.push(capped);
    }),
    ("pacing-caps-without-fq", Severity::Warning, |host| {
        without_fq(host);
        let capped = connection("bbr", |socket| socket.pacing_cap = Some(1_000_000));
        host.namespaces[0].sockets.push(capped);
    }),
    ("many-timers", Severity::Warning, |host| {
        without_fq(host);
        host.namespaces[0].sockets.extend((0..1001).map(|_| connection("bbr", |_| {})));
    }),
    ("internal-pacing", Severity::Note, without_fq),
    ("send-buffer-too-small", Severity::Warning, |host| {
        // 100 Mbit/s and 200 ms: a BDP of 2.5 MB.
        let long = |socket: &mut Socket| {
            (socket.bandwidth, socket.min_rtt_us) = (Some(12_500_000), Some(200_000));
        };
        host.namespaces[0].sockets.push(connection("bbr", long));
    }),
    ("set-twice", Severity::Warning, |host| {
        host.boot_sysctls.insert(0, setting("net.core.default_qdisc", "fq_codel"));
    }),
    ("unknown-sysctl", Severity::Warning, |host| {
        let unknown = Setting { exists: false, ..setting("net.ipv4.tcp_pacing_shift", "8") };
        host.boot_sysctls.push(unknown);
    }),
    ("no-effect-on-bbr", Severity::Note, |host| {
        host.boot_sysctls.push(setting("net.ipv4.tcp_slow_start_after_idle", "0"));
    }),
    ("lost-at-boot", Severity::Warning, |host| {
        host.boot_sysctls.retain(|it| it.key != "net.ipv4.tcp_congestion_control");
    }),
    ("pod-has-own-default", Severity::Note, into_pod),
    ("pod-paces-itself", Severity::Note, into_pod),
    ("pod-uses-node-network", Severity::Note, |host| {
        host.container = Some(Container::Kubernetes);
    }),
];

/// A pod with a network namespace of its own: no initial namespace, no hardware, no queue.
fn into_pod(host: &mut HostFacts) {
    host.container = Some(Container::Kubernetes);
    let own = &mut host.namespaces[0];
    own.is_initial = false;
    own.sysctls.remove("net.core.default_qdisc");
    (own.interfaces[1].is_virtual, own.interfaces[1].qdisc) = (true, "noqueue".into());
}

fn without_fq(host: &mut HostFacts) {
    sysctl(host, "net.core.default_qdisc", "fq_codel");
    host.namespaces[0].interfaces[1].qdisc = "fq_codel".into();
}

#[test]
fn each_planted_fault_is_found() {
    for (id, severity, plant) in FAULTS {
        let mut host = healthy();
        plant(&mut host);
        let found = found(&host, Some("bbr"));
        assert!(found.contains(&(id, severity)), "{id}: {found:?}");
        // The fault itself comes before its consequences.
        assert!(found[0].1 <= severity, "{id}: {found:?}");
    }
}

#[test]
fn every_finding_can_be_planted_and_each_has_a_reason() {
    let mut seen = Vec::new();
    for (_, _, plant) in FAULTS {
        let mut host = healthy();
        plant(&mut host);
        for finding in diagnose(&host, Some("bbr")).unwrap().findings {
            let is_note = finding.severity == Severity::Note;
            assert!(!finding.why.is_empty(), "{}", finding.id);
            assert!(is_note || !finding.remedy.is_empty(), "{} has no remedy", finding.id);
            seen.push(finding.id);
        }
    }
    for (id, ..) in FAULTS {
        assert!(seen.contains(&id), "{id}");
    }
}

/// Faults that a pod cannot mend: each remedy says what to do on the node.
#[test]
fn remedies_in_a_pod_are_those_of_its_node() {
    let cases: [(&str, FaultFn, &[&str]); 4] = [
        (
            "not-default",
            |host| host.namespaces[0].default = "cubic".into(),
            &[
                "on the node, then delete the pod",
                "securityContext: {sysctls: [{name: net.ipv4.tcp_congestion_control, value: bbr}]}",
                "--allowed-unsafe-sysctls=net.ipv4.tcp_congestion_control",
                "bandwidthManager.bbr=true",
            ],
        ),
        (
            "restricted",
            |host| host.namespaces[0].allowed.retain(|name| name != "bbr"),
            &["on the node: sysctl -w net.ipv4.tcp_allowed_congestion_control="],
        ),
        (
            "algorithm-missing",
            |host| lacks_bbr(host, Module::Unknown),
            &["on the node: modprobe tcp_bbr", "on the node: echo tcp_bbr > /etc/modules-load.d/"],
        ),
        ("algorithm-missing", |host| lacks_bbr(host, Module::File), &["on the node: modprobe"]),
    ];
    for (id, plant, parts) in cases {
        let mut host = healthy();
        into_pod(&mut host);
        plant(&mut host);
        let findings = diagnose(&host, Some("bbr")).unwrap().findings;
        let finding = findings.iter().find(|finding| finding.id == id).expect(id);
        let remedy = finding.remedy.join("\n");
        for part in parts {
            assert!(remedy.contains(part), "{id}: {part}: {remedy}");
        }
        // Nothing in the pod itself.
        assert!(finding.remedy.iter().all(|step| !step.starts_with("sysctl")), "{remedy}");
    }
}

fn lacks_bbr(host: &mut HostFacts, module: Module) {
    host.namespaces[0].available.retain(|name| name != "bbr");
    host.kernel.modules.insert("tcp_bbr".into(), module);
}

/// A node with a hundred pods has one finding, with a command for all of them.
#[test]
fn namespaces_that_differ_alike_are_one_finding() {
    let mut host = healthy();
    let other = |inode: u64, default: &str, process: String| {
        let mut other = host.namespaces[0].clone();
        (other.inode, other.default, other.processes) = (inode, default.into(), vec![process]);
        other
    };
    let mut others: Vec<_> =
        (0..99).map(|n| other(n, "cubic", format!("nginx ({})", 800 + n))).collect();
    others.push(other(99, "cubic", "netns web".into()));
    others.push(other(100, "reno", "pause (7)".into()));
    host.namespaces.extend(others);
    let findings = diagnose(&host, None).unwrap().findings;
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(
        findings[0]
            .what
            .starts_with("100 namespaces default to cubic, not bbr: those of nginx (800); ")
    );
    assert!(findings[0].what.ends_with("; and 96 more."), "{}", findings[0].what);
    assert!(findings[0].remedy[0].contains(" /proc/898/ns/net /run/netns/web; do nsenter "));
    assert!(findings[1].remedy[0].starts_with("nsenter --net=/proc/7/ns/net sysctl -w "));
}

#[test]
fn a_file_of_the_distribution_may_be_overridden() {
    let mut host = healthy();
    let vendors = |value| Setting {
        file: "/usr/lib/sysctl.d/50-default.conf".into(),
        ..setting("net.core.default_qdisc", value)
    };
    host.boot_sysctls.insert(0, vendors("fq_codel"));
    assert_eq!(found(&host, None), []);
    host.boot_sysctls.push(vendors("fq_codel"));
    assert_eq!(found(&host, None), [("set-twice", Severity::Warning)]);
}

#[test]
fn a_healthy_host_takes_three_lines() {
    let diagnosis = diagnose(&healthy(), None).unwrap();
    assert!(!diagnosis.needs_action() && diagnosis.findings.is_empty(), "{diagnosis:?}");
    let expected = "Linux 6.12.48+deb13-amd64; default: bbr; bbr is BBRv1\n\
                    2 of 2 connections run bbr; 1 network namespace examined\n\
                    Nothing needs to be done.\n";
    assert_eq!(diagnosis.text(false), expected);
}

#[test]
fn unmodified_hosts_have_the_expected_findings() {
    let cases: [(&str, Option<&str>, &[&str]); 5] = [
        ("ubuntu-default", None, &[]),
        ("ubuntu-default", Some("bbr"), &["module-not-loaded", "internal-pacing"]),
        ("azure-bbr3", None, &["vendor-bbr"]),
        ("centos7", None, &[]),
        ("centos7", Some("bbr"), &["kernel-too-old"]),
    ];
    for (name, wanted, expected) in cases {
        let found = found(&recorded(name), wanted);
        let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, expected, "{name}, {wanted:?}");
    }
}

/// nginx opened a listener before the default changed. The listener accepts with the new default,
/// so no restart is needed.
#[test]
fn a_listener_older_than_the_default_needs_nothing() {
    let mut host = healthy();
    let listener = host.namespaces[0].sockets.iter_mut().find(|socket| socket.remote.is_none());
    listener.unwrap().cc = "cubic".into();
    assert_eq!(found(&host, None), [("listener-older-than-default", Severity::Note)]);
}

#[test]
fn connections_explained_by_a_route_are_not_reported_as_old() {
    let mut host = healthy();
    let (destination, congctl) = ("198.51.100.0/24".into(), "cubic".into());
    host.namespaces[0].routes.push(Route { destination, table: 254, congctl, is_locked: true });
    host.namespaces[0].sockets.push(connection("cubic", |_| {}));
    assert_eq!(found(&host, None), [("route-locks", Severity::Note)]);
}
