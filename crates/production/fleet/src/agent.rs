//! One host's agent: from the store to an active policy.
//!
//! ```text
//! poll ── rollout: signature, serial ─► what this host shall run ── bundle: signature, version, expiry ─► policy parsed
//!      ─► accepted is noted ─► version written whole ─► link renamed ─► applied, read back ─► report
//! ```
//!
//! Each arrow may be the last thing that happens: the next poll begins again at the first one, and the link leads to a whole
//! version all the time. What is noted before the link changes, so that an older version is refused even if the process dies then.

use std::io;

use thiserror::Error;
use uncork_policy::{FileError, PublicKey, sha256};

use crate::bundle::{self, BundleError, RESERVED};
use crate::disk::Current;
use crate::memory::Failed;
use crate::report::{SCHEMA, cut};
use crate::rollout::RolloutError;
use crate::{
    ActiveVersion, Apply, Bundle, Disk, HostName, HostState, Kind, MAX_BUNDLE, Memory, POLICY,
    PackedFile, Refusal, Report, Rollout, Target,
};
use uncork_store::{Condition, GetResult, Object, Store, StoreError, Tag};

/// How an agent is set up.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// The host.
    pub host: HostName,
    /// Its place.
    pub place: Option<HostName>,
    /// The public keys of the publishers.
    pub keys: Vec<PublicKey>,
    /// The policy where no version is valid.
    pub default: Vec<u8>,
    /// How long what follows the link may take.
    pub patience_s: u64,
    /// How often a report is written that says nothing new.
    pub report_every_s: u64,
    /// The kernel's release, for reports.
    pub kernel: String,
}

/// An agent.
pub struct Agent<S, A> {
    spec: AgentSpec,
    store: S,
    disk: Disk,
    apply: A,
    /// The rollout that was read last, so that an unchanged one need not be read again.
    seen: Option<(Tag, Rollout)>,
    /// The report in the store.
    reported: Option<Report>,
    /// The directory that this process has had applied. After a restart it is applied again: the host may have been, too.
    applied: Option<String>,
    /// The directory that this poll has tried to have applied: once is enough.
    tried: Option<String>,
    /// Why the latest report is not in the store.
    undelivered: Option<StoreError>,
    unsupported: Option<Unsupported>,
}

/// The controllers of a version that the kernel does not have. Both may change.
struct Unsupported {
    /// The version's.
    sha256: String,
    /// Those of the kernel.
    controllers: Vec<String>,
    names: Vec<String>,
}

/// Why a poll has not ended with what the host shall run.
#[derive(Debug, Error)]
enum PollError {
    #[error("the store is away: {0}")]
    Store(#[from] StoreError),
    #[error("{0} is not in the store; publish a policy first")]
    Absent(String),
    #[error("{0}: {1}")]
    Rollout(&'static str, RolloutError),
    #[error("{0}: {1}")]
    Bundle(String, BundleError),
    #[error("{0} has other bytes than the rollout says; it was altered")]
    Digest(String),
    #[error("the policy of version {0}: {1}")]
    Policy(u64, FileError),
    #[error(transparent)]
    Refusal(#[from] Refusal),
    #[error("cannot find out what was accepted before: {0}; if the file is damaged, remove it")]
    Memory(String),
    #[error("cannot write to the disk: {0}")]
    Disk(#[from] io::Error),
    #[error("version {0} could not be activated: {1}")]
    Failed(u64, String),
}

impl PollError {
    fn state(&self) -> HostState {
        match self {
            Self::Store(_) | Self::Absent(_) => HostState::Away,
            Self::Disk(_) | Self::Failed(..) | Self::Policy(..) => HostState::Failed,
            _ => HostState::Refused,
        }
    }
}

/// How a poll went.
struct Outcome {
    state: HostState,
    wanted: Option<u64>,
    error: Option<String>,
}

impl<S: Store, A: Apply> Agent<S, A> {
    /// An agent of a host. The caller holds its lock ([`Disk::lock`]).
    pub fn new(spec: AgentSpec, store: S, disk: Disk, apply: A) -> Self {
        Self {
            spec,
            store,
            disk,
            apply,
            seen: None,
            reported: None,
            applied: None,
            tried: None,
            undelivered: None,
            unsupported: None,
        }
    }

    /// Asks the store once, and activates what this host shall run. The time is that of the host's clock; the TCP controllers are
    /// those of the kernel now, empty if they are not known.
    ///
    /// # Errors
    ///
    /// If not even the report can be made, because the disk failed. Anything else is in the report.
    pub fn poll(&mut self, clock_unix_s: u64, controllers: &[String]) -> io::Result<Report> {
        self.tried = None;
        let outcome = self.follow(clock_unix_s);
        let outcome = outcome.unwrap_or_else(|trouble| Outcome {
            state: trouble.state(),
            wanted: self.wanted().map(|target| target.version),
            error: Some(cut(&trouble.to_string())),
        });
        let outcome = self.settle(outcome, clock_unix_s)?;
        let report = self.report(outcome, clock_unix_s, controllers);
        self.deliver(&report);
        Ok(report)
    }

    /// Why the report of the last poll is not in the store, if it should be.
    pub fn undelivered(&self) -> Option<&StoreError> {
        self.undelivered.as_ref()
    }

    /// What was accepted from the keys of this host.
    fn memory(&self) -> io::Result<Memory> {
        Ok(self.disk.memory()?.trusting(&self.spec.keys))
    }

    /// What the last accepted rollout has for this host.
    fn wanted(&self) -> Option<&Target> {
        let (_, rollout) = self.seen.as_ref()?;
        rollout.target_of(&self.spec.host, self.spec.place.as_ref())
    }

    /// From the rollout to the active version.
    fn follow(&mut self, clock: u64) -> Result<Outcome, PollError> {
        let memory = self.memory().map_err(|error| {
            PollError::Memory(format!("{}: {error}", self.disk.memory_file().display()))
        })?;
        let (rollout, mut memory) = self.rollout(memory, clock)?;
        let outcome = self.activate(&rollout, &mut memory, clock);
        // What was rolled back is bad: if the version to return to is not acceptable, the default is.
        if outcome.is_err()
            && let Current::Version(there) = self.disk.current(&self.spec.keys)
            && rollout.has_taken_back(there.version)
        {
            self.switch_to_default()?;
        }
        outcome
    }

    /// From an accepted rollout to the active version.
    fn activate(
        &mut self,
        rollout: &Rollout,
        memory: &mut Memory,
        clock: u64,
    ) -> Result<Outcome, PollError> {
        let current = self.disk.current(&self.spec.keys);
        let target = self.target(rollout, &current);
        let wanted = target.as_ref().map(|target| target.version);
        let Some(target) = target else {
            self.put_default(&current)?;
            return Ok(Outcome { state: HostState::Active, wanted, error: None });
        };
        if let Current::Version(there) = &current
            && there.sha256 == target.sha256
        {
            memory.check(rollout, &target, clock)?;
            return self.confirm(rollout, memory, there, clock);
        }
        if let Some(failed) = memory.failure(&target, clock) {
            return Err(PollError::Failed(failed.version, failed.error.clone()));
        }
        memory.check(rollout, &target, clock)?;
        let (bundle, sealed) = self.bundle(&target, memory, clock)?;
        memory.activate(&bundle.manifest);
        self.disk.save(memory)?;
        self.put(&target, bundle, sealed)?;
        match self.disk.current(&self.spec.keys) {
            Current::Version(there) if there.sha256 == target.sha256 => {
                self.disk.clean(&[memory.good.as_deref(), memory.before.as_deref()])?;
                self.confirm(rollout, memory, &there, clock)
            }
            other => Err(PollError::Failed(target.version, format!("read back: {other:?}"))),
        }
    }

    /// The rollout, accepted.
    fn rollout(&mut self, mut memory: Memory, clock: u64) -> Result<(Rollout, Memory), PollError> {
        let name = Rollout::OBJECT;
        let known = self.seen.as_ref().map(|(tag, _)| tag);
        let object = match self.store.get(name, Kind::Rollout.max_size(), known)? {
            GetResult::Absent => return Err(PollError::Absent(name.to_owned())),
            GetResult::Object(object) => Some(object),
            GetResult::Unchanged => None,
        };
        let Some(Object { bytes, tag, .. }) = object else {
            let rollout = self.seen.as_ref().map(|(_, rollout)| rollout.clone());
            return rollout.map(|it| (it, memory)).ok_or(PollError::Absent(name.to_owned()));
        };
        let opened = Rollout::open(&bytes, &self.spec.keys);
        let (rollout, origin) = opened.map_err(|error| PollError::Rollout(name, error))?;
        let before = memory.clone();
        memory.accept(&rollout, &origin, clock)?;
        if memory != before {
            self.disk.save(&memory)?;
        }
        self.seen = Some((tag, rollout.clone()));
        Ok((rollout, memory))
    }

    /// What this host shall run. Frozen, it stays with the version that it has, unless that was rolled back; a host without one
    /// gets the stable one.
    fn target(&self, rollout: &Rollout, current: &Current) -> Option<Target> {
        if !rollout.frozen {
            return rollout.target_of(&self.spec.host, self.spec.place.as_ref()).cloned();
        }
        match current {
            Current::Version(there) if !rollout.has_taken_back(there.version) => Some(Target {
                version: there.version,
                sha256: there.sha256.clone(),
                expires_unix_s: there.expires_unix_s,
            }),
            _ => rollout.stable.clone(),
        }
    }

    /// The bundle of the rollout, checked but for its version rules.
    fn bundle(
        &self,
        target: &Target,
        memory: &Memory,
        clock: u64,
    ) -> Result<(Bundle, Vec<u8>), PollError> {
        let name = target.object();
        let sealed = match self.store.get(&name, MAX_BUNDLE, None)? {
            GetResult::Object(object) => object.bytes,
            _ => return Err(PollError::Absent(name)),
        };
        if sha256(&sealed) != target.sha256 {
            return Err(PollError::Digest(name));
        }
        let bundle = Bundle::open(&sealed, &self.spec.keys);
        let bundle = bundle.map_err(|error| PollError::Bundle(name, error))?;
        memory.check_bundle(target, &bundle.manifest, clock)?;
        bundle.policy().map_err(|error| PollError::Policy(target.version, error))?;
        Ok((bundle, sealed))
    }

    /// Has the link lead to a version.
    fn put(&self, target: &Target, bundle: Bundle, sealed: Vec<u8>) -> io::Result<()> {
        let mut files = bundle.files;
        files.push(PackedFile { name: RESERVED.to_owned(), bytes: sealed });
        let digest: String = target.sha256.chars().take(16).collect();
        let name = self.disk.install(&format!("{:010}-{digest}", target.version), &files)?;
        self.disk.switch(&name)
    }

    /// Whether what follows the link has this version active. What does not is tried again at each poll, until patience ends.
    fn confirm(
        &mut self,
        rollout: &Rollout,
        memory: &mut Memory,
        there: &ActiveVersion,
        clock: u64,
    ) -> Result<Outcome, PollError> {
        let noted = memory.clone();
        let problem = self.problem();
        let since = match problem {
            None => {
                memory.confirm(self.disk.linked());
                clock
            }
            Some(_) => memory.note_behind(self.disk.linked(), clock),
        };
        if *memory != noted {
            self.disk.save(memory)?;
        }
        match problem {
            Some(error) if clock.saturating_sub(since) > self.spec.patience_s => {
                self.give_up(rollout, memory, (there, clock), error)
            }
            problem => {
                let state = if problem.is_none() { HostState::Active } else { HostState::Waiting };
                Ok(Outcome { state, wanted: Some(there.version), error: problem })
            }
        }
    }

    /// Why what follows the link does not have what it leads to.
    fn problem(&mut self) -> Option<String> {
        if let Err(error) = self.apply_linked() {
            return Some(error);
        }
        let behind = self.apply.behind(&self.disk.policy());
        (!behind.is_empty())
            .then(|| format!("the policy is not applied yet, by {}", behind.join(", ")))
    }

    /// Has what the link leads to applied, if this process has not.
    fn apply_linked(&mut self) -> Result<(), String> {
        let linked = self.disk.linked();
        if linked != self.applied {
            self.applied = None;
            self.tried.clone_from(&linked);
            self.apply.apply(&self.disk.policy())?;
            self.applied = linked;
        }
        Ok(())
    }

    /// Returns to the version that was active before, or the default, and does not try this one again for a while.
    fn give_up(
        &mut self,
        rollout: &Rollout,
        memory: &mut Memory,
        (there, unix_s): (&ActiveVersion, u64),
        error: String,
    ) -> Result<Outcome, PollError> {
        let (version, sha256) = (there.version, there.sha256.clone());
        let (serial, reason) = (memory.serial, cut(&error));
        memory.failed = Some(Failed { version, sha256, serial, unix_s, error: reason });
        memory.behind = None;
        self.disk.save(memory)?;
        let (now, linked) = (memory.now(unix_s), self.disk.linked());
        let is_good = |name: &String| {
            let good = self.disk.good_version(name, now, &self.spec.keys);
            Some(name) != linked.as_ref() && good.is_some_and(|it| !rollout.has_taken_back(it))
        };
        let earlier = [memory.good.clone(), memory.before.clone()];
        match earlier.into_iter().flatten().find(is_good) {
            Some(name) => self.disk.switch(&name)?,
            None => self.switch_to_default()?,
        }
        Err(PollError::Failed(version, error))
    }

    /// Activates the default, if it is not active.
    fn put_default(&self, current: &Current) -> io::Result<()> {
        if *current == Current::Default(sha256(&self.spec.default)) {
            return Ok(());
        }
        self.switch_to_default()
    }

    fn switch_to_default(&self) -> io::Result<()> {
        let bytes = self.spec.default.clone();
        let digest: String = sha256(&bytes).chars().take(16).collect();
        let files = [PackedFile { name: POLICY.to_owned(), bytes }];
        let name = self.disk.install(&format!("default-{digest}"), &files)?;
        self.disk.switch(&name)
    }

    /// What ends each poll, however it went: a version that has expired, or is not as it was signed, gives way to the default; and
    /// what the link leads to is applied.
    fn settle(&mut self, outcome: Outcome, clock: u64) -> io::Result<Outcome> {
        let memory = self.memory().unwrap_or_default();
        let current = self.disk.current(&self.spec.keys);
        let reason = match &current {
            Current::Version(there) if memory.now(clock) < there.expires_unix_s => None,
            Current::Default(digest) if *digest == sha256(&self.spec.default) => None,
            Current::Default(_) => Some("the default of this host has changed".to_owned()),
            Current::Version(there) => {
                let (version, by) = (there.version, memory.deciding(clock));
                Some(format!("version {version} has expired by {by}; the default is active"))
            }
            Current::Damaged(reason) => Some(format!("{reason}; the default is active")),
            Current::Nothing => Some("the default is active".to_owned()),
        };
        if reason.is_some() {
            self.put_default(&current)?;
        }
        let was_tried = self.tried.is_some() && self.tried == self.disk.linked();
        let applied = if was_tried { None } else { self.apply_linked().err() };
        let parts: Vec<String> = [outcome.error, reason, applied].into_iter().flatten().collect();
        let error = (!parts.is_empty()).then(|| cut(&parts.join("; ")));
        Ok(Outcome { error, ..outcome })
    }

    fn report(&mut self, outcome: Outcome, clock: u64, controllers: &[String]) -> Report {
        let active = match self.disk.current(&self.spec.keys) {
            Current::Version(there) => Some(there),
            _ => None,
        };
        // Without a rollout of this process, what was accepted before it.
        let serial = self.memory().unwrap_or_default().serial;
        Report {
            schema: SCHEMA.to_owned(),
            host: self.spec.host.clone(),
            place: self.spec.place.clone(),
            agent: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: self.spec.kernel.clone(),
            unix_s: clock,
            every_s: self.spec.report_every_s,
            serial,
            wanted: outcome.wanted,
            state: outcome.state,
            unsupported: match &active {
                Some(there) => self.unsupported(there, controllers),
                None => Vec::new(),
            },
            active,
            error: outcome.error,
        }
    }

    /// Controllers of the active version that the kernel does not have.
    fn unsupported(&mut self, there: &ActiveVersion, controllers: &[String]) -> Vec<String> {
        if let Some(last) = &self.unsupported
            && last.sha256 == there.sha256
            && last.controllers == controllers
        {
            return last.names.clone();
        }
        let mut names = Vec::new();
        if let Ok(policy) = bundle::policy(&self.disk.files()) {
            let asked = policy.settings().filter_map(|settings| settings.kernel_name());
            names.extend(asked.map(str::to_owned));
        }
        names.retain(|name| !controllers.is_empty() && !controllers.contains(name));
        names.sort();
        names.dedup();
        let (sha256, controllers) = (there.sha256.clone(), controllers.to_vec());
        self.unsupported = Some(Unsupported { sha256, controllers, names: names.clone() });
        names
    }

    /// Leaves the report in the store, if it says something new or is due. A store that is away gets the next one.
    fn deliver(&mut self, report: &Report) {
        let is_due = self.reported.as_ref().is_none_or(|last| {
            let age = report.unix_s.abs_diff(last.unix_s);
            report.differs_from(last) || age >= self.spec.report_every_s
        });
        self.undelivered = None;
        let Ok(bytes) = serde_json::to_vec(report) else { return };
        let name = Report::object(&report.host);
        if is_due {
            match self.store.put(&name, &bytes, &Condition::Any) {
                Ok(()) => self.reported = Some(report.clone()),
                Err(error) => self.undelivered = Some(error),
            }
        }
    }
}
