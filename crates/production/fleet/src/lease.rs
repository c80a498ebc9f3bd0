//! The lease: which planner may publish new versions, and until when.
//!
//! The rollout itself is written only over the bytes that were read, so two publishers never mix. But two planners with histories of
//! their own would replace each other's versions in turn. The lease is plain, not signed: who can write it can also delete the
//! rollout, and no agent reads it.

use serde::{Deserialize, Serialize};
use uncork_store::{Condition, GetResult, StoreError, Tag};

use crate::publish::PublishError;
use crate::{Fleet, HostName};

const SCHEMA: &str = "uncork.fleet-lease/1";
const MAX_LEASE: u64 = 4096;

/// Who may publish, until when: `docs/schemas/fleet-lease-1.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The name of this format.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    pub schema: String,
    /// The planner.
    #[cfg_attr(test, schemars(with = "String"))]
    pub holder: HostName,
    /// Since when it holds the lease without a gap.
    pub since_unix_s: u64,
    /// Until when, unless it is renewed.
    pub expires_unix_s: u64,
}

impl Lease {
    /// Its object.
    pub const OBJECT: &str = "lease";

    /// Whether another planner may take it.
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires_unix_s <= now
    }

    fn read(bytes: &[u8]) -> Result<Self, PublishError> {
        let lease: Result<Self, _> = serde_json::from_slice(bytes);
        let lease = lease.map_err(|error| PublishError::Lease(error.to_string()))?;
        if lease.schema == SCHEMA {
            Ok(lease)
        } else {
            Err(PublishError::Lease(format!("its schema is {}, expected {SCHEMA}", lease.schema)))
        }
    }
}

impl Fleet<'_> {
    /// The lease, also an expired one.
    ///
    /// # Errors
    ///
    /// The store or the lease cannot be read.
    pub fn lease(&self) -> Result<Option<(Lease, Tag)>, PublishError> {
        match self.store().get(Lease::OBJECT, MAX_LEASE, None) {
            Ok(GetResult::Object(object)) => Ok(Some((Lease::read(&object.bytes)?, object.tag))),
            Ok(_) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the lease, or renews it.
    ///
    /// # Errors
    ///
    /// Another planner holds it, or the store cannot be read or written.
    pub fn take_lease(
        &self,
        holder: &HostName,
        now: u64,
        for_s: u64,
    ) -> Result<Lease, PublishError> {
        let before = self.lease()?;
        let held = before.as_ref().map(|(lease, _)| lease).filter(|lease| !lease.is_expired(now));
        if let Some(other) = held.filter(|lease| lease.holder != *holder) {
            return Err(PublishError::Held(other.clone()));
        }
        let lease = Lease {
            schema: SCHEMA.to_owned(),
            holder: holder.clone(),
            since_unix_s: held.map_or(now, |lease| lease.since_unix_s),
            expires_unix_s: now.saturating_add(for_s),
        };
        self.put_lease(&lease, before.map(|(_, tag)| tag), now)?;
        Ok(lease)
    }

    /// Ends the lease of this planner. Without one, nothing happens.
    ///
    /// # Errors
    ///
    /// Another planner holds it, or the store cannot be read or written.
    pub fn release_lease(&self, holder: &HostName, now: u64) -> Result<(), PublishError> {
        match self.lease()? {
            Some((lease, tag)) if lease.holder == *holder && !lease.is_expired(now) => {
                self.put_lease(&Lease { expires_unix_s: now, ..lease }, Some(tag), now)
            }
            Some((lease, _)) if !lease.is_expired(now) => Err(PublishError::Held(lease)),
            _ => Ok(()),
        }
    }

    /// Whether this planner holds the lease.
    pub(crate) fn check_lease(&self, holder: &HostName, now: u64) -> Result<(), PublishError> {
        match self.lease()? {
            Some((lease, _)) if !lease.is_expired(now) => {
                if lease.holder == *holder {
                    Ok(())
                } else {
                    Err(PublishError::Held(lease))
                }
            }
            _ => Err(PublishError::NoLease(holder.clone())),
        }
    }

    /// Writes the lease, if no other planner has written it since it was read.
    fn put_lease(&self, lease: &Lease, before: Option<Tag>, now: u64) -> Result<(), PublishError> {
        let condition = before.map_or(Condition::New, Condition::Same);
        let mut text =
            serde_json::to_vec(lease).map_err(|error| PublishError::Lease(error.to_string()))?;
        text.push(b'\n');
        match self.store().put(Lease::OBJECT, &text, &condition) {
            Err(error @ StoreError::Conflict(_)) => match self.lease()? {
                Some((other, _)) if other.holder != lease.holder && !other.is_expired(now) => {
                    Err(PublishError::Held(other))
                }
                _ => Err(error.into()),
            },
            written => Ok(written?),
        }
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        assert_schema!(Lease, "fleet-lease-1", "`lease` in the store of `uncork fleet`");
    }
}
