//! Random sequences of commands, kills, reboots and changes by other programs, on this kernel. A
//! reboot is a new network namespace.

use std::path::Path;

use rustix::thread::UnshareFlags;
use uncork_host::change::{
    Host, Installed, LiveHost, Qdisc, SettingKey, StateDirectory, Value, confirm, recover, revert,
};
use uncork_units::Rng;

use crate::desired_states::apply_text;
use crate::live::{KillableHost, in_namespaces, shell};
use crate::memory::{ALLOWED, DEFAULT, sysctl};
use crate::model::{DesiredSettings, Model, Values, differences};

const SEQUENCES: u64 = 500;
const STEPS: u32 = 10;
const TTL_S: u64 = 60;

const SETUP: &str = "ip -batch - << END
link set lo up
tuntap add dev t0 mode tap
link set t0 up
address add 192.0.2.2/24 dev t0
route add default via 192.0.2.1
route add 203.0.113.0/24 via 192.0.2.3 mtu 1400
END
echo $OTHER > /proc/sys/net/ipv4/tcp_congestion_control";

const ONE: &str = r#"
algorithm = "reno"
[qdisc]
t0 = "pfifo"
[buffers]
send = "16MB"
receive = "16MB"
[[route]]
to = "10.0.0.0/8"
algorithm = "reno"
[[route]]
to = "203.0.113.0/24"
algorithm = "reno"
lock = true
"#;

const TWO: &str = r#"
[qdisc]
t0 = "bfifo"
[buffers]
send = "8MB"
[[route]]
to = "203.0.113.0/24"
algorithm = "reno"
"#;

const TEXTS: [&str; 2] = [ONE, TWO];

fn settings() -> [SettingKey; 7] {
    let route = |to: &str| SettingKey::Route { to: to.to_owned() };
    let sysctls = [DEFAULT, ALLOWED, "net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"].map(sysctl);
    let [one, two, three, four] = sysctls;
    let qdisc = SettingKey::Qdisc { interface: "t0".to_owned() };
    [one, two, three, four, qdisc, route("10.0.0.0/8"), route("203.0.113.0/24")]
}

/// A new network namespace for this thread, as after a reboot. It has its own journal.
#[expect(deprecated, reason = "it is unsafe with CLONE_FILES only")]
fn boot(number: &mut u32) -> KillableHost {
    rustix::thread::unshare(UnshareFlags::NEWNET).unwrap();
    shell(SETUP);
    *number += 1;
    let state = StateDirectory::new(Path::new(&format!("/run/state-{number}")));
    KillableHost {
        host: LiveHost::new(state, Path::new("/run/root")),
        left: u32::MAX,
        ahead_s: 0,
        unix_s: None,
    }
}

fn visible(host: &mut KillableHost) -> Values {
    let seen = |setting: SettingKey| match host.host.read(&setting).unwrap() {
        Value::Absent => None,
        Value::Qdisc(Qdisc { installed: None, .. }) => {
            Some((setting.to_string(), "kernel".to_owned()))
        }
        value => Some((setting.to_string(), value.to_string())),
    };
    settings().into_iter().filter_map(seen).collect()
}

fn agrees(model: &Model, host: &mut KillableHost) -> bool {
    let values = visible(host);
    model.agrees(&values, host.host.load().unwrap().as_ref())
}

/// The settings that each desired state changes in a new namespace.
fn goals(number: &mut u32) -> DesiredSettings {
    let goals = |text| {
        let mut host = boot(number);
        let without = visible(&mut host);
        apply_text(&mut host, text, None).unwrap();
        let mut values = visible(&mut host);
        values.retain(|name, value| without.get(name) != Some(value));
        (text, values)
    };
    TEXTS.map(goals).into()
}

/// Another program changes a setting.
fn meddle(rng: &mut Rng, host: &mut KillableHost, model: &mut Model) {
    let qdisc = |name: &str| {
        let installed = Some(Installed { handle: 0, options: None, unrestorable: None });
        Value::Qdisc(Qdisc { name: name.to_owned(), leaves: Vec::new(), installed })
    };
    let [default, _, wmem, rmem, t0, route, _] = settings();
    let changes = [
        (default, Value::text("reno")),
        (wmem, Value::text("4096 16384 5000000")),
        (rmem, Value::text("4096 131072 16000000")),
        (t0.clone(), qdisc("pfifo_head_drop")),
        (t0, qdisc("pfifo")),
        (route, Value::Absent),
    ];
    let at = usize::try_from(rng.below(changes.len() as u64)).unwrap();
    let (setting, value) = &changes[at];
    let current = host.host.read(setting).unwrap();
    host.host.write(setting, &current, value).unwrap();
    model.set(
        &setting.to_string(),
        Some(value).filter(|it| **it != Value::Absent).map(Value::to_string),
    );
}

/// Runs a random command, which the host may refuse, or which may be killed.
fn command(rng: &mut Rng, host: &mut KillableHost, model: &mut Model) {
    let text = TEXTS[usize::try_from(rng.below(2)).unwrap()];
    let _ = match rng.below(6) {
        0 | 1 => {
            model.apply(text, false);
            apply_text(host, text, None).map(drop)
        }
        2 => {
            model.apply(text, true);
            apply_text(host, text, Some(TTL_S)).map(drop)
        }
        3 => {
            model.confirm();
            confirm(host).map(drop)
        }
        _ => {
            model.revert();
            revert(host).map(drop)
        }
    };
}

fn killed(rng: &mut Rng, host: &mut KillableHost, model: &mut Model) {
    let old = model.clone();
    host.left = u32::try_from(rng.below(70)).unwrap();
    command(rng, host, model);
    host.left = u32::MAX;
    recover(host).unwrap();
    let mut undone = old.clone();
    undone.undo();
    let possible = [model.clone(), old, undone];
    let found = possible.iter().find(|model| agrees(model, host));
    let found = found.unwrap_or_else(|| panic!("between: {:#?}", visible(host)));
    *model = found.clone();
}

fn sequence(seed: u64, number: &mut u32, goals: &DesiredSettings) {
    let mut rng = Rng::new(seed, 1);
    let mut host = boot(number);
    let mut model = Model::new(visible(&mut host), goals.clone());
    for step in 0..STEPS {
        match rng.below(10) {
            0..=3 => command(&mut rng, &mut host, &mut model),
            4 | 5 => killed(&mut rng, &mut host, &mut model),
            6 | 7 => meddle(&mut rng, &mut host, &mut model),
            8 => {
                host.ahead_s += TTL_S;
                recover(&mut host).unwrap();
                model.undo();
            }
            _ => {
                host = boot(number);
                model.reboot();
            }
        }
        let seen = visible(&mut host);
        let differences = differences(&model.values, &seen);
        assert!(agrees(&model, &mut host), "seed {seed}, step {step}: {differences:#?}");
    }
    revert(&mut host).unwrap();
    model.revert();
    assert!(agrees(&model, &mut host), "seed {seed}, in the end");
}

#[test]
fn random_sequences_end_where_they_should() {
    in_namespaces("live_sequences::random_sequences_end_where_they_should", |_| {
        let mut number = 0;
        let goals = goals(&mut number);
        (0..SEQUENCES).for_each(|seed| sequence(seed, &mut number, &goals));
        assert!(number > 600, "{number} namespaces");
    });
}
