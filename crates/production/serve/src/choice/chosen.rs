//! The settings that were chosen, and the rule that chose them.

use smol_str::{SmolStr, format_smolstr};
use uncork_policy::{Assignment, By, Decision, Policy, Settings};

/// The settings of a connection, and the rule that chose them. This is a copy, because a record may
/// be written after the policy has been replaced.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The settings to apply.
    pub(crate) settings: Settings,
    /// The group in records: `EXPERIMENT/ARM`, else the rule, else the listener's controller.
    pub(crate) group: SmolStr,
    /// The part of the policy that decided, if there is a policy.
    decided_by: Option<DecidedBy>,
}

/// The part of a policy that decided.
#[derive(Debug)]
struct DecidedBy {
    fingerprint: u64,
    /// The index of the rule, and the hash that determines the experiment's arm.
    key: (Option<usize>, Option<u64>),
    recorded: uncork_flow::Choice,
}

impl Chosen {
    /// The fixed settings of a listener.
    pub(super) fn fixed(group: &str, settings: Settings) -> Self {
        Self { settings, group: group.into(), decided_by: None }
    }

    pub(super) fn by(policy: &Policy, decision: &Decision<'_>) -> Self {
        let rule = SmolStr::from(decision.by.rule_name());
        let arm = decision.experiment.as_ref();
        let fingerprint = policy.fingerprint();
        let group = arm.map_or_else(|| rule.clone(), named);
        let recorded = uncork_flow::Choice {
            policy: format_smolstr!("{fingerprint:016x}"),
            rule,
            cc: None,
            arm: arm.map(|arm| uncork_flow::Arm {
                experiment: arm.experiment.into(),
                arm: arm.arm.into(),
                unit: arm.unit,
                bucket: arm.bucket,
                propensity: arm.propensity.as_f64(),
            }),
        };
        let decided_by = Some(DecidedBy { fingerprint, key: key(decision), recorded });
        Self { settings: decision.settings.clone(), group, decided_by }
    }

    /// Whether `decision` of `policy` leads to the same choice.
    pub(super) fn is(&self, policy: &Policy, decision: &Decision<'_>) -> bool {
        let decided_by = self.decided_by.as_ref();
        decided_by
            .is_some_and(|it| it.fingerprint == policy.fingerprint() && it.key == key(decision))
    }

    /// The choice as recorded; `cc` is the chosen controller.
    pub(crate) fn recorded(&self, cc: Option<&str>) -> Option<uncork_flow::Choice> {
        let recorded = &self.decided_by.as_ref()?.recorded;
        Some(uncork_flow::Choice { cc: cc.map(SmolStr::from), ..recorded.clone() })
    }

    /// The experiment's arm, if an experiment decided.
    pub(super) fn assignment(&self) -> Option<&uncork_flow::Arm> {
        self.decided_by.as_ref()?.recorded.arm.as_ref()
    }

    /// The experiment's arm as `EXPERIMENT/ARM`, if an experiment decided.
    pub(crate) fn arm(&self) -> Option<&str> {
        self.assignment().map(|_| &*self.group)
    }
}

fn key(decision: &Decision<'_>) -> (Option<usize>, Option<u64>) {
    let rule = match decision.by {
        By::Default => None,
        By::Rule { index, .. } => Some(index),
    };
    (rule, decision.experiment.map(|arm| arm.unit))
}

fn named(arm: &Assignment<'_>) -> SmolStr {
    format_smolstr!("{}/{}", arm.experiment, arm.arm)
}
