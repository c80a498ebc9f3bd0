//! The settings of open connections by policy, for `uncork host watch`.

use uncork_watch::{PolicyChoice, ShortName};

use crate::archive::PolicyArchive;
use crate::description::Decided;
use crate::sockets::SteeredSockets;
use crate::steered::Steered;

/// The decisions of all steered cgroups, by connection.
#[derive(Debug)]
pub struct Lookup(Vec<(SteeredSockets, PolicyArchive)>);

impl Lookup {
    /// The decisions of these cgroups. A cgroup is left out if its maps cannot be read.
    pub fn of(all: &[Steered]) -> Self {
        let open = |steered: &Steered| Some((steered.sockets().ok()?, PolicyArchive::of(steered)));
        Self(all.iter().filter_map(open).collect())
    }

    /// Whether no policy's decisions can be read.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was given to the connection with this cookie; `None` if no policy decided.
    pub fn find(&mut self, cookie: u64) -> Option<PolicyChoice> {
        self.0.iter_mut().find_map(|(sockets, archive)| {
            let decision = sockets.find(cookie).ok().flatten()?;
            archive.decided(&decision).map(|decided| given(decided, decision.is_moved()))
        })
    }
}

fn given(decided: &Decided, is_moved: bool) -> PolicyChoice {
    let arm = decided.experiment.as_ref().zip(decided.arm.as_ref()).filter(|_| !is_moved);
    PolicyChoice {
        rule: ShortName::new(&decided.by().rule_name()),
        arm: arm.map(|(experiment, arm)| ShortName::new(&format!("{experiment}/{arm}"))),
    }
}
