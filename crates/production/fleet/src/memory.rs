//! What an agent has accepted, and the rules by which it accepts more.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Manifest, Rollout, Target};

/// What an agent has accepted. It outlives the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The serial of the latest roll-out.
    pub serial: u64,
    /// The SHA-256 of its file.
    pub rollout: String,
    /// The version that was active last, if it was not the default.
    pub version: Option<u64>,
    /// The directory of the version that was active last, with all that follow it.
    pub good: Option<String>,
    /// The latest time that was signed: it is not earlier now.
    pub signed_unix_s: u64,
    /// A version that could not be activated, by its SHA-256, and the roll-out then. It is tried again with the next roll-out.
    pub failed: Option<Failed>,
}

/// A version that could not be activated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// Its version.
    pub version: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// The roll-out.
    pub serial: u64,
    /// The reason.
    pub error: String,
}

/// Why an agent does not accept what is signed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// An older roll-out.
    #[error(
        "the store has roll-out {found}, and {accepted} was accepted before; an old file was put back: publish again"
    )]
    OldRollout {
        /// In the store.
        found: u64,
        /// Before.
        accepted: u64,
    },
    /// Two roll-outs with one serial.
    #[error(
        "the store has another roll-out {0} than before; two publishers have signed the same number: publish again"
    )]
    OtherRollout(u64),
    /// An older version without a roll-back.
    #[error(
        "version {found} is older than {accepted}, and the roll-out does not roll {accepted} back; run `uncork fleet rollback`"
    )]
    OldVersion {
        /// In the roll-out.
        found: u64,
        /// Before.
        accepted: u64,
    },
    /// The bundle has another version than the roll-out says.
    #[error("the bundle has version {found}, and the roll-out says {expected}; publish again")]
    OtherVersion {
        /// In the bundle.
        found: u64,
        /// In the roll-out.
        expected: u64,
    },
    /// It has expired.
    #[error(
        "version {version} expired {ago} s ago by the clock of this host; publish it again, or check the clock"
    )]
    Expired {
        /// The version.
        version: u64,
        /// Since when.
        ago: u64,
    },
}

impl Memory {
    /// The time, by the host's clock: a clock that is behind what was signed is wrong. So a clock that is set back does not
    /// revive a version that has expired.
    pub fn now(&self, clock_unix_s: u64) -> u64 {
        clock_unix_s.max(self.signed_unix_s)
    }

    /// Accepts a roll-out with a good signature.
    ///
    /// # Errors
    ///
    /// It is older than one that was accepted, or another one with its serial.
    pub fn accept(&mut self, rollout: &Rollout, sha256: &str) -> Result<(), Refusal> {
        if rollout.serial < self.serial {
            return Err(Refusal::OldRollout { found: rollout.serial, accepted: self.serial });
        }
        if rollout.serial == self.serial && sha256 != self.rollout {
            return Err(Refusal::OtherRollout(self.serial));
        }
        self.serial = rollout.serial;
        sha256.clone_into(&mut self.rollout);
        self.signed_unix_s = self.signed_unix_s.max(rollout.made_unix_s);
        Ok(())
    }

    /// Checks whether a version may be activated.
    ///
    /// # Errors
    ///
    /// It has expired, or it is older than the last one and not rolled back to.
    pub fn check(&self, rollout: &Rollout, target: &Target, now: u64) -> Result<(), Refusal> {
        let version = target.version;
        if now >= target.expires_unix_s {
            return Err(Refusal::Expired { version, ago: now - target.expires_unix_s });
        }
        let accepted = self.version.unwrap_or(0);
        let is_rolled_back = rollout.rolled_back.is_some_and(|highest| accepted <= highest);
        if version < accepted && !is_rolled_back {
            return Err(Refusal::OldVersion { found: version, accepted });
        }
        Ok(())
    }

    /// Checks that a bundle is the one of the roll-out.
    ///
    /// # Errors
    ///
    /// It has another version.
    pub fn check_bundle(target: &Target, manifest: &Manifest) -> Result<(), Refusal> {
        let (found, expected) = (manifest.version, target.version);
        if found == expected { Ok(()) } else { Err(Refusal::OtherVersion { found, expected }) }
    }

    /// Whether this version failed under this roll-out.
    pub fn failure(&self, target: &Target) -> Option<&Failed> {
        let is_it = |it: &&Failed| it.sha256 == target.sha256 && it.serial == self.serial;
        self.failed.as_ref().filter(is_it)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uncork_testkit::assert_message;

    use super::*;

    fn target(version: u64) -> Target {
        Target { version, sha256: format!("{version:064x}"), expires_unix_s: 1000 }
    }

    fn rollout(serial: u64, version: u64, rolled_back: Option<u64>) -> Rollout {
        Rollout {
            serial,
            made_unix_s: serial,
            stable: Some(target(version)),
            next: None,
            rolled_back,
            frozen: false,
            highest: 9,
        }
    }

    #[test]
    fn rollout_older_or_another_with_the_serial_is_refused() {
        let mut memory = Memory::default();
        memory.accept(&rollout(5, 1, None), "a").unwrap();
        memory.accept(&rollout(5, 1, None), "a").unwrap();
        let old = memory.accept(&rollout(4, 1, None), "b").unwrap_err();
        assert_eq!(old, Refusal::OldRollout { found: 4, accepted: 5 });
        assert_message!("old", old);
        let other = memory.accept(&rollout(5, 2, None), "b").unwrap_err();
        assert_eq!(other, Refusal::OtherRollout(5));
        assert_message!("other", other);
        assert_eq!((memory.serial, &*memory.rollout), (5, "a"));
        memory.accept(&rollout(6, 1, None), "b").unwrap();
    }

    #[test]
    fn version_older_needs_a_signed_rollback_of_the_last_one() {
        let memory = Memory { version: Some(7), ..Memory::default() };
        let check = |rolled_back| memory.check(&rollout(1, 6, rolled_back), &target(6), 0);
        let error = check(None).unwrap_err();
        assert_eq!(error, Refusal::OldVersion { found: 6, accepted: 7 });
        assert_message!("older", error);
        // A roll-back of an earlier version does not count for this one.
        assert!(check(Some(6)).is_err());
        assert!(check(Some(7)).is_ok() && check(Some(8)).is_ok());
        assert!(memory.check(&rollout(1, 7, None), &target(7), 0).is_ok());
    }

    #[test]
    fn version_expired_is_refused_with_the_clock_as_given_and_not_before_what_was_signed() {
        let memory = Memory { signed_unix_s: 999, ..Memory::default() };
        let check = |clock| memory.check(&rollout(1, 6, None), &target(6), memory.now(clock));
        assert!(check(0).is_ok() && check(999).is_ok());
        assert_eq!(check(1007).unwrap_err(), Refusal::Expired { version: 6, ago: 7 });
        assert_message!("expired", check(1007).unwrap_err());
        let later = Memory { signed_unix_s: 1000, ..Memory::default() };
        assert!(later.check(&rollout(1, 6, None), &target(6), later.now(0)).is_err());
    }

    proptest! {
        /// The serial never falls, in any order of the files.
        #[test]
        fn memory_of_any_rollouts_never_goes_back(serials in prop::collection::vec((0_u64..9, 0_u8..3), 1..40)) {
            let mut memory = Memory::default();
            for (serial, content) in serials {
                let before = memory.clone();
                let accepted = memory.accept(&rollout(serial, 1, None), &content.to_string());
                prop_assert!(memory.serial >= before.serial);
                if accepted.is_err() {
                    prop_assert_eq!(&memory, &before);
                }
            }
        }
    }
}
