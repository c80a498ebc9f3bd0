//! Stages of a rollout: which hosts are in one.

use std::fmt;
use std::hash::Hasher as _;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;
use thiserror::Error;
use uncork_policy::{SLOTS, slot};

use crate::HostName;

/// A share of the hosts, or those of a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Stage {
    /// The hosts with the first slots of the hash of their name, of [`SLOTS`].
    Share(u16),
    /// The hosts of a place.
    Place(HostName),
}

/// Why a text is not a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a share of the hosts, such as 10% (0.01% to 100%), or a place: place:fra1")]
pub struct StageError;

impl Stage {
    /// Whether a host is in it.
    pub fn has(&self, host: &HostName, place: Option<&HostName>) -> bool {
        match self {
            Self::Share(slots) => slot_of(host) < *slots,
            Self::Place(name) => place == Some(name),
        }
    }

    /// Whether a host is in one of these.
    pub fn any_has(stages: &[Self], host: &HostName, place: Option<&HostName>) -> bool {
        stages.iter().any(|stage| stage.has(host, place))
    }

    /// The smallest share that has one of these hosts: a fleet of three hosts has none below 1% as a rule.
    pub(crate) fn smallest_with<'a>(hosts: impl Iterator<Item = &'a HostName>) -> Option<Self> {
        hosts.map(slot_of).min().map(|slot| Self::Share(slot + 1))
    }

    /// Whether it has hosts that `before` does not have.
    pub(crate) fn adds_to(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::Share(share), Self::Share(before)) => share > before,
            (Self::Place(place), Self::Place(before)) => place != before,
            (Self::Place(_), Self::Share(_)) => !before.is_all(),
            (Self::Share(_), Self::Place(_)) => true,
        }
    }

    /// Whether all hosts are in it.
    pub fn is_all(&self) -> bool {
        *self == Self::Share(SLOTS)
    }
}

/// A host's slot: the same for each rollout, so the same hosts are first. The hash is that of experiments, SipHash-2-4, with
/// a key of zeros: everyone may know a host's name.
fn slot_of(host: &HostName) -> u16 {
    let mut hasher = SipHasher24::new_with_key(&[0; 16]);
    hasher.write(b"uncork.fleet\xffhost");
    hasher.write(host.as_str().as_bytes());
    slot(hasher.finish())
}

impl FromStr for Stage {
    type Err = StageError;

    fn from_str(text: &str) -> Result<Self, StageError> {
        if let Some(place) = text.strip_prefix("place:") {
            return place.parse().map(Self::Place).map_err(|_| StageError);
        }
        let share = text.strip_suffix('%').ok_or(StageError)?;
        let (whole, part) = share.split_once('.').unwrap_or((share, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 2 {
            return Err(StageError);
        }
        let slots = format!("{whole}{part:0<2}").parse::<u16>().map_err(|_| StageError)?;
        if (1..=SLOTS).contains(&slots) { Ok(Self::Share(slots)) } else { Err(StageError) }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(slots) if slots % 100 == 0 => write!(f, "{}%", slots / 100),
            Self::Share(slots) => write!(f, "{}.{:02}%", slots / 100, slots % 100),
            Self::Place(place) => write!(f, "place:{place}"),
        }
    }
}

impl TryFrom<String> for Stage {
    type Error = StageError;

    fn try_from(text: String) -> Result<Self, StageError> {
        text.parse()
    }
}

impl From<Stage> for String {
    fn from(stage: Stage) -> Self {
        stage.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Vec<HostName> {
        (0..10_000).map(|number| format!("edge{number}.example").parse().unwrap()).collect()
    }

    #[test]
    fn share_of_many_hosts_is_about_as_large_and_within_the_next() {
        let hosts = hosts();
        let of = |text: &str| {
            let stage: Stage = text.parse().unwrap();
            hosts.iter().filter(|host| stage.has(host, None)).cloned().collect::<Vec<_>>()
        };
        let [few, more, most, all] = ["1%", "10%", "50%", "100%"].map(of);
        // Four standard deviations of the binomial.
        assert!(few.len().abs_diff(100) < 40, "{}", few.len());
        assert!(more.len().abs_diff(1000) < 120, "{}", more.len());
        assert!(most.len().abs_diff(5000) < 200, "{}", most.len());
        assert_eq!(all.len(), hosts.len());
        for (small, large) in [(&few, &more), (&more, &most)] {
            assert!(small.iter().all(|host| large.contains(host)));
        }
    }

    /// A change would move hosts between the stages of a running rollout.
    #[test]
    fn slot_of_a_host_is_the_same_in_each_version() {
        let slots = ["edge1.example", "edge2.example"].map(|host| slot_of(&host.parse().unwrap()));
        assert_eq!(slots, [1856, 4868]);
    }

    #[test]
    fn smallest_share_with_a_host_has_one_of_them_alone() {
        let hosts: Vec<HostName> = hosts().into_iter().take(3).collect();
        let stage = Stage::smallest_with(hosts.iter()).unwrap();
        assert_eq!(hosts.iter().filter(|host| stage.has(host, None)).count(), 1);
        assert_eq!(Stage::smallest_with([].iter()), None);
    }

    #[test]
    fn place_has_its_hosts_alone() {
        let (host, here) = ("a".parse().unwrap(), "fra1".parse().unwrap());
        let stage: Stage = "place:fra1".parse().unwrap();
        assert!(stage.has(&host, Some(&here)) && !stage.has(&host, None));
        assert!(!stage.has(&host, Some(&"ams1".parse().unwrap())));
    }

    #[test]
    fn text_of_a_stage_is_read_back_and_others_are_refused() {
        for text in ["1%", "0.01%", "12.50%", "100%", "place:fra1"] {
            assert_eq!(text.parse::<Stage>().unwrap().to_string(), text);
        }
        assert_eq!("0.5%".parse(), Ok(Stage::Share(50)));
        for text in ["", "%", "0%", "100.01%", "1", "-1%", "+1%", "1.234%", "place:", "place:a/b"] {
            assert_eq!(text.parse::<Stage>(), Err(StageError), "{text}");
        }
    }
}
