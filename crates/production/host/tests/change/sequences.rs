//! Random sequences of commands, kills, reboots and changes by other programs, on a host in memory.

use uncork_host::change::{ChangeError, SettingKey, Value, confirm, recover, revert};
use uncork_units::Rng;

use crate::desired_states::{ALL, BUFFERS, LASTING, OTHER, apply_text};
use crate::memory::{ALLOWED, DEFAULT, Memory, qdisc, sysctl};
use crate::model::{DesiredSettings, Model, Values, differences};

const SEQUENCES: u64 = 500;
const STEPS: u32 = 30;
const TTL_S: u64 = 60;
const SYSCTLS: &str = "/etc/sysctl.d/99-uncork.conf";
const TEXTS: [&str; 4] = [ALL, OTHER, LASTING, BUFFERS];

fn visible(host: &Memory) -> Values {
    let mut values = host.visible();
    for value in values.values_mut() {
        if value.ends_with("(kernel's choice)") {
            "kernel".clone_into(value);
        }
    }
    values
}

/// The settings that each desired state changes on a host.
fn goals() -> DesiredSettings {
    let goals = |text| {
        let mut host = Memory::new();
        let without = visible(&host);
        apply_text(&mut host, text, None).unwrap();
        let mut values = visible(&host);
        values.retain(|name, value| without.get(name) != Some(value));
        (text, values)
    };
    TEXTS.map(goals).into()
}

/// Another program changes a setting.
fn meddle(rng: &mut Rng, host: &mut Memory, model: &mut Model) {
    let eth0 = SettingKey::Qdisc { interface: "eth0".to_owned() };
    let changes = [
        (sysctl(DEFAULT), Value::text("reno")),
        (sysctl(ALLOWED), Value::text("bbr cubic dctcp reno")),
        (sysctl("net.ipv4.tcp_wmem"), Value::text("4096 16384 5000000")),
        (sysctl("net.ipv4.tcp_wmem"), Value::text("4096 16384 16000000")),
        (eth0.clone(), qdisc("fq", true)),
        (eth0, qdisc("bfifo", true)),
        (SettingKey::Route { to: "10.0.0.0/8".to_owned() }, Value::Absent),
        (SettingKey::File { path: SYSCTLS.to_owned() }, Value::text("# by hand\n")),
    ];
    let at = usize::try_from(rng.below(changes.len() as u64)).unwrap();
    let (setting, value) = changes[at].clone();
    let text = match &value {
        Value::Absent => None,
        value => Some(value.to_string()),
    };
    let name = setting.to_string();
    let text = if name.starts_with('/') { Some("# by hand\n".to_owned()) } else { text };
    host.set(&setting, value);
    model.set(&name, text);
}

/// A random command, run on both the host and the model.
fn command(rng: &mut Rng) -> impl Fn(&mut Memory, &mut Model) -> Result<(), ChangeError> + use<> {
    let text = TEXTS[usize::try_from(rng.below(4)).unwrap()];
    let kind = rng.below(8);
    move |host, model| match kind {
        0..=2 => {
            model.apply(text, false);
            apply_text(host, text, None).map(drop)
        }
        3 | 4 => {
            model.apply(text, true);
            apply_text(host, text, Some(TTL_S)).map(drop)
        }
        5 => {
            model.confirm();
            confirm(host).map(drop)
        }
        _ => {
            model.revert();
            revert(host).map(drop)
        }
    }
}

/// Runs a command that is killed at a random operation, perhaps together with the host.
fn killed(rng: &mut Rng, host: &mut Memory, model: &mut Model) {
    let old = model.clone();
    let run = command(rng);
    host.fuse = Some(u32::try_from(rng.below(90)).unwrap());
    // The command may complete, be killed or be refused.
    let _ = run(host, model);
    host.fuse = None;
    let mut undone = old.clone();
    undone.undo();
    let mut possible = vec![model.clone(), old.clone(), undone];
    if rng.below(3) == 0 {
        host.reboot();
        possible.iter_mut().for_each(Model::reboot);
        // The next desired state had removed the file before the boot.
        let mut bare = old.clone();
        bare.boot("");
        possible.push(bare);
        // A killed `revert` continues after the boot.
        let mut reverted = old.clone();
        reverted.reboot();
        reverted.revert();
        possible.push(reverted);
        possible.extend([ALL, LASTING].map(|text| {
            let mut model = old.clone();
            model.power_fails(text);
            model
        }));
    }
    recover(host).unwrap();
    let found = possible.iter().find(|model| model.agrees(&visible(host), host.journal.as_ref()));
    let between = || {
        let differences = possible.iter().map(|model| differences(&model.values, &visible(host)));
        let differences: Vec<_> = differences.collect();
        panic!("between: {differences:#?}\n{:?}", host.journal)
    };
    *model = found.unwrap_or_else(between).clone();
}

#[test]
fn random_sequences_end_where_they_should() {
    let goals = goals();
    let (mut killings, mut reboots, mut expiries) = (0, 0, 0);
    for seed in 0..SEQUENCES {
        let mut rng = Rng::new(seed, 0);
        let mut host = Memory::new();
        let mut model = Model::new(visible(&host), goals.clone());
        for step in 0..STEPS {
            match rng.below(10) {
                0..=3 => {
                    // A refused command changes nothing, for instance because another desired state
                    // waits for `confirm`.
                    let _ = command(&mut rng)(&mut host, &mut model);
                }
                4 | 5 => {
                    killed(&mut rng, &mut host, &mut model);
                    killings += 1;
                }
                6 | 7 => meddle(&mut rng, &mut host, &mut model),
                8 => {
                    host.clock += TTL_S;
                    expiries += u32::from(model.waiting.is_some());
                    recover(&mut host).unwrap();
                    model.undo();
                }
                _ => {
                    host.reboot();
                    recover(&mut host).unwrap();
                    model.reboot();
                    reboots += 1;
                }
            }
            assert!(
                model.agrees(&visible(&host), host.journal.as_ref()),
                "seed {seed}, step {step}: {:#?}",
                differences(&model.values, &visible(&host))
            );
        }
        revert(&mut host).unwrap();
        model.revert();
        assert!(model.agrees(&visible(&host), host.journal.as_ref()), "seed {seed}, in the end");
    }
    assert!(
        killings > 2_000 && reboots > 1_000 && expiries > 100,
        "{killings} {reboots} {expiries}"
    );
}
