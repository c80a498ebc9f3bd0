//! What a planner publishes: at most one version at a time, again and again the same without effect.

use crate::publish::{AT_ONCE, PublishError};
use crate::{Fleet, HostName, PackedFile, Rollout, SigningKey, Stage, Target};

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// A new version goes out.
    Published(Rollout),
    /// The fleet has these files, or they are on their way.
    Unchanged(Rollout),
}

impl Fleet<'_> {
    /// Publishes files as a new version, if the fleet does not have them, for the planner that holds the lease. So a planner that
    /// was killed repeats it.
    ///
    /// The lease is read after the rollout, which is written only if nothing has replaced it since: a planner that slept while
    /// its lease ended cannot write over the next one's version.
    ///
    /// # Errors
    ///
    /// As [`Fleet::begin`]; the planner does not hold the lease; or a version was rolled back, and no person has published since.
    pub fn publish_planned(
        &self,
        (key, holder): (&SigningKey, &HostName),
        files: &[PackedFile],
        stages: (Vec<Stage>, u64),
        times: (u64, u64),
    ) -> Result<Planned, PublishError> {
        self.publish_or_switch((key, holder), files, Some(stages), times)
    }

    /// [`Fleet::publish_planned`] for all hosts at once, such as a policy that switches an experiment off. A version that goes out
    /// is replaced, also after a rollback.
    ///
    /// # Errors
    ///
    /// As [`Fleet::publish_planned`], but for [`PublishError::Running`].
    pub fn switch_planned(
        &self,
        by: (&SigningKey, &HostName),
        files: &[PackedFile],
        times: (u64, u64),
    ) -> Result<Planned, PublishError> {
        self.publish_or_switch(by, files, None, times)
    }

    /// In stages, or without them at once.
    fn publish_or_switch(
        &self,
        (key, holder): (&SigningKey, &HostName),
        files: &[PackedFile],
        stages: Option<(Vec<Stage>, u64)>,
        (now, expires): (u64, u64),
    ) -> Result<Planned, PublishError> {
        let (before, condition) = self.before()?;
        self.check_lease(holder, now)?;
        if let Some(rollout) = &before {
            let goes_on = stages.is_some() || !rollout.is_in_stages();
            if goes_on && self.has(rollout, files, now) {
                return Ok(Planned::Unchanged(rollout.clone()));
            }
            if let (Some(version), None, Some(_)) = (rollout.rolled_back, &rollout.next, &stages) {
                return Err(PublishError::RolledBack(version));
            }
        }
        let before = if stages.is_some() { before } else { before.map(Rollout::interrupted) };
        let (stages, times) = (stages.unwrap_or(AT_ONCE), (now, expires));
        let rollout = self.begin_over((before.as_ref(), &condition), key, files, stages, times)?;
        Ok(Planned::Published(rollout))
    }

    /// Whether these files are on their way, or are the stable ones, for more than half of their life.
    fn has(&self, rollout: &Rollout, files: &[PackedFile], now: u64) -> bool {
        let of = |target: &Target| self.bundle(&target.object()).ok();
        let has = |target: &Target| of(target).filter(|bundle| bundle.files == files);
        match (&rollout.next, &rollout.stable) {
            (Some(next), _) => has(&next.target).is_some(),
            (None, Some(stable)) => has(stable).is_some_and(|bundle| {
                let (made, expires) = (bundle.manifest.made_unix_s, bundle.manifest.expires_unix_s);
                now < made + expires.saturating_sub(made) / 2
            }),
            (None, None) => false,
        }
    }
}
