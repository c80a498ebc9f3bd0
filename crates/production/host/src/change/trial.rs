//! Changes for a test. They last until the next state, and no longer than their process.

use std::collections::BTreeSet;

use super::agent::{Result, begin, perform, recover, undo, undo_one, waiting_for};
use super::desired_state::DesiredState;
use super::host::{Host, HostError};
use super::journal::{Change, Journal, Open, Purpose, Rollback, SkippedSetting, UndoReason};
use super::plan::plan;
use super::setting::{DEFAULT, NO_METRICS_SAVE, SettingKey, Value};

/// Takes a host from state to state. Its process must be the only one to change the host until it ends
/// ([`uncork_private_files::lock::Lock`]): then the guard takes the lock, and undoes all remaining changes.
#[derive(Debug)]
pub struct HostTrial {
    journal: Journal,
    /// How earlier changes ended. The journal has it again after the trial.
    ended: Option<Rollback>,
    /// The changes that last for the whole test.
    base: Vec<Change>,
    /// The changes of the present state.
    present: Vec<Change>,
    /// The values that the test depends on.
    expected: Vec<(SettingKey, Value)>,
}

impl HostTrial {
    /// Begins: connections no longer save metrics; all else is as before.
    ///
    /// # Errors
    ///
    /// Another change waits for `confirm`, or the host cannot be changed.
    pub fn begin(host: &mut impl Host) -> Result<Self> {
        let (mut journal, _) = recover(host)?;
        if let Some(open) = &journal.open {
            return Err(waiting_for(open, host.now().boot_s));
        }
        let ended = journal.ended.clone();
        let (setting, after) = (SettingKey::sysctl(NO_METRICS_SAVE), Value::text("1"));
        let before = host.read(&setting)?;
        let base = if before == Value::Absent || before == after {
            Vec::new()
        } else {
            vec![Change { setting, before, after }]
        };
        let open = Open {
            purpose: Purpose::Apply,
            steps: base.clone(),
            at_confirm: Vec::new(),
            next: None,
            complete: false,
            deadline_boot_s: None,
        };
        begin(host, &mut journal, open)?;
        perform(host, &mut journal, &base)?;
        Ok(Self { journal, ended, base, present: Vec::new(), expected: Vec::new() })
    }

    /// Takes back the present state, and makes the next one, all or nothing. Settings of neither stay as they are.
    ///
    /// # Errors
    ///
    /// The host cannot fulfil the state, a change failed, or somebody else changed a setting meanwhile: [`Self::end`] comes next.
    pub fn switch(&mut self, host: &mut impl Host, next: &DesiredState) -> Result<()> {
        let Self { journal, base, present, expected, .. } = self;
        expected.clear();
        present.sort_by_key(|step| step.setting.revert_rank(&step.before));
        for step in present.drain(..) {
            if let Some(left) = undo_one(host, step)? {
                return Err(HostError(left.to_string()).into());
            }
        }
        // Without a journal: what an applied state has changed stays.
        let steps = plan(host, next, &Journal::new(&journal.boot))?.steps;
        if let Some(open) = &mut journal.open {
            open.steps = base.iter().chain(&steps).cloned().collect();
        }
        host.store(journal)?;
        perform(host, journal, &steps)?;
        present.clone_from(&steps);
        let default = next.algorithm.iter().map(|_| SettingKey::sysctl(DEFAULT));
        let named = next.routes.iter().map(|route| SettingKey::Route { to: route.to.to_string() });
        let changed = present.iter().map(|step| step.setting.clone());
        let routes: BTreeSet<_> =
            named.chain(changed.filter(|it| matches!(it, SettingKey::Route { .. }))).collect();
        for setting in default.chain(routes).chain([SettingKey::sysctl(NO_METRICS_SAVE)]) {
            let value = host.read(&setting)?;
            expected.push((setting, value));
        }
        Ok(())
    }

    /// A setting that somebody else has changed since the last [`Self::switch`].
    ///
    /// # Errors
    ///
    /// The host cannot be read.
    pub fn disturbed(&self, host: &mut impl Host) -> Result<Option<SkippedSetting>> {
        for (setting, given) in &self.expected {
            let found = host.read(setting)?;
            if !given.holds(&found) {
                return Ok(Some(SkippedSetting {
                    setting: setting.clone(),
                    given: given.clone(),
                    found,
                }));
            }
        }
        Ok(None)
    }

    /// Restores the host, but for settings that somebody else has changed: these are returned.
    ///
    /// # Errors
    ///
    /// A setting cannot be restored. The guard tries it again when this process has ended.
    pub fn end(&mut self, host: &mut impl Host) -> Result<Vec<SkippedSetting>> {
        let expected = std::mem::take(&mut self.expected);
        if self.journal.open.is_none() {
            return Ok(Vec::new());
        }
        let unchanged = self.of_others(host, expected)?;
        let mut left = undo(host, &mut self.journal, UndoReason::Reverted, "restoring")?.left;
        left.extend(unchanged);
        if left.is_empty() {
            self.journal.ended.clone_from(&self.ended);
            host.note(&self.journal);
        }
        Ok(left)
    }

    /// Settings that the test did not change, because they had the value of its state, and that somebody else has changed.
    fn of_others(
        &self,
        host: &mut impl Host,
        expected: Vec<(SettingKey, Value)>,
    ) -> Result<Vec<SkippedSetting>> {
        let mut left = Vec::new();
        for (setting, given) in expected {
            let found = host.read(&setting)?;
            let changes = self.base.iter().chain(&self.present);
            let is_changed = changes.into_iter().any(|step| step.setting == setting);
            if !is_changed && !given.holds(&found) {
                left.push(SkippedSetting { setting, given, found });
            }
        }
        Ok(left)
    }
}
