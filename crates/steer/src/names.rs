//! What decisions of earlier policies mean, read once for each policy.

use std::collections::HashMap;

use crate::description::{Decided, Description};
use crate::layout::Decision;
use crate::steered::Steered;

/// The descriptions of a cgroup's policies, as they were asked for.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    steered: &'a Steered,
    /// `None` of those that are gone.
    known: HashMap<u64, Option<Description>>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(steered: &'a Steered) -> Self {
        Self { steered, known: HashMap::new() }
    }

    /// The policy with this fingerprint; `None` if its description is gone.
    pub(crate) fn description(&mut self, policy: u64) -> Option<&Description> {
        let read = || self.steered.names(policy).ok().flatten();
        self.known.entry(policy).or_insert_with(read).as_ref()
    }

    /// What a decision means.
    pub(crate) fn decided(&mut self, decision: &Decision) -> Option<&Decided> {
        self.description(decision.policy)?.decided.get(decision.outcome as usize)
    }
}
