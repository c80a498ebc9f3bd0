//! What a policy's numbers mean: the names, for status and records. It is pinned with the policy.

use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;
use uncork_cc::InLinux;
use uncork_policy::{By, Flat, Policy, Release, Settings};
use uncork_units::Rate;

/// An active policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The policy's name: its file.
    pub policy: String,
    /// Its fingerprint, as in records.
    pub fingerprint: String,
    /// What the kernel calls it: the same policy with other names of listeners, or other databases, has another key.
    #[serde(default)]
    pub(crate) key: String,
    /// The cgroup's path.
    pub cgroup: String,
    /// When it was applied.
    pub applied_unix_s: i64,
    /// The names of listeners and their ports.
    pub listeners: Vec<(String, u16)>,
    /// Conditions that never match there.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// How many networks the kernel looks up.
    pub networks: u64,
    /// Which of its signer's policies it is, if it had to be signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// What can be decided; the first is the default.
    pub decided: Vec<Decided>,
}

/// What can be decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Decided {
    /// The rule, counted from 1; null for the default.
    pub rule: Option<u16>,
    /// The rule's name, if it has one.
    pub name: Option<String>,
    /// The line of the policy on which the rule begins.
    pub line: Option<usize>,
    /// The experiment, if the rule has one.
    pub experiment: Option<String>,
    /// The arm.
    pub arm: Option<String>,
    /// The share of all units in this arm.
    pub propensity: Option<f64>,
    /// The controller; null leaves the system's.
    pub tcp: Option<String>,
    /// The initial window, such as `32p`; null is the kernel's.
    #[serde(default)]
    pub initial_window: Option<String>,
    /// The rate at which the initial window leaves: `burst`, `20mbit`; null leaves the pacing to the kernel.
    #[serde(default)]
    pub initial_rate: Option<String>,
    /// The pacing cap.
    pub pacing_cap_bps: Option<u64>,
    /// Whether connections may begin from what an earlier one observed.
    #[serde(default)]
    pub resume: bool,
}

impl Description {
    /// The policy with these names of listeners. It has no cgroup and no time yet.
    pub(crate) fn new(policy: &Policy, flat: &Flat, listeners: Vec<(String, u16)>) -> Self {
        let decided = flat.outcomes.iter().map(|outcome| {
            let line = outcome.rule.and_then(|rule| flat.rules.get(usize::from(rule)));
            let arm = outcome.arm.as_ref();
            Decided {
                rule: outcome.rule.map(|rule| rule + 1),
                name: outcome.name.clone(),
                line: line.map(|rule| rule.line),
                experiment: arm.map(|arm| arm.experiment.clone()),
                arm: arm.map(|arm| arm.arm.clone()),
                propensity: arm.map(|arm| arm.propensity.as_f64()),
                tcp: outcome.tcp.clone(),
                initial_window: outcome.initial_window.map(|it| it.to_string()),
                initial_rate: outcome.initial_rate.map(|it| it.to_string()),
                pacing_cap_bps: outcome.pacing_cap.map(Rate::bits_per_sec),
                resume: outcome.resume,
            }
        });
        let named = Self {
            policy: policy.name().to_owned(),
            fingerprint: format!("{:016x}", policy.fingerprint()),
            key: String::new(),
            cgroup: String::new(),
            applied_unix_s: 0,
            listeners,
            warnings: Vec::new(),
            networks: flat.networks.len() as u64,
            release: None,
            decided: decided.collect(),
        };
        let mut hasher = SipHasher24::new_with_key(&[0; 16]);
        hasher.write(format!("{named:?}").as_bytes());
        Self { key: format!("{:016x}", hasher.finish()), ..named }
    }

    /// What records of connections that it decided have in the kernel's maps.
    pub(crate) fn key(&self) -> u64 {
        // Pins of a program that knew no keys have the fingerprint.
        number(if self.key.is_empty() { &self.fingerprint } else { &self.key })
    }

    /// See [`Settings::listener_controller`].
    pub(crate) fn listener_controller(&self) -> Option<&'static str> {
        Settings::listener_controller(self.decided.iter().map(|decided| decided.tcp.as_deref()))
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        number(&self.fingerprint)
    }
}

fn number(hexadecimal: &str) -> u64 {
    u64::from_str_radix(hexadecimal, 16).unwrap_or_default()
}

impl Decided {
    /// The name that sockets choose; `None` leaves the system's controller.
    pub(crate) fn kernel_name(&self) -> Option<&str> {
        let tcp = self.tcp.as_deref();
        tcp.filter(|_| self.resume).and_then(InLinux::with_resume).or(tcp)
    }

    /// What decided.
    pub fn by(&self) -> By<'_> {
        let rule = |number| By::Rule { index: usize::from(number) - 1, name: self.name.as_deref() };
        self.rule.map_or(By::Default, rule)
    }
}
