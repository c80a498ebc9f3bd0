//! All networks of a policy in one tree, each with the rules that hold for it.

use std::collections::HashMap;
use std::net::Ipv6Addr;

use super::refusal::{self, FlatError};
use super::{Candidate, Flat, FlatNetwork};
use crate::condition::{Condition, Test};
use crate::policy::{Action, Rule};
use crate::prefix_map::{PrefixMap, TooLarge};
use crate::table_use::TableUse;
use crate::{Country, Fact, Facts, Origin, Origins, Policy, Verdict};

/// So that the rows stay in the processor's caches, and the kernel's map small.
const MAX_ROWS: usize = 1 << 16;
/// Where IPv4 addresses are.
pub(super) const MAPPED: (u128, u8) = (0xffff << 32, 96);

/// A fact about a network. A network may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Attribute {
    /// Here the IPv4 addresses begin: databases and tables keep them apart.
    Mapped,
    /// The `client` of this rule has it.
    Client(u8),
    /// Its system, by the database of this index; the first one counts.
    System(u8, u32),
    /// Its country.
    Country(u8, Country),
    /// It has this arm in this section of the table.
    Arm(u8, u16),
}

type Item = (u128, u8, Attribute);

/// The facts about an address that its network decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct NetworkFacts {
    /// The rules with this network in `client`, a bit for each.
    clients: u64,
    system: Option<(u8, u32)>,
    country: Option<(u8, Country)>,
    /// Its arm in each section of the table.
    arms: Vec<Option<u16>>,
}

pub(super) fn fill(
    policy: &Policy,
    origins: &Origins,
    bases: &[u16],
    flat: &mut Flat,
) -> Result<(), FlatError> {
    let mut rows = Rows { policy, bases, by_facts: HashMap::new(), index: HashMap::new() };
    let sections = policy.table.as_ref().map_or(0, |table| table.sections.len());
    let nothing = NetworkFacts { arms: vec![None; sections], ..NetworkFacts::default() };
    let outside = rows.of(&nothing, flat)?;
    let mut items = items(policy, origins);
    items.sort_unstable();
    // The networks around the current one, outermost first: last address, facts, row.
    let mut around: Vec<(u128, NetworkFacts, u16)> = vec![(u128::MAX, nothing, outside)];
    for same in items.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
        let (first, bits, _) = same[0];
        while around.len() > 1 && around.last().is_some_and(|(last, ..)| *last < first) {
            around.pop();
        }
        let Some((_, outer, outer_row)) = around.last() else { continue };
        let (mut known, outer_row) = (outer.clone(), *outer_row);
        for (_, _, attribute) in same {
            known.take(*attribute);
        }
        let row = rows.of(&known, flat)?;
        if row != outer_row {
            flat.networks.push(FlatNetwork { address: Ipv6Addr::from_bits(first), bits, row });
        }
        let last = first | u128::MAX.checked_shr(bits.into()).unwrap_or(0);
        around.push((last, known, row));
    }
    let rows = flat.networks.iter().map(|it| (it.address.to_bits(), it.bits, it.row));
    flat.table = PrefixMap::new(&rows.collect::<Vec<_>>(), outside).map_err(|TooLarge| {
        let problem = "its networks take more than 256 MiB".to_owned();
        refusal::whole(policy, problem, "use fewer, or shorter ones")
    })?;
    Ok(())
}

/// All facts about networks.
fn items(policy: &Policy, origins: &Origins) -> Vec<Item> {
    let mut items = vec![(MAPPED.0, MAPPED.1, Attribute::Mapped)];
    for (index, rule) in policy.rules.iter().enumerate() {
        for condition in &rule.conditions {
            let Test::Client(prefixes) = &condition.test else { continue };
            let attribute = Attribute::Client(index as u8);
            items.extend(prefixes.blocks().map(|(first, bits)| (first, bits, attribute)));
        }
    }
    if let Some(table) = &policy.table {
        for section in 0..table.sections.len() {
            table.each_network(section, |first, bits, arm| {
                items.push((first, bits, Attribute::Arm(section as u8, arm as u16)));
            });
        }
    }
    if policy.asks_origin() || policy.table.as_ref().is_some_and(TableUse::asks_origin) {
        origins.each(|database, network, Origin { asn, country }| {
            let (first, bits) = network.mapped();
            let system = asn.map(|asn| Attribute::System(database, asn));
            let country = country.map(|country| Attribute::Country(database, country));
            items.extend(
                system.into_iter().chain(country).map(|attribute| (first, bits, attribute)),
            );
        });
    }
    items
}

impl NetworkFacts {
    fn take(&mut self, attribute: Attribute) {
        match attribute {
            Attribute::Mapped => {
                (self.system, self.country) = (None, None);
                self.arms.fill(None);
            }
            Attribute::Client(rule) => self.clients |= 1 << rule,
            Attribute::System(database, asn) => {
                if self.system.is_none_or(|(other, _)| database <= other) {
                    self.system = Some((database, asn));
                }
            }
            Attribute::Country(database, country) => {
                if self.country.is_none_or(|(other, _)| database <= other) {
                    self.country = Some((database, country));
                }
            }
            Attribute::Arm(section, arm) => self.arms[usize::from(section)] = Some(arm),
        }
    }
}

struct Rows<'a> {
    policy: &'a Policy,
    bases: &'a [u16],
    by_facts: HashMap<NetworkFacts, u16>,
    index: HashMap<Vec<Candidate>, u16>,
}

impl Rows<'_> {
    /// The row for these facts, a new one if none exists yet.
    fn of(&mut self, known: &NetworkFacts, flat: &mut Flat) -> Result<u16, FlatError> {
        if let Some(row) = self.by_facts.get(known) {
            return Ok(*row);
        }
        let candidates = self.candidates(known);
        let next = flat.rows.len();
        let row = *self.index.entry(candidates).or_insert_with_key(|candidates| {
            flat.rows.push(candidates.clone());
            next as u16
        });
        if flat.rows.len() > MAX_ROWS {
            let problem = format!("more than {MAX_ROWS} combinations of rules among its networks");
            return Err(refusal::whole(self.policy, problem, "use fewer rules by network"));
        }
        self.by_facts.insert(known.clone(), row);
        Ok(row)
    }

    fn candidates(&self, known: &NetworkFacts) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (index, rule) in self.policy.rules.iter().enumerate() {
            let Some(arm) = self.arm(index, rule, known) else { continue };
            let outcome = self.bases[index] + arm;
            candidates.push(Candidate { rule: index as u16, outcome });
            if is_certain(rule) {
                break;
            }
        }
        candidates
    }

    /// If the rule's conditions on the address hold: which of its outcomes it is, before the experiment.
    fn arm(&self, index: usize, rule: &Rule, known: &NetworkFacts) -> Option<u16> {
        let facts = Facts {
            asn: Fact::known_or_absent(known.system.map(|(_, asn)| asn)),
            country: Fact::known_or_absent(known.country.map(|(_, country)| country)),
            ..Facts::default()
        };
        let holds = rule.conditions.iter().all(|condition| match &condition.test {
            Test::Client(_) => known.clients >> index & 1 == 1,
            test @ (Test::Asn(_) | Test::Country(_)) => test.verdict(&facts) == Verdict::Yes,
            _ => true,
        });
        match rule.action {
            _ if !holds => None,
            Action::Table(section) => {
                let table = self.policy.table.as_ref()?;
                let by_origin = || table.arm_by_origin(section, &facts).map(|arm| arm as u16);
                known.arms.get(section).copied().flatten().or_else(by_origin)
            }
            Action::Settings(_) | Action::Experiment(_) => Some(0),
        }
    }
}

/// Whether nothing is left to ask of the rule.
fn is_certain(rule: &Rule) -> bool {
    let asks = |condition: &Condition| matches!(condition.test, Test::Listener(_) | Test::Time(_));
    match rule.action {
        Action::Settings(_) => !rule.conditions.iter().any(asks),
        // Tables expire.
        Action::Table(_) | Action::Experiment(_) => false,
    }
}
