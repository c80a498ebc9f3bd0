//! The publisher's side: versions and rollouts into the store.

use std::cell::RefCell;

use thiserror::Error;
use uncork_policy::{FileError, PublicKey};
use uncork_records::rfc3339;

use crate::bundle::BundleError;
use crate::gate::GateDecision;
use crate::report::{MAX_REPORT, Report};
use crate::rollout::RolloutError;
use crate::status::{HostStatus, Reported, first_hosts};
use crate::{
    Bundle, Gate, HostName, Kind, Lease, MAX_BUNDLE, PackedFile, Progress, Rollout, SigningKey,
    Stage, Target,
};
use uncork_store::{Condition, GetResult, Store, StoreError, Tag};

/// For all hosts, without a stage before.
pub(crate) const AT_ONCE: (Vec<Stage>, u64) = (Vec::new(), 0);

/// A store has not lost more numbers than these.
const MAX_LOST: u64 = 1 << 16;

/// A fleet's store, for those who publish and look.
pub struct Fleet<'a> {
    store: &'a dyn Store,
    keys: &'a [PublicKey],
    /// Why the latest rollout has no copy for later readers.
    uncopied: RefCell<Option<StoreError>>,
}

/// Why nothing was published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is in the store is not acceptable.
    #[error("the store's {0}: {1}; if it is damaged, copy the last file of `rollouts/` over it")]
    Rollout(&'static str, RolloutError),
    /// A bundle.
    #[error("{0}: {1}")]
    Bundle(String, BundleError),
    /// The new bundle cannot be packed.
    #[error(transparent)]
    Pack(#[from] BundleError),
    /// The policy is refused.
    #[error(transparent)]
    Policy(#[from] FileError),
    /// Nothing was published yet.
    #[error("the store has no rollout; publish a policy first")]
    Nothing,
    /// A version is on its way.
    #[error(
        "version {0} is at stage {1}; finish it with `uncork fleet publish STORE`, replace it with --at-once, or run `uncork fleet rollback` first"
    )]
    Running(u64, Stage),
    /// The fleet is frozen.
    #[error("the fleet is frozen; run `uncork fleet freeze --off` first")]
    Frozen,
    /// Another planner publishes, until its lease ends.
    #[error("{} holds the lease until {}", .0.holder, rfc3339(.0.expires_unix_s))]
    Held(Lease),
    /// The planner does not hold the lease.
    #[error("{0} does not hold the lease, or it has expired; take it with `uncork fleet lease`")]
    NoLease(HostName),
    /// The lease cannot be read.
    #[error("the store's lease: {0}; remove this object")]
    Lease(String),
    /// A person rolled a version back.
    #[error(
        "version {0} was rolled back, and a planner does not publish after that; publish once without --holder to go on"
    )]
    RolledBack(u64),
    /// The last stage leaves hosts out.
    #[error("the last stage is {0}; it must be 100%")]
    Stages(String),
    /// A stage has no host that those before do not have.
    #[error("stage {0} adds no host to {1} before it; put shares in rising order")]
    Order(Stage, Stage),
    /// The fleet runs no version.
    #[error("all hosts already run their default; nothing to roll back")]
    NothingToRollBack,
    /// A number that no publisher reaches.
    #[error(
        "the store's rollout has the highest {0} that there is, which only a stranger with the key signs; replace the key, and remove the object `rollout`"
    )]
    Exhausted(&'static str),
    /// No rollout has carried it.
    #[error(
        "the store has no version {0} that hosts have had and that was not rolled back; publish an old policy as a new version, or name the keys of older versions with --public-key"
    )]
    NoVersion(String),
    /// It was bad once.
    #[error(
        "version {0} was rolled back before; to have it again, publish its policy as a new version"
    )]
    TakenBack(u64),
    /// Hosts would refuse it, and it cannot be signed again.
    #[error(
        "hosts cannot return to version {0}: {1}; name the key that has signed it with --public-key, or replace the version on all hosts with `uncork fleet publish STORE POLICY --at-once`"
    )]
    Unusable(u64, String),
}

/// What a publisher lets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// The number of hosts of a stage that may fail.
    pub max_failed: usize,
    /// Whether a stage without a host that reports is neither widened nor held.
    pub skip_empty: bool,
}

/// What comes next for a version that goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// No version goes out.
    Nothing,
    /// The stage with this index begins.
    Stage(usize),
    /// The current stage has no host that reports: it begins again as this share, the smallest that has one.
    Widen(Stage),
    /// All hosts have it: it becomes the stable one.
    Finish,
    /// It stays where it is for now, for these reasons.
    Hold(Vec<String>),
    /// It must not go on, for these reasons.
    Stop(Vec<String>),
}

impl<'a> Fleet<'a> {
    /// The fleet of a store. Only what one of the keys has signed counts.
    pub fn new(store: &'a dyn Store, keys: &'a [PublicKey]) -> Self {
        Self { store, keys, uncopied: RefCell::default() }
    }

    /// Why the rollout that was written last has no copy in `rollouts/`. It is active all the same.
    pub fn uncopied(&self) -> Option<StoreError> {
        self.uncopied.borrow().clone()
    }

    /// The current rollout, if there is one.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or its rollout is not signed with one of the keys.
    pub fn rollout(&self) -> Result<Option<(Rollout, Tag)>, PublishError> {
        let name = Rollout::OBJECT;
        let GetResult::Object(object) = self.store.get(name, Kind::Rollout.max_size(), None)?
        else {
            return Ok(None);
        };
        let opened = Rollout::open(&object.bytes, self.keys);
        let (rollout, _) = opened.map_err(|error| PublishError::Rollout(name, error))?;
        Ok(Some((rollout, object.tag)))
    }

    /// The current rollout. A decision on it is written only if it still is the current one then.
    ///
    /// # Errors
    ///
    /// As [`Self::rollout`], and if nothing was published yet.
    pub fn current(&self) -> Result<(Rollout, Tag), PublishError> {
        self.rollout()?.ok_or(PublishError::Nothing)
    }

    /// What the hosts report.
    ///
    /// # Errors
    ///
    /// The store cannot be read. A report that cannot be read is in the result.
    pub fn reports(&self) -> Result<Vec<Reported>, PublishError> {
        let names = self.store.list("reports")?;
        let host = |name: &String| name.strip_suffix(".json")?.parse::<HostName>().ok();
        let hosts: Vec<HostName> = names.iter().filter_map(host).collect();
        let objects: Vec<String> = hosts.iter().map(Report::object).collect();
        let mut reports = Vec::new();
        for (host, got) in hosts.into_iter().zip(self.store.get_all(&objects, MAX_REPORT)) {
            let report = match got {
                Ok(GetResult::Object(object)) => Report::read(&object.bytes, &host)
                    .map(|report| (report, object.modified_unix_s)),
                Ok(_) => continue,
                Err(error) => Err(error.to_string()),
            };
            reports.push(Reported { host, report });
        }
        Ok(reports)
    }

    /// Publishes files as a new version, for the hosts of the first stage. A version with the same files as the stable one goes to
    /// all hosts at once: it only lasts longer.
    ///
    /// # Errors
    ///
    /// See [`PublishError`]. The rollout of the store is the one before then.
    pub fn begin(
        &self,
        key: &SigningKey,
        files: &[PackedFile],
        stages: (Vec<Stage>, u64),
        times: (u64, u64),
    ) -> Result<Rollout, PublishError> {
        let (before, condition) = self.before()?;
        self.begin_over((before.as_ref(), &condition), key, files, stages, times)
    }

    /// [`Fleet::begin`] for all hosts at once. A version that goes out is replaced: its hosts go on to this one.
    ///
    /// # Errors
    ///
    /// As [`Fleet::begin`], but for [`PublishError::Running`].
    pub fn begin_at_once(
        &self,
        key: &SigningKey,
        files: &[PackedFile],
        times: (u64, u64),
    ) -> Result<Rollout, PublishError> {
        let (before, condition) = self.before()?;
        let before = before.map(Rollout::interrupted);
        self.begin_over((before.as_ref(), &condition), key, files, AT_ONCE, times)
    }

    /// The rollout, and the condition for a write over it.
    pub(crate) fn before(&self) -> Result<(Option<Rollout>, Condition), PublishError> {
        Ok(match self.rollout()? {
            Some((rollout, tag)) => (Some(rollout), Condition::Same(tag)),
            None => (None, Condition::New),
        })
    }

    /// [`Fleet::begin`] over the rollout that was read.
    pub(crate) fn begin_over(
        &self,
        (before, condition): (Option<&Rollout>, &Condition),
        key: &SigningKey,
        files: &[PackedFile],
        (stages, hold_s): (Vec<Stage>, u64),
        (now, expires): (u64, u64),
    ) -> Result<Rollout, PublishError> {
        let numbered = self.numbered(before.cloned().unwrap_or_default())?;
        let version = next_number("version", numbered.highest)?;
        let (stages, hold_s) =
            if self.is_stable(before, files) { AT_ONCE } else { (stages, hold_s) };
        let sealed = Bundle::seal(version, (now, expires), files, key)?;
        let bundle = Bundle::open(&sealed, &[key.public()])?;
        bundle.policy()?;
        let target = Target { version, sha256: bundle.sha256, expires_unix_s: expires };
        let object = target.object();
        let rollout = numbered.begin(target, (stages, hold_s), now)?;
        self.store.put(&object, &sealed, &Condition::Any)?;
        self.put(&rollout, key, condition)?;
        Ok(rollout)
    }

    /// Whether these are the files of the stable version.
    fn is_stable(&self, before: Option<&Rollout>, files: &[PackedFile]) -> bool {
        let stable = before.and_then(|before| before.stable.as_ref());
        let bundle = stable.and_then(|stable| self.bundle(&stable.object()).ok());
        bundle.is_some_and(|bundle| bundle.files == files)
    }

    /// Takes the next step of the version that goes out, as [`Rollout::next_step`] found it for this rollout.
    ///
    /// # Errors
    ///
    /// See [`PublishError`].
    pub fn go_on(
        &self,
        key: &SigningKey,
        (before, tag): (Rollout, Tag),
        step: &Next,
        now: u64,
    ) -> Result<Rollout, PublishError> {
        let rollout = self.numbered(before)?.after(step, now)?;
        self.put(&rollout, key, &Condition::Same(tag))?;
        Ok(rollout)
    }

    /// Has all hosts stay where they are, or ends that.
    ///
    /// # Errors
    ///
    /// See [`PublishError`].
    pub fn freeze(
        &self,
        key: &SigningKey,
        frozen: bool,
        now: u64,
    ) -> Result<Rollout, PublishError> {
        let (before, tag) = self.current()?;
        let rollout = Rollout { frozen, ..self.numbered(before)?.following(now)? };
        self.put(&rollout, key, &Condition::Same(tag))?;
        Ok(rollout)
    }

    /// The rollout with the numbers that hosts have accepted, if they are higher: the store was lost, or restored from a backup.
    /// Hosts are not trusted, so a number far ahead does not count.
    pub(crate) fn numbered(&self, rollout: Rollout) -> Result<Rollout, PublishError> {
        let is_near = |number: &u64, than: u64| *number <= than.saturating_add(MAX_LOST);
        let reports = self.reports()?.into_iter().filter_map(|it| Some(it.report.ok()?.0));
        let later = reports.filter(|report| report.serial > rollout.serial);
        let (mut serial, mut highest) = (rollout.serial, rollout.highest);
        for report in later.filter(|report| is_near(&report.serial, rollout.serial)) {
            serial = serial.max(report.serial);
            let versions = [report.wanted, report.active.map(|there| there.version)];
            let near = versions.into_iter().flatten().filter(|it| is_near(it, rollout.highest));
            highest = near.fold(highest, u64::max);
        }
        Ok(Rollout { serial, highest, ..rollout })
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store
    }

    pub(crate) fn keys(&self) -> &[PublicKey] {
        self.keys
    }

    pub(crate) fn bundle(&self, object: &str) -> Result<Bundle, PublishError> {
        let GetResult::Object(found) = self.store.get(object, MAX_BUNDLE, None)? else {
            return Err(PublishError::NoVersion(object.to_owned()));
        };
        let bundle = Bundle::open(&found.bytes, self.keys);
        bundle.map_err(|error| PublishError::Bundle(object.to_owned(), error))
    }

    /// Writes a rollout, if the store still has the one before, and a copy for later readers. Without the copy, the rollout is
    /// active all the same.
    pub(crate) fn put(
        &self,
        rollout: &Rollout,
        key: &SigningKey,
        condition: &Condition,
    ) -> Result<(), PublishError> {
        let sealed = rollout.seal(key);
        let sealed = sealed.map_err(|error| {
            PublishError::Rollout(Rollout::OBJECT, RolloutError::Document(error))
        })?;
        self.store.put(Rollout::OBJECT, &sealed, condition)?;
        let copy = format!("rollouts/{:010}", rollout.serial);
        *self.uncopied.borrow_mut() = self.store.put(&copy, &sealed, &Condition::Any).err();
        Ok(())
    }
}

/// The number after this one.
pub(crate) fn next_number(what: &'static str, number: u64) -> Result<u64, PublishError> {
    number.checked_add(1).ok_or(PublishError::Exhausted(what))
}

impl Rollout {
    /// The next document, with the same content. A time that another clock has signed does not live on in it.
    pub(crate) fn following(&self, now: u64) -> Result<Self, PublishError> {
        let serial = next_number("serial", self.serial)?;
        Ok(Self { serial, made_unix_s: now, ..self.clone() })
    }

    /// Without the version that goes out. Its number stays used, so the next one is higher and its hosts take that.
    pub(crate) fn interrupted(self) -> Self {
        Self { next: None, ..self }
    }

    /// Whether a version goes out to some hosts only.
    pub(crate) fn is_in_stages(&self) -> bool {
        let stage = self.next.as_ref().and_then(|next| next.stages.get(next.stage));
        stage.is_some_and(|stage| !stage.is_all())
    }

    /// A new version for the hosts of the first stage; for all hosts without stages.
    fn begin(
        &self,
        target: Target,
        (mut stages, hold_s): (Vec<Stage>, u64),
        now: u64,
    ) -> Result<Self, PublishError> {
        let all = || Stage::Share(uncork_policy::SLOTS);
        if stages.is_empty() {
            stages.push(all());
        }
        if let Some(last) = stages.last().filter(|last| !last.is_all()) {
            return Err(PublishError::Stages(last.to_string()));
        }
        for (index, stage) in stages.iter().enumerate() {
            let before = stages.iter().take(index);
            if let Some(larger) = before.rev().find(|before| !stage.adds_to(before)) {
                return Err(PublishError::Order(stage.clone(), larger.clone()));
            }
        }
        if let Some(next) = &self.next {
            let stage = next.stages.get(next.stage).cloned().unwrap_or_else(all);
            return Err(PublishError::Running(next.target.version, stage));
        }
        if self.frozen {
            return Err(PublishError::Frozen);
        }
        let highest = target.version;
        let next = Some(Progress { target, stages, stage: 0, since_unix_s: now, hold_s });
        Ok(Self { next, highest, ..self.following(now)? })
    }

    fn after(&self, step: &Next, now: u64) -> Result<Self, PublishError> {
        let mut rollout = self.following(now)?;
        match step {
            Next::Stage(stage) => {
                if let Some(next) = &mut rollout.next {
                    (next.stage, next.since_unix_s) = (*stage, now);
                }
            }
            Next::Widen(stage) => {
                if let Some(next) = &mut rollout.next
                    && let Some(current) = next.stages.get_mut(next.stage)
                {
                    (*current, next.since_unix_s) = (stage.clone(), now);
                }
            }
            Next::Finish => rollout.finish(),
            Next::Nothing | Next::Hold(_) | Next::Stop(_) => {}
        }
        Ok(rollout)
    }

    fn finish(&mut self) {
        if let Some(next) = self.next.take() {
            // Agents that were away during the rollback return now by a higher version.
            self.rolled_back = self.rolled_back.filter(|version| *version > next.target.version);
            self.stable = Some(next.target);
        }
    }

    /// What comes next for the version that goes out, by the reports of the hosts and by verdicts, or the reasons why there is
    /// none yet: without one the stage waits, and failing hosts still stop it.
    pub fn next_step(
        &self,
        hosts: &[HostStatus],
        gates: &[Result<Gate, String>],
        tolerance: Tolerance,
        now: u64,
    ) -> Next {
        let Some(next) = &self.next else { return Next::Nothing };
        if self.frozen {
            return Next::Hold(vec!["the fleet is frozen".to_owned()]);
        }
        let version = next.target.version;
        let in_stage: Vec<_> =
            hosts.iter().filter(|host| next.has(&host.host, host.place.as_ref())).collect();
        let decision = |gate: &Result<Gate, String>| match gate {
            Ok(gate) => gate.of(next),
            Err(reason) => GateDecision::Wait(reason.clone()),
        };
        let decisions: Vec<GateDecision> = gates.iter().map(decision).collect();
        let failed = in_stage.iter().filter(|host| host.is_failing(version));
        let failed: Vec<&str> = failed.map(|host| host.host.as_str()).collect();
        let mut stops: Vec<String> = decisions.iter().filter_map(GateDecision::stop).collect();
        if failed.len() > tolerance.max_failed {
            stops.push(format!(
                "version {version} not activated on {} of {} hosts of the stage: {}",
                failed.len(),
                in_stage.len(),
                first_hosts(&failed)
            ));
        }
        if !stops.is_empty() {
            return Next::Stop(stops);
        }
        // A host that had left before the stage began says nothing of it.
        let is_there = |host: &&HostStatus| !host.is_gone_since(next.since_unix_s);
        let there: Vec<&HostStatus> = in_stage.iter().copied().filter(is_there).collect();
        let is_unknown_fleet = in_stage.is_empty() && next.stage + 1 == next.stages.len();
        if there.is_empty() && !is_unknown_fleet {
            match without_hosts(next, hosts) {
                Some(step @ Next::Hold(_)) => return step,
                Some(step) if !tolerance.skip_empty => return step,
                _ => {}
            }
        }
        let held_since =
            if there.is_empty() && tolerance.skip_empty { 0 } else { next.since_unix_s };
        let holds = holds(next, &there, &decisions, (held_since, now));
        if !holds.is_empty() {
            return Next::Hold(holds);
        }
        next.next_stage().map_or(Next::Finish, Next::Stage)
    }
}

impl Progress {
    /// The index of the next stage with more hosts than the current one. A share that was widened may have overtaken some.
    fn next_stage(&self) -> Option<usize> {
        let current = self.stages.get(self.stage)?;
        (self.stage + 1..self.stages.len()).find(|index| self.stages[*index].adds_to(current))
    }
}

impl GateDecision {
    fn stop(&self) -> Option<String> {
        if let Self::Stop(reason) = self { Some(reason.clone()) } else { None }
    }
}

/// The step of a stage in which no host has reported: without any host it shows nothing, however long it is held. A place cannot
/// be widened; it is held for its time.
fn without_hosts(next: &Progress, hosts: &[HostStatus]) -> Option<Next> {
    let reporting = hosts.iter().filter(|host| !host.unknown).map(|host| &host.host);
    match (Stage::smallest_with(reporting), next.stages.get(next.stage)) {
        (None, _) => Some(Next::Hold(vec![NO_REPORT.to_owned()])),
        (Some(share), Some(Stage::Share(_))) => Some(Next::Widen(share)),
        (Some(_), _) => None,
    }
}

const NO_REPORT: &str =
    "no host has reported; start an agent, or roll back and publish with --stages 100%";

/// Why a stage has to wait, by the time since which it is held and the time now.
fn holds(
    next: &Progress,
    in_stage: &[&HostStatus],
    decisions: &[GateDecision],
    (since, now): (u64, u64),
) -> Vec<String> {
    let version = next.target.version;
    let mut holds = Vec::new();
    let until = since.saturating_add(next.hold_s);
    if now < until {
        holds.push(format!("the stage is held for {} s more", until - now));
    }
    let unknown = in_stage.iter().filter(|host| host.unknown);
    let unknown: Vec<&str> = unknown.map(|host| host.host.as_str()).collect();
    if unknown.len() * 2 > in_stage.len() {
        holds.push(format!(
            "no report of {} of {} hosts of the stage: {}; of a host that is gone, remove reports/HOST.json",
            unknown.len(),
            in_stage.len(),
            first_hosts(&unknown)
        ));
    }
    let is_late = |host: &&&HostStatus| !host.unknown && !host.runs(version);
    let late = in_stage.iter().filter(is_late).filter(|it| !it.is_failing(version));
    let late: Vec<&str> = late.map(|host| host.host.as_str()).collect();
    if !late.is_empty() {
        holds.push(format!("version {version} not active yet: {}", first_hosts(&late)));
    }
    holds.extend(decisions.iter().filter_map(|it| match it {
        GateDecision::Wait(reason) => Some(reason.clone()),
        GateDecision::Go | GateDecision::Stop(_) => None,
    }));
    holds
}
