//! The files in `deploy/`, by the programs that read them and by this binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::dashboard::{FLEET, HOSTS, panels, variables};
use crate::common::exporter::{Running, get_metrics, metrics_at, series};
use crate::common::{Finished, Scratch, command, finish};
use serde_json::Value;
use uncork_testkit::{Capability, not_run, wait_for};

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy").join(file)
}

fn text(file: &str) -> String {
    fs::read_to_string(deploy(file)).unwrap()
}

/// Whether the program is installed; otherwise reports a skipped test or fails.
fn has(program: &str, capability: Capability) -> bool {
    let runs = Command::new(program).arg("--version").output().is_ok();
    if !runs {
        not_run(capability, &format!("{program} is not installed"));
    }
    runs
}

#[track_caller]
fn assert_runs(command: Command) {
    let shown = format!("{command:?}");
    let Finished { status, stdout, stderr } = finish(command);
    assert_eq!(status, 0, "{shown}\n{stdout}{stderr}");
}

fn promtool(arguments: [&str; 2], file: &Path) -> Command {
    let mut promtool = Command::new("promtool");
    promtool.args(arguments).arg(file);
    promtool
}

#[test]
fn promtool_accepts_the_rules_and_each_alert_is_tested() {
    let tests = text("prometheus/rules_test.yml");
    for alert in text("prometheus/rules.yml")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
    {
        assert!(tests.contains(&format!("alertname: {alert}")), "{alert} has no test");
    }
    if has("promtool", Capability::Promtool) {
        assert_runs(promtool(["check", "rules"], &deploy("prometheus/rules.yml")));
        assert_runs(promtool(["test", "rules"], &deploy("prometheus/rules_test.yml")));
    }
}

#[test]
fn promtool_accepts_the_queries_of_the_dashboards() {
    let of = |name| {
        let queries: Vec<_> = panels(name).into_iter().flat_map(|panel| panel.queries).collect();
        assert!(queries.len() > 10, "{name}");
        queries.into_iter().chain(variables(name))
    };
    let queries: Vec<_> = of(HOSTS).chain(of(FLEET)).collect();
    let rule = |query: &String| {
        assert!(!query.contains('$'), "unknown variable: {query}");
        format!("  - record: query\n    expr: {}\n", serde_json::to_string(query).unwrap())
    };
    let rules: String = queries.iter().map(rule).collect();
    let scratch = Scratch::new("dashboard-queries");
    fs::write(scratch.path("rules.yml"), format!("groups:\n- name: dashboard\n  rules:\n{rules}"))
        .unwrap();
    if has("promtool", Capability::Promtool) {
        let mut check = promtool(["check", "rules"], &scratch.path("rules.yml"));
        check.arg("--lint=none");
        assert_runs(check);
    }
}

/// What both exporters have.
fn exported() -> BTreeSet<String> {
    let scratch = Scratch::new("deploy-exporters");
    let mut watch = Running::start("host watch --plain --listen 127.0.0.1:0", &scratch.path(""));
    let address = watch.address();
    // Empty before the first pass.
    let watched = wait_for("a pass", Duration::from_mins(1), || {
        let names = series(&metrics_at(&address));
        (!names.is_empty()).then_some(names)
    });
    let serve =
        "serve --root . --listen 127.0.0.1:0 --records records.jsonl --admin unix:admin.sock";
    let _serve = Running::start(serve, &scratch.path(""));
    let admin = scratch.path("admin.sock");
    let socket =
        wait_for("the admin endpoint", Duration::from_mins(1), || UnixStream::connect(&admin).ok());
    let served = series(&get_metrics(socket));
    watched.into_iter().chain(served).collect()
}

/// What the commands of a fleet have: an agent, and the files of `fleet status` and `records ship`.
fn exported_by_a_fleet() -> BTreeSet<String> {
    let scratch = Scratch::new("deploy-fleet");
    for directory in ["store", "spool"] {
        fs::create_dir(scratch.path(directory)).unwrap();
    }
    scratch.write("one.toml", "[default]\ntcp = \"cubic\"\n");
    let agent = "agent store -o edge1 --host edge1 --public-key fleet.key.pub";
    for line in [
        "fleet keygen fleet.key",
        "fleet publish store one.toml --key fleet.key --hold 0s --stages 100%",
        &format!("{agent} --once"),
        "fleet publish store --key fleet.key",
        "fleet status store --public-key fleet.key.pub --metrics fleet.prom",
        "records ship spool store --metrics ship.prom",
    ] {
        let mut command = command(line);
        command.current_dir(scratch.path(""));
        assert_runs(command);
    }
    let mut agent = Running::start(&format!("{agent} --metrics 127.0.0.1:0"), &scratch.path(""));
    let address = agent.address();
    let polled = wait_for("a poll", Duration::from_mins(1), || {
        let names = series(&metrics_at(&address));
        (!names.is_empty()).then_some(names)
    });
    let written = ["fleet.prom", "ship.prom"].map(|file| fs::read_to_string(scratch.path(file)));
    written.into_iter().flat_map(|text| series(&text.unwrap())).chain(polled).collect()
}

#[test]
fn reference_has_each_metric_of_a_fleet() {
    let page = text("../docs/reference/fleet.md");
    for name in exported_by_a_fleet() {
        let short = name.trim_start_matches("uncork_agent_");
        let is_there = name.starts_with("uncork_ship_")
            || [name.as_str(), short]
                .iter()
                .any(|it| page.contains(&format!("`{it}`")) || page.contains(&format!("`{it}{{")));
        assert!(is_there, "docs/reference/fleet.md has no {name}");
    }
}

#[test]
fn rules_and_dashboards_use_metrics_that_the_exporters_have() {
    const PREFIXES: [&str; 5] =
        ["uncork_watch_", "uncork_serve_", "uncork_fleet_", "uncork_agent_", "uncork_ship_"];
    let exported: BTreeSet<_> = exported().into_iter().chain(exported_by_a_fleet()).collect();
    let files = [
        "prometheus/rules.yml",
        "prometheus/rules_test.yml",
        "grafana/uncork-host.json",
        "grafana/uncork-fleet.json",
    ];
    for file in files {
        let text = text(file);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | ':'));
        let is_metric = |word: &&str| PREFIXES.iter().any(|prefix| word.starts_with(prefix));
        let used: BTreeSet<_> =
            words.filter(is_metric).filter(|word| !word.ends_with('_')).collect();
        assert!(used.len() > 5, "{file}");
        for name in used {
            assert!(exported.contains(name), "{file}: nothing exports {name}");
        }
    }
}

/// Runs a command line of a unit or a container, changed only in where it listens and writes, until it has begun.
fn assert_watches(arguments: &[&str]) {
    let scratch = Scratch::new("deploy-watch");
    let mut watch = command("");
    watch.current_dir(scratch.path("")).args(arguments.iter().map(|word| match *word {
        "127.0.0.1:9464" | "0.0.0.0:9464" => "127.0.0.1:0",
        "/var/lib/uncork-watch/" => "records/",
        word => word,
    }));
    watch.args(["--for", "10ms"]);
    assert_runs(watch);
}

/// A directory of units as it is on a host: this binary, the units and their drop-ins.
fn units() -> Scratch {
    let scratch = Scratch::new("deploy-units");
    let this = env!("CARGO_BIN_EXE_uncork");
    for unit in [
        "uncork-watch.service",
        "uncork-kernel.service",
        "uncork-serve.service",
        "uncork-serve.socket",
        "uncork-learn.service",
        "uncork-agent.service",
        "uncork-fleet.service",
        "uncork-fleet.timer",
        "uncork-ship@.service",
        "uncork-steer@.service",
        "uncork-steer@.path",
        "uncork-steer-again@.service",
        "uncork-steer-record@.service",
        "uncork-routes.service",
        "uncork-routes.path",
        "uncork-routes.timer",
    ] {
        let text = text(&format!("systemd/{unit}")).replace("/usr/bin/uncork", this);
        let text = text.replace("/opt/uncork/bin/uncork", this);
        fs::write(scratch.path(unit), text).unwrap();
    }
    fs::write(scratch.path("host.toml"), "algorithm = \"reno\"\npersist = true\n").unwrap();
    let plan = "host plan host.toml --format json --state-dir state --root .";
    let mut plan = command(plan);
    plan.current_dir(scratch.path(""));
    let plan: Value = serde_json::from_str(&finish(plan).stdout).unwrap();
    let changes = plan["changes"].as_array().unwrap().iter();
    let unit =
        changes.flat_map(|change| change["commands"].as_array().unwrap()).find_map(|command| {
            let command =
                command.as_str()?.strip_prefix("cat > /etc/systemd/system/uncork-host.service ")?;
            Some(command.split_once('\n')?.1.strip_suffix("END")?.to_owned())
        });
    fs::write(scratch.path("uncork-host.service"), unit.expect("a unit")).unwrap();
    let drop_in = scratch.path("uncork-host.service.d");
    fs::create_dir(&drop_in).unwrap();
    fs::copy(
        deploy("systemd/uncork-host.service.d/hardening.conf"),
        drop_in.join("hardening.conf"),
    )
    .unwrap();
    scratch
}

#[test]
fn units_are_valid_and_hardened() {
    let line = text("systemd/uncork-watch.service");
    let line =
        line.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/uncork ")).unwrap();
    assert_watches(&line.split(' ').collect::<Vec<_>>());
    if !has("systemd-analyze", Capability::Programs) {
        return;
    }
    let units = units();
    let analyze = |arguments: &[&str], unit: &str| {
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(arguments).arg(units.path(unit));
        analyze
    };
    let security = ["security", "--offline=yes", "--no-pager", "--threshold=25"];
    for unit in [
        "uncork-watch.service",
        "uncork-kernel.service",
        "uncork-serve.service",
        "uncork-host.service",
        "uncork-learn.service",
        "uncork-agent.service",
        "uncork-fleet.service",
        "uncork-ship@.service",
        "uncork-steer@.service",
        "uncork-steer-again@.service",
        "uncork-steer-record@.service",
        "uncork-routes.service",
    ] {
        assert_runs(analyze(&["verify", "--man=no", "--recursive-errors=no"], unit));
        assert_runs(analyze(&security, unit));
    }
    for unit in
        ["uncork-steer@.path", "uncork-routes.path", "uncork-routes.timer", "uncork-fleet.timer"]
    {
        assert_runs(analyze(&["verify", "--man=no", "--recursive-errors=no"], unit));
    }
    let drop_in = units.path("uncork-watch.service.d");
    fs::create_dir(&drop_in).unwrap();
    fs::copy(
        deploy("systemd/uncork-watch.service.d/close-events.conf"),
        drop_in.join("close-events.conf"),
    )
    .unwrap();
    assert_runs(analyze(&security, "uncork-watch.service"));
    let drop_in = units.path("uncork-agent.service.d");
    fs::create_dir(&drop_in).unwrap();
    fs::copy(deploy("systemd/uncork-agent.service.d/metrics.conf"), drop_in.join("metrics.conf"))
        .unwrap();
    assert_runs(analyze(&["verify", "--man=no", "--recursive-errors=no"], "uncork-agent.service"));
    assert_runs(analyze(&security, "uncork-agent.service"));
    // Without the drop-in the unit of `persist` would not pass.
    fs::remove_dir_all(units.path("uncork-host.service.d")).unwrap();
    assert_ne!(finish(analyze(&security, "uncork-host.service")).status, 0);
}

/// A masked directory of modules would make each controller that can be loaded count as missing (systemd.exec(5)).
#[test]
fn the_agents_unit_sees_the_modules_and_starts_after_the_controllers() {
    let unit = text("systemd/uncork-agent.service");
    assert!(!unit.lines().any(|line| line.starts_with("ProtectKernelModules=")));
    let after = unit.lines().find_map(|line| line.strip_prefix("After=")).unwrap();
    assert!(after.split(' ').any(|unit| unit == "uncork-kernel.service"), "{after}");
    assert!(unit.lines().any(|line| line == "CapabilityBoundingSet="));
    assert!(unit.lines().any(|line| line == "SystemCallFilter=@system-service"));
}

/// systemd has a filter against files with the set-user-ID bit that knows no arguments of `openat2`, and so forbids it.
#[test]
fn the_servers_unit_allows_openat2() {
    let unit = text("systemd/uncork-serve.service");
    let forbids =
        |line: &str| line.starts_with("RestrictSUIDSGID=") || line.starts_with("DynamicUser=");
    assert!(!unit.lines().any(forbids));
    let user = unit.lines().find_map(|line| line.strip_prefix("User=")).unwrap();
    assert!(text("systemd/uncork-serve.sysusers").contains(&format!("u {user} ")));
    assert!(text("systemd/uncork-learn.service").contains(&format!("User={user}\n")));
}

/// What watches, what applies and what writes the learned policy agree on where it is, and on who may read it.
#[test]
fn steering_units_learn_unit_equal_policy_file() {
    let learn = text("systemd/uncork-learn.service");
    let user = learn.lines().find_map(|line| line.strip_prefix("User=")).unwrap();
    let directory = learn.split_once("--output ").unwrap().1.split(' ').next().unwrap();
    let watched = format!("PathChanged={directory}");
    for unit in ["uncork-steer@.path", "uncork-routes.path"] {
        assert!(text(&format!("systemd/{unit}")).lines().any(|line| line == watched), "{unit}");
    }
    let group = format!("SupplementaryGroups={user}");
    assert!(text("systemd/uncork-routes.service").lines().any(|line| line == group));
    let steer = text("systemd/uncork-steer@.service");
    for unit in [&steer, &text("systemd/uncork-steer-again@.service")] {
        let policy = format!("Environment=POLICY={directory}/current/policy.toml");
        let group = format!("SupplementaryGroups={user}");
        for wanted in [policy, group] {
            assert!(unit.lines().any(|line| line == wanted), "{wanted}");
        }
    }
    let record = text("systemd/uncork-steer-record@.service");
    assert!(record.lines().any(|line| line == format!("Group={user}")));
    let cgroup = "Environment=CGROUP=";
    let of_cgroup =
        |unit: &str| unit.lines().find(|line| line.starts_with(cgroup)).map(str::to_owned);
    assert_eq!(of_cgroup(&record), of_cgroup(&steer));
    let command = |name: &str| steer.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    assert_eq!(command("ExecReload="), command("ExecStart="));
}

#[test]
fn the_daemon_set_has_no_rights() {
    let manifest = text("kubernetes/daemonset.yaml");
    let lines: Vec<_> = manifest.lines().map(str::trim).collect();
    for line in [
        "kind: DaemonSet",
        "automountServiceAccountToken: false",
        "runAsNonRoot: true",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "capabilities: { drop: [ALL] }",
    ] {
        assert!(lines.contains(&line), "{line}");
    }
    assert!(
        !lines.iter().any(|line| line.starts_with("volumes") || line.starts_with("privileged"))
    );
    let arguments = lines.iter().find_map(|line| line.strip_prefix("args: [")?.strip_suffix(']'));
    let arguments = arguments.unwrap().split(", ").map(|word| word.trim_matches('"'));
    assert_watches(&arguments.collect::<Vec<_>>());
}

#[test]
fn the_package_has_the_files_that_it_names() {
    let manifest = include_str!("../../Cargo.toml");
    let assets = manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("[\"../../../")?.split('"').next());
    let assets: Vec<_> = assets.filter(|asset| !asset.starts_with("target/")).collect();
    assert!(assets.len() > 5);
    for asset in assets {
        let path = deploy("..").join(asset.trim_end_matches("*.yml"));
        assert!(path.exists(), "{asset}");
    }
}

/// With nothing but a compiler of an LLVM that no distribution has yet, and a program that is too old for it.
#[test]
fn the_profile_guided_build_says_what_is_missing() {
    let scratch = Scratch::new("pgo-missing");
    let programs = scratch.path("bin");
    let script = |name: &str, says: &str| {
        scratch.executable(&format!("bin/{name}"), format!("#!/bin/sh\nprintf '{says}'\n"));
    };
    script("rustc", "host: any\\nLLVM version: 999.1.0\\n");
    script("llvm-profdata", "Debian LLVM version 14.0.6\\n");
    for name in ["bash", "dirname", "sed"] {
        let found = ["/usr/bin", "/bin"].map(|it| Path::new(it).join(name));
        let found = found.into_iter().find(|it| it.exists()).unwrap();
        symlink(found, programs.join(name)).unwrap();
    }
    let mut build = Command::new(deploy("pgo.sh"));
    build.env("PATH", &programs).env_remove("LLVM_PROFDATA");
    let Finished { status, stdout, stderr } = finish(build);
    assert_eq!((status, &*stdout), (1, ""), "{stderr}");
    for said in
        ["too old: LLVM 14", "no llvm-profdata of LLVM 999", "rustup component add llvm-tools"]
    {
        assert!(stderr.contains(said), "{stderr}");
    }
}
