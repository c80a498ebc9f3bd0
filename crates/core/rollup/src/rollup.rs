//! The roll-up of a period: rows by key, folded to a limit.

use std::collections::HashMap;

use smol_str::SmolStr;
use uncork_flow::{FlowRecord, Service};

use crate::error::RollupError;
use crate::group::{Group, Interner};
use crate::health::Health;
use crate::key::{Fold, Key, Levels};
use crate::metric::{Metric, Ratio, is_large, size_class};
use crate::spec::RollupSpec;
use crate::traffic::{Amount, TrafficKey};
use crate::values::Values;

/// Bins for each row of the limit: rows of busy clients have many.
const BINS_PER_ROW: usize = 8;

/// The flow records of one host that began in one period, as counts. Equal sets of records give equal roll-ups, in any order and any split.
#[derive(Clone, Debug)]
pub struct Rollup {
    spec: RollupSpec,
    /// The beginning of the period, since 1970.
    start_ns: u64,
    /// Of a further file of the period.
    part: u64,
    /// Of a merged file: the content hashes of the files that it counts, in order.
    sources: Vec<u64>,
    levels: Levels,
    groups: Interner<Group>,
    /// Of each group of a record, the group of its checks.
    checked: HashMap<u32, u32>,
    rows: HashMap<Key, Values>,
    health: HashMap<u32, Health>,
    /// Of the clients that have no row in `rows`.
    traffic: HashMap<TrafficKey, Amount>,
    /// Of each group of a record, the group of its traffic.
    places: HashMap<u32, u32>,
    /// Rows of traffic with a network.
    networks: usize,
    /// Rows and bins of single clients, and of single AS.
    sizes: [Size; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    rows: usize,
    bins: usize,
}

/// A row, for writing.
pub(crate) struct Row<'a> {
    pub(crate) key: &'a Key,
    pub(crate) group: &'a Group,
    pub(crate) values: &'a Values,
}

/// The traffic of a client network, for writing.
pub(crate) struct TrafficRow<'a> {
    pub(crate) key: &'a TrafficKey,
    pub(crate) group: &'a Group,
    pub(crate) amount: Amount,
}

/// The checks of a group, for writing.
pub(crate) struct HealthRow<'a> {
    pub(crate) group: &'a Group,
    pub(crate) health: &'a Health,
}

impl Rollup {
    /// A roll-up of no records, of the period of a time since 1970.
    pub fn new(spec: RollupSpec, unix_ns: u64) -> Self {
        Self {
            start_ns: spec.period.start(unix_ns),
            spec,
            part: 0,
            sources: Vec::new(),
            levels: Levels::default(),
            groups: Interner::default(),
            checked: HashMap::new(),
            rows: HashMap::new(),
            health: HashMap::new(),
            traffic: HashMap::new(),
            places: HashMap::new(),
            networks: 0,
            sizes: [Size::default(); 2],
        }
    }

    /// What it was asked for.
    pub fn spec(&self) -> &RollupSpec {
        &self.spec
    }

    pub(crate) fn levels(&self) -> Levels {
        self.levels
    }

    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of rows with counts.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.rows.values().map(|values| values.records).sum()
    }

    /// Number of records of clients without rows of their own.
    pub fn folded(&self) -> u64 {
        let folded = self.rows.iter().filter(|(key, _)| key.fold != Fold::None);
        folded.map(|(_, values)| values.records).sum()
    }

    /// Numbers a further file of the period, from 1: its counts may equal those of another file, its bytes must not.
    pub fn set_part(&mut self, part: u64) {
        self.part = part;
    }

    pub(crate) fn part(&self) -> u64 {
        self.part
    }

    /// Of a merged file: the content hashes of the files that it counts, in order. None of a host's own roll-up.
    pub fn sources(&self) -> &[u64] {
        &self.sources
    }

    pub(crate) fn set_sources(&mut self, sources: Vec<u64>) {
        self.sources = sources;
    }

    /// The beginning of its period, since 1970.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Counts a record of its period.
    pub(crate) fn add(&mut self, record: &FlowRecord, service: &Service) {
        let group = self.groups.number(&Group::of(record));
        let arm = record.choice.as_ref().and_then(|choice| choice.arm.as_ref());
        let key = Key {
            group,
            fold: Fold::None,
            asn: service.asn,
            // Only analyses of arms need the client of a record.
            client: arm.and(service.client.clone()),
            unit: arm.map(|arm| arm.unit),
            bucket: arm.map(|arm| arm.bucket),
            class: size_class(record),
        };
        let checked = self.checked_group(group);
        self.add_health_of(checked, &Health::of(record, service.start_unix_ns));
        if key.client.is_none() {
            let client = service.client.clone();
            let amount = Amount { records: 1, bytes: record.bytes_acked };
            self.add_traffic_of(group, client, service.asn, is_large(record), amount);
        }
        self.add_row(key, &counted(record));
        self.shrink();
    }

    /// Counts traffic of a network of a row's group.
    fn add_traffic_of(
        &mut self,
        group: u32,
        client: Option<SmolStr>,
        asn: Option<u32>,
        is_large: bool,
        amount: Amount,
    ) {
        let group = self.place_group(group);
        let key = TrafficKey { group, fold: Fold::None, asn, client, is_large };
        self.add_traffic_row(key, amount);
    }

    /// The number of a group in keys of rows.
    pub(crate) fn group_number(&mut self, group: &Group) -> u32 {
        self.groups.number(group)
    }

    /// Adds a row of another roll-up. [`Self::shrink`] must follow.
    fn add_traffic(&mut self, group: &Group, mut key: TrafficKey, amount: Amount) {
        key.group = self.groups.number(group);
        self.add_traffic_row(key, amount);
    }

    /// Adds traffic by a key of this roll-up. [`Self::shrink`] must follow.
    pub(crate) fn add_traffic_row(&mut self, key: TrafficKey, amount: Amount) {
        let key = key.folded(self.levels);
        let is_of_network = key.is_of_network();
        let before = self.traffic.len();
        self.traffic.entry(key).or_default().add(amount);
        if is_of_network {
            self.networks += self.traffic.len() - before;
        }
    }

    /// The group of the row's traffic. Found once for each group, not for each record.
    fn place_group(&mut self, group: u32) -> u32 {
        if let Some(place) = self.places.get(&group) {
            return *place;
        }
        let place = self.groups.value(group).place();
        let place = self.groups.number(&place);
        self.places.insert(group, place);
        place
    }

    /// The group without the client's place. Found once for each group, not for each record.
    fn checked_group(&mut self, group: u32) -> u32 {
        if let Some(checked) = self.checked.get(&group) {
            return *checked;
        }
        let anywhere = self.groups.value(group).anywhere();
        let checked = self.groups.number(&anywhere);
        self.checked.insert(group, checked);
        checked
    }

    fn add_health(&mut self, group: &Group, health: &Health) {
        let number = self.groups.number(group);
        self.add_health_of(number, health);
    }

    pub(crate) fn add_health_of(&mut self, group: u32, health: &Health) {
        let of = self.health.entry(group);
        of.and_modify(|sum| sum.add(health)).or_insert(*health);
    }

    /// Adds a row of another roll-up. [`Self::shrink`] must follow.
    fn add_other(&mut self, group: &Group, mut key: Key, values: &Values) {
        key.group = self.groups.number(group);
        self.add_row(key, values);
    }

    /// Adds a row by a key of this roll-up. [`Self::shrink`] must follow.
    pub(crate) fn add_row(&mut self, key: Key, values: &Values) {
        let client = key.client.clone();
        let (asn, is_large) = (key.asn, key.is_large());
        let key = key.folded(self.levels);
        if key.client.is_none() && client.is_some() {
            let amount = Amount { records: values.records, bytes: values.bytes };
            self.add_traffic_of(key.group, client, asn, is_large, amount);
        }
        let tier = tier(&key);
        let before = self.rows.len();
        let row = self.rows.entry(key).or_default();
        let bins = row.bins.len();
        row.add(values);
        let more = row.bins.len() - bins;
        if let Some(tier) = tier {
            self.sizes[tier].rows += self.rows.len() - before;
            self.sizes[tier].bins += more;
        }
    }

    /// Folds rows until their number is within the limit.
    pub(crate) fn shrink(&mut self) {
        while self.is_above_limit(0) {
            self.set_levels(Levels { units: self.levels.units + 1, ..self.levels });
        }
        while self.is_above_limit(1) {
            self.set_levels(Levels { asns: self.levels.asns + 1, ..self.levels });
        }
        while self.networks > self.spec.max_rows.max(1) {
            self.set_levels(Levels { clients: self.levels.clients + 1, ..self.levels });
        }
    }

    fn is_above_limit(&self, tier: usize) -> bool {
        let (size, limit) = (self.sizes[tier], self.spec.max_rows.max(1));
        size.rows > limit || size.bins > limit.saturating_mul(BINS_PER_ROW)
    }

    /// Folds the rows that do not stay at these levels.
    pub(crate) fn set_levels(&mut self, levels: Levels) {
        if levels == self.levels {
            return;
        }
        self.levels = levels;
        self.networks = 0;
        for (key, amount) in std::mem::take(&mut self.traffic) {
            self.add_traffic_row(key, amount);
        }
        self.sizes = [Size::default(); 2];
        for (key, values) in std::mem::take(&mut self.rows) {
            self.add_row(key, &values);
        }
    }

    /// Adds another roll-up of the same host and period.
    ///
    /// # Errors
    ///
    /// If its host or period differs, or one of both is of many hosts.
    pub fn merge(&mut self, other: &Self) -> Result<(), RollupError> {
        if (other.spec.period, other.start_ns) != (self.spec.period, self.start_ns) {
            let (expected, found) = (self.period_text(), other.period_text());
            return Err(RollupError::OtherPeriod { expected, found });
        }
        if !(self.sources.is_empty() && other.sources.is_empty()) {
            return Err(RollupError::Merged(other.spec.host.clone()));
        }
        if other.spec.host != self.spec.host {
            let (expected, found) = (self.spec.host.clone(), other.spec.host.clone());
            return Err(RollupError::OtherHost { expected, found });
        }
        self.set_levels(self.levels.max(other.levels));
        for row in other.sorted() {
            self.add_other(row.group, row.key.clone(), row.values);
            self.shrink();
        }
        for row in other.sorted_traffic() {
            self.add_traffic(row.group, row.key.clone(), row.amount);
            self.shrink();
        }
        for row in other.sorted_health() {
            self.add_health(row.group, row.health);
        }
        Ok(())
    }

    /// The rows in an order that depends on their content alone.
    pub(crate) fn sorted(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = self
            .rows
            .iter()
            .map(|(key, values)| Row { key, group: self.groups.value(key.group), values })
            .collect();
        rows.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
        rows
    }

    pub(crate) fn sorted_health(&self) -> Vec<HealthRow<'_>> {
        let mut rows: Vec<HealthRow<'_>> = self
            .health
            .iter()
            .map(|(group, health)| HealthRow { group: self.groups.value(*group), health })
            .collect();
        rows.sort_unstable_by(|a, b| a.group.cmp(b.group));
        rows
    }

    pub(crate) fn sorted_traffic(&self) -> Vec<TrafficRow<'_>> {
        let mut rows: Vec<TrafficRow<'_>> = self
            .traffic
            .iter()
            .map(|(key, amount)| TrafficRow {
                key,
                group: self.groups.value(key.group),
                amount: *amount,
            })
            .collect();
        rows.sort_unstable_by(|a, b| traffic_order(a).cmp(&traffic_order(b)));
        rows
    }

    pub(crate) fn period_text(&self) -> String {
        format!("{} from {} s", self.spec.period, self.start_ns / 1_000_000_000)
    }
}

impl PartialEq for Rollup {
    fn eq(&self, other: &Self) -> bool {
        let rows = |it: &Self| {
            let rows = it.sorted().into_iter().map(|row| {
                let key = Key { group: 0, ..row.key.clone() };
                (row.group.clone(), key, row.values.clone())
            });
            rows.collect::<Vec<_>>()
        };
        let health = |it: &Self| {
            let rows = it.sorted_health().into_iter();
            rows.map(|row| (row.group.clone(), *row.health)).collect::<Vec<_>>()
        };
        let traffic = |it: &Self| {
            let rows = it.sorted_traffic().into_iter().map(|row| {
                let key = TrafficKey { group: 0, ..row.key.clone() };
                (row.group.clone(), key, row.amount)
            });
            rows.collect::<Vec<_>>()
        };
        self.spec == other.spec
            && traffic(self) == traffic(other)
            && self.start_ns == other.start_ns
            && self.sources == other.sources
            && self.levels == other.levels
            && rows(self) == rows(other)
            && health(self) == health(other)
    }
}

/// Rows of one client are neighbours, and clients of one AS: columns of equal values need few bytes.
#[expect(clippy::type_complexity, reason = "a key for one comparison")]
fn order<'a>(
    row: &Row<'a>,
) -> (Fold, Option<u32>, Option<&'a str>, Option<u64>, &'a Group, Option<u8>, u8) {
    let Key { fold, asn, client, unit, bucket, class, .. } = row.key;
    (*fold, *asn, client.as_deref(), *unit, row.group, *bucket, *class)
}

fn traffic_order<'a>(
    row: &TrafficRow<'a>,
) -> (Fold, Option<u32>, Option<&'a str>, &'a Group, bool) {
    let TrafficKey { fold, asn, client, is_large, .. } = row.key;
    (*fold, *asn, client.as_deref(), row.group, *is_large)
}

/// Which limit the row counts for.
fn tier(key: &Key) -> Option<usize> {
    if key.is_of_unit() { Some(0) } else { key.is_of_asn().then_some(1) }
}

fn counted(record: &FlowRecord) -> Values {
    let mut values = Values {
        records: 1,
        bytes: record.bytes_acked,
        sums: Ratio::ALL.map(|ratio| ratio.parts(record)),
        bins: Vec::with_capacity(Metric::ALL.len()),
    };
    for metric in Metric::ALL {
        if let Some(bin) = metric.bin(record) {
            values.add_bin(metric, bin, 1);
        }
    }
    values
}
