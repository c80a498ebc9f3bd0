//! What an agent has accepted, and the rules by which it accepts more.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uncork_policy::PublicKey;

use crate::{Manifest, Origin, Rollout, Target};

/// A file that was signed later than this by the host's clock is refused. One wrong clock would otherwise end each version that
/// expires before it, for good.
const MAX_AHEAD_S: u64 = 86_400;
/// A serial that is further ahead is refused. A thief of the key cannot use up the numbers within the polls of a host's life.
const MAX_SERIAL_JUMP: u64 = 1 << 32;
/// A version that failed is tried again after this time.
const RETRY_S: u64 = 3600;

/// What an agent has accepted. It outlives the process.
///
/// The first fields are those of the keys that count ([`Memory::trusting`]): what the thief of a key has signed ends with the key.
/// What was accepted from other keys stays, so a key that is removed and given again does not open the way for old files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The serial of the latest rollout.
    pub serial: u64,
    /// The SHA-256 of its file.
    pub rollout: String,
    /// The version that was active last, if it was not the default.
    pub version: Option<u64>,
    /// The directory of the version that was active last, with all that follow it.
    pub good: Option<String>,
    /// The latest time that was signed: it is not earlier now.
    pub signed_unix_s: u64,
    /// The directory that was `good` before that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Since when what follows the link does not have the version that it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// A version that could not be activated, by its SHA-256, and the rollout then. It is tried again with the next rollout, and
    /// after an hour: a stable version has no next rollout.
    pub failed: Option<Failed>,
    /// What was accepted from each key, by its ID. Empty in files of agents that did not note it.
    #[serde(default)]
    pub keys: BTreeMap<String, Accepted>,
}

/// What was accepted from one key. The fields are those of [`Memory`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The serial of its latest rollout.
    pub serial: u64,
    /// The SHA-256 of that file.
    pub rollout: String,
    /// The version that was active last.
    pub version: Option<u64>,
    /// The latest time that was signed.
    pub signed_unix_s: u64,
}

/// A version that could not be activated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// Its version.
    pub version: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// The rollout.
    pub serial: u64,
    /// When, by the host's clock.
    #[serde(default)]
    pub unix_s: u64,
    /// The reason.
    pub error: String,
}

/// What follows the link is not where the link is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Behind {
    /// The directory that the link leads to.
    pub directory: String,
    /// Since when, by the host's clock.
    pub since_unix_s: u64,
}

/// Why an agent does not accept what is signed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// An older rollout.
    #[error(
        "the store has rollout {found}, and {accepted} was accepted before; an old file was put back: publish again"
    )]
    OldRollout {
        /// In the store.
        found: u64,
        /// Before.
        accepted: u64,
    },
    /// Two rollouts with one serial.
    #[error(
        "the store has another rollout {0} than before; two publishers have signed the same number: publish again"
    )]
    OtherRollout(u64),
    /// An older version without a rollback.
    #[error(
        "version {found} is older than {accepted}, and the rollout does not roll {accepted} back; run `uncork fleet rollback`"
    )]
    OldVersion {
        /// In the rollout.
        found: u64,
        /// Before.
        accepted: u64,
    },
    /// The bundle has another version than the rollout says.
    #[error("the bundle has version {found}, and the rollout says {expected}; publish again")]
    OtherVersion {
        /// In the bundle.
        found: u64,
        /// In the rollout.
        expected: u64,
    },
    /// It has expired.
    #[error(
        "version {version} expired {ago} s ago by {clock}; publish it again, or check the clock"
    )]
    Expired {
        /// The version.
        version: u64,
        /// Since when.
        ago: u64,
        /// By which time.
        clock: DecidingClock,
    },
    /// It was signed in the future.
    #[error(
        "the {what} was signed {days} days in the future by the clock of this host; check the clock of the publisher, and of this host"
    )]
    Future {
        /// The file.
        what: &'static str,
        /// How far.
        days: u64,
    },
    /// A serial that no publisher reaches.
    #[error(
        "the rollout {found} is far ahead of {accepted}, which was accepted before; the key is used by a stranger: replace it"
    )]
    Serial {
        /// In the store.
        found: u64,
        /// Before.
        accepted: u64,
    },
}

/// The time by which a version has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidingClock {
    /// The host's clock.
    Host,
    /// The latest time that was signed: the host's clock is behind it.
    Signature,
}

impl fmt::Display for DecidingClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "the clock of this host",
            Self::Signature => {
                "the latest signed time, because the clock of this host is behind it"
            }
        })
    }
}

impl Memory {
    /// What was accepted from the keys that count now.
    #[must_use]
    pub fn trusting(mut self, keys: &[PublicKey]) -> Self {
        if self.keys.is_empty() {
            return self;
        }
        let ids: Vec<String> = keys.iter().map(PublicKey::id).collect();
        let trusted = || self.keys.iter().filter(|(id, _)| ids.contains(id)).map(|(_, it)| it);
        let signed_unix_s = trusted().map(|it| it.signed_unix_s).max().unwrap_or(0);
        let latest = trusted().max_by_key(|it| it.serial).cloned().unwrap_or_default();
        let Accepted { serial, rollout, version, .. } = latest;
        (self.serial, self.rollout, self.version) = (serial, rollout, version);
        self.signed_unix_s = signed_unix_s;
        self
    }

    /// The time, by the host's clock: a clock that is behind what was signed is wrong. So a clock that is set back does not
    /// revive a version that has expired.
    pub fn now(&self, clock_unix_s: u64) -> u64 {
        clock_unix_s.max(self.signed_unix_s)
    }

    /// Which time [`Self::now`] is.
    pub fn deciding(&self, clock_unix_s: u64) -> DecidingClock {
        if clock_unix_s < self.signed_unix_s {
            DecidingClock::Signature
        } else {
            DecidingClock::Host
        }
    }

    /// Accepts a rollout with a good signature.
    ///
    /// # Errors
    ///
    /// It is older than one that was accepted, another one with its serial, far ahead, or signed in the future.
    pub fn accept(
        &mut self,
        rollout: &Rollout,
        origin: &Origin,
        clock: u64,
    ) -> Result<(), Refusal> {
        let (found, accepted) = (rollout.serial, self.serial);
        if found < accepted {
            return Err(Refusal::OldRollout { found, accepted });
        }
        if found == accepted && origin.sha256 != self.rollout {
            return Err(Refusal::OtherRollout(accepted));
        }
        if found > accepted.saturating_add(MAX_SERIAL_JUMP) {
            return Err(Refusal::Serial { found, accepted });
        }
        self.check_signed("rollout", rollout.made_unix_s, clock)?;
        self.serial = found;
        self.rollout.clone_from(&origin.sha256);
        self.signed_unix_s = self.signed_unix_s.max(rollout.made_unix_s);
        let of_key = self.keys.entry(origin.key.clone()).or_default();
        *of_key = Accepted {
            serial: found,
            rollout: self.rollout.clone(),
            version: self.version,
            signed_unix_s: of_key.signed_unix_s.max(rollout.made_unix_s),
        };
        Ok(())
    }

    /// Notes that a version of the accepted rollout becomes active.
    pub fn activate(&mut self, manifest: &Manifest) {
        let (version, made) = (Some(manifest.version), manifest.made_unix_s);
        self.version = version;
        self.signed_unix_s = self.signed_unix_s.max(made);
        for of_key in self.keys.values_mut().filter(|it| it.rollout == self.rollout) {
            of_key.version = version;
            of_key.signed_unix_s = of_key.signed_unix_s.max(made);
        }
    }

    /// Refuses a file that was signed far in the future.
    fn check_signed(&self, what: &'static str, made: u64, clock: u64) -> Result<(), Refusal> {
        let ahead = made.saturating_sub(self.now(clock));
        if ahead <= MAX_AHEAD_S {
            Ok(())
        } else {
            Err(Refusal::Future { what, days: ahead / 86_400 })
        }
    }

    /// Checks whether a version may be activated.
    ///
    /// # Errors
    ///
    /// It has expired, or it is older than the last one and not rolled back to.
    pub fn check(&self, rollout: &Rollout, target: &Target, clock: u64) -> Result<(), Refusal> {
        let version = target.version;
        if let Some(ago) = self.now(clock).checked_sub(target.expires_unix_s) {
            return Err(Refusal::Expired { version, ago, clock: self.deciding(clock) });
        }
        let accepted = self.version.unwrap_or(0);
        let is_rolled_back = rollout.rolled_back.is_some_and(|highest| accepted <= highest);
        if version < accepted && !is_rolled_back {
            return Err(Refusal::OldVersion { found: version, accepted });
        }
        Ok(())
    }

    /// Checks that a bundle is the one of the rollout.
    ///
    /// # Errors
    ///
    /// It has another version, or was signed in the future.
    pub fn check_bundle(
        &self,
        target: &Target,
        manifest: &Manifest,
        clock: u64,
    ) -> Result<(), Refusal> {
        let (found, expected) = (manifest.version, target.version);
        if found != expected {
            return Err(Refusal::OtherVersion { found, expected });
        }
        self.check_signed("bundle", manifest.made_unix_s, clock)
    }

    /// Whether this version failed under this rollout, not long ago.
    pub fn failure(&self, target: &Target, clock: u64) -> Option<&Failed> {
        let is_it = |it: &&Failed| {
            it.sha256 == target.sha256
                && it.serial == self.serial
                && clock.abs_diff(it.unix_s) < RETRY_S
        };
        self.failed.as_ref().filter(is_it)
    }

    /// Notes that what follows the link is in this directory.
    pub fn confirm(&mut self, linked: Option<String>) {
        (self.behind, self.failed) = (None, None);
        if self.good != linked {
            self.before = std::mem::replace(&mut self.good, linked);
        }
    }

    /// Notes that what follows the link is not in this directory yet, and since when: one missed look is not a failure.
    pub fn note_behind(&mut self, linked: Option<String>, clock: u64) -> u64 {
        let directory = linked.unwrap_or_default();
        let since = self.behind.as_ref().filter(|behind| behind.directory == directory);
        // A clock that was set back does not make it longer.
        let since_unix_s = since.map_or(clock, |behind| behind.since_unix_s.min(clock));
        self.behind = Some(Behind { directory, since_unix_s });
        since_unix_s
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

    fn origin(sha256: &str) -> Origin {
        by("key", sha256)
    }

    fn by(key: &str, sha256: &str) -> Origin {
        Origin { sha256: sha256.to_owned(), key: key.to_owned() }
    }

    #[test]
    fn rollout_older_or_another_with_the_serial_is_refused() {
        let mut memory = Memory::default();
        memory.accept(&rollout(5, 1, None), &origin("a"), 0).unwrap();
        memory.accept(&rollout(5, 1, None), &origin("a"), 0).unwrap();
        let old = memory.accept(&rollout(4, 1, None), &origin("b"), 0).unwrap_err();
        assert_eq!(old, Refusal::OldRollout { found: 4, accepted: 5 });
        assert_message!("old", old);
        let other = memory.accept(&rollout(5, 2, None), &origin("b"), 0).unwrap_err();
        assert_eq!(other, Refusal::OtherRollout(5));
        assert_message!("other", other);
        assert_eq!((memory.serial, &*memory.rollout), (5, "a"));
        memory.accept(&rollout(6, 1, None), &origin("b"), 0).unwrap();
    }

    #[test]
    fn version_older_needs_a_signed_rollback_of_the_last_one() {
        let memory = Memory { version: Some(7), ..Memory::default() };
        let check = |rolled_back| memory.check(&rollout(1, 6, rolled_back), &target(6), 0);
        let error = check(None).unwrap_err();
        assert_eq!(error, Refusal::OldVersion { found: 6, accepted: 7 });
        assert_message!("older", error);
        // A rollback of an earlier version does not count for this one.
        assert!(check(Some(6)).is_err());
        assert!(check(Some(7)).is_ok() && check(Some(8)).is_ok());
        assert!(memory.check(&rollout(1, 7, None), &target(7), 0).is_ok());
    }

    #[test]
    fn version_expired_is_refused_with_the_clock_as_given_and_not_before_what_was_signed() {
        let memory = Memory { signed_unix_s: 999, ..Memory::default() };
        let check = |clock| memory.check(&rollout(1, 6, None), &target(6), clock);
        assert!(check(0).is_ok() && check(999).is_ok());
        let clock = DecidingClock::Host;
        assert_eq!(check(1007).unwrap_err(), Refusal::Expired { version: 6, ago: 7, clock });
        assert_message!("expired", check(1007).unwrap_err());
        let later = Memory { signed_unix_s: 1000, ..Memory::default() };
        let error = later.check(&rollout(1, 6, None), &target(6), 0).unwrap_err();
        let clock = DecidingClock::Signature;
        assert_eq!(error, Refusal::Expired { version: 6, ago: 0, clock });
        assert_message!("expired by a signature", error);
    }

    /// Otherwise one publisher with a fast clock ends all versions of all hosts, until their files are removed by hand.
    #[test]
    fn file_signed_more_than_a_day_in_the_future_is_refused_and_notes_nothing() {
        let mut memory = Memory { signed_unix_s: 50, ..Memory::default() };
        let made = |made_unix_s| Rollout { made_unix_s, ..rollout(5, 1, None) };
        let before = memory.clone();
        let error = memory.accept(&made(100 + 9 * 86_400 + 1), &origin("a"), 100).unwrap_err();
        assert_eq!(error, Refusal::Future { what: "rollout", days: 9 });
        assert_message!("future", error);
        assert_eq!(memory, before);
        let manifest = |made_unix_s| Manifest {
            version: 1,
            made_unix_s,
            expires_unix_s: u64::MAX,
            files: Vec::new(),
        };
        let check = |made| memory.check_bundle(&target(1), &manifest(made), 100);
        assert_eq!(check(100 + 86_401), Err(Refusal::Future { what: "bundle", days: 1 }));
        assert_eq!(check(100 + 86_400), Ok(()));
        memory.accept(&made(100 + 86_400), &origin("a"), 100).unwrap();
        // A host with a clock that was set back goes on with the publisher's time.
        memory
            .accept(&Rollout { made_unix_s: 86_600, ..rollout(6, 1, None) }, &origin("b"), 0)
            .unwrap();
    }

    #[test]
    fn serial_that_no_publisher_reaches_is_refused() {
        let mut memory = Memory::default();
        memory.accept(&rollout(5, 1, None), &origin("a"), u64::MAX).unwrap();
        let error = memory.accept(&rollout(u64::MAX, 1, None), &origin("b"), u64::MAX).unwrap_err();
        assert_eq!(error, Refusal::Serial { found: u64::MAX, accepted: 5 });
        assert_message!("serial", error);
    }

    /// A stolen key must not outlive its rotation.
    #[test]
    fn key_removed_takes_what_it_has_signed_along_and_no_other_key_forgets() {
        let keys = [PublicKey::new([1; 32]), PublicKey::new([2; 32])];
        let [stolen, new] = [keys[0].id(), keys[1].id()];
        let mut memory = Memory::default();
        memory.accept(&rollout(5, 1, None), &by(&new, "a"), 10).unwrap();
        let far = Rollout { made_unix_s: 80_000, ..rollout(1 << 32, 1, None) };
        memory.accept(&far, &by(&stolen, "b"), 10).unwrap();
        let manifest = Manifest {
            version: u64::MAX,
            made_unix_s: 80_000,
            expires_unix_s: u64::MAX,
            files: Vec::new(),
        };
        memory.activate(&manifest);
        assert_eq!((memory.version, memory.signed_unix_s), (Some(u64::MAX), 80_000));
        assert_eq!(memory.clone().trusting(&keys), memory);
        let mut rotated = memory.clone().trusting(&keys[1..]);
        assert_eq!((rotated.serial, rotated.version, rotated.signed_unix_s), (5, None, 5));
        // What was accepted from the other key is not replayed.
        let old = rotated.accept(&rollout(4, 1, None), &by(&new, "c"), 10);
        assert_eq!(old, Err(Refusal::OldRollout { found: 4, accepted: 5 }));
        rotated.accept(&rollout(6, 1, None), &by(&new, "d"), 10).unwrap();
        // Nor from the removed one, if it is given again.
        assert_eq!(rotated.trusting(&keys).serial, 1 << 32);
        assert_eq!(memory.trusting(&[]).serial, 0);
    }

    #[test]
    fn memory_without_keys_counts_for_all_keys() {
        let text = "{\"serial\":3,\"rollout\":\"a\",\"version\":2,\"good\":null,\"signed_unix_s\":9,\"failed\":null}";
        let memory: Memory = serde_json::from_str(text).unwrap();
        let mut memory = memory.trusting(&[]);
        assert_eq!((memory.serial, memory.version), (3, Some(2)));
        memory.accept(&rollout(4, 1, None), &origin("b"), 9).unwrap();
        assert_eq!(memory.keys["key"].version, Some(2));
    }

    proptest! {
        /// The serial never falls, in any order of the files.
        #[test]
        fn memory_of_any_rollouts_never_goes_back(serials in prop::collection::vec((0_u64..9, 0_u8..3), 1..40)) {
            let mut memory = Memory::default();
            for (serial, content) in serials {
                let before = memory.clone();
                let accepted = memory.accept(&rollout(serial, 1, None), &origin(&content.to_string()), 0);
                prop_assert!(memory.serial >= before.serial);
                if accepted.is_err() {
                    prop_assert_eq!(&memory, &before);
                }
            }
        }
    }
}
