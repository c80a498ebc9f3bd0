//! Back to a version that hosts have had before, and that they accept now.

use uncork_policy::sha256;

use crate::publish::{PublishError, next_number};
use crate::{Bundle, Fleet, Kind, MAX_BUNDLE, Rollout, SigningKey, Target};
use uncork_store::{Condition, GetResult, Tag};

/// A version that expires earlier than this is signed again: some hosts would not have it before then.
const MIN_LEFT_S: u64 = 3600;

impl Fleet<'_> {
    /// Has all hosts return: from the version that goes out to the stable one; without one, to the given version or the one
    /// before. A version that hosts would refuse, because it has expired or another key has signed it, is signed again as a new
    /// one. A version that was rolled back is never returned to.
    ///
    /// # Errors
    ///
    /// See [`PublishError`].
    pub fn roll_back(
        &self,
        key: &SigningKey,
        (before, tag): (Rollout, Tag),
        version: Option<u64>,
        now: u64,
    ) -> Result<Rollout, PublishError> {
        let before = self.numbered(before)?;
        let stable = match (version, &before.next) {
            (None, Some(_)) => {
                let stable = before.stable.as_ref();
                stable.map(|stable| self.acceptable(key, &before, stable, now)).transpose()?
            }
            (None, None) if before.stable.is_none() && before.frozen => None,
            (None, None) if before.stable.is_none() => return Err(PublishError::NothingToRollBack),
            (version, _) => Some(self.earlier(key, &before, version, now)?),
        };
        let rollout = before.rolled_back_to(stable, now)?;
        self.put(&rollout, key, &Condition::Same(tag))?;
        Ok(rollout)
    }

    /// The given version, or the highest below the stable one that was stable, too. Only what a rollout has carried counts: a
    /// publisher that was killed leaves bundles that never were published.
    fn earlier(
        &self,
        key: &SigningKey,
        before: &Rollout,
        version: Option<u64>,
        now: u64,
    ) -> Result<Target, PublishError> {
        let history = self.history(before)?;
        let is_bad = |version| history.iter().any(|rollout| rollout.has_taken_back(version));
        let Some(version) = version else {
            let below = before.stable.as_ref().map_or(0, |stable| stable.version);
            let mut good: Vec<&Target> =
                history.iter().filter_map(|rollout| rollout.stable.as_ref()).collect();
            good.retain(|target| target.version < below && !is_bad(target.version));
            good.sort_by_key(|target| (target.version, target.expires_unix_s));
            for target in good.into_iter().rev() {
                match self.acceptable(key, before, target, now) {
                    Err(PublishError::Unusable(..)) => {}
                    found => return found,
                }
            }
            return Err(PublishError::NoVersion(format!("before {below}")));
        };
        let next = |rollout: &Rollout| rollout.next.as_ref().map(|next| next.target.clone());
        let carried = history.iter().flat_map(|it| [it.stable.clone(), next(it)]).flatten();
        let found = carried.into_iter().find(|target| target.version == version);
        let found = found.ok_or_else(|| PublishError::NoVersion(version.to_string()))?;
        if is_bad(version) {
            return Err(PublishError::TakenBack(version));
        }
        self.acceptable(key, before, &found, now)
    }

    /// All rollouts that one of the keys has signed, as far as the store has copies, with the current one.
    fn history(&self, current: &Rollout) -> Result<Vec<Rollout>, PublishError> {
        let names = self.store().list("rollouts")?;
        let objects: Vec<String> = names.iter().map(|name| format!("rollouts/{name}")).collect();
        let mut rollouts = vec![current.clone()];
        for got in self.store().get_all(&objects, Kind::Rollout.max_size()) {
            let GetResult::Object(object) = got? else { continue };
            rollouts.extend(Rollout::open(&object.bytes, self.keys()).map(|(rollout, _)| rollout));
        }
        Ok(rollouts)
    }

    /// The version as hosts with the key accept it for a while: as it is, or with its files signed again under the next number.
    fn acceptable(
        &self,
        key: &SigningKey,
        before: &Rollout,
        target: &Target,
        now: u64,
    ) -> Result<Target, PublishError> {
        let unusable = |reason: String| PublishError::Unusable(target.version, reason);
        let object = target.object();
        let GetResult::Object(found) = self.store().get(&object, MAX_BUNDLE, None)? else {
            return Err(unusable(format!("{object} is not in the store")));
        };
        if sha256(&found.bytes) != target.sha256 {
            return Err(unusable(format!("{object} has other bytes than the rollout says")));
        }
        let bundle = Bundle::open(&found.bytes, self.keys());
        let bundle = bundle.map_err(|error| unusable(format!("{object}: {error}")))?;
        let is_of_key = Bundle::open(&found.bytes, &[key.public()]).is_ok();
        if is_of_key && now.saturating_add(MIN_LEFT_S) <= target.expires_unix_s {
            return Ok(target.clone());
        }
        let version = next_number("version", before.highest)?;
        let manifest = &bundle.manifest;
        let life = manifest.expires_unix_s.saturating_sub(manifest.made_unix_s).max(MIN_LEFT_S);
        let expires_unix_s = now.saturating_add(life);
        let sealed = Bundle::seal(version, (now, expires_unix_s), &bundle.files, key)?;
        let again = Target { version, sha256: sha256(&sealed), expires_unix_s };
        self.store().put(&again.object(), &sealed, &Condition::Any)?;
        Ok(again)
    }
}

impl Rollout {
    /// Whether hosts return from this version to the stable one.
    pub(crate) fn has_taken_back(&self, version: u64) -> bool {
        let Some(highest) = self.rolled_back else { return false };
        // A stable version above all these was signed again: none of them comes back.
        let stable = self.stable.as_ref().map(|stable| stable.version);
        let floor = stable.filter(|stable| *stable <= highest).unwrap_or(0);
        floor < version && version <= highest
    }

    fn rolled_back_to(&self, stable: Option<Target>, now: u64) -> Result<Self, PublishError> {
        let rolled_back = Some(self.highest);
        let highest = stable.as_ref().map_or(0, |stable| stable.version).max(self.highest);
        Ok(Self { stable, next: None, rolled_back, frozen: false, highest, ..self.following(now)? })
    }
}
