//! A policy as plain tables, for an evaluator that cannot run this crate: the kernel.
//!
//! All that a policy asks about a client's address becomes one longest-prefix match. It finds a *row*: the
//! rules that hold for this network, in order. Each of them still asks for the listener, the time, and the
//! slot in an experiment.

mod by_network;
mod networks;
mod refusal;

use std::net::Ipv6Addr;

use uncork_units::{Probability, Rate};

use crate::condition::Test;
use crate::experiment::{Experiment, Unit};
use crate::origin::Origins;
use crate::policy::{Action, Rule};
use crate::prefix_map::PrefixMap;
use crate::settings::kernel_name;
use crate::table_use::TableUse;
use crate::window::DAY;
use crate::{InitialRate, InitialWindow, Policy, Settings};
pub use by_network::{NetworkDecision, NetworksAsked};
pub use refusal::FlatError;

/// A policy as tables. Everything in it is known when a connection is accepted.
#[derive(Clone, Debug)]
pub struct Flat {
    /// What can be decided; the first is the default.
    pub outcomes: Vec<Outcome>,
    /// The policy's rules.
    pub rules: Vec<FlatRule>,
    /// The experiments for which rules ask.
    pub experiments: Vec<FlatExperiment>,
    /// Rows of candidates. The first is that of addresses in no network.
    pub rows: Vec<Vec<Candidate>>,
    /// The rows of networks; of several networks with an address the longest counts.
    pub networks: Vec<FlatNetwork>,
    /// The row of each address, to look it up fast.
    pub table: PrefixMap,
    /// Which rules ask for the listener in vain.
    pub listeners: Listeners,
}

/// A network and its row. IPv4 networks are mapped (RFC 4291 §2.5.5.2), with 96 bits more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatNetwork {
    /// The network's address.
    pub address: Ipv6Addr,
    /// The prefix length.
    pub bits: u8,
    /// The index of its row.
    pub row: u16,
}

/// A rule that may decide: its conditions on the client's address hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The index of the rule.
    pub rule: u16,
    /// The index of what it decides; with an experiment that of the first arm.
    pub outcome: u16,
}

/// The conditions of a rule that a network does not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatRule {
    /// The line that it starts on, from 1.
    pub line: usize,
    /// The index of its experiment.
    pub experiment: Option<u16>,
    /// When it holds.
    pub window: Option<FlatWindow>,
}

/// When a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatWindow {
    /// Not before this Unix time.
    pub since: i64,
    /// Before this Unix time.
    pub until: i64,
    /// The first second of the day.
    pub from: u32,
    /// The second of the day after the last; if not after `from`, on the next day.
    pub to: u32,
    /// On which days the hours begin; bit 0 is Monday.
    pub days: u8,
    /// The UTC offset of local time, in seconds.
    pub ahead: i32,
}

/// An experiment by the client's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatExperiment {
    /// The key of its SipHash-2-4.
    pub key: [u8; 16],
    /// What is hashed before the letter of the kind and the network: salt and 0xff.
    pub prefix: Vec<u8>,
    /// The first slot of each arm, and how many it has.
    pub arms: Vec<(u16, u16)>,
}

/// What can be decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The rule's index; `None` for the default.
    pub rule: Option<u16>,
    /// The rule's name, if it has one.
    pub name: Option<String>,
    /// The arm, if the rule has an experiment.
    pub arm: Option<FlatArm>,
    /// The kernel's name of the controller; `None` leaves the system's.
    pub tcp: Option<String>,
    /// The initial window.
    pub initial_window: Option<InitialWindow>,
    /// The rate at which it leaves; `None` leaves the pacing to the kernel.
    pub initial_rate: Option<InitialRate>,
    /// The highest pacing rate.
    pub pacing_cap: Option<Rate>,
    /// Whether connections may begin from what an earlier one observed.
    pub resume: bool,
}

impl Outcome {
    /// See [`Settings::kernel_name`].
    pub fn kernel_name(&self) -> Option<&str> {
        kernel_name(self.tcp.as_deref(), self.resume)
    }
}

/// An experiment's arm.
#[derive(Clone, Debug, PartialEq)]
pub struct FlatArm {
    /// The experiment.
    pub experiment: String,
    /// The arm.
    pub arm: String,
    /// The share of all units in this arm.
    pub propensity: Probability,
}

/// For which rules the listener is the right one, as bits by rule. A rule that asks for no listener has its
/// bit everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listeners {
    /// For connections that the service has opened: they have no listener.
    pub opened: u64,
    /// For ports that are not in `ports`.
    pub others: u64,
    /// By local port, in ascending order.
    pub ports: Vec<(u16, u64)>,
}

/// Maximum number of rules: a mask has a bit for each.
const MAX_RULES: usize = 64;
/// What fits into the words that the kernel hashes.
const MAX_SALT: usize = 100;
const MAX_ARMS: usize = 32;

impl Policy {
    /// The policy as tables. `listeners` names local ports; a port without a name has its number as name.
    ///
    /// # Errors
    ///
    /// If the policy asks for something that is not known when a connection is accepted, or is too large.
    pub fn flat(&self, listeners: &[(String, u16)], origins: &Origins) -> Result<Flat, FlatError> {
        refusal::check(self)?;
        let mut flat = Flat {
            outcomes: vec![outcome(None, None, None, &self.default)],
            rules: Vec::new(),
            experiments: Vec::new(),
            rows: Vec::new(),
            networks: Vec::new(),
            table: PrefixMap::default(),
            listeners: self.listeners(listeners),
        };
        let mut bases = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            bases.push(flat.outcomes.len() as u16);
            let experiment = self.add_outcomes(&mut flat, index, rule);
            let window = self.window(rule);
            flat.rules.push(FlatRule { line: rule.line, experiment, window });
        }
        networks::fill(self, origins, &bases, &mut flat)?;
        Ok(flat)
    }

    /// Adds what a rule can decide. The result is the index of its experiment.
    fn add_outcomes(&self, flat: &mut Flat, index: usize, rule: &Rule) -> Option<u16> {
        let by = Some((index, rule));
        match &rule.action {
            Action::Settings(settings) => {
                flat.outcomes.push(outcome(by, None, None, settings));
                None
            }
            Action::Table(_) => {
                let arms = self.table.iter().flat_map(|table| &table.arms);
                flat.outcomes.extend(arms.map(|(_, settings)| outcome(by, None, None, settings)));
                None
            }
            Action::Experiment(experiment) => {
                let experiment = self.experiments.get(*experiment)?;
                for arm in 0..experiment.arms.len() {
                    let settings = &experiment.arms[arm].settings;
                    flat.outcomes.push(outcome(by, Some(experiment), Some(arm), settings));
                }
                flat.experiments.push(FlatExperiment {
                    key: experiment.key,
                    prefix: experiment.salt.bytes().chain([0xff]).collect(),
                    arms: experiment.arms.iter().map(|arm| (arm.first, arm.slots)).collect(),
                });
                Some(flat.experiments.len() as u16 - 1)
            }
        }
    }

    /// When the rule holds: in its own window, and before its table expires.
    fn window(&self, rule: &Rule) -> Option<FlatWindow> {
        let own = rule.conditions.iter().find_map(|condition| match &condition.test {
            Test::Time(window) => Some(window),
            _ => None,
        });
        let expires = match rule.action {
            Action::Table(_) => self.table.as_ref().and_then(TableUse::expires),
            _ => None,
        };
        if own.is_none() && expires.is_none() {
            return None;
        }
        let (from, to) = own.and_then(|window| window.hours).unwrap_or((0, DAY));
        let until = own.and_then(|window| window.until).into_iter().chain(expires).min();
        Some(FlatWindow {
            since: own.and_then(|window| window.since).map_or(i64::MIN, |time| time.0),
            until: until.map_or(i64::MAX, |time| time.0),
            from: from as u32,
            to: to as u32,
            days: own.map_or(0x7f, |window| window.days),
            ahead: own.map_or(0, |window| window.ahead) as i32,
        })
    }

    fn listeners(&self, names: &[(String, u16)]) -> Listeners {
        let mask = |holds: &dyn Fn(&Rule) -> bool| {
            let rules = self.rules.iter().enumerate();
            rules.map(|(index, rule)| u64::from(holds(rule)) << index).sum::<u64>()
        };
        let is_named = |rule: &Rule, name: &str| {
            let mut tests = rule.conditions.iter().map(|condition| &condition.test);
            tests.all(|test| match test {
                Test::Listener(globs) => globs.iter().any(|glob| glob.matches(name.as_bytes())),
                _ => true,
            })
        };
        let asks = |rule: &Rule| {
            rule.conditions.iter().any(|condition| matches!(condition.test, Test::Listener(_)))
        };
        let opened = mask(&|rule| !asks(rule));
        let of_port = |port: u16| {
            let mut given = names.iter().filter(|(_, named)| *named == port).peekable();
            if given.peek().is_none() {
                let name = port.to_string();
                return mask(&|rule| is_named(rule, &name));
            }
            given.map(|(name, _)| mask(&|rule| is_named(rule, name))).fold(0, |all, one| all | one)
        };
        if opened == mask(&|_| true) {
            return Listeners { opened, others: opened, ports: Vec::new() };
        }
        // Ports that no rule names are alike.
        let others = of_port(0);
        let ports = (0..=u16::MAX).map(|port| (port, of_port(port)));
        Listeners { opened, others, ports: ports.filter(|(_, mask)| *mask != others).collect() }
    }
}

impl Flat {
    /// See [`Settings::listener_controller`].
    pub fn listener_controller(&self) -> Option<&'static str> {
        Settings::listener_controller(self.outcomes.iter().map(|outcome| outcome.tcp.as_deref()))
    }
}

fn outcome(
    by: Option<(usize, &Rule)>,
    experiment: Option<&Experiment>,
    arm: Option<usize>,
    settings: &Settings,
) -> Outcome {
    let arm = experiment.zip(arm).map(|(experiment, arm)| FlatArm {
        experiment: experiment.name.to_string(),
        arm: experiment.arms[arm].name.to_string(),
        propensity: experiment.arms[arm].propensity(),
    });
    Outcome {
        rule: by.map(|(index, _)| index as u16),
        name: by.and_then(|(_, rule)| rule.name.as_deref()).map(str::to_owned),
        arm,
        tcp: settings.tcp.as_deref().map(str::to_owned),
        initial_window: settings.initial_window,
        initial_rate: settings.initial_rate,
        pacing_cap: settings.pacing_cap,
        resume: settings.resume,
    }
}
