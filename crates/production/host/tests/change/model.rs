//! A model of a host after commands, kills, reboots and changes by other programs. It implements
//! the rules and nothing else.

use std::collections::BTreeMap;
use std::rc::Rc;

use uncork_host::change::{Applied, Change, Journal, Qdisc, SettingKey, Value};

use crate::memory::{ALLOWED, DEFAULT};

const SYSCTLS: &str = "/etc/sysctl.d/99-uncork.conf";

/// Settings by name.
pub(crate) type Values = BTreeMap<String, String>;
/// The settings of each desired state, by its text.
pub(crate) type DesiredSettings = BTreeMap<&'static str, Values>;
type Setting = (String, Option<String>, Option<String>);

/// The expected state of a host.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) values: Values,
    pub(crate) applied: Option<Target>,
    pub(crate) waiting: Option<Waiting>,
    /// The values after a boot without files.
    fresh: Rc<Values>,
    /// The settings of each desired state.
    goals: Rc<DesiredSettings>,
}

/// An applied state: the values of its settings without and with it.
#[derive(Clone)]
pub(crate) struct Target {
    text: &'static str,
    own: BTreeMap<String, (Option<String>, Option<String>)>,
}

#[derive(Clone)]
pub(crate) struct Waiting {
    done: Vec<Setting>,
    files: Vec<Setting>,
    next: Target,
}

fn persists(text: &str) -> bool {
    text.contains("persist = true")
}

fn is_file(name: &str) -> bool {
    name.starts_with('/')
}

fn is_route(name: &str) -> bool {
    name.starts_with("route to ")
}

/// The values that an applied state replaced, without modules, which stay loaded.
fn bases(applied: &Applied) -> BTreeMap<String, Option<String>> {
    let changes =
        applied.changes.iter().filter(|it| !matches!(it.setting, SettingKey::Module { .. }));
    let base = |change: &Change| match &change.before {
        Value::Absent => None,
        Value::Text { text } => Some(text.clone()),
        Value::Qdisc(Qdisc { installed: None, .. }) => Some("kernel".to_owned()),
        other => Some(other.to_string()),
    };
    changes.map(|change| (change.setting.to_string(), base(change))).collect()
}

impl Target {
    fn bases(&self) -> BTreeMap<String, Option<String>> {
        self.own.iter().map(|(name, (base, _))| (name.clone(), base.clone())).collect()
    }
}

impl Model {
    pub(crate) fn new(fresh: Values, goals: DesiredSettings) -> Self {
        let (applied, waiting) = (None, None);
        Self { values: fresh.clone(), applied, waiting, fresh: fresh.into(), goals: goals.into() }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    pub(crate) fn set(&mut self, name: &str, value: Option<String>) {
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

    /// Sets each setting from its first value to its second, unless another program has changed it.
    fn change(&mut self, mut steps: Vec<Setting>) {
        steps.sort_by_key(|(name, ..)| (name != ALLOWED, name == DEFAULT));
        for (name, from, to) in steps {
            if self.get(&name) == from {
                self.set(&name, to);
            }
        }
    }

    pub(crate) fn apply(&mut self, text: &'static str, ttl: bool) {
        if self.waiting.is_some() {
            return;
        }
        let goals = self.goals[text].clone();
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
                Some((base, ours)) if now == *ours || now == *base || !is_route(&name) => {
                    base.clone()
                }
                _ => now.clone(),
            };
            if now != goal {
                steps.push((name.clone(), now, goal.clone()));
            }
            if base != goal {
                own.insert(name, (base, goal));
            }
        }
        let next = Target { text, own };
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

    pub(crate) fn confirm(&mut self) {
        let is_same = |(name, from, _): &Setting| self.get(name) == *from;
        if self.waiting.as_ref().is_none_or(|waiting| !waiting.files.iter().all(is_same)) {
            return;
        }
        if let Some(waiting) = self.waiting.take() {
            self.change(waiting.files);
            self.applied = Some(waiting.next);
        }
    }

    /// Undoes the open changes, as an expired deadline or a killed command does.
    pub(crate) fn undo(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.change(
                waiting.done.into_iter().map(|(name, from, to)| (name, to, from)).collect(),
            );
        }
    }

    pub(crate) fn revert(&mut self) {
        self.undo();
        let own = self.applied.take().map(|applied| applied.own).unwrap_or_default();
        self.change(own.into_iter().map(|(name, (base, ours))| (name, ours, base)).collect());
    }

    pub(crate) fn reboot(&mut self) {
        let file = self.get(SYSCTLS).unwrap_or_default();
        self.boot(&file);
    }

    /// A boot that finds `file` in sysctl.d, then a recovery that restores the files.
    pub(crate) fn boot(&mut self, file: &str) {
        self.waiting = None;
        self.values.retain(|name, _| is_file(name));
        self.values.extend((*self.fresh).clone());
        for (name, value) in file.lines().filter_map(|line| line.split_once(" = ")) {
            self.set(name, Some(value.to_owned()));
        }
        self.applied = self.applied.take().filter(|applied| persists(applied.text));
        if let Some(text) = self.applied.as_ref().map(|applied| applied.text) {
            self.apply(text, false);
        }
    }

    /// A reboot while `text` was being applied, after its sysctls were written to a file. The boot
    /// sets them, and the recovery restores their values from just before.
    pub(crate) fn power_fails(&mut self, text: &str) {
        let before = self.clone();
        // The recovery restores the sysctls of an applied state before it applies the desired state
        // again.
        let active = self.applied.as_ref().filter(|applied| persists(applied.text));
        let active = active.map(|applied| self.goals[applied.text].clone()).unwrap_or_default();
        let sysctls =
            active.iter().filter(|(name, _)| name.starts_with("net.") && !name.contains(' '));
        let lines: Vec<String> = sysctls.map(|(name, value)| format!("{name} = {value}")).collect();
        self.boot(&lines.join("\n"));
        let lost = before.applied.as_ref().filter(|applied| !persists(applied.text));
        let goals = self.goals[text].clone();
        for name in goals.into_keys().filter(|name| name.starts_with("net.") && !name.contains(' '))
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

    pub(crate) fn agrees(&self, values: &Values, journal: Option<&Journal>) -> bool {
        let applied = journal.and_then(|journal| journal.applied.as_ref());
        let open = journal.and_then(|journal| journal.open.as_ref());
        *values == self.values
            && applied.map(|applied| &*applied.desired) == self.applied.as_ref().map(|it| it.text)
            && applied.map(bases) == self.applied.as_ref().map(Target::bases)
            && open.is_some() == self.waiting.is_some()
    }
}

pub(crate) fn differences(one: &Values, other: &Values) -> Vec<String> {
    let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let names = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    names.map(|name| format!("{name}: {:?} {:?}", one.get(name), other.get(name))).collect()
}
