//! The commands that change a host. Only one process at a time may run them.

use thiserror::Error;
use uncork_policy::Release;

use super::desired_state::DesiredState;
use super::files::SYSCTLS;
use super::host::{Host, HostError, Now};
use super::journal::{
    Applied, Change, Journal, Open, Purpose, Rollback, SkippedSetting, UndoReason,
};
use super::plan::{Plan, PlanError, plan};
use super::setting::{SettingKey, Value};

/// A desired state and where it came from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// The desired state in it.
    pub desired: &'a DesiredState,
}

/// What a command did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Earlier open changes, which were undone first.
    pub undone: Option<Rollback>,
    /// The changes made.
    pub steps: Vec<Change>,
    /// Settings that another program has changed since, and that were not touched.
    pub left: Vec<SkippedSetting>,
    /// Seconds until the changes are undone unless they are confirmed.
    pub remaining_s: Option<u64>,
    /// What happens to live connections.
    pub warnings: Vec<String>,
    /// Why the policy of the desired state has no routes, although it asks for them.
    pub refused: Option<String>,
}

/// Why a command failed. The host is unchanged, unless the message says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// No plan could be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The host or the journal cannot be read or written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A change failed, and all changes were undone.
    #[error("{reason}\nall changes were rolled back{}", left_text(.left))]
    Undone {
        /// The change that failed, and why.
        reason: String,
        /// Settings that another program has changed since, and that were not touched.
        left: Vec<SkippedSetting>,
    },
    /// A change failed, and undoing the changes failed, too.
    #[error("{reason}\nrollback incomplete: {}\nfix that and run `uncork host revert` again", .failed.join("; "))]
    Stuck {
        /// The operation that failed first.
        reason: String,
        /// The settings that could not be restored, and why.
        failed: Vec<String>,
    },
    /// Another desired state waits for `confirm`.
    #[error(
        "{file} waits for confirmation for another {remaining_s} s: `uncork host confirm` keeps it, `uncork host revert` rolls it back"
    )]
    Waiting {
        /// The file of that desired state.
        file: String,
        /// Seconds until it is undone.
        remaining_s: u64,
    },
    /// Nothing waits for `confirm`.
    #[error("nothing waits for confirmation{0}")]
    NothingToConfirm(String),
}

impl Report {
    /// Whether a setting changed by another program was not touched.
    pub fn has_left(&self) -> bool {
        let undone = self.undone.as_ref().is_some_and(|undone| !undone.left.is_empty());
        undone || !self.left.is_empty()
    }
}

fn left_text(left: &[SkippedSetting]) -> String {
    left.iter().flat_map(|left| ["\nleft: ".to_owned(), left.to_string()]).collect()
}

pub(super) type Result<T> = std::result::Result<T, ChangeError>;

/// Undoes unfinished changes of a dead process, and expired changes; a `revert` that was killed is completed. Every command calls
/// this first.
///
/// # Errors
///
/// If the host cannot be read or changed.
pub fn recover(host: &mut impl Host) -> Result<(Journal, Option<Rollback>)> {
    let now = host.now();
    let Some(mut journal) = host.load()? else { return Ok((Journal::new(&now.boot), None)) };
    let mut why = UndoReason::Interrupted;
    if journal.boot != now.boot {
        on_reboot(host, &mut journal, &now)?;
        host.note(&journal);
        why = UndoReason::Rebooted;
    }
    let Some(open) = &journal.open else { return Ok((journal, None)) };
    if open.purpose == Purpose::Revert {
        let (steps, mut left) = (open.steps.clone(), Vec::new());
        restore(host, &mut journal, &steps, &mut left)?;
        let ended = Rollback { why: UndoReason::Reverted, at_unix_s: now.unix_s, left };
        (journal.open, journal.applied) = (None, None);
        journal.ended = Some(ended.clone());
        host.note(&journal);
        return Ok((journal, Some(ended)));
    }
    if open.complete {
        if open.deadline_boot_s.is_some_and(|deadline| now.boot_s < deadline) {
            return Ok((journal, None));
        }
        why = UndoReason::Expired;
    }
    let ended = undo(host, &mut journal, why, "earlier changes")?;
    if let (UndoReason::Rebooted, Some(applied)) = (why, &journal.applied) {
        // The undone changes may have removed the unit that applies the desired state at boot. If
        // it cannot be restored now, the desired state is still active, and `status` reports what
        // is missing.
        let _ = apply_stored(host, applied, true);
        journal = host.load()?.unwrap_or(journal);
    }
    Ok((journal, Some(ended)))
}

/// Updates the journal after a reboot, which undoes everything except files and the sysctls that a
/// file sets at boot. A persistent desired state is active again. A `revert` that had begun
/// continues.
fn on_reboot(
    host: &mut impl Host,
    journal: &mut Journal,
    now: &Now,
) -> std::result::Result<(), HostError> {
    journal.boot.clone_from(&now.boot);
    if let Some(open) = journal.open.as_mut().filter(|open| open.purpose == Purpose::Revert) {
        // Undo each change of the desired state: the boot may have brought any of them back.
        open.steps = journal.applied.take().map(|applied| applied.changes).unwrap_or_default();
        open.purpose = Purpose::Apply;
        return Ok(());
    }
    let lost = journal.applied.take_if(|applied| !applied.persist);
    if lost.is_some() {
        let (why, at_unix_s) = (UndoReason::Rebooted, now.unix_s);
        journal.ended = Some(Rollback { why, at_unix_s, left: Vec::new() });
    }
    let Some(open) = &mut journal.open else { return Ok(()) };
    open.complete = false;
    let was_read =
        |step: &Change| matches!(&step.setting, SettingKey::File { path } if path == SYSCTLS);
    let was_read = match open.steps.iter().find(|step| was_read(step)) {
        Some(step) => step.after.holds(&host.read(&step.setting)?),
        None => false,
    };
    let is_read = |setting: &SettingKey| {
        was_read && matches!(setting, SettingKey::Sysctl { namespace: None, .. })
    };
    open.steps.retain(|step| step.setting.survives_reboot() || is_read(&step.setting));
    // A persistent desired state is active again, so undoing a change restores its values.
    for earlier in journal.applied.iter().flat_map(|applied| &applied.changes) {
        let step = open.steps.iter_mut().find(|step| step.setting == earlier.setting);
        if let Some(step) = step.filter(|step| is_read(&step.setting)) {
            step.before = earlier.after.clone();
        }
    }
    // The boot also undid the changes of a desired state that was not persistent.
    for earlier in lost.into_iter().flat_map(|lost| lost.changes) {
        match open.steps.iter_mut().find(|step| step.setting == earlier.setting) {
            Some(step) if earlier.after.holds(&step.before) => step.before = earlier.before,
            None if is_read(&earlier.setting) => open.steps.push(earlier),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the host match a desired state. With `ttl_s`, the changes are undone unless `confirm` is
/// called within this many seconds.
///
/// # Errors
///
/// If the host cannot match the desired state, or a change fails. The host is then unchanged. If only
/// its policy is refused, and the table of the active routes has expired, these routes are removed.
pub fn apply(host: &mut impl Host, source: Source<'_>, ttl_s: Option<u64>) -> Result<Report> {
    apply_or(host, source, ttl_s, false)
}

/// [`apply`]; `or_without` a policy that is refused.
fn apply_or(
    host: &mut impl Host,
    source: Source<'_>,
    ttl_s: Option<u64>,
    or_without: bool,
) -> Result<Report> {
    let (mut journal, undone) = recover(host)?;
    let now = host.now();
    if let Some(waiting) = waiting(&journal, now.boot_s, source.text)? {
        return Ok(Report { remaining_s: Some(waiting), undone, ..Report::default() });
    }
    let (planned, refused) = match plan(host, source.desired, &journal) {
        Err(PlanError::Policy(reason)) if or_without || has_expired(&journal, &now) => {
            let without = DesiredState { policy: None, ..source.desired.clone() };
            (plan(host, &without, &journal), Some(reason))
        }
        planned => (planned, None),
    };
    let Plan { mut steps, changes, mut warnings, expires_unix_s, release } = planned?;
    let next = Applied {
        file: source.file.to_owned(),
        desired: source.text.to_owned(),
        since_unix_s: now.unix_s,
        persist: source.desired.persist,
        expires_unix_s,
        release: release.clone(),
        changes,
    };
    if steps.is_empty() {
        let is_new = journal.applied.as_ref().is_none_or(|applied| {
            applied.desired != source.text || applied.expires_unix_s != expires_unix_s
        });
        if is_new || journal.ended.is_some() {
            journal.applied = Some(next);
            journal.ended = None;
            host.store(&journal)?;
        }
        if ttl_s.is_some() {
            warnings.push("--ttl has no effect: nothing changes".to_owned());
        }
        warnings.extend(accept(host, release.as_ref()));
        return Ok(Report { undone, warnings, refused, ..Report::default() });
    }
    // Until the changes are confirmed, a reboot must restore the old state, too.
    let is_deferred = |step: &Change| ttl_s.is_some() && step.setting.survives_reboot();
    let at_confirm = steps.extract_if(.., |step| is_deferred(step)).collect();
    let open = Open {
        purpose: Purpose::Apply,
        steps: steps.clone(),
        at_confirm,
        next: Some(next),
        complete: false,
        deadline_boot_s: ttl_s.map(|ttl| now.boot_s + ttl),
    };
    begin(host, &mut journal, open)?;
    perform(host, &mut journal, &steps)?;
    let stored = match ttl_s {
        Some(_) => complete(host, &mut journal),
        None => commit(host, &mut journal.clone()),
    };
    stored.or_else(|error| fail(host, &mut journal, &error.to_string()))?;
    // One that is rolled back was not accepted.
    warnings.extend(accept(host, release.as_ref().filter(|_| ttl_s.is_none())));
    Ok(Report { undone, steps, remaining_s: ttl_s, warnings, refused, left: Vec::new() })
}

/// Notes which signed policy is active. The result is a warning.
fn accept(host: &mut impl Host, release: Option<&Release>) -> Option<String> {
    release.and_then(|release| host.accept_release(release).err())
}

/// Whether the table of the active routes has expired.
fn has_expired(journal: &Journal, now: &Now) -> bool {
    let expires = journal.applied.as_ref().and_then(|applied| applied.expires_unix_s);
    expires.is_some_and(|expires| expires <= now.unix_s.cast_signed())
}

/// Applies the active desired state again, if any, with the current decisions of its policy. After a reboot it is
/// applied without its policy, if that is refused.
///
/// # Errors
///
/// See [`apply`].
pub fn apply_again(host: &mut impl Host) -> Result<Report> {
    let before = host.load()?;
    let is_rebooted = before.is_some_and(|journal| journal.boot != host.now().boot);
    let (journal, undone) = recover(host)?;
    let Some(applied) = journal.applied else { return Ok(Report { undone, ..Report::default() }) };
    let report = apply_stored(host, &applied, is_rebooted)?;
    Ok(Report { undone: undone.or(report.undone), ..report })
}

fn apply_stored(host: &mut impl Host, applied: &Applied, or_without: bool) -> Result<Report> {
    let Applied { file, desired: text, .. } = applied;
    let desired =
        DesiredState::parse(text).map_err(|error| HostError(format!("{file}: {error}")))?;
    apply_or(host, Source { file, text, desired: &desired }, None, or_without)
}

/// The remaining seconds if a desired state with this text waits for `confirm`. Fails if another
/// one waits.
fn waiting(journal: &Journal, boot_s: u64, text: &str) -> Result<Option<u64>> {
    let Some(open) = &journal.open else { return Ok(None) };
    match &open.next {
        Some(next) if next.desired == text => Ok(Some(remaining_s(open, boot_s))),
        _ => Err(waiting_for(open, boot_s)),
    }
}

/// The error that `open` changes wait for confirmation.
pub(super) fn waiting_for(open: &Open, boot_s: u64) -> ChangeError {
    let file = open.next.as_ref().map_or_else(String::new, |next| next.file.clone());
    ChangeError::Waiting { file, remaining_s: remaining_s(open, boot_s) }
}

fn remaining_s(open: &Open, boot_s: u64) -> u64 {
    open.deadline_boot_s.map_or(0, |deadline| deadline.saturating_sub(boot_s))
}

/// Keeps the changes that wait for `confirm`, and writes the files that make them persistent.
///
/// # Errors
///
/// If no changes wait, or a file cannot be written. In the latter case all changes are undone.
pub fn confirm(host: &mut impl Host) -> Result<Report> {
    let (mut journal, undone) = recover(host)?;
    let Some(open) = &mut journal.open else {
        return match (&journal.ended, &journal.applied) {
            (None, Some(_)) => Ok(Report::default()),
            (Some(ended), _) => Err(ChangeError::NothingToConfirm(format!(
                ": the last changes were rolled back, {}",
                ended.why
            ))),
            (None, None) => Err(ChangeError::NothingToConfirm(": nothing is applied".to_owned())),
        };
    };
    let steps = std::mem::take(&mut open.at_confirm);
    for step in &steps {
        if !step.before.holds(&host.read(&step.setting)?) {
            let reason = format!(
                "{} was changed since: restore it, or run `uncork host revert` and `apply` again",
                step.setting
            );
            return Err(HostError(reason).into());
        }
    }
    open.steps.extend(steps.iter().cloned());
    open.complete = steps.is_empty();
    if !steps.is_empty() {
        host.store(&journal)?;
        perform(host, &mut journal, &steps)?;
    }
    commit(host, &mut journal)?;
    let release = journal.applied.as_ref().and_then(|applied| applied.release.as_ref());
    let warnings = accept(host, release).into_iter().collect();
    Ok(Report { undone, steps, warnings, ..Report::default() })
}

/// Restores each setting to its value before all changes, except settings that another program has
/// changed since.
///
/// # Errors
///
/// If the host cannot be read, or a change fails. All others are then made, and the desired state still counts as applied.
pub fn revert(host: &mut impl Host) -> Result<Report> {
    let (mut journal, mut undone) = recover(host)?;
    if journal.open.is_some() {
        undone = Some(undo(
            host,
            &mut journal,
            UndoReason::Reverted,
            "not all settings could be restored",
        )?);
    }
    let mut left = Vec::new();
    let mut steps = Vec::new();
    let mut changes = journal.changes().to_vec();
    changes.retain(|change| !matches!(change.setting, SettingKey::Module { .. }));
    let found = read_all(host, &changes)?;
    for (Change { setting, before, after }, found) in changes.into_iter().zip(found) {
        if before.holds(&found) {
            continue;
        }
        if after.holds(&found) {
            steps.push(Change { setting, before: found, after: before });
        } else {
            left.push(SkippedSetting { setting, given: after, found });
        }
    }
    steps.sort_by_key(|step| step.setting.revert_rank(&step.after));
    if journal.applied.is_some() {
        let open = Open {
            purpose: Purpose::Revert,
            steps: steps.clone(),
            at_confirm: Vec::new(),
            next: None,
            complete: false,
            deadline_boot_s: None,
        };
        journal.open = Some(open);
        journal.ended = None;
        // Neither a full disk nor the lack of a guard keeps from restoring the host.
        if host.note(&journal) {
            let _ = host.post_guard();
        }
        restore(host, &mut journal, &steps, &mut left)?;
        let at_unix_s = host.now().unix_s;
        journal.ended = Some(Rollback { why: UndoReason::Reverted, at_unix_s, left: left.clone() });
        (journal.open, journal.applied) = (None, None);
        host.note(&journal);
    }
    let warnings = super::plan::warnings(&steps);
    Ok(Report { undone, steps, left, warnings, ..Report::default() })
}

/// Makes the changes of a revert, as many as possible: a file that cannot be removed keeps no setting from being restored. With
/// a failure, the desired state still counts as applied.
fn restore(
    host: &mut impl Host,
    journal: &mut Journal,
    steps: &[Change],
    left: &mut Vec<SkippedSetting>,
) -> Result<()> {
    let undone = |step: &Change| Change {
        setting: step.setting.clone(),
        before: step.after.clone(),
        after: step.before.clone(),
    };
    let changes: Vec<Change> = steps.iter().map(undone).collect();
    let mut failed = Vec::new();
    for run in runs(&changes) {
        if let Err(error) = roll_back_batch(host, run, left, &mut failed) {
            failed.push(error.to_string());
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    journal.open = None;
    host.note(journal);
    Err(ChangeError::Stuck { reason: "not all settings could be restored".to_owned(), failed })
}

/// Starts a transaction: from now on, either all changes are made or none. What undoing needs is there before the first
/// change: the journal, room for the next one, and a guard.
pub(super) fn begin(host: &mut impl Host, journal: &mut Journal, open: Open) -> Result<()> {
    journal.open = Some(open);
    journal.ended = None;
    host.store(journal)?;
    if let Err(error) = host.check_reserved().and_then(|()| host.post_guard()) {
        journal.open = None;
        host.note(journal);
        return Err(error.into());
    }
    Ok(())
}

pub(super) fn perform(host: &mut impl Host, journal: &mut Journal, steps: &[Change]) -> Result<()> {
    for run in runs(steps) {
        if let Err(error) = change(host, run) {
            return fail(host, journal, &error.to_string());
        }
    }
    Ok(())
}

/// Undoes the open changes because one of them failed. The result is always an error.
fn fail(host: &mut impl Host, journal: &mut Journal, reason: &str) -> Result<()> {
    let ended = undo(host, journal, UndoReason::Failed, reason)?;
    Err(ChangeError::Undone { reason: reason.to_owned(), left: ended.left })
}

/// Changes that are made together: consecutive routes, which are read at once, and each other setting.
fn runs(steps: &[Change]) -> impl Iterator<Item = &[Change]> {
    let is_route = |step: &Change| matches!(step.setting, SettingKey::Route { .. });
    steps.chunk_by(move |one, next| is_route(one) && is_route(next))
}

/// Makes changes and reads them back.
fn change(host: &mut impl Host, steps: &[Change]) -> std::result::Result<(), HostError> {
    let mut made = Vec::new();
    for (step, current) in steps.iter().zip(read_all(host, steps)?) {
        let Change { setting, before, after } = step;
        if after.holds(&current) {
            continue;
        }
        if !before.holds(&current) {
            return Err(HostError(format!("{setting} was changed meanwhile, to {current}")));
        }
        host.write(setting, &current, after)?;
        made.push(step);
    }
    match unmade(host, &made)?.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// What is otherwise after these changes.
fn unmade(
    host: &mut impl Host,
    made: &[&Change],
) -> std::result::Result<Vec<HostError>, HostError> {
    let found = host.read_all(&made.iter().map(|step| &step.setting).collect::<Vec<_>>())?;
    let unmade = made.iter().zip(found).filter(|(step, found)| !step.after.holds(found));
    let error = |(Change { setting, after, .. }, found): (&&Change, Value)| {
        HostError(format!("{setting} is {found} after it was set to {after}"))
    };
    Ok(unmade.map(error).collect())
}

/// The current values of what these change.
fn read_all(
    host: &mut impl Host,
    changes: &[Change],
) -> std::result::Result<Vec<Value>, HostError> {
    host.read_all(&changes.iter().map(|change| &change.setting).collect::<Vec<_>>())
}

/// Stores the values that the kernel reports, which are more exact than the desired state.
fn observe(host: &mut impl Host, journal: &mut Journal) -> Result<()> {
    let Some(next) = journal.open.as_mut().and_then(|open| open.next.as_mut()) else {
        return Ok(());
    };
    let found = read_all(host, &next.changes)?;
    for (change, found) in next.changes.iter_mut().zip(found) {
        if change.after.holds(&found) {
            change.after = found;
        }
    }
    Ok(())
}

fn complete(host: &mut impl Host, journal: &mut Journal) -> Result<()> {
    observe(host, journal)?;
    if let Some(open) = &mut journal.open {
        open.complete = true;
    }
    Ok(host.store(journal)?)
}

fn commit(host: &mut impl Host, journal: &mut Journal) -> Result<()> {
    observe(host, journal)?;
    if let Some(open) = journal.open.take() {
        journal.applied = open.next;
    }
    Ok(host.store(journal)?)
}

/// Undoes the open changes, except settings that another program has changed since. The journal is written if it can be:
/// that the host is restored comes first.
pub(super) fn undo(
    host: &mut impl Host,
    journal: &mut Journal,
    why: UndoReason,
    reason: &str,
) -> Result<Rollback> {
    let now_s = host.now().boot_s;
    let is_due = |open: &Open| open.deadline_boot_s.is_some_and(|deadline| deadline <= now_s);
    if let Some(open) = journal.open.as_mut().filter(|open| open.complete && !is_due(open)) {
        // If this process dies from here on, `recover` undoes the changes at once, before the
        // deadline, too.
        open.complete = false;
        host.note(journal);
    }
    let (mut left, mut failed) = (Vec::new(), Vec::new());
    let mut steps = journal.open.as_ref().map(Open::undoing).unwrap_or_default();
    steps.retain(|step| !matches!(step.setting, SettingKey::Module { .. }));
    for run in runs(&steps) {
        if let Err(error) = roll_back_batch(host, run, &mut left, &mut failed) {
            failed.push(error.to_string());
        }
    }
    if !failed.is_empty() {
        return Err(ChangeError::Stuck { reason: reason.to_owned(), failed });
    }
    let ended = Rollback { why, at_unix_s: host.now().unix_s, left };
    journal.open = None;
    journal.ended = Some(ended.clone());
    host.note(journal);
    Ok(ended)
}

/// Undoes changes that were made together, as many as possible: `left` gets those of other programs, `failed` the
/// reasons of failures.
fn roll_back_batch(
    host: &mut impl Host,
    steps: &[Change],
    left: &mut Vec<SkippedSetting>,
    failed: &mut Vec<String>,
) -> std::result::Result<(), HostError> {
    let mut back = Vec::new();
    for (step, found) in steps.iter().zip(read_all(host, steps)?) {
        let Change { setting, before, after } = step.clone();
        if before.holds(&found) {
            continue;
        }
        if !after.holds(&found) {
            left.push(SkippedSetting { setting, given: after, found });
            continue;
        }
        match host.write(&setting, &found, &before) {
            Ok(()) => back.push(Change { setting, before: found, after: before }),
            Err(error) => failed.push(error.to_string()),
        }
    }
    let unmade = unmade(host, &back.iter().collect::<Vec<_>>())?;
    failed.extend(unmade.iter().map(HostError::to_string));
    Ok(())
}

/// Undoes one change. The result is what another program has made of it.
pub(super) fn undo_one(
    host: &mut impl Host,
    step: Change,
) -> std::result::Result<Option<SkippedSetting>, HostError> {
    let (mut left, mut failed) = (Vec::new(), Vec::new());
    roll_back_batch(host, &[step], &mut left, &mut failed)?;
    match failed.pop() {
        Some(reason) => Err(HostError(reason)),
        None => Ok(left.pop()),
    }
}
