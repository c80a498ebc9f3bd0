//! A steered cgroup: its active policy, its counters, and how to remove it.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use uncork_kernel::{Map, Program, Ring, programs_at};
use uncork_policy::OtherProgram;
use uncork_private_files::lock::holder;

use crate::apply::open_cgroup;
use crate::description::Description;
use crate::document::ExplanationDocument;
use crate::error::Error;
use crate::layout::OutcomeCounts;
use crate::listeners;
use crate::lock::lock;
use crate::pending::PendingStatus;
use crate::pins::{CgroupPins, SteerPins};
use crate::question::{Answer, Question};
use crate::sockets::SteeredSockets;

/// A steered cgroup.
#[derive(Clone, Debug)]
pub struct Steered {
    pins: SteerPins,
    own: CgroupPins,
}

/// The active policy and its counters.
#[derive(Clone, Debug)]
pub struct Status {
    /// The policy.
    pub description: Description,
    /// By decision.
    pub counts: Vec<Count>,
    /// How long the program has run in all, in nanoseconds, and how often, if the kernel counts
    /// (`sysctl kernel.bpf_stats_enabled=1`).
    pub cost: (u64, u64),
    /// The instructions that the kernel's verifier looked at for the program.
    pub verified_instructions: u32,
    /// Whether it is rolled back unless it is confirmed.
    pub pending: Option<PendingStatus>,
}

/// Connections since the policy was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All.
    pub connections: u64,
    /// Connections for which the kernel refused the controller or the cap.
    pub refused: u64,
    /// Connections that kept the kernel's initial window, because data had left already or packets of the handshake were lost.
    pub windows_refused: u64,
    /// Connections without a record, because the table was full.
    pub table_full: u64,
}

impl Status {
    /// Whether the process that should roll the policy back is dead.
    pub fn is_unguarded(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| !pending.is_guarded)
    }
}

impl Steered {
    pub(crate) fn new(pins: SteerPins, own: CgroupPins) -> Self {
        Self { pins, own }
    }

    /// All cgroups that have pins.
    ///
    /// # Errors
    ///
    /// If the pins cannot be read.
    pub fn all(pins: &SteerPins) -> Result<Vec<Self>, Error> {
        let all = pins.all()?.into_iter();
        Ok(all.map(|own| Self::new(pins.clone(), own)).collect())
    }

    /// That of a directory.
    ///
    /// # Errors
    ///
    /// If it is not a cgroup v2 directory, or not steered.
    pub fn at(pins: &SteerPins, cgroup: &Path) -> Result<Self, Error> {
        let (_, number) = open_cgroup(cgroup)?;
        let own = pins.of(number);
        if !own.is_there()? {
            return Err(Error::NotSteered(cgroup.display().to_string()));
        }
        Ok(Self { pins: pins.clone(), own })
    }

    /// The active policy of a cgroup; `None` if it has none, or does not exist any more.
    pub(crate) fn active_at(pins: &SteerPins, cgroup: &Path) -> Result<Option<Self>, Error> {
        let Ok((_, number)) = open_cgroup(cgroup) else { return Ok(None) };
        let own = pins.of(number);
        let is_active = own.is_there()? && own.active_program()?.is_some();
        Ok(is_active.then(|| Self { pins: pins.clone(), own }))
    }

    pub(crate) fn pins(&self) -> &SteerPins {
        &self.pins
    }

    pub(crate) fn own(&self) -> &CgroupPins {
        &self.own
    }

    /// The number of the active policy's program, if there is one.
    pub(crate) fn program(&self) -> Result<Option<u32>, Error> {
        self.own.active_program()
    }

    /// The active policy's description, if there is one.
    ///
    /// # Errors
    ///
    /// If the pins are damaged, or without the privilege.
    pub fn active(&self) -> Result<Option<Description>, Error> {
        let Some(program) = self.own.active_program()? else { return Ok(None) };
        self.description(&self.own.policy(program)).map(Some)
    }

    pub(crate) fn inactive(&self) -> Error {
        Error::NotSteered(self.own.path().display().to_string())
    }

    /// The number of the ring's pin, if it is there.
    pub(crate) fn ring_inode(&self) -> Option<u64> {
        fs::symlink_metadata(self.own.ends()).ok().map(|about| about.ino())
    }

    /// The active policy; `None` if `apply` was killed or the cgroup was removed.
    ///
    /// # Errors
    ///
    /// If the pins are damaged, or without the privilege.
    pub fn status(&self) -> Result<Option<Status>, Error> {
        let Some(program) = self.own.active_program()? else { return Ok(None) };
        let directory = self.own.policy(program);
        let description = self.description(&directory)?;
        let processors = uncork_kernel::processors();
        let counters =
            Map::open(&directory.join("counters"))?.ok_or_else(|| self.damaged("no counters"))?;
        let counts = (0..description.decided.len()).map(|index| {
            let values = counters.values(index as u32, processors);
            values.map(|values| count(&values)).map_err(Error::step("read the counters"))
        });
        let counts = counts.collect::<Result<Vec<_>, _>>()?;
        let program =
            Program::open(&directory.join("program"))?.ok_or_else(|| self.damaged("no program"))?;
        let verified_instructions = program.verified_instructions()?;
        let (cost, pending) = (program.cost()?, self.pending()?);
        Ok(Some(Status { description, counts, cost, verified_instructions, pending }))
    }

    pub(crate) fn description(&self, directory: &Path) -> Result<Description, Error> {
        let description = self.own.read_blob(&directory.join("description"))?;
        description.ok_or_else(|| self.damaged("no description"))
    }

    /// The description of an active or earlier policy, by its key.
    pub(crate) fn archived(&self, policy: u64) -> Result<Option<Description>, Error> {
        self.own.read_blob(&self.own.archived(policy))
    }

    /// The ring of close events, and the count of events that it dropped.
    pub(crate) fn ring(&self) -> Result<(Ring, Map), Error> {
        let open = |path: &Path, what| Map::open(path)?.ok_or_else(|| self.damaged(what));
        let ends = open(&self.own.ends(), "no ring")?;
        let ring = Ring::open(&ends).map_err(Error::step("map the ring"))?;
        Ok((ring, open(&self.own.lost(), "no count of dropped events")?))
    }

    /// The decisions for open connections.
    pub(crate) fn sockets(&self) -> Result<SteeredSockets, Error> {
        self.own.steered_sockets()?.ok_or_else(|| self.damaged("no connections"))
    }

    /// Held while this process is the only reader of the ring.
    pub(crate) fn only_recorder(&self) -> Result<File, Error> {
        let path = self.own.path();
        let busy = |holder| Error::Recorded(path.to_owned(), holder);
        lock(path, false, busy)?.ok_or_else(|| self.inactive())
    }

    /// Reads the ring unless a recorder does: programs follow the starts of connections only while it is read.
    pub(crate) fn read_as_no_other(&self) {
        if let (Ok(_only), Ok((mut ring, _))) = (self.only_recorder(), self.ring()) {
            ring.read(|_| {});
        }
    }

    /// The process that records the connections of the cgroup, if one does and this user can see it.
    pub fn recorder(&self) -> Option<u32> {
        holder(self.own.path())
    }

    /// Where its pins are.
    pub fn directory(&self) -> &Path {
        self.own.path()
    }

    fn damaged(&self, reason: &str) -> Error {
        self.own.damaged(reason)
    }

    /// Programs of others that run for connections of the cgroup; none if the cgroup was removed.
    ///
    /// # Errors
    ///
    /// If the kernel does not report the programs.
    pub fn others(&self, cgroup: &Path) -> Result<Vec<OtherProgram>, Error> {
        let Ok((directory, _)) = open_cgroup(cgroup) else { return Ok(Vec::new()) };
        let own = self.own.active_program()?;
        let all = programs_at(directory.as_fd()).map_err(Error::step("ask for other programs"))?;
        let place = all.iter().position(|(number, _)| Some(*number) == own);
        let others = all.into_iter().enumerate().filter(|(index, _)| Some(*index) != place);
        let other = |(index, (number, name))| OtherProgram {
            cgroup: cgroup.display().to_string(),
            number,
            name,
            is_last: Some(index) > place,
        };
        Ok(others.map(other).collect())
    }

    /// The program that answers questions, and the description of the policy.
    pub(crate) fn question_program(&self) -> Result<(Program, Description), Error> {
        let program = self.own.active_program()?.ok_or_else(|| self.inactive())?;
        let directory = self.own.policy(program);
        let ask = Program::open(&directory.join("ask"))?;
        let ask = ask.ok_or_else(|| self.damaged("nothing to ask"))?;
        Ok((ask, self.description(&directory)?))
    }

    /// What the active program decides for a client, with its meaning.
    ///
    /// # Errors
    ///
    /// If no policy is active, or without the privilege.
    pub fn ask(&self, question: &Question) -> Result<ExplanationDocument, Error> {
        let (ask, description) = self.question_program()?;
        let answer = Answer { policy: description.fingerprint(), ..question.ask(&ask)? };
        let decided = description.decided.into_iter().nth(answer.outcome);
        let decided = decided.ok_or_else(|| self.damaged("an unknown decision"))?;
        Ok(ExplanationDocument::new(question, &answer, decided))
    }

    /// Removes the policy and all pins. Open connections keep their settings; listening sockets have the controller again that
    /// they had before. Returns the policy that was active.
    ///
    /// # Errors
    ///
    /// If a pin cannot be removed. The policy is removed nevertheless, unless the pin is the link's.
    pub fn revert(&self) -> Result<Option<Description>, Error> {
        let _lock = self.pins.lock()?;
        self.remove()
    }

    /// The same, for who has the lock.
    pub(crate) fn remove(&self) -> Result<Option<Description>, Error> {
        let description = self.status().ok().flatten().map(|status| status.description);
        self.own.detach()?;
        let cgroup = description.as_ref().map(|description| Path::new(&description.cgroup));
        let released = cgroup.map(|cgroup| listeners::set(&self.own, cgroup, None)).transpose();
        self.own.remove()?;
        self.pins.tidy();
        released?;
        Ok(description)
    }
}

/// The sum over the processors.
fn count(values: &[OutcomeCounts]) -> Count {
    values.iter().fold(Count::default(), |sum, value| Count {
        connections: sum.connections + value.connections,
        refused: sum.refused + value.refused,
        windows_refused: sum.windows_refused + value.windows_refused,
        table_full: sum.table_full + value.unkept,
    })
}
