//! What a policy decides by the client's network alone, as networks with their controllers: for routes.
//!
//! The unit of an experiment is a client's /24 or /48, so in each of these everything is decided: holdback, random
//! share, table and default. Wider networks are dealt to the arms unit by unit.

use std::net::{IpAddr, Ipv6Addr};

use super::networks::MAPPED;
use super::refusal::{self, FlatError};
use super::{Flat, FlatNetwork, Outcome};
use crate::experiment::CLIENT_BITS;
use crate::policy::Action;
use crate::{Fact, Facts, MSS_BYTES, Origins, Policy, Prefix, UnixTime, slot};

/// Units that are dealt to the arms of experiments: an IPv4 /4, an IPv6 /28.
const MAX_UNITS: u128 = 1 << 20;
const REMEDY: &str = "remove it, or use `uncork steer` or `uncork serve --policy`";

/// What is asked of a policy.
#[derive(Clone, Copy, Debug)]
pub struct NetworksAsked<'a> {
    /// Where clients come from.
    pub origins: &'a Origins,
    /// Now: tables expire.
    pub now: UnixTime,
    /// The networks to decide for; empty: the networks that the policy's rules and its table name.
    pub within: &'a [Prefix],
    /// Networks inside of these that the answer is to have, too.
    pub also: &'a [Prefix],
}

/// The controller of all clients in a network that are in no narrower one of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkDecision {
    /// The network.
    pub network: Prefix,
    /// The kernel's name of the controller; `None` is the system's.
    pub tcp: Option<String>,
    /// The initial window in packets; `None` is the kernel's.
    pub initial_window: Option<u32>,
}

/// A network to decide for, IPv4 mapped with 96 bits more.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    first: u128,
    bits: u8,
    /// Its row, if that is another than the row around it may be.
    row: Option<u16>,
    /// It is one of `within`.
    is_within: bool,
    /// It is there because an experiment deals it, and for nothing else.
    is_unit: bool,
}

/// The nearest network around another one.
#[derive(Clone, Copy, Debug)]
struct Enclosing {
    last: u128,
    row: u16,
    is_v4: bool,
    /// Whether it is decided for.
    is_asked: bool,
    /// Whether all units in it are items.
    is_dealt: bool,
    /// What is decided, as the index of an outcome.
    outcome: u16,
}

impl Policy {
    /// The controllers by network, each network before the networks in it.
    ///
    /// # Errors
    ///
    /// If the policy asks for more than the client's network, or deals too many networks.
    pub fn by_network(&self, asked: &NetworksAsked<'_>) -> Result<Vec<NetworkDecision>, FlatError> {
        let flat = self.flat(&[], asked.origins)?;
        refusal::check_by_network(self, REMEDY)?;
        let assigner = ArmAssigner { policy: self, flat: &flat, asked };
        let mut items = assigner.named();
        items.extend(assigner.units(&items)?);
        merge(&mut items);
        Ok(assigner.decisions(&items))
    }

    /// What a policy by network leaves out, in words.
    pub fn left_out_by_network(&self, has_databases: bool) -> Vec<String> {
        let name = &self.name;
        let mut warnings = self.warnings(None, has_databases);
        let Some(table) = &self.table else { return warnings };
        let (origins, all_clients) = table.wide_entries();
        if origins > 0 && !has_databases {
            warnings.push(format!(
                "{name}: {origins} entries of its table by AS or country never match without a database"
            ));
        }
        let default = self.default.tcp.as_deref();
        if all_clients.iter().any(|settings| settings.tcp.as_deref() != default) {
            warnings.push(format!(
                "{name}: the entry `*` of its table counts only inside of the networks; all others have the default"
            ));
        }
        warnings
    }
}

struct ArmAssigner<'a> {
    policy: &'a Policy,
    flat: &'a Flat,
    asked: &'a NetworksAsked<'a>,
}

impl ArmAssigner<'_> {
    /// The networks of the policy and of the question, sorted.
    fn named(&self) -> Vec<Item> {
        let named = self.flat.networks.iter().map(|FlatNetwork { address, bits, row }| Item {
            first: address.to_bits(),
            bits: *bits,
            row: Some(*row),
            ..Item::default()
        });
        let asked = |network: &Prefix, is_within| {
            let (first, bits) = network.mapped();
            Item { first, bits, is_within, ..Item::default() }
        };
        let within = self.asked.within.iter().map(|network| asked(network, true));
        let also = self.asked.also.iter().map(|network| asked(network, false));
        let mut items: Vec<Item> = named.chain(within).chain(also).collect();
        // No route to a network of IPv6 leads to IPv4.
        let wide = self.flat.networks.iter().filter(|it| holds_v4(it.address.to_bits(), it.bits));
        if let Some(wide) = wide.max_by_key(|it| it.bits) {
            let (first, bits) = MAPPED;
            items.push(Item { first, bits, row: Some(wide.row), ..Item::default() });
        }
        merge(&mut items);
        items
    }

    /// The units of networks that are wider than these, where an experiment deals them.
    fn units(&self, items: &[Item]) -> Result<Vec<Item>, FlatError> {
        let mut wide = Vec::new();
        self.each(items, |item, own, around| {
            let is_wide = item.bits < unit_bits(own.is_v4);
            let deals = is_wide && own.is_asked && self.has_experiment(own.row);
            if deals && !around.is_dealt {
                wide.push(*item);
            }
            Enclosing { is_dealt: deals || around.is_dealt, ..own }
        });
        let count = |item: &Item| 1_u128 << (unit_bits(is_v4(item.first, item.bits)) - item.bits);
        let all: u128 = wide.iter().map(count).sum();
        if let Some(widest) = wide.iter().max_by_key(|item| count(item)).filter(|_| all > MAX_UNITS)
        {
            let problem = format!(
                "its experiments deal {all} networks of /24 or /48 ({} of them in {}), and routes take {MAX_UNITS} at most",
                count(widest),
                prefix(widest.first, widest.bits)
            );
            let remedy = "say in which narrower networks the policy is to count";
            return Err(refusal::whole(self.policy, problem, remedy));
        }
        Ok(wide.iter().flat_map(units_of).collect())
    }

    fn decisions(&self, items: &[Item]) -> Vec<NetworkDecision> {
        let mut decisions = Vec::new();
        self.each(items, |item, own, around| {
            let outcome = self.outcome(own.row, item);
            let gives = |outcome: u16| {
                let Outcome { tcp, initial_window, .. } = &self.flat.outcomes[usize::from(outcome)];
                (tcp, initial_window.map(|window| window.packets(MSS_BYTES)))
            };
            let given = gives(outcome);
            if own.is_asked && !(item.is_unit && given == gives(around.outcome)) {
                let (tcp, initial_window) = given;
                let network = prefix(item.first, item.bits);
                decisions.push(NetworkDecision { network, tcp: tcp.clone(), initial_window });
            }
            Enclosing { outcome, ..own }
        });
        decisions
    }

    /// Visits sorted items. `visit` gets each one with its facts so far, and the network around it.
    fn each(
        &self,
        items: &[Item],
        mut visit: impl FnMut(&Item, Enclosing, &Enclosing) -> Enclosing,
    ) {
        let outside = Enclosing {
            last: u128::MAX,
            row: 0,
            is_v4: false,
            is_asked: false,
            is_dealt: false,
            outcome: 0,
        };
        let mut stack = vec![outside];
        for item in items {
            while stack.len() > 1 && stack.last().is_some_and(|around| around.last < item.first) {
                stack.pop();
            }
            let mut around = stack.last().copied().unwrap_or(outside);
            let is_v4 = is_v4(item.first, item.bits);
            if is_v4 != around.is_v4 {
                around = Enclosing { row: around.row, is_v4, ..outside };
            }
            let is_root = match self.asked.within {
                [] => item.row.is_some(),
                _ => item.is_within,
            };
            let own = Enclosing {
                last: item.first | free(item.bits),
                row: item.row.unwrap_or(around.row),
                is_asked: around.is_asked || is_root,
                ..around
            };
            stack.push(visit(item, own, &around));
        }
    }

    fn has_experiment(&self, row: u16) -> bool {
        let mut rules = self.flat.rows[usize::from(row)].iter();
        rules.any(|it| self.flat.rules[usize::from(it.rule)].experiment.is_some())
    }

    /// What is decided in a network; in one that is wider than a unit, for clients outside of experiments.
    fn outcome(&self, row: u16, item: &Item) -> u16 {
        for candidate in &self.flat.rows[usize::from(row)] {
            let rule = usize::from(candidate.rule);
            let window = self.flat.rules[rule].window;
            if window.is_some_and(|window| window.until <= self.asked.now.0) {
                continue;
            }
            match self.policy.rules[rule].action {
                Action::Settings(_) | Action::Table(_) => return candidate.outcome,
                Action::Experiment(index) => {
                    if let Some(arm) = self.arm(index, item) {
                        return candidate.outcome + arm;
                    }
                }
            }
        }
        0
    }

    /// The arm of the unit of a network, which must not be wider than a unit.
    fn arm(&self, experiment: usize, item: &Item) -> Option<u16> {
        if item.bits < unit_bits(is_v4(item.first, item.bits)) {
            return None;
        }
        let experiment = self.policy.experiments.get(experiment)?;
        let client = Fact::Known(IpAddr::V6(Ipv6Addr::from_bits(item.first)));
        let Fact::Known(hash) = experiment.hash(&Facts { client, ..Facts::default() }) else {
            return None;
        };
        let slot = slot(hash);
        let has = |first: u16, slots: u16| (first..first + slots).contains(&slot);
        experiment.arms.iter().position(|arm| has(arm.first, arm.slots)).map(|arm| arm as u16)
    }
}

/// Sorts, and makes one of those of one network.
fn merge(items: &mut Vec<Item>) {
    items.sort_unstable_by_key(|item| (item.first, item.bits));
    items.dedup_by(|next, kept| {
        let same = (next.first, next.bits) == (kept.first, kept.bits);
        if same {
            kept.row = kept.row.or(next.row);
            kept.is_within |= next.is_within;
            kept.is_unit &= next.is_unit;
        }
        same
    });
}

fn units_of(item: &Item) -> impl Iterator<Item = Item> + use<> {
    let bits = unit_bits(is_v4(item.first, item.bits));
    let (first, count) = (item.first, 1_u128 << (bits - item.bits));
    (0..count).map(move |index| Item {
        first: first | index << (128 - u32::from(bits)),
        bits,
        is_unit: true,
        ..Item::default()
    })
}

/// The prefix length of units, IPv4 with 96 bits more.
fn unit_bits(is_v4: bool) -> u8 {
    if is_v4 { CLIENT_BITS.0 + 96 } else { CLIENT_BITS.1 }
}

/// The bits after a prefix, all set.
fn free(bits: u8) -> u128 {
    u128::MAX.checked_shr(bits.into()).unwrap_or(0)
}

fn is_v4(first: u128, bits: u8) -> bool {
    bits >= MAPPED.1 && first & !free(MAPPED.1) == MAPPED.0
}

fn holds_v4(first: u128, bits: u8) -> bool {
    bits < MAPPED.1 && MAPPED.0 & !free(bits) == first
}

fn prefix(first: u128, bits: u8) -> Prefix {
    let bits = if is_v4(first, bits) { bits - MAPPED.1 } else { bits };
    Prefix::of(Ipv6Addr::from_bits(first).into(), bits)
}
