//! The descriptions of active and earlier policies, which give decisions their meaning. Each is read once.

use std::collections::HashMap;

use crate::description::{Decided, Description};
use crate::layout::Decision;
use crate::steered::Steered;

/// The descriptions of a cgroup's policies that were needed so far.
#[derive(Debug)]
pub(crate) struct PolicyArchive {
    steered: Steered,
    /// By key; `None` for a policy that does not exist any more.
    known: HashMap<u64, Option<Description>>,
    /// The program of the active policy when it was read last.
    active: Option<u32>,
}

impl PolicyArchive {
    pub(crate) fn of(steered: &Steered) -> Self {
        Self { steered: steered.clone(), known: HashMap::new(), active: None }
    }

    /// Reads the active policy's, because `revert` removes it while connections of that policy are still ending.
    pub(crate) fn read_active(&mut self) {
        // A description that cannot be read now is read when it is needed.
        let Ok(Some(program)) = self.steered.program() else { return };
        if self.active == Some(program) {
            return;
        }
        if let Ok(Some(status)) = self.steered.active() {
            self.known.insert(status.key(), Some(status));
            self.active = Some(program);
        }
    }

    /// Reads other pins from now on, and keeps the known descriptions.
    pub(crate) fn move_to(&mut self, steered: &Steered) {
        self.known.retain(|_, description| description.is_some());
        (self.steered, self.active) = (steered.clone(), None);
        self.read_active();
    }

    /// The policy with this key; `None` if its description does not exist any more.
    pub(crate) fn description(&mut self, policy: u64) -> Option<&Description> {
        let read = || self.steered.archived(policy).ok().flatten();
        self.known.entry(policy).or_insert_with(read).as_ref()
    }

    /// What a decision means.
    pub(crate) fn decided(&mut self, decision: &Decision) -> Option<&Decided> {
        self.description(decision.policy)?.decided.get(decision.outcome as usize)
    }
}
