//! Random sequences of commands, kills, reboots and changes by others, beside a model that knows only the rules.

use std::collections::BTreeMap;

use uncork_host::change::{
    Applied, Change, ChangeError, Knob, Qdisc, Value, confirm, recover, revert,
};
use uncork_units::Rng;

use crate::memory::{ALLOWED, DEFAULT, Memory, qdisc, sysctl};
use crate::wishes::{ALL, BUFFERS, LASTING, OTHER, apply_text};

const SEQUENCES: u64 = 500;
const STEPS: u32 = 30;
const TTL_S: u64 = 60;
const SYSCTLS: &str = "/etc/sysctl.d/99-uncork.conf";

type Values = BTreeMap<String, String>;
type Setting = (String, Option<String>, Option<String>);

/// What the host should be like.
#[derive(Clone)]
struct Model {
    values: Values,
    applied: Option<Wished>,
    waiting: Option<Waiting>,
}

/// A wish in force: the values of its settings without and with it.
#[derive(Clone)]
struct Wished {
    text: &'static str,
    own: BTreeMap<String, (Option<String>, Option<String>)>,
}

#[derive(Clone)]
struct Waiting {
    done: Vec<Setting>,
    files: Vec<Setting>,
    next: Wished,
}

fn visible(host: &Memory) -> Values {
    let mut values = host.visible();
    for value in values.values_mut() {
        if value.ends_with("(kernel's choice)") {
            "kernel".clone_into(value);
        }
    }
    values
}

/// The settings of a wish: those that differ on a host with the wish.
fn goals(text: &str) -> Values {
    let mut host = Memory::new();
    let without = visible(&host);
    apply_text(&mut host, text, None).unwrap();
    let mut values = visible(&host);
    values.retain(|name, value| without.get(name) != Some(value));
    values
}

fn persists(text: &str) -> bool {
    text.contains("persist = true")
}

fn is_file(name: &str) -> bool {
    name.starts_with('/')
}

/// The values that a wish in force replaced, but for modules, which stay.
fn bases(applied: &Applied) -> BTreeMap<String, Option<String>> {
    let changes = applied.changes.iter().filter(|it| !matches!(it.knob, Knob::Module { .. }));
    let base = |change: &Change| match &change.before {
        Value::Absent => None,
        Value::Text { text } => Some(text.clone()),
        Value::Qdisc(Qdisc { installed: None, .. }) => Some("kernel".to_owned()),
        other => Some(other.to_string()),
    };
    changes.map(|change| (change.knob.to_string(), base(change))).collect()
}

impl Wished {
    fn bases(&self) -> BTreeMap<String, Option<String>> {
        self.own.iter().map(|(name, (base, _))| (name.clone(), base.clone())).collect()
    }
}

impl Model {
    fn get(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    fn set(&mut self, name: &str, value: Option<String>) {
        let Some(value) = value else {
            self.values.remove(name);
            return;
        };
        if name == DEFAULT {
            let mut names: Vec<&str> = self.values[ALLOWED].split(' ').collect();
            names.push(&value);
            names.sort_unstable();
            names.dedup();
            let names = names.join(" ");
            self.values.insert(ALLOWED.to_owned(), names);
        }
        self.values.insert(name.to_owned(), value);
    }

    /// Sets each from its first value to its second, unless somebody else has changed it.
    fn change(&mut self, mut steps: Vec<Setting>) {
        steps.sort_by_key(|(name, ..)| (name != ALLOWED, name == DEFAULT));
        for (name, from, to) in steps {
            if self.get(&name) == from {
                self.set(&name, to);
            }
        }
    }

    fn apply(&mut self, text: &'static str, ttl: bool) {
        if self.waiting.is_some() {
            return;
        }
        let goals = goals(text);
        let earlier = self.applied.take();
        let mut steps = Vec::new();
        let mut own = BTreeMap::new();
        let old = earlier.as_ref().map(|earlier| earlier.own.clone()).unwrap_or_default();
        for (name, (base, ours)) in &old {
            if !goals.contains_key(name) && self.get(name) == *ours && base != ours {
                steps.push((name.clone(), ours.clone(), base.clone()));
            }
        }
        for (name, goal) in goals {
            let (now, goal) = (self.get(&name), Some(goal));
            let base = match old.get(&name) {
                Some((base, ours)) if now == *ours || now == *base => base.clone(),
                _ => now.clone(),
            };
            if now != goal {
                steps.push((name.clone(), now, goal.clone()));
            }
            if base != goal {
                own.insert(name, (base, goal));
            }
        }
        let next = Wished { text, own };
        if !ttl || steps.is_empty() {
            self.change(steps);
            self.applied = Some(next);
            return;
        }
        let (files, done) = steps.into_iter().partition(|(name, ..): &Setting| is_file(name));
        self.change(Vec::clone(&done));
        self.applied = earlier;
        self.waiting = Some(Waiting { done, files, next });
    }

    fn confirm(&mut self) {
        let is_same = |(name, from, _): &Setting| self.get(name) == *from;
        if self.waiting.as_ref().is_none_or(|waiting| !waiting.files.iter().all(is_same)) {
            return;
        }
        if let Some(waiting) = self.waiting.take() {
            self.change(waiting.files);
            self.applied = Some(waiting.next);
        }
    }

    /// What a limit does that expires, and a killed command.
    fn undo(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.change(
                waiting.done.into_iter().map(|(name, from, to)| (name, to, from)).collect(),
            );
        }
    }

    fn revert(&mut self) {
        self.undo();
        let own = self.applied.take().map(|applied| applied.own).unwrap_or_default();
        self.change(own.into_iter().map(|(name, (base, ours))| (name, ours, base)).collect());
    }

    fn reboot(&mut self) {
        let file = self.get(SYSCTLS).unwrap_or_default();
        self.boot(&file);
    }

    /// A boot that finds `file` in sysctl.d, and afterwards a recovery that restores the files.
    fn boot(&mut self, file: &str) {
        self.waiting = None;
        self.values.retain(|name, _| is_file(name));
        self.values.extend(visible(&Memory::new()));
        for (name, value) in file.lines().filter_map(|line| line.split_once(" = ")) {
            self.set(name, Some(value.to_owned()));
        }
        self.applied = self.applied.take().filter(|applied| persists(applied.text));
        if let Some(text) = self.applied.as_ref().map(|applied| applied.text) {
            self.apply(text, false);
        }
    }

    /// A reboot while `text` was being applied, after its sysctls were written to a file: the boot sets them, and
    /// the undoing sets them to what they were just before.
    fn power_fails(&mut self, text: &str) {
        let before = self.clone();
        self.reboot();
        let lost = before.applied.as_ref().filter(|applied| !persists(applied.text));
        for name in
            goals(text).into_keys().filter(|name| name.starts_with("net.") && !name.contains(' '))
        {
            if self.applied.as_ref().is_some_and(|applied| applied.own.contains_key(&name)) {
                continue;
            }
            let value = before.get(&name);
            let base = match lost.and_then(|lost| lost.own.get(&name)) {
                Some((base, ours)) if *ours == value => base.clone(),
                _ => value,
            };
            self.values.extend(base.map(|base| (name, base)));
        }
    }

    fn agrees(&self, host: &Memory) -> bool {
        let journal = host.journal.as_ref();
        let applied = journal.and_then(|journal| journal.applied.as_ref());
        let open = journal.and_then(|journal| journal.open.as_ref());
        visible(host) == self.values
            && applied.map(|applied| &*applied.wish) == self.applied.as_ref().map(|it| it.text)
            && applied.map(bases) == self.applied.as_ref().map(Wished::bases)
            && open.is_some() == self.waiting.is_some()
    }
}

fn differences(one: &Values, other: &Values) -> Vec<String> {
    let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let names = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    names.map(|name| format!("{name}: {:?} {:?}", one.get(name), other.get(name))).collect()
}

/// Another program changes a setting.
fn meddle(rng: &mut Rng, host: &mut Memory, model: &mut Model) {
    let eth0 = Knob::Qdisc { interface: "eth0".to_owned() };
    let changes = [
        (sysctl(DEFAULT), Value::text("reno")),
        (sysctl(ALLOWED), Value::text("bbr cubic dctcp reno")),
        (sysctl("net.ipv4.tcp_wmem"), Value::text("4096 16384 5000000")),
        (sysctl("net.ipv4.tcp_wmem"), Value::text("4096 16384 16000000")),
        (eth0.clone(), qdisc("fq", true)),
        (eth0, qdisc("bfifo", true)),
        (Knob::Route { to: "10.0.0.0/8".to_owned() }, Value::Absent),
        (Knob::File { path: SYSCTLS.to_owned() }, Value::text("# by hand\n")),
    ];
    let at = usize::try_from(rng.below(changes.len() as u64)).unwrap();
    let (knob, value) = changes[at].clone();
    let text = match &value {
        Value::Absent => None,
        value => Some(value.to_string()),
    };
    let name = knob.to_string();
    let text = if is_file(&name) { Some("# by hand\n".to_owned()) } else { text };
    host.set(&knob, value);
    model.set(&name, text);
}

/// A command, run by host and model alike.
fn command(rng: &mut Rng) -> impl Fn(&mut Memory, &mut Model) -> Result<(), ChangeError> + use<> {
    let texts = [ALL, OTHER, LASTING, BUFFERS];
    let text = texts[usize::try_from(rng.below(4)).unwrap()];
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

/// Runs a command that is killed somewhere, perhaps together with the host.
fn killed(rng: &mut Rng, host: &mut Memory, model: &mut Model) {
    let old = model.clone();
    let run = command(rng);
    host.fuse = Some(u32::try_from(rng.below(90)).unwrap());
    // Killed or not, or refused.
    let _ = run(host, model);
    host.fuse = None;
    let mut undone = old.clone();
    undone.undo();
    let mut possible = vec![model.clone(), old.clone(), undone];
    if rng.below(3) == 0 {
        host.reboot();
        possible.iter_mut().for_each(Model::reboot);
        // The next wish had removed the file before the boot.
        let mut bare = old.clone();
        bare.boot("");
        possible.push(bare);
        // A killed `revert` goes on after the boot.
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
    let found = possible.iter().find(|model| model.agrees(host));
    let between = || {
        let differences = possible.iter().map(|model| differences(&model.values, &visible(host)));
        let differences: Vec<_> = differences.collect();
        panic!("between: {differences:#?}\n{:?}", host.journal)
    };
    *model = found.unwrap_or_else(between).clone();
}

#[test]
fn random_sequences_end_where_they_should() {
    let (mut killings, mut reboots, mut expiries) = (0, 0, 0);
    for seed in 0..SEQUENCES {
        let mut rng = Rng::new(seed, 0);
        let mut host = Memory::new();
        let mut model = Model { values: visible(&host), applied: None, waiting: None };
        for step in 0..STEPS {
            match rng.below(10) {
                0..=3 => {
                    // A refusal, such as another wish that waits, changes nothing.
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
                model.agrees(&host),
                "seed {seed}, step {step}: {:#?}",
                differences(&model.values, &visible(&host))
            );
        }
        revert(&mut host).unwrap();
        model.revert();
        assert!(model.agrees(&host), "seed {seed}, in the end");
    }
    assert!(
        killings > 2_000 && reboots > 1_000 && expiries > 100,
        "{killings} {reboots} {expiries}"
    );
}
