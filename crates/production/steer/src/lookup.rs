//! The settings of connections by policy, and how they started, for `uncork host watch`.

use uncork_flow::FlowRecord;
use uncork_watch::{Policies, PolicyChoice, ShortName};

use crate::archive::PolicyArchive;
use crate::description::Decided;
use crate::sockets::SteeredSockets;
use crate::steered::Steered;

/// Connections that end between two reads of the rings. Half of a ring has room for more.
const ENDS: u32 = 4096;

/// The decisions of all steered cgroups, by connection.
#[derive(Debug)]
pub struct Lookup {
    all: Vec<(SteeredSockets, PolicyArchive)>,
    steered: Vec<Steered>,
    ended: u32,
}

impl Lookup {
    /// The decisions of these cgroups. A cgroup is left out if its maps cannot be read.
    pub fn of(all: &[Steered]) -> Self {
        let open = |steered: &Steered| Some((steered.sockets().ok()?, PolicyArchive::of(steered)));
        Self { all: all.iter().filter_map(open).collect(), steered: all.to_vec(), ended: 0 }
    }

    /// Whether no policy's decisions can be read.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Policies for Lookup {
    fn given(&mut self, cookie: u64) -> Option<PolicyChoice> {
        self.all.iter_mut().find_map(|(sockets, archive)| {
            let decision = sockets.find(cookie).ok().flatten()?;
            archive.decided(&decision).map(|decided| given(decided, decision.is_moved()))
        })
    }

    /// Adds how it started.
    fn complete(&mut self, cookie: u64, record: &mut FlowRecord) {
        if self.ended.is_multiple_of(ENDS) {
            self.steered.iter().for_each(Steered::read_as_no_other);
        }
        self.ended = self.ended.wrapping_add(1);
        if let Some(entry) = self.all.iter().find_map(|(sockets, _)| sockets.ended(cookie)) {
            entry.start.add_to(record, entry.decision.window);
        }
    }
}

fn given(decided: &Decided, is_moved: bool) -> PolicyChoice {
    let arm = decided.experiment.as_ref().zip(decided.arm.as_ref()).filter(|_| !is_moved);
    PolicyChoice {
        rule: ShortName::new(&decided.by().rule_name()),
        arm: arm.map(|(experiment, arm)| ShortName::new(&format!("{experiment}/{arm}"))),
    }
}
