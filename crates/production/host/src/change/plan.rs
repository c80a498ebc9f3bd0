//! Computes which settings differ from a desired state, and the order of the changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use thiserror::Error;
use uncork_cc::Missing;
use uncork_policy::Release;

use super::desired_state::{DesiredRoute, DesiredState, Prefix};
use super::files;
use super::host::{Host, HostContext, HostError};
use super::journal::{Change, Journal};
use super::policy::{self, PolicyRoutes, Without};
use super::route;
use super::setting::{
    ALLOWED, DEFAULT, DEFAULT_QDISC, Installed, LOADED, Qdisc, RECEIVE_BUFFER, Route, SEND_BUFFER,
    SettingKey, Value,
};

/// Why a route is not changed, and the remedy.
const FIXED: &str = "the route that leads there expires, comes from router advertisements, or has a nexthop object (nhid): changed \
                     or copied it would become permanent, or change other routes; set `algorithm` for all destinations, or add a \
                     static route with via and dev, which then sets the algorithm";

/// Disciplines that can be restored from their options alone.
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

/// The changes from the current state of a host to a desired state.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The settings to change, in order.
    pub steps: Vec<Change>,
    /// All settings that will differ from their values before all changes.
    pub(crate) changes: Vec<Change>,
    /// When the table of the policy expires, in seconds of Unix time.
    pub(crate) expires_unix_s: Option<i64>,
    /// Which of its signer's policies the policy is, if it must be signed.
    pub(crate) release: Option<Release>,
    /// What happens to live connections.
    pub warnings: Vec<String>,
}

/// Why no plan could be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The host cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host cannot match the desired state. Each text names a setting, the reason and the
    /// remedy.
    #[error("{}", .0.join("\n"))]
    Impossible(Vec<String>),
    /// The policy of `[routes]` is refused.
    #[error("[routes]: {0}")]
    Policy(String),
}

/// Compares a host with a desired state. `journal` has the changes of earlier desired states:
/// settings that this desired state no longer names get their old values back.
///
/// # Errors
///
/// If the host cannot be read, or cannot match the desired state.
pub fn plan(
    host: &mut impl Host,
    desired: &DesiredState,
    journal: &Journal,
) -> Result<Plan, PlanError> {
    let context = host.context()?;
    let changes = journal.changes().iter().map(|change| (&change.setting, change)).collect();
    let (goals, problems) = (BTreeMap::new(), Vec::new());
    let mut planner = ChangePlanner { host, context, changes, goals, problems };
    let own = planner.own_routes();
    let mut desired = desired.clone();
    desired.routes = with_inner(&desired.routes, &own);
    let PolicyRoutes { routes, expires_unix_s, warnings, release } =
        planner.of_policy(&desired, &own)?;
    desired.routes.extend(routes);
    planner.kernel(&desired)?;
    planner.qdiscs(&desired)?;
    planner.routes(&desired.routes, &own)?;
    if desired.persist {
        planner.files(desired.allowed.is_some());
    }
    let mut plan = planner.finish()?;
    plan.warnings.extend(warnings);
    Ok(Plan { expires_unix_s, release, ..plan })
}

/// The desired routes, and the host's own routes to parts of their networks, which would win otherwise.
fn with_inner(desired: &[DesiredRoute], own: &BTreeMap<Prefix, Route>) -> Vec<DesiredRoute> {
    let named: BTreeMap<Prefix, &DesiredRoute> =
        desired.iter().map(|route| (route.to, route)).collect();
    let inner = own.keys().filter(|to| !named.contains_key(to) && !to.is_link_local());
    let inner = inner.filter_map(|to| {
        let around = to.around().find_map(|outer| named.get(&outer))?;
        Some(DesiredRoute { to: *to, ..(*around).clone() })
    });
    desired.iter().cloned().chain(inner).collect()
}

/// The host's own route that leads to a network, and its destination.
fn nearest(to: Prefix, own: &BTreeMap<Prefix, Route>) -> Option<(Prefix, &Route)> {
    std::iter::once(to).chain(to.around()).find_map(|to| Some((to, own.get(&to)?)))
}

struct ChangePlanner<'a, H> {
    host: &'a mut H,
    context: HostContext,
    /// The changes of earlier desired states.
    changes: BTreeMap<&'a SettingKey, &'a Change>,
    /// The current value and the desired value of each setting.
    goals: BTreeMap<SettingKey, (Value, Value)>,
    problems: Vec<String>,
}

impl<H: Host> ChangePlanner<'_, H> {
    fn goal(&mut self, setting: SettingKey, current: Value, desired: Value) {
        self.goals.insert(setting, (current, desired));
    }

    fn problem(&mut self, setting: &SettingKey, reason: &str) {
        self.problems.push(format!("{setting}: {reason}"));
    }

    fn kernel(&mut self, desired: &DesiredState) -> Result<(), HostError> {
        self.modules(desired)?;
        self.allowed(desired)?;
        for (key, size) in
            [(SEND_BUFFER, desired.send_buffer), (RECEIVE_BUFFER, desired.receive_buffer)]
        {
            if let Some(size) = size {
                self.buffer(key, size.as_u64())?;
            }
        }
        for (name, algorithm) in &desired.namespaces {
            let setting =
                SettingKey::Sysctl { key: DEFAULT.to_owned(), namespace: Some(name.clone()) };
            self.sysctl(setting, algorithm)?;
            let is_allowed = self.context.allowed.contains(algorithm)
                || desired.allowed.as_ref().is_some_and(|allowed| allowed.contains(algorithm))
                || desired.algorithm.as_ref() == Some(algorithm);
            if !is_allowed {
                self.problems.push(format!(
                    "namespaces.{name}: {algorithm} is not allowed outside of the initial namespace: add it \
                     to `allowed` there"
                ));
            }
        }
        match &desired.algorithm {
            Some(algorithm) => self.default(algorithm),
            None => Ok(()),
        }
    }

    /// Adds the desired modules, and the modules of the algorithms: at boot, the list of allowed
    /// algorithms accepts only names of loaded algorithms (linux net/ipv4/tcp_cong.c,
    /// `tcp_set_allowed_congestion_control`).
    fn modules(&mut self, desired: &DesiredState) -> Result<(), HostError> {
        for name in &desired.modules {
            let setting = SettingKey::Module { name: name.clone() };
            let current = self.host.read(&setting)?;
            let goal = if current == Value::Absent { Value::text(LOADED) } else { current.clone() };
            self.module(setting, current, goal, "`modinfo` finds modules by name")?;
        }
        if !self.context.is_initial {
            return Ok(());
        }
        for algorithm in desired.algorithms().collect::<BTreeSet<_>>() {
            let setting = SettingKey::Module { name: format!("tcp_{algorithm}") };
            let current = self.host.read(&setting)?;
            let is_there = self.context.available.contains(algorithm);
            if current.as_text() == Some(LOADED) || !is_there {
                let remedy = format!("choose one of {}", self.context.available.join(", "));
                self.module(setting, current, Value::text(LOADED), &remedy)?;
            }
        }
        Ok(())
    }

    fn module(
        &mut self,
        setting: SettingKey,
        current: Value,
        goal: Value,
        remedy: &str,
    ) -> Result<(), HostError> {
        if let (SettingKey::Module { name }, Value::Absent) = (&setting, &current)
            && !self.host.may_load(name)?
        {
            self.problem(&setting, &format!("this kernel does not have it: {remedy}"));
        }
        self.goal(setting, current, goal);
        Ok(())
    }

    /// Adds the list of allowed algorithms. The kernel adds a new default to the list (linux
    /// net/ipv4/tcp_cong.c, `tcp_set_default_congestion_control`), so the list is changed first and
    /// restored like any other setting.
    fn allowed(&mut self, desired: &DesiredState) -> Result<(), HostError> {
        let setting = SettingKey::sysctl(ALLOWED);
        let current = self.host.read(&setting)?;
        let before = self.before(&setting, current.clone());
        let base = before.as_text().unwrap_or_default();
        let mut names: Vec<String> = base.split(' ').map(str::to_owned).collect();
        match (&desired.allowed, &desired.algorithm) {
            (Some(allowed), _) => names.clone_from(allowed),
            (None, Some(default)) if self.context.is_initial => names.push(default.clone()),
            _ => return Ok(()),
        }
        names.sort();
        names.dedup();
        let goal = Value::text(names.join(" "));
        if current != goal && !self.context.is_initial {
            let now = &current;
            let reason = format!(
                "only the initial namespace may change it, and here it is `{now}`: run this on the host \
                 itself, or leave `allowed` out"
            );
            self.problem(&setting, &reason);
        }
        self.goal(setting, current, goal);
        Ok(())
    }

    fn default(&mut self, algorithm: &str) -> Result<(), HostError> {
        let setting = SettingKey::sysctl(DEFAULT);
        let HostContext { available, allowed, is_initial, .. } = &self.context;
        let has = |names: &[String]| names.iter().any(|name| name == algorithm);
        // The initial namespace loads a missing module itself (`request_module("tcp_%s")`).
        let is_possible = *is_initial || self.host.read(&setting)?.as_text() == Some(algorithm);
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
                "algorithm {algorithm} does not exist here (available: {there}); on the host itself: {}",
                Missing(algorithm)
            ))
        };
        if let Some(reason) = reason {
            self.problem(&setting, &reason);
        }
        self.sysctl(setting, algorithm)
    }

    fn sysctl(&mut self, setting: SettingKey, desired: &str) -> Result<(), HostError> {
        let current = self.host.read(&setting)?;
        if current == Value::Absent {
            let reason = match &setting {
                SettingKey::Sysctl { namespace: Some(name), .. } => {
                    format!("no namespace {name} in /run/netns: make it with ip netns add {name}")
                }
                _ => "this kernel or this network namespace does not have it: remove it here"
                    .to_owned(),
            };
            self.problem(&setting, &reason);
        }
        self.goal(setting, current, Value::text(desired));
        Ok(())
    }

    /// Sets the last of three words: the largest buffer that TCP's autotuning may choose.
    fn buffer(&mut self, key: &str, size: u64) -> Result<(), HostError> {
        let current = self.host.read(&SettingKey::sysctl(key))?;
        let text = current.as_text().unwrap_or_default();
        let sizes: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [least, usual, _] = sizes[..] else {
            return Err(HostError(format!("{key} is `{text}`, expected three numbers")));
        };
        self.sysctl(
            SettingKey::sysctl(key),
            &format!("{} {} {size}", least.min(size), usual.min(size)),
        )
    }

    fn qdiscs(&mut self, desired: &DesiredState) -> Result<(), HostError> {
        let mut below = None;
        if let Some(name) = &desired.default_qdisc {
            let setting = SettingKey::sysctl(DEFAULT_QDISC);
            if self.host.read(&setting)?.as_text() != Some(name) {
                self.check_qdisc(&setting, name)?;
            }
            self.sysctl(setting, name)?;
            below = Some(name.clone());
        } else if let Value::Text { text } = self.host.read(&SettingKey::sysctl(DEFAULT_QDISC))? {
            below = Some(text);
        }
        for (interface, name) in &desired.qdiscs {
            let setting = SettingKey::Qdisc { interface: interface.clone() };
            let current = self.host.read(&setting)?;
            let Value::Qdisc(now) = &current else {
                self.problem(&setting, "no such interface: `ip link` lists them");
                continue;
            };
            let desired = if now.name == "mq" && name != "mq" {
                mq_of(name)
            } else {
                Qdisc { name: name.clone(), leaves: Vec::new(), installed: Some(Installed::any()) }
            };
            let is_there = now.name == desired.name
                && (desired.leaves.is_empty() || now.leaves == desired.leaves);
            if is_there {
                self.goal(setting, current.clone(), current);
                continue;
            }
            self.check_qdisc(&setting, name)?;
            if let Some(reason) = cannot_replace(now, name, below.as_deref()) {
                self.problem(&setting, &reason);
            }
            self.goal(setting, current, Value::Qdisc(desired));
        }
        Ok(())
    }

    fn check_qdisc(&mut self, setting: &SettingKey, name: &str) -> Result<(), HostError> {
        if !self.host.may_have_qdisc(name)? {
            let reason = format!(
                "this kernel has no queue discipline {name}: choose another one, such as pfifo"
            );
            self.problem(setting, &reason);
        }
        Ok(())
    }

    /// The host's routes without the changes of earlier desired states.
    fn own_routes(&self) -> BTreeMap<Prefix, Route> {
        let mut routes = BTreeMap::new();
        for (to, route) in &self.context.routes {
            let setting = SettingKey::Route { to: to.to_string() };
            let current = Value::Route(route.clone());
            if let Value::Route(own) = self.before(&setting, current) {
                routes.insert(*to, own);
            }
        }
        routes
    }

    /// The value without the change of an earlier desired state.
    fn before(&self, setting: &SettingKey, current: Value) -> Value {
        match self.changes.get(setting) {
            Some(earlier) if earlier.after.holds(&current) => earlier.before.clone(),
            _ => current,
        }
    }

    fn of_policy(
        &mut self,
        desired: &DesiredState,
        own: &BTreeMap<Prefix, Route>,
    ) -> Result<PolicyRoutes, PlanError> {
        let Some(source) = &desired.policy else { return Ok(PolicyRoutes::default()) };
        let default = SettingKey::sysctl(DEFAULT);
        let current = self.host.read(&default)?;
        let current = self.before(&default, current);
        let current = current.as_text().unwrap_or_default();
        let algorithm = desired.algorithm.as_deref().unwrap_or(current);
        let without = Without { algorithm, routes: own, desired: &desired.routes };
        let unix_s = self.host.now().unix_s.cast_signed();
        let read = |path: &Path| self.host.file(path);
        let made = policy::routes(source, without, unix_s, read);
        let mut made = made.map_err(PlanError::Policy)?;
        if let Some(release) = &made.release {
            let name = source.file.display();
            let checked = self.host.check_release(release);
            checked.map_err(|error| PlanError::Policy(format!("{name}: {error}")))?;
        }
        made.routes.retain(|route| !self.is_closed(route.to, own));
        let count = made.routes.len();
        made.routes.retain(|route| !self.is_fixed(nearest(route.to, own)));
        let left_out = count - made.routes.len();
        if left_out > 0 {
            made.warnings.push(format!(
                "networks of the policy that keep the algorithm of the host: {left_out}: {FIXED}"
            ));
        }
        Ok(made)
    }

    fn is_fixed(&self, route: Option<(Prefix, &Route)>) -> bool {
        route.is_some_and(|(to, _)| self.context.fixed.contains(&to))
    }

    /// Whether the host has no way to this network on purpose. A route would make one.
    fn is_closed(&self, to: Prefix, own: &BTreeMap<Prefix, Route>) -> bool {
        let closed = &self.context.closed;
        let nearest = std::iter::once(to).chain(to.around());
        let mut nearest = nearest.skip_while(|to| !own.contains_key(to) && !closed.contains(to));
        nearest.next().is_some_and(|to| closed.contains(&to))
    }

    /// Copies of the host's own routes. So a copy follows when the route that it was made of has changed.
    fn routes(
        &mut self,
        desired: &[DesiredRoute],
        own: &BTreeMap<Prefix, Route>,
    ) -> Result<(), HostError> {
        if desired.len() > policy::MAX_ROUTES {
            let (count, max) = (desired.len(), policy::MAX_ROUTES);
            self.problems.push(format!(
                "[[route]]: {count} routes lie in its networks, more than {max}: name smaller networks, or set `algorithm`"
            ));
            return Ok(());
        }
        let settings: Vec<SettingKey> =
            desired.iter().map(|route| SettingKey::Route { to: route.to.to_string() }).collect();
        let current = self.host.read_all(&settings.iter().collect::<Vec<_>>())?;
        for ((desired, setting), current) in desired.iter().zip(settings).zip(current) {
            if self.is_closed(desired.to, own) {
                self.problem(
                    &setting,
                    "it leads nowhere (blackhole, unreachable, prohibit or throw), and a route with an \
                     algorithm would open it: leave it out, or remove that route first",
                );
                continue;
            }
            let nearest = nearest(desired.to, own);
            let Some((_, base)) = nearest else {
                self.problem(&setting, "no route to it: add one, or remove it");
                continue;
            };
            let same = current == Value::Route(base.clone())
                && base.congctl.as_ref() == Some(&desired.algorithm)
                && base.locked == desired.lock
                && desired.initial_window.is_none_or(|it| route::initial_window(base) == Some(it));
            if !same && self.is_fixed(nearest) {
                self.problem(&setting, FIXED);
            }
            let goal = if same { base.clone() } else { route::choosing(base, desired)? };
            self.goal(setting, current, Value::Route(goal));
        }
        Ok(())
    }

    /// The files that are read at boot. `is_listed`: the desired state has the list of allowed algorithms; if not, the boot has
    /// its own, to which the kernel adds the default.
    fn files(&mut self, is_listed: bool) {
        if !self.context.boots {
            self.problems.push(
                "persist: the files that are read at boot do not concern this network namespace: leave \
                 `persist` out here"
                    .to_owned(),
            );
            return;
        }
        let sysctls: Vec<(SettingKey, Value)> = self
            .goals
            .iter()
            .filter(|(setting, _)| matches!(setting, SettingKey::Sysctl { namespace: None, .. }))
            .filter(|(setting, _)| is_listed || **setting != SettingKey::sysctl(ALLOWED))
            .map(|(setting, (_, desired))| (setting.clone(), desired.clone()))
            .collect();
        let is_loaded = |(_, desired): &(Value, Value)| desired.as_text() == Some(LOADED);
        let modules = self.goals.iter().filter(|(_, goal)| is_loaded(goal));
        let modules: Vec<String> = modules
            .filter_map(|(setting, _)| match setting {
                SettingKey::Module { name } => Some(name.clone()),
                _ => None,
            })
            .collect();
        for (setting, desired) in files::files(&modules, &sysctls, &self.context) {
            match self.host.read(&setting) {
                Ok(current) => self.goal(setting, current, desired),
                Err(error) => self.problems.push(error.to_string()),
            }
        }
    }

    fn finish(mut self) -> Result<Plan, PlanError> {
        if !self.problems.is_empty() {
            return Err(PlanError::Impossible(self.problems));
        }
        let mut steps = Vec::new();
        let (mut changes, mut foreign_values) = (Vec::new(), Vec::new());
        let dropped = self.changes.values().filter(|it| !self.goals.contains_key(&it.setting));
        let dropped: Vec<&Change> = dropped.copied().collect();
        let current = self
            .host
            .read_all(&dropped.iter().map(|change| &change.setting).collect::<Vec<_>>())?;
        for (earlier, current) in dropped.into_iter().zip(current) {
            // Keep the value if another program has changed it since.
            if earlier.after.holds(&current) && !earlier.before.holds(&current) {
                let (setting, after) = (earlier.setting.clone(), earlier.before.clone());
                steps.push(Change { setting, before: current, after });
            }
        }
        for (setting, (current, desired)) in std::mem::take(&mut self.goals) {
            let earlier = self.changes.get(&setting);
            let foreign =
                earlier.filter(|it| !it.after.holds(&current) && !it.before.holds(&current));
            let before = match (earlier, &setting) {
                // Another program's route has its gateway; that of the one before may be gone.
                (Some(_), SettingKey::Route { .. }) if foreign.is_some() => current.clone(),
                (Some(earlier), _) => earlier.before.clone(),
                (None, _) => current.clone(),
            };
            if foreign.is_some() && before != current {
                foreign_values.push(format!(
                    "{setting}: another program has set it to {current} since the last apply; revert restores {before}"
                ));
            }
            if !desired.holds(&current) {
                let (setting, after) = (setting.clone(), desired.clone());
                steps.push(Change { setting, before: current, after });
            }
            if !desired.holds(&before) {
                changes.push(Change { setting, before, after: desired });
            }
        }
        // Modules are never unloaded.
        steps.retain(|step| {
            !matches!(step.setting, SettingKey::Module { .. }) || step.after != Value::Absent
        });
        steps.sort_by_key(|step| step.setting.apply_rank(&step.after));
        changes.sort_by_key(|change| change.setting.apply_rank(&change.after));
        let mut warnings = warnings(&steps);
        warnings.extend(foreign_values);
        let has_files = steps.iter().any(|step| step.setting.survives_reboot());
        if has_files && !self.context.has_systemd {
            warnings.push(
                "systemd does not run here: have your init read the files in /etc, and call \
                 `uncork host apply --boot`"
                    .to_owned(),
            );
        }
        Ok(Plan { steps, changes, warnings, expires_unix_s: None, release: None })
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

fn cannot_replace(now: &Qdisc, desired: &str, below: Option<&str>) -> Option<String> {
    if now.name == "mq" && desired != "mq" && below != Some(desired) {
        return Some(format!(
            "its queues below mq follow {DEFAULT_QDISC} of the initial namespace: set default = \"{desired}\" \
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

/// The effects of the changes on existing connections.
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
        format!("{}: connections that fq paced there are no longer paced", step.setting)
    };
    steps.iter().filter(loses_fq).map(warning).collect()
}
