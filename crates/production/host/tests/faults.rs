//! Faults planted in recorded hosts, and hosts without faults.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeSet;
use std::fs;

use uncork_host::{
    Container, Diagnosis, FindingId, HostFacts, LimitingRoute, Module, Route, Setting, Severity,
    Socket, diagnose,
};
use uncork_policy::{ActivePolicy, OtherProgram};
use uncork_testkit::{assert_generated, assert_message};

fn recorded(name: &str) -> HostFacts {
    let file = format!("{}/tests/hosts/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn healthy() -> HostFacts {
    recorded("healthy")
}

fn found(facts: &HostFacts, wanted: Option<&str>) -> Vec<(&'static str, Severity)> {
    let Diagnosis { findings, .. } = diagnose(facts, wanted).unwrap();
    findings.iter().map(|finding| (finding.id.name(), finding.severity)).collect()
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
const FAULTS: [(&str, Severity, FaultFn); 55] = [
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
    ("module-forbidden", Severity::Problem, |host| {
        host.namespaces[0].available.retain(|name| name != "bbr");
        host.namespaces[0].default = "cubic".into();
        host.kernel.modules.insert("tcp_bbr".into(), Module::File);
        host.kernel.forbidden_modules.insert("tcp_bbr".into(), "/etc/modprobe.d/cis.conf:3".into());
    }),
    ("refused-at-boot", Severity::Warning, |host| {
        host.boot_sysctls.push(setting("net.ipv4.tcp_pacing_ss_ratio", "1001"));
    }),
    ("refused-at-boot", Severity::Warning, |host| {
        host.boot_sysctls.push(setting("net.ipv4.tcp_wmem", "4096 16384 99999999999"));
    }),
    ("not-default", Severity::Problem, |host| host.namespaces[0].default = "cubic".into()),
    ("restricted", Severity::Warning, |host| {
        host.namespaces[0].allowed.retain(|name| name != "bbr");
        host.unread_namespaces.insert(7, vec!["nginx (812)".into()]);
    }),
    ("kernel-too-old", Severity::Problem, |host| {
        lacks_bbr(host, Module::Absent);
        host.kernel.release = "4.4.0-210".into();
    }),
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
        (other.inode, other.default, other.is_initial) = (5, "cubic".into(), false);
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
    ("l4s-not-negotiated", Severity::Warning, |host| {
        let own = &mut host.namespaces[0];
        own.available.push("uncork_prague".into());
        own.sockets.push(connection("uncork_prague", |_| {}));
    }),
    ("l4s-bursts", Severity::Note, |host| {
        let own = &mut host.namespaces[0];
        own.available.push("uncork_prague".into());
        own.sockets.push(connection("uncork_prague", |_| {}));
        sysctl(host, "net.ipv4.tcp_min_tso_segs", "2");
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
    ("module-unknown", Severity::Warning, |host| lacks_bbr(host, Module::Unknown)),
    ("refused-at-boot", Severity::Warning, |host| {
        host.boot_sysctls.push(setting("net.ipv4.tcp_congestion_control", "bbr    # faster"));
    }),
    ("refused-at-boot", Severity::Warning, |host| {
        host.boot_sysctls.push(setting("net.core.default_qdisc", "fq_codle"));
    }),
    ("malformed-triple", Severity::Warning, |host| {
        host.boot_sysctls.push(setting("net.ipv4.tcp_wmem", "16777216"));
    }),
    ("malformed-triple", Severity::Warning, |host| {
        sysctl(host, "net.ipv4.tcp_wmem", "16777216 16384 4194304");
    }),
    ("file-not-read", Severity::Warning, |host| {
        let line = setting("net.ipv4.tcp_congestion_control", "cubic");
        host.unread_sysctls.push(Setting { file: "/etc/sysctl.conf".into(), ..line });
    }),
    ("interface-shaped", Severity::Warning, |host| {
        host.namespaces[0].interfaces[1].qdisc = "tbf".into();
    }),
    ("interface-drops", Severity::Warning, |host| {
        let interface = &mut host.namespaces[0].interfaces[1];
        (interface.sent_packets, interface.dropped_packets) = (Some(10_000), Some(300));
    }),
    ("mtu-small", Severity::Warning, |host| host.namespaces[0].interfaces[1].mtu = Some(300)),
    ("send-buffer-too-small", Severity::Warning, |host| {
        host.namespaces[0].sockets.clear();
        sysctl(host, "net.ipv4.tcp_wmem", "4096 16384 20000");
    }),
    ("receive-buffer-too-small", Severity::Warning, |host| {
        sysctl(host, "net.ipv4.tcp_rmem", "4096 16000 16000");
    }),
    ("tcp-memory-too-small", Severity::Warning, |host| {
        sysctl(host, "net.ipv4.tcp_mem", "10 20 30");
    }),
    ("loss-recovery-off", Severity::Warning, |host| sysctl(host, "net.ipv4.tcp_recovery", "0")),
    ("loss-recovery-off", Severity::Warning, |host| {
        sysctl(host, "net.ipv4.tcp_early_retrans", "0");
    }),
    ("route-limits", Severity::Warning, |host| {
        let limits = LimitingRoute {
            destination: "default".into(),
            table: 254,
            initcwnd: Some(1),
            cwnd: None,
            window: Some(8_000),
            mtu: None,
        };
        host.namespaces[0].limiting_routes.push(limits);
    }),
    ("policy-controller-missing", Severity::Problem, |host| {
        host.policies.push(ActivePolicy {
            cgroup: "/sys/fs/cgroup/web".into(),
            policy: "policy.toml".into(),
            controllers: vec!["bbr".into(), "uncork_bbr3".into()],
        });
    }),
    ("other-program-at-cgroup", Severity::Warning, |host| {
        let cgroup = "/sys/fs/cgroup/web".into();
        host.other_programs.push(OtherProgram { cgroup, number: 7, name: None, is_last: true });
    }),
    ("kernel-controllers", Severity::Note, |host| {
        host.namespaces[0].available.push("uncork_bbr3".into());
    }),
    ("old-copy-is-default", Severity::Warning, |host| {
        host.namespaces[0].default = "uncork_bbr3".into();
    }),
    ("old-copies", Severity::Note, |host| {
        host.namespaces[0].sockets.push(connection("uncork_bbr3", |_| {}));
    }),
    ("vendor-bbr", Severity::Note, |host| host.kernel.bbr_version = Some(3)),
    ("listener-older-than-default", Severity::Note, |host| {
        host.namespaces[0].sockets.push(connection("cubic", |socket| socket.remote = None));
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

/// The diagnoses of all planted faults.
fn diagnoses() -> impl Iterator<Item = Diagnosis> {
    let planted = FAULTS.iter().map(|(_, _, plant)| {
        let mut host = healthy();
        plant(&mut host);
        diagnose(&host, Some("bbr")).unwrap()
    });
    planted.chain(diagnose(&healthy(), Some("uncork_bbr3")))
}

#[test]
fn each_finding_of_the_list_occurs_and_has_a_reason() {
    let mut seen = BTreeSet::new();
    for finding in diagnoses().flat_map(|diagnosis| diagnosis.findings) {
        let is_note = finding.severity == Severity::Note;
        assert!(!finding.why.is_empty(), "{}", finding.id);
        assert!(is_note || !finding.remedy.is_empty(), "{} has no remedy", finding.id);
        assert!(finding.id.severities().contains(&finding.severity), "{}", finding.id);
        seen.insert(finding.id);
    }
    assert_eq!(seen, FindingId::ALL.iter().copied().collect());
}

#[test]
fn table_of_findings_is_current() {
    let row = |id: &FindingId| {
        let severities = id.severities().iter().map(ToString::to_string).collect::<Vec<_>>();
        let (severities, meaning) = (severities.join(", "), id.meaning());
        format!("| <a id=\"{id}\"></a>`{id}` | {severities} | {meaning} |\n")
    };
    let rows: String = FindingId::ALL.iter().map(row).collect();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/host.md");
    let command = "UPDATE_DOCS=1 cargo test -p uncork-host --test faults findings";
    let table = format!("| finding | severity | meaning |\n|---|---|---|\n{rows}");
    assert_generated(page.as_ref(), "findings", command, &table);
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
        let finding = findings.iter().find(|finding| finding.id.name() == id).expect(id);
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
        other.is_initial = false;
        other
    };
    let mut others: Vec<_> =
        (0..99).map(|n| other(n, "cubic", format!("nginx ({})", 800 + n))).collect();
    others.push(other(99, "cubic", "netns web".into()));
    others.push(other(100, "reno", "pause (7)".into()));
    host.namespaces.extend(others);
    let findings = diagnose(&host, None).unwrap().findings;
    assert_eq!(findings.len(), 2, "{findings:?}");
    for (controller, finding) in ["cubic", "reno"].into_iter().zip(&findings) {
        assert_message!(controller, format!("{}\n{}", finding.what, finding.remedy[0]));
    }
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
        ("ubuntu-default", Some("bbr"), &["module-not-loaded", "lost-at-boot", "internal-pacing"]),
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

/// Without a connection nothing shows which controller it gives. Only what was the default once can be that of an old listener.
#[test]
fn an_idle_listener_with_a_controller_that_was_no_default_is_a_warning() {
    let with = |cc: &str| {
        let mut host = healthy();
        let sockets = &mut host.namespaces[0].sockets;
        sockets.retain(|socket| socket.remote.is_none());
        cc.clone_into(&mut sockets[0].cc);
        host
    };
    assert_eq!(found(&with("reno"), None), [("listener-differs", Severity::Warning)]);
    let older = finding(&with("cubic"), None, "listener-older-than-default");
    assert!(older.why.contains("if the program sets TCP_CONGESTION"), "{}", older.why);
}

#[test]
fn connections_explained_by_a_route_are_not_reported_as_old() {
    let mut host = healthy();
    let (destination, congctl) = ("198.51.100.0/24".into(), "cubic".into());
    host.namespaces[0].routes.push(Route { destination, table: 254, congctl, is_locked: true });
    host.namespaces[0].sockets.push(connection("cubic", |_| {}));
    assert_eq!(found(&host, None), [("route-locks", Severity::Note)]);
}

/// The finding with this name, or the whole text.
fn finding(facts: &HostFacts, wanted: Option<&str>, id: &str) -> uncork_host::Finding {
    let diagnosis = diagnose(facts, wanted).unwrap();
    let text = diagnosis.text(true);
    diagnosis.findings.into_iter().find(|finding| finding.id.name() == id).expect(&text)
}

/// The files already say what is wanted, as every guide has it: nothing will be lost, and no remedy undoes it.
#[test]
fn the_next_boot_is_compared_with_what_is_wanted() {
    let mut host = healthy();
    host.namespaces[0].default = "cubic".into();
    let ids: Vec<_> = found(&host, Some("bbr")).into_iter().map(|(id, _)| id).collect();
    assert!(ids.contains(&"not-default") && !ids.contains(&"lost-at-boot"), "{ids:?}");
    let why = finding(&host, Some("bbr"), "not-default").why;
    assert_message!("not applied", why);
    assert!(found(&host, Some("cubic")).contains(&("lost-at-boot", Severity::Warning)));
}

const SET: &str = "net.ipv4.tcp_congestion_control = bbr";

/// The remedy wins over what sets the default today: the line itself, or a file that is read later.
#[test]
fn the_remedy_for_the_next_boot_is_read_last() {
    let changed = |file: &str, line| {
        let line = format!("sed -i --follow-symlinks '{line}s|.*|{SET}|' {file}");
        format!("{line} || echo '{SET}' >> {file}")
    };
    let echo =
        |name: &str| format!("echo net.ipv4.tcp_congestion_control=bbr > /etc/sysctl.d/{name}");
    for (file, remedy) in [
        ("/etc/sysctl.d/99-sysctl.conf", changed("/etc/sysctl.d/99-sysctl.conf", 7)),
        ("/etc/sysctl.conf", changed("/etc/sysctl.conf", 7)),
        ("/usr/lib/sysctl.d/50-default.conf", echo("99-congestion-control.conf")),
        ("/usr/lib/sysctl.d/99-zz.conf", echo("99-zz_congestion-control.conf")),
        ("/proc/cmdline", echo("99-congestion-control.conf")),
        ("/usr/lib/tuned/web/tuned.conf", echo("99-congestion-control.conf")),
    ] {
        let mut host = healthy();
        let line = setting("net.ipv4.tcp_congestion_control", "cubic");
        host.boot_sysctls = vec![Setting { file: file.into(), ..line }];
        assert_eq!(finding(&host, None, "lost-at-boot").remedy[0], remedy, "{file}");
    }
}

/// systemd writes the last value of all files, others each of them: a last line that fails leaves the kernel's default, or the
/// line before.
#[test]
fn a_line_that_the_kernel_refuses_sets_nothing() {
    for value in ["bbr    # faster", "BBR", "bbr3", "uncork_bbr3", "nosuch"] {
        let mut host = healthy();
        host.boot_sysctls.push(setting("net.ipv4.tcp_congestion_control", value));
        let lost = finding(&host, None, "lost-at-boot");
        assert_message!(value, lost.what);
        let refused = finding(&host, None, "refused-at-boot");
        assert!(!refused.remedy[0].contains("tcp_bbr3"), "{refused:?}");
        host.has_systemd = Some(false);
        assert!(!found(&host, None).iter().any(|(id, _)| *id == "lost-at-boot"), "{value}");
    }
    let mut host = healthy();
    host.boot_sysctls = vec![setting("net.ipv4.tcp_congestion_control", "bbr # fast")];
    let remedy = &finding(&host, None, "refused-at-boot").remedy[0];
    let expected = format!("sed -i --follow-symlinks '7s|.*|{SET}|' /etc/sysctl.d/50-tuning.conf");
    assert!(remedy.starts_with(&expected), "{remedy}");
}

/// A kernel takes a number with a comment after it.
#[test]
fn numbers_may_have_comments() {
    let mut host = healthy();
    host.boot_sysctls.push(setting("net.ipv4.tcp_wmem", "4096 16384 8388608 # large"));
    host.boot_sysctls.push(setting("net.ipv4.tcp_sack", "1 # on"));
    assert_eq!(found(&host, None), []);
    host.boot_sysctls.push(setting("net.ipv4.tcp_sack", "on"));
    assert!(found(&host, None).contains(&("refused-at-boot", Severity::Warning)));
}

#[test]
fn what_is_not_known_is_not_called_absent() {
    for container in [None, Some(Container::Other)] {
        let mut host = healthy();
        host.container = container;
        lacks_bbr(&mut host, Module::Unknown);
        host.namespaces[0].default = "cubic".into();
        let text = diagnose(&host, Some("bbr")).unwrap().text(true);
        assert!(!text.contains("has no bbr") && !text.contains("CONFIG_TCP_BBR"), "{text}");
        let place = if container.is_some() { "on the host: " } else { "" };
        assert!(text.contains(&format!("do:  {place}modprobe tcp_bbr")), "{text}");
    }
    let mut host = healthy();
    lacks_bbr(&mut host, Module::Absent);
    let remedy = finding(&host, Some("bbr"), "algorithm-missing").remedy.join("\n");
    assert!(remedy.contains("CONFIG_TCP_CONG_BBR"), "{remedy}");
    lacks_bbr(&mut host, Module::BuiltIn);
    let what = finding(&host, Some("bbr"), "algorithm-missing").what;
    assert!(what.starts_with("tcp_bbr is built in, but"), "{what}");
}

/// No command loads a module that Linux does not have.
#[test]
fn names_that_people_write_are_understood() {
    for (written, wanted) in
        [("BBR", "bbr"), ("bbr1", "bbr"), ("bbr3", "uncork_bbr3"), ("BBR2", "uncork_bbr2")]
    {
        let diagnosis = diagnose(&healthy(), Some(written)).unwrap();
        assert_eq!(diagnosis.summary.wanted, wanted);
        let text = diagnosis.text(true);
        assert!(
            !text.contains("tcp_bbr3") && !text.contains("tcp_BBR") && !text.contains("tcp_bbr2"),
            "{text}"
        );
        let load = format!("uncork kernel load {wanted}");
        assert_eq!(text.contains(&load), wanted != "bbr", "{text}");
    }
    // A vendor's kernel has BBRv3 as `bbr`.
    let diagnosis = diagnose(&recorded("azure-bbr3"), Some("bbr3")).unwrap();
    assert_eq!(diagnosis.summary.wanted, "bbr");
    let text = diagnose(&healthy(), Some("vegas2")).unwrap().text(true);
    assert!(!text.contains("modprobe"), "{text}");
}

/// Before Linux 5.7 a container does not see which algorithms there are.
#[test]
fn a_list_that_a_namespace_does_not_show_is_not_empty() {
    let mut host = healthy();
    let own = &mut host.namespaces[0];
    (own.is_initial, own.default) = (false, "cubic".into());
    (own.available, own.allowed) = (vec![], vec![]);
    let text = diagnose(&host, Some("bbr")).unwrap().text(true);
    assert_message!("bbr", text);
}

#[test]
fn a_vendor_s_bbr_in_an_old_kernel_is_bbr() {
    let mut host = healthy();
    host.kernel.release = "3.10.0-1160.105.1.vz7.214.3".into();
    assert!(!found(&host, Some("bbr")).iter().any(|(id, _)| *id == "kernel-too-old"));
}

#[test]
fn wifi_keeps_its_own_queue() {
    let mut host = healthy();
    let interface = &mut host.namespaces[0].interfaces[1];
    (interface.name, interface.qdisc, interface.leaves) =
        ("wlan0".into(), "noqueue".into(), vec![]);
    assert_eq!(found(&host, None), [("internal-pacing", Severity::Note)]);
    assert!(!diagnose(&host, None).unwrap().text(true).contains("tc qdisc replace"));
}

/// CUBIC needs less buffer than BBR, and no text about BBR.
#[test]
fn buffers_are_judged_by_the_wanted_algorithm() {
    let mut host = healthy();
    // A BDP of 1 MB: CUBIC needs 2 MB of 4, BBR 6.
    let fast = |socket: &mut Socket| {
        (socket.bandwidth, socket.min_rtt_us) = (Some(100_000_000), Some(10_000));
    };
    host.namespaces[0].sockets = vec![connection("cubic", fast)];
    sysctl(&mut host, "net.ipv4.tcp_wmem", "4096 16384 4194304");
    host.namespaces[0].default = "cubic".into();
    let text = diagnose(&host, Some("cubic")).unwrap().text(true);
    assert!(!text.contains("buffer") && !text.contains("BDP"), "{text}");
    assert!(found(&host, Some("bbr")).contains(&("send-buffer-too-small", Severity::Warning)));
}

#[test]
fn routes_alike_are_one_finding() {
    let mut host = healthy();
    let route = |n: u32| Route {
        destination: format!("11.{}.{}.0/24", n / 256, n % 256),
        table: 254,
        congctl: "uncork_bbr3".into(),
        is_locked: false,
    };
    host.namespaces[0].routes = (0..360).map(route).collect();
    let diagnosis = diagnose(&host, None).unwrap();
    assert_eq!(diagnosis.findings.len(), 1, "{diagnosis:?}");
    let what = "Connections to 360 networks (11.0.0.0/24, 11.0.1.0/24, 11.0.2.0/24, …) run uncork_bbr3: \
                routes without lock choose it.";
    assert_eq!(diagnosis.findings[0].what, what);
    assert!(diagnosis.text(true).len() < 1_000);
}

/// Within a namespace no remedy changes the host or other namespaces.
#[test]
fn from_a_namespace_others_are_left_alone() {
    let mut host = healthy();
    let initial = host.namespaces[0].clone();
    let own = &mut host.namespaces[0];
    (own.inode, own.is_initial) = (7, false);
    let mut other = initial.clone();
    (other.inode, other.is_initial, other.default) = (9, false, "reno".into());
    host.namespaces.extend([uncork_host::Namespace { default: "cubic".into(), ..initial }, other]);
    host.boot_sysctls.clear();
    let diagnosis = diagnose(&host, None).unwrap();
    assert!(!diagnosis.needs_action(), "{}", diagnosis.text(true));
    let text = diagnosis.text(true);
    assert!(!text.contains("nsenter"), "{text}");
    assert_message!("cubic", text);
}

/// A process may have any name: its number decides what a command enters.
#[test]
fn a_command_enters_a_namespace_by_number() {
    let mut host = healthy();
    let mut other = host.namespaces[0].clone();
    (other.inode, other.is_initial, other.default) = (9, false, "reno".into());
    other.processes = vec!["netns x;id (812)".into()];
    host.namespaces.push(other);
    let remedy = &finding(&host, None, "namespace-differs").remedy[0];
    assert!(remedy.starts_with("nsenter --net=/proc/812/ns/net sysctl"), "{remedy}");
}
