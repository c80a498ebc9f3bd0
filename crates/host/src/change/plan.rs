//! Which settings differ from a wish, and how they are changed.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use super::files;
use super::host::{Host, HostError, Surroundings};
use super::journal::{Change, Journal};
use super::knob::{ALLOWED, DEFAULT, DEFAULT_QDISC, Installed, Knob, LOADED, Qdisc, Value};
use super::route;
use super::wish::{Wish, WishedRoute};

/// Disciplines that their options describe completely.
const RESTORABLE: [&str; 15] = [
    "bfifo",
    "cake",
    "codel",
    "fq",
    "fq_codel",
    "fq_pie",
    "hhf",
    "mq",
    "noqueue",
    "pfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "pie",
    "sfq",
    "tbf",
];

/// The way from the state of a host to a wish.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The settings to change, in the order of the changes.
    pub steps: Vec<Change>,
    /// All settings that differ from the state without any wish, afterwards.
    #[serde(skip)]
    pub(crate) changes: Vec<Change>,
    /// What happens to live connections.
    pub warnings: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The host cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// This host cannot fulfil the wish. Each text names a setting, the reason and the remedy.
    #[error("{}", .0.join("\n"))]
    Impossible(Vec<String>),
}

/// Compares a host with a wish. `journal` says what earlier wishes changed:
/// settings that this wish no longer names get back their old values.
///
/// # Errors
///
/// The host cannot be read, or cannot fulfil the wish.
pub fn plan(host: &mut impl Host, wish: &Wish, journal: &Journal) -> Result<Plan, PlanError> {
    let around = host.surroundings()?;
    let mut planner =
        Planner { host, around, journal, goals: BTreeMap::new(), problems: Vec::new() };
    planner.kernel(wish)?;
    planner.qdiscs(wish)?;
    for route in &wish.routes {
        planner.route(route)?;
    }
    if wish.persist {
        planner.files();
    }
    planner.finish()
}

struct Planner<'a, H> {
    host: &'a mut H,
    around: Surroundings,
    journal: &'a Journal,
    /// The value that each wished setting has, and the one that it should have.
    goals: BTreeMap<Knob, (Value, Value)>,
    problems: Vec<String>,
}

impl<H: Host> Planner<'_, H> {
    fn goal(&mut self, knob: Knob, current: Value, wished: Value) {
        self.goals.insert(knob, (current, wished));
    }

    fn problem(&mut self, knob: &Knob, reason: &str) {
        self.problems.push(format!("{knob}: {reason}"));
    }

    fn kernel(&mut self, wish: &Wish) -> Result<(), HostError> {
        self.modules(wish)?;
        self.allowed(wish)?;
        for (key, size) in
            [("net.ipv4.tcp_wmem", wish.send_buffer), ("net.ipv4.tcp_rmem", wish.receive_buffer)]
        {
            if let Some(size) = size {
                self.buffer(key, size.as_u64())?;
            }
        }
        for (name, algorithm) in &wish.namespaces {
            let knob = Knob::Sysctl { key: DEFAULT.to_owned(), namespace: Some(name.clone()) };
            self.sysctl(knob, algorithm)?;
            let is_allowed = self.around.allowed.contains(algorithm)
                || wish.allowed.as_ref().is_some_and(|allowed| allowed.contains(algorithm))
                || wish.algorithm.as_ref() == Some(algorithm);
            if !is_allowed {
                self.problems.push(format!(
                    "namespaces.{name}: {algorithm} is not allowed outside of the initial namespace: add it \
                     to `allowed` there"
                ));
            }
        }
        match &wish.algorithm {
            Some(algorithm) => self.default(algorithm),
            None => Ok(()),
        }
    }

    /// The wished modules, and those of the algorithms: at boot, the list of allowed algorithms takes no name of one
    /// that is not loaded (linux net/ipv4/tcp_cong.c, `tcp_set_allowed_congestion_control`).
    fn modules(&mut self, wish: &Wish) -> Result<(), HostError> {
        for name in &wish.modules {
            let knob = Knob::Module { name: name.clone() };
            let current = self.host.read(&knob)?;
            let goal = if current == Value::Absent { Value::text(LOADED) } else { current.clone() };
            self.goal(knob, current, goal);
        }
        if !self.around.is_initial {
            return Ok(());
        }
        for algorithm in wish.algorithms() {
            let knob = Knob::Module { name: format!("tcp_{algorithm}") };
            let current = self.host.read(&knob)?;
            let is_there = self.around.available.contains(algorithm);
            if current.as_text() == Some(LOADED) || !is_there {
                self.goal(knob, current, Value::text(LOADED));
            }
        }
        Ok(())
    }

    /// The list of allowed algorithms. To choose a default adds it to the list (linux net/ipv4/tcp_cong.c,
    /// `tcp_set_default_congestion_control`): the list is changed first, so that it is restored, too.
    fn allowed(&mut self, wish: &Wish) -> Result<(), HostError> {
        let knob = Knob::sysctl(ALLOWED);
        let current = self.host.read(&knob)?;
        // Without the changes of an earlier wish.
        let earlier = self.journal.changes().iter().find(|change| change.knob == knob);
        let earlier = earlier.filter(|change| change.after.holds(&current));
        let base = earlier.map_or(&current, |change| &change.before).as_text().unwrap_or_default();
        let mut wished: Vec<String> = base.split(' ').map(str::to_owned).collect();
        match (&wish.allowed, &wish.algorithm) {
            (Some(allowed), _) => wished.clone_from(allowed),
            (None, Some(default)) if self.around.is_initial => wished.push(default.clone()),
            _ => return Ok(()),
        }
        wished.sort();
        wished.dedup();
        let wished = Value::text(wished.join(" "));
        if current != wished && !self.around.is_initial {
            let now = &current;
            let reason = format!(
                "only the initial namespace may change it, and here it is `{now}`: run this on the host \
                 itself, or leave `allowed` out"
            );
            self.problem(&knob, &reason);
        }
        self.goal(knob, current, wished);
        Ok(())
    }

    fn default(&mut self, algorithm: &str) -> Result<(), HostError> {
        let knob = Knob::sysctl(DEFAULT);
        let Surroundings { available, allowed, is_initial, .. } = &self.around;
        let has = |names: &[String]| names.iter().any(|name| name == algorithm);
        // The initial namespace loads a missing module itself (`request_module("tcp_%s")`).
        let is_possible = *is_initial || self.host.read(&knob)?.as_text() == Some(algorithm);
        let reason = if is_possible || (has(available) && has(allowed)) {
            None
        } else if has(available) {
            let there = allowed.join(", ");
            Some(format!(
                "{algorithm} is not allowed here ({there} are): add it to {ALLOWED} on the host itself"
            ))
        } else {
            let there = available.join(", ");
            Some(format!(
                "there is no algorithm {algorithm} here, but {there}: modprobe tcp_{algorithm} on the host \
                 itself loads it"
            ))
        };
        if let Some(reason) = reason {
            self.problem(&knob, &reason);
        }
        self.sysctl(knob, algorithm)
    }

    fn sysctl(&mut self, knob: Knob, wished: &str) -> Result<(), HostError> {
        let current = self.host.read(&knob)?;
        if current == Value::Absent {
            let reason = match &knob {
                Knob::Sysctl { namespace: Some(name), .. } => {
                    format!("no namespace {name} in /run/netns: make it with ip netns add {name}")
                }
                _ => "this kernel or this network namespace does not have it: leave it out here"
                    .to_owned(),
            };
            self.problem(&knob, &reason);
        }
        self.goal(knob, current, Value::text(wished));
        Ok(())
    }

    /// The last of three words is the largest buffer that TCP chooses itself.
    fn buffer(&mut self, key: &str, size: u64) -> Result<(), HostError> {
        let current = self.host.read(&Knob::sysctl(key))?;
        let text = current.as_text().unwrap_or_default();
        let sizes: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [least, usual, _] = sizes[..] else {
            return Err(HostError(format!("{key} is `{text}`, expected three numbers")));
        };
        self.sysctl(Knob::sysctl(key), &format!("{} {} {size}", least.min(size), usual.min(size)))
    }

    fn qdiscs(&mut self, wish: &Wish) -> Result<(), HostError> {
        let mut below = None;
        if let Some(name) = &wish.default_qdisc {
            self.sysctl(Knob::sysctl(DEFAULT_QDISC), name)?;
            below = Some(name.clone());
        } else if let Value::Text { text } = self.host.read(&Knob::sysctl(DEFAULT_QDISC))? {
            below = Some(text);
        }
        for (interface, name) in &wish.qdiscs {
            let knob = Knob::Qdisc { interface: interface.clone() };
            let current = self.host.read(&knob)?;
            let Value::Qdisc(now) = &current else {
                self.problem(&knob, "no such interface: ip link shows those that there are");
                continue;
            };
            let wished = if now.name == "mq" && name != "mq" {
                mq_of(name)
            } else {
                Qdisc { name: name.clone(), leaves: Vec::new(), installed: Some(Installed::any()) }
            };
            let is_there = now.name == wished.name
                && (wished.leaves.is_empty() || now.leaves == wished.leaves);
            if is_there {
                self.goal(knob, current.clone(), current);
                continue;
            }
            if let Some(reason) = cannot_replace(now, name, below.as_deref()) {
                self.problem(&knob, &reason);
            }
            self.goal(knob, current, Value::Qdisc(wished));
        }
        Ok(())
    }

    fn route(&mut self, wished: &WishedRoute) -> Result<(), HostError> {
        let knob = Knob::Route { to: wished.to.to_string() };
        let current = self.host.read(&knob)?;
        let covering = self.around.routes.iter().filter(|(prefix, _)| prefix.covers(wished.to));
        let base = match &current {
            Value::Route(route) => Some(route),
            _ => covering.max_by_key(|(prefix, _)| prefix.bits).map(|(_, route)| route),
        };
        let Some(base) = base else {
            self.problem(&knob, "no route leads there: add one, or leave it out");
            return Ok(());
        };
        let same = current == Value::Route(base.clone())
            && base.congctl.as_ref() == Some(&wished.algorithm)
            && base.locked == wished.lock;
        let goal = if same { base.clone() } else { route::choosing(base, wished)? };
        self.goal(knob, current, Value::Route(goal));
        Ok(())
    }

    fn files(&mut self) {
        if !self.around.boots {
            self.problems.push(
                "persist: the files that are read at boot do not concern this network namespace: leave \
                 `persist` out here"
                    .to_owned(),
            );
            return;
        }
        let sysctls: Vec<(Knob, Value)> = self
            .goals
            .iter()
            .filter(|(knob, _)| matches!(knob, Knob::Sysctl { namespace: None, .. }))
            .map(|(knob, (_, wished))| (knob.clone(), wished.clone()))
            .collect();
        let is_loaded = |(_, wished): &(Value, Value)| wished.as_text() == Some(LOADED);
        let modules = self.goals.iter().filter(|(_, goal)| is_loaded(goal));
        let modules: Vec<String> = modules
            .filter_map(|(knob, _)| match knob {
                Knob::Module { name } => Some(name.clone()),
                _ => None,
            })
            .collect();
        for (knob, wished) in files::files(&modules, &sysctls, &self.around) {
            match self.host.read(&knob) {
                Ok(current) => self.goal(knob, current, wished),
                Err(error) => self.problems.push(error.to_string()),
            }
        }
    }

    fn finish(mut self) -> Result<Plan, PlanError> {
        if !self.problems.is_empty() {
            return Err(PlanError::Impossible(self.problems));
        }
        let mut steps = Vec::new();
        let mut changes = Vec::new();
        for earlier in self.journal.changes() {
            if !self.goals.contains_key(&earlier.knob) {
                let current = self.host.read(&earlier.knob)?;
                // What somebody else has changed since is theirs.
                if earlier.after.holds(&current) && !earlier.before.holds(&current) {
                    let (knob, after) = (earlier.knob.clone(), earlier.before.clone());
                    steps.push(Change { knob, before: current, after });
                }
            }
        }
        for (knob, (current, wished)) in std::mem::take(&mut self.goals) {
            let earlier = self.journal.changes().iter().find(|change| change.knob == knob);
            let before = match earlier {
                Some(earlier) if earlier.after.holds(&current) => earlier.before.clone(),
                Some(earlier) if earlier.before.holds(&current) => earlier.before.clone(),
                _ => current.clone(),
            };
            if !wished.holds(&current) {
                let (knob, after) = (knob.clone(), wished.clone());
                steps.push(Change { knob, before: current, after });
            }
            if !wished.holds(&before) {
                changes.push(Change { knob, before, after: wished });
            }
        }
        // A module stays loaded.
        steps.retain(|step| {
            !matches!(step.knob, Knob::Module { .. }) || step.after != Value::Absent
        });
        steps.sort_by_key(|step| step.knob.apply_rank(&step.after));
        changes.sort_by_key(|change| change.knob.apply_rank(&change.after));
        let mut warnings = warnings(&steps);
        let has_files = steps.iter().any(|step| step.knob.survives_reboot());
        if has_files && !self.around.has_systemd {
            warnings.push(
                "systemd does not run here: have your init read the files in /etc, and call \
                 `uncork host apply --boot`"
                    .to_owned(),
            );
        }
        Ok(Plan { steps, changes, warnings })
    }
}

impl Installed {
    fn any() -> Self {
        Self { handle: 0, options: None, unrestorable: None }
    }
}

/// A new `mq` gives its queues the default discipline.
fn mq_of(leaf: &str) -> Qdisc {
    let leaves = vec![leaf.to_owned()];
    Qdisc { name: "mq".to_owned(), leaves, installed: Some(Installed::any()) }
}

fn cannot_replace(now: &Qdisc, wished: &str, below: Option<&str>) -> Option<String> {
    if now.name == "mq" && wished != "mq" && below != Some(wished) {
        return Some(format!(
            "its queues below mq follow {DEFAULT_QDISC} of the initial namespace: wish default = \"{wished}\" \
             in [qdisc] there"
        ));
    }
    let installed = now.installed.as_ref()?;
    if let Some(reason) = &installed.unrestorable {
        return Some(format!("it is {}, {reason}: remove it first", now.name));
    }
    (!RESTORABLE.contains(&now.name.as_str())).then(|| {
        let name = &now.name;
        format!("it is {name}, which may have classes and filters that revert could not restore: remove it first")
    })
}

/// What the changes mean for connections that exist.
pub(crate) fn warnings(steps: &[Change]) -> Vec<String> {
    let loses_fq = |step: &&Change| match (&step.before, &step.after) {
        (Value::Qdisc(before), Value::Qdisc(after)) => {
            let has_fq =
                |qdisc: &Qdisc| qdisc.name == "fq" || qdisc.leaves.iter().any(|leaf| leaf == "fq");
            has_fq(before) && !has_fq(after)
        }
        _ => false,
    };
    let warning = |step: &Change| {
        format!(
            "{}: connections that fq has paced there are no longer paced until they end",
            step.knob
        )
    };
    steps.iter().filter(loses_fq).map(warning).collect()
}
