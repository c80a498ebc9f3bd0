//! Routes of a policy, on a host in memory.

use std::path::PathBuf;

use uncork_host::change::{
    ChangeError, Prefix, Report, SettingKey, Value, apply_again, revert, status,
};
use uncork_testkit::finished_table;

use crate::desired_states::apply_text;
use crate::memory::{DEFAULT, Memory, sysctl};

const POLICY: &str = r#"
[default]
tcp = "cubic"
[experiment.explore]
unit = "prefix"
share = "50%"
[experiment.explore.arm.control]
tcp = "cubic"
[experiment.explore.arm.bbr]
tcp = "bbr"
[table]
file = "networks.table"
[table.arm.control]
tcp = "cubic"
[table.arm.bbr]
tcp = "bbr"
[[rule]]
client = "198.18.0.0/16"
experiment = "explore"
[[rule]]
table = "large"
"#;

const FILE: &str = "algorithm = \"cubic\"\n[routes]\npolicy = \"/policy/policy.toml\"\n";
const EXPIRES: u64 = 7 * 86_400;

/// A table that expires seven days after 1970 began.
pub(crate) fn table(entries: &str) -> Vec<u8> {
    let head =
        "uncork-table 1\nversion 7\nmade 1970-01-01T00:00:00Z\nexpires 1970-01-08T00:00:00Z\n";
    finished_table(&format!("{head}section large\n{entries}")).into_bytes()
}

fn put(host: &mut Memory, name: &str, bytes: impl Into<Vec<u8>>) {
    host.files.insert(PathBuf::from(format!("/policy/{name}")), bytes.into());
}

fn host(entries: &str) -> Memory {
    let mut host = Memory::new();
    put(&mut host, "policy.toml", POLICY.replace("client = \"198.18.0.0/16\"\n", ""));
    put(&mut host, "networks.table", table(entries));
    host
}

/// Destination and algorithm of the routes but the default's.
fn routes(host: &Memory) -> Vec<String> {
    let route = |(setting, value): (&SettingKey, &Value)| match (setting, value) {
        (SettingKey::Route { to }, Value::Route(route)) if to != "0.0.0.0/0" => {
            Some(format!("{to} {}", route.congctl.as_deref().unwrap_or("-")))
        }
        _ => None,
    };
    host.values.iter().filter_map(route).collect()
}

/// Without the random share, which takes half of the networks away.
fn plain(host: &mut Memory) {
    let rule = "[[rule]]\nexperiment = \"explore\"\n";
    let policy = POLICY.replace("client = \"198.18.0.0/16\"\n", "").replace(rule, "");
    let (head, rest) = policy.split_once("[experiment.explore]").unwrap();
    let (_, rest) = rest.split_once("[table]").unwrap();
    put(host, "policy.toml", format!("{head}[table]{rest}"));
}

fn steps(report: &Report) -> Vec<String> {
    report.steps.iter().map(|step| format!("{} {}", step.setting, step.after)).collect()
}

#[test]
fn applied_again_only_differences_change_and_revert_restores_what_was_there_first() {
    let mut host =
        host("10.1.0.0/24 bbr\n10.2.0.0/16 bbr\n10.2.3.0/24 control\n10.9.0.0/24 control\n");
    plain(&mut host);
    let before = host.visible();
    apply_text(&mut host, FILE, None).unwrap();
    assert_eq!(routes(&host), ["10.1.0.0/24 bbr", "10.2.0.0/16 bbr", "10.2.3.0/24 cubic"]);
    assert!(apply_text(&mut host, FILE, None).unwrap().steps.is_empty());
    put(&mut host, "networks.table", table("10.1.0.0/24 bbr\n10.9.0.0/24 bbr\n10.2.3.0/24 bbr\n"));
    let report = apply_text(&mut host, FILE, None).unwrap();
    assert_eq!(routes(&host), ["10.1.0.0/24 bbr", "10.2.3.0/24 bbr", "10.9.0.0/24 bbr"]);
    let steps = steps(&report);
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert!(steps.contains(&"route to 10.2.0.0/16 -".to_owned()), "{steps:?}");
    // All that `status` and `revert` know is in the journal.
    assert!(status(&mut host).unwrap().settings.len() >= 3);
    revert(&mut host).unwrap();
    assert_eq!(host.visible(), before);
}

/// The path of each route and its algorithm.
fn paths(host: &Memory) -> Vec<String> {
    let path = |(setting, value): (&SettingKey, &Value)| match setting {
        SettingKey::Route { to } => Some(format!("{to} {value}")),
        _ => None,
    };
    host.values.iter().filter_map(path).collect()
}

#[test]
fn initial_windows_of_the_policy_become_routes_and_networks_without_one_keep_the_kernels() {
    let mut host = host("");
    let policy = "[default]\ntcp = \"cubic\"\n\
                  [[rule]]\nclient = \"10.1.2.0/24\"\nuse = { tcp = \"cubic\" }\n\
                  [[rule]]\nclient = \"10.1.0.0/16\"\nuse = { initial_window = \"32p\" }\n\
                  [[rule]]\nclient = \"10.9.0.0/16\"\nuse = { tcp = \"bbr\", initial_window = \"14600B\" }\n";
    put(&mut host, "policy.toml", policy);
    let before = host.visible();
    apply_text(&mut host, FILE, None).unwrap();
    let way = "via 192.0.2.1 dev eth0 proto";
    assert_eq!(
        paths(&host),
        [
            format!("0.0.0.0/0 {way} dhcp"),
            format!("10.1.0.0/16 {way} static initcwnd 32 congctl cubic"),
            format!("10.1.2.0/24 {way} static congctl cubic"),
            format!("10.9.0.0/16 {way} static initcwnd 10 congctl bbr"),
        ]
    );
    assert!(apply_text(&mut host, FILE, None).unwrap().steps.is_empty());
    revert(&mut host).unwrap();
    assert_eq!(host.visible(), before);
}

#[test]
fn an_expired_table_has_no_routes_and_the_random_share_goes_on() {
    let mut host = host("198.18.0.0/16 bbr\n");
    apply_text(&mut host, FILE, None).unwrap();
    let active = routes(&host);
    assert_eq!(active[0], "198.18.0.0/16 bbr");
    let count = |all: &[String], algorithm| all.iter().filter(|it| it.ends_with(algorithm)).count();
    assert!((44..84).contains(&count(&active, " cubic")), "{}", active.len());
    assert_eq!(count(&active, " bbr"), 1);
    host.clock = EXPIRES;
    let report = apply_text(&mut host, FILE, None).unwrap();
    assert!(report.warnings.iter().any(|it| it.contains("its table has expired")), "{report:?}");
    let expired = routes(&host);
    assert_eq!(count(&expired, " cubic"), 0, "{expired:?}");
    assert!((44..84).contains(&count(&expired, " bbr")), "{}", expired.len());
}

/// Refused until its table expires; then the command removes its routes and says why.
#[test]
fn a_policy_that_is_refused_changes_nothing_until_the_active_table_has_expired() {
    let mut host = host("10.1.0.0/24 bbr\n");
    plain(&mut host);
    apply_text(&mut host, FILE, None).unwrap();
    let active = host.visible();
    put(&mut host, "networks.table", "cut");
    let error = apply_text(&mut host, FILE, None).unwrap_err();
    assert!(matches!(error, ChangeError::Plan(_)), "{error}");
    assert!(error.to_string().contains("table '/policy/networks.table'"), "{error}");
    assert_eq!(host.visible(), active);
    host.clock = EXPIRES;
    let report = apply_text(&mut host, FILE, None).unwrap();
    assert!(report.refused.unwrap().contains("table '/policy/networks.table'"));
    assert!(routes(&host).is_empty());
    // After that, there is nothing left to take away.
    apply_text(&mut host, FILE, None).unwrap_err();
}

#[test]
fn after_a_reboot_the_policy_is_read_again() {
    let file = FILE.replacen('\n', "\npersist = true\n", 1);
    let mut host = host("10.1.0.0/24 bbr\n");
    plain(&mut host);
    apply_text(&mut host, &file, None).unwrap();
    put(&mut host, "networks.table", table("10.2.0.0/24 bbr\n"));
    host.reboot();
    assert_eq!(routes(&host), ["10.2.0.0/24 bbr"]);
    // Without a reboot as `apply` does: what is new of the policy, or nothing.
    put(&mut host, "networks.table", table("10.3.0.0/24 bbr\n"));
    apply_again(&mut host).unwrap();
    assert_eq!(routes(&host), ["10.3.0.0/24 bbr"]);
    put(&mut host, "networks.table", "cut");
    assert!(matches!(apply_again(&mut host), Err(ChangeError::Plan(_))));
    assert_eq!(routes(&host), ["10.3.0.0/24 bbr"]);
    // A policy that is refused does not keep the rest from being set.
    put(&mut host, "policy.toml", "no policy");
    host.boot();
    let report = apply_again(&mut host).unwrap();
    assert!(report.refused.unwrap().contains("/policy/policy.toml:1"));
    assert!(routes(&host).is_empty());
    assert_eq!(host.values[&sysctl(DEFAULT)], Value::text("cubic"));
}

/// The host's own routes, those of the file, and a gateway that changes.
#[test]
fn routes_that_are_there_count() {
    let mut host =
        host("10.1.0.0/16 bbr\n10.1.2.0/24 control\n10.1.9.0/24 control\n10.3.0.0/24 control\n");
    plain(&mut host);
    let Value::Route(default) =
        host.values[&SettingKey::Route { to: "0.0.0.0/0".to_owned() }].clone()
    else {
        panic!("no default route")
    };
    let own = |to: &str, algorithm: Option<&str>| {
        let desired =
            format!("[[route]]\nto = \"{to}\"\nalgorithm = \"{}\"\n", algorithm.unwrap_or("reno"));
        let mut made = Memory::new();
        apply_text(&mut made, &desired, None).unwrap();
        let mut value = made.values[&SettingKey::Route { to: to.to_owned() }].clone();
        if let (Value::Route(route), None) = (&mut value, algorithm) {
            route.congctl = None;
        }
        value
    };
    // A narrower route without an algorithm, in a network that the policy gives BBR, and a wider one that has Reno.
    for (to, algorithm) in [("10.1.5.0/24", None), ("10.3.0.0/16", Some("reno"))] {
        host.values.insert(SettingKey::Route { to: to.to_owned() }, own(to, algorithm));
    }
    let file = format!("{FILE}[[route]]\nto = \"10.1.9.0/24\"\nalgorithm = \"reno\"\n");
    apply_text(&mut host, &file, None).unwrap();
    let found = routes(&host);
    let expected = [
        "10.1.0.0/16 bbr",
        "10.1.2.0/24 cubic",
        "10.1.5.0/24 bbr",
        "10.1.9.0/24 reno",
        "10.3.0.0/16 reno",
        "10.3.0.0/24 cubic",
    ];
    assert_eq!(found, expected);
    assert!(apply_text(&mut host, &file, None).unwrap().steps.is_empty());
    // Another gateway: copies of the default route follow.
    let moved = default.message.replace("c0000201", "c0000209");
    assert_ne!(moved, default.message);
    let path = default.path.replace("192.0.2.1", "192.0.2.9");
    let default = uncork_host::change::Route { message: moved, path, ..default };
    host.values.insert(SettingKey::Route { to: "0.0.0.0/0".to_owned() }, Value::Route(default));
    let report = apply_text(&mut host, &file, None).unwrap();
    let steps = steps(&report);
    assert!(steps.iter().all(|it| it.contains("via 192.0.2.9")), "{steps:?}");
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert_eq!(routes(&host), expected);
}

/// The host has no way to a network on purpose: a policy makes none.
#[test]
fn what_leads_nowhere_still_does() {
    let mut host = host("10.1.0.0/24 bbr\n10.2.0.0/24 bbr\n10.2.3.0/24 bbr\n");
    plain(&mut host);
    host.closed.insert("10.2.0.0/16".parse().unwrap());
    apply_text(&mut host, FILE, None).unwrap();
    assert_eq!(routes(&host), ["10.1.0.0/24 bbr"]);
}

#[test]
fn a_route_to_what_leads_nowhere_is_refused_by_name() {
    let mut host = Memory::new();
    host.closed.insert("10.14.0.0/16".parse().unwrap());
    let before = host.visible();
    for to in ["10.14.0.0/16", "10.14.3.0/24"] {
        let file = format!("[[route]]\nto = \"{to}\"\nalgorithm = \"reno\"\n");
        let refused = apply_text(&mut host, &file, None).unwrap_err().to_string();
        assert!(refused.contains(&format!("route to {to}: it leads nowhere")), "{refused}");
        assert_eq!(host.visible(), before);
    }
    // Around it there is a way, and what leads nowhere stays more specific.
    apply_text(&mut host, "[[route]]\nto = \"10.0.0.0/8\"\nalgorithm = \"reno\"\n", None).unwrap();
    assert_eq!(routes(&host), ["10.0.0.0/8 reno"]);
}

/// A route to `to` like the default route.
fn add_route(host: &mut Memory, to: &str) {
    let default = SettingKey::Route { to: "0.0.0.0/0".to_owned() };
    let route = host.values[&default].clone();
    host.values.insert(SettingKey::Route { to: to.to_owned() }, route);
}

#[test]
fn a_route_reaches_the_routes_inside_its_network() {
    let mut host = Memory::new();
    for to in ["10.9.0.0/16", "10.9.1.0/24", "10.200.0.0/16", "11.0.0.0/8"] {
        add_route(&mut host, to);
    }
    let before = host.visible();
    let wide = "[[route]]\nto = \"10.0.0.0/8\"\nalgorithm = \"reno\"\n";
    let file = format!("{wide}[[route]]\nto = \"10.200.0.0/16\"\nalgorithm = \"bbr\"\n");
    apply_text(&mut host, &file, None).unwrap();
    let expected = [
        "10.0.0.0/8 reno",
        "10.200.0.0/16 bbr",
        "10.9.0.0/16 reno",
        "10.9.1.0/24 reno",
        "11.0.0.0/8 -",
    ];
    assert_eq!(routes(&host), expected);
    assert!(apply_text(&mut host, &file, None).unwrap().steps.is_empty());
    // A route that appears later is a difference.
    add_route(&mut host, "10.7.0.0/16");
    assert_eq!(apply_text(&mut host, &file, None).unwrap().steps.len(), 1);
    host.values.remove(&SettingKey::Route { to: "10.7.0.0/16".to_owned() });
    revert(&mut host).unwrap();
    assert_eq!(host.visible(), before);
}

#[test]
fn a_route_that_expires_is_neither_changed_nor_copied() {
    let mut host = host("10.1.0.0/24 bbr\n10.9.1.0/24 bbr\n");
    plain(&mut host);
    add_route(&mut host, "10.9.0.0/16");
    host.fixed.insert("0.0.0.0/0".parse().unwrap());
    let before = host.visible();
    for to in ["0.0.0.0/0", "10.8.0.0/16"] {
        let file = format!("[[route]]\nto = \"{to}\"\nalgorithm = \"reno\"\n");
        let refused = apply_text(&mut host, &file, None).unwrap_err().to_string();
        assert!(refused.contains(&format!("route to {to}: the route that leads")), "{refused}");
        assert_eq!(host.visible(), before);
    }
    let report = apply_text(&mut host, FILE, None).unwrap();
    assert_eq!(routes(&host), ["10.9.0.0/16 -", "10.9.1.0/24 bbr"]);
    let warning = "keep the algorithm of the host: 1: the route that leads there expires";
    assert!(report.warnings.iter().any(|it| it.contains(warning)), "{report:?}");
}

fn refusal(policy: &str, entries: &str, file: &str) -> String {
    let mut host = host(entries);
    if !policy.is_empty() {
        put(&mut host, "policy.toml", policy);
    }
    let before = host.visible();
    let error = apply_text(&mut host, file, None).unwrap_err().to_string();
    assert_eq!(host.visible(), before);
    error
}

#[test]
fn what_cannot_be_routes_is_refused_with_its_place() {
    for (policy, entries, file, part) in [
        (
            "",
            "10.0.0.0/8 bbr\n",
            &*FILE.replace("cubic", "bbr"),
            "/policy/policy.toml: [default] is cubic, but",
        ),
        (
            "[[rule]]\nhost = \"a\"\nuse = { tcp = \"bbr\" }",
            "",
            FILE,
            "[routes]: /policy/policy.toml:1: `host = a`",
        ),
        (
            "[[rule]]\nlistener = \"a\"\nuse = { tcp = \"bbr\" }",
            "",
            FILE,
            "a route does not know the listener",
        ),
        ("", "0.0.0.0/0 bbr\n", FILE, "deal 16777216 networks of /24 or /48"),
        ("", "10.0.0.0/7 bbr\n10.0.0.0/8 control\n12.0.0.0/7 bbr\n", FILE, "a wide network"),
        (
            "",
            "",
            "algorithm = \"cubic\"\n[routes]\npolicy = \"/nowhere\"",
            "cannot read '/nowhere'",
        ),
    ] {
        let refused = refusal(policy, entries, file);
        assert!(refused.contains(part), "{part}: {refused}");
    }
}

/// Only in `networks`, and with what each address gets.
#[test]
fn networks_say_where_a_policy_counts() {
    let mut host = host("10.0.0.0/8 bbr\n");
    let file = format!("{FILE}networks = [\"10.7.0.0/20\", \"11.0.0.0/22\"]\n");
    apply_text(&mut host, &file, None).unwrap();
    let prefix = |route: &String| route.split(' ').next().unwrap().parse::<Prefix>().unwrap();
    let found = routes(&host);
    let all: Vec<Prefix> = found.iter().map(prefix).collect();
    assert_eq!(found[0], "10.7.0.0/20 bbr");
    assert!(
        all.len() > 3
            && all.iter().all(
                |it| it.to_string().starts_with("10.7.") || it.to_string().starts_with("11.0.")
            )
    );
}
