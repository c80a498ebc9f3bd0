//! Reading what [`super::write`] wrote.

use std::array;
use std::collections::HashMap;

use bytes::Bytes;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use uncork_flow::LARGE_BYTES;

use super::cells::{Columns, Lists, Texts, wrong};
use super::columns::{self, GROUP_TEXTS, REGION};
use super::{SCHEMA, SOURCES};
use crate::error::RollupError;
use crate::group::Group;
use crate::health::{Contradiction, Health};
use crate::key::{Fold, Key, Levels};
use crate::metric::{Metric, Ratio, SIZE_LIMITS, smallest};
use crate::rollup::Rollup;
use crate::spec::{Period, RollupSpec};
use crate::traffic::{Amount, TrafficKey};
use crate::values::{BinCount, Values};

/// Whether a Parquet file is a roll-up, by its metadata.
pub fn is_rollup(file: &[u8]) -> bool {
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(file));
    reader.is_ok_and(|it| {
        entry(it.metadata().file_metadata(), "uncork.schema").is_some_and(|it| it == SCHEMA)
    })
}

fn entry<'a>(metadata: &'a FileMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

impl Rollup {
    /// Parses the bytes of a file from [`Rollup::to_parquet`].
    ///
    /// # Errors
    ///
    /// If the file is not a roll-up.
    pub fn from_parquet(file: Vec<u8>) -> Result<Self, RollupError> {
        let file = RollupFile::open(file)?;
        let mut rollup = file.empty_rollup()?;
        file.add_to(&mut rollup, &Metric::ALL)?;
        Ok(rollup)
    }
}

/// A file from [`Rollup::to_parquet`].
pub(crate) struct RollupFile(SerializedFileReader<Bytes>);

impl RollupFile {
    pub(crate) fn open(file: Vec<u8>) -> Result<Self, RollupError> {
        Ok(Self(SerializedFileReader::new(Bytes::from(file))?))
    }

    /// A roll-up of the file's host and period, without rows.
    pub(crate) fn empty_rollup(&self) -> Result<Rollup, RollupError> {
        empty(self.0.metadata().file_metadata())
    }

    /// Adds the rows to a roll-up, with the bins of these metrics.
    pub(crate) fn add_to(
        &self,
        rollup: &mut Rollup,
        metrics: &[Metric],
    ) -> Result<(), RollupError> {
        for group in 0..self.0.num_row_groups() {
            let group = self.0.get_row_group(group)?;
            RowGroup::read(&Columns::of(&*group), metrics)?.add_to(rollup)?;
        }
        Ok(())
    }
}

/// A roll-up of the file's host and period.
fn empty(metadata: &FileMetaData) -> Result<Rollup, RollupError> {
    let text = |key: &str| {
        entry(metadata, key)
            .ok_or_else(|| RollupError::NotARollup(format!("no {key} in its metadata")))
    };
    let schema = text("uncork.schema")?;
    if schema != SCHEMA {
        return Err(RollupError::NotARollup(format!("its schema is {schema}, expected {SCHEMA}")));
    }
    let wrong = |key: &str| RollupError::NotARollup(format!("{key} has no valid value"));
    let period = text("rollup.period_s")?.parse().ok().and_then(Period::from_secs);
    let start = text("rollup.start_unix_ns")?.parse().map_err(|_| wrong("rollup.start_unix_ns"))?;
    let levels: Result<Vec<u8>, _> = text("rollup.levels")?.split(',').map(str::parse).collect();
    let levels = levels.ok().and_then(|levels| match levels[..] {
        [units, asns, clients] => Some(Levels { units, asns, clients }),
        _ => None,
    });
    let spec = RollupSpec {
        host: text("rollup.host")?.to_owned(),
        period: period.ok_or_else(|| wrong("rollup.period_s"))?,
        max_rows: text("rollup.max_rows")?.parse().map_err(|_| wrong("rollup.max_rows"))?,
    };
    let mut rollup = Rollup::new(spec, start);
    rollup.set_levels(levels.ok_or_else(|| wrong("rollup.levels"))?);
    let sources = entry(metadata, SOURCES).map_or_else(|| Some(Vec::new()), hashes);
    rollup.set_sources(sources.ok_or_else(|| wrong(SOURCES))?);
    Ok(rollup)
}

/// Hashes in the order of their digits; `None` if they are not.
fn hashes(text: &str) -> Option<Vec<u64>> {
    let digits = text.as_bytes().chunks(16);
    let hash = |digits: &[u8]| {
        let text = std::str::from_utf8(digits).ok().filter(|it| it.len() == 16)?;
        u64::from_str_radix(text, 16).ok()
    };
    let hashes: Option<Vec<u64>> = digits.map(hash).collect();
    hashes.filter(|it| it.is_sorted_by(|a, b| a < b))
}

type Counts = Vec<Option<u64>>;

/// The columns of a row group.
struct RowGroup {
    rows: usize,
    texts: Vec<Option<Texts>>,
    propensity: Counts,
    fold: Counts,
    client: Texts,
    asn: Counts,
    unit: Counts,
    bucket: Counts,
    size: Counts,
    records: Counts,
    bytes: Counts,
    traffic: [Counts; 2],
    times: [Counts; 2],
    contradictions: Vec<Counts>,
    sums: Vec<[Counts; 2]>,
    bins: Vec<(Metric, Lists<i32>, Lists<i64>)>,
}

impl RowGroup {
    fn read(columns: &Columns<'_>, metrics: &[Metric]) -> Result<Self, RollupError> {
        // A file has the names of networks only if a record had one.
        let text = |name: &'static str| {
            (name != REGION || columns.has(name)).then(|| columns.texts(name)).transpose()
        };
        let pair = |[one, other]: [&str; 2]| Ok([columns.counts(one)?, columns.counts(other)?]);
        let sums = |it: Ratio| {
            let [of, per] = columns::ratio(it);
            // Older files do not count error pages.
            let is_there = it != Ratio::Failed || columns.has(&of);
            let none = vec![Some(0); columns.rows()];
            if is_there { pair([&of, &per]) } else { Ok([none.clone(), none]) }
        };
        let bins = |it: Metric| {
            let [bins, counts] = columns::distribution(it);
            Ok((it, columns.bins(&bins)?, columns.bin_counts(&counts)?))
        };
        let metrics = Metric::ALL.into_iter().filter(|it| metrics.contains(it));
        let contradictions = Contradiction::ALL.map(columns::contradiction).into_iter();
        Ok(Self {
            rows: columns.rows(),
            texts: GROUP_TEXTS.iter().map(|it| text(it.name)).collect::<Result<_, _>>()?,
            propensity: columns.bits(columns::PROPENSITY)?,
            fold: columns.counts(columns::FOLD)?,
            client: columns.texts(columns::CLIENT)?,
            asn: columns.counts(columns::ASN)?,
            unit: columns.counts(columns::UNIT)?,
            bucket: columns.counts(columns::BUCKET)?,
            size: columns.counts(columns::SIZE)?,
            records: columns.counts(columns::RECORDS)?,
            bytes: columns.counts(columns::BYTES)?,
            traffic: pair([columns::TRAFFIC_RECORDS, columns::TRAFFIC_BYTES])?,
            times: pair([columns::FIRST, columns::LAST])?,
            contradictions: contradictions
                .map(|it| columns.counts(it))
                .collect::<Result<_, _>>()?,
            sums: Ratio::ALL.into_iter().map(sums).collect::<Result<_, RollupError>>()?,
            bins: metrics.map(bins).collect::<Result<_, RollupError>>()?,
        })
    }

    fn add_to(&self, rollup: &mut Rollup) -> Result<(), RollupError> {
        let mut groups = HashMap::new();
        let mut values = Values::default();
        for row in 0..self.rows {
            let group = *groups
                .entry(self.group_id(row))
                .or_insert_with(|| rollup.group_number(&self.group(row)));
            match (self.times[0][row], self.traffic[0][row]) {
                (Some(first_ns), _) => rollup.add_health_of(group, &self.health(row, first_ns)?),
                (None, Some(records)) => {
                    let bytes = required(&self.traffic[1], row, columns::TRAFFIC_BYTES)?;
                    rollup
                        .add_traffic_row(self.traffic_key(row, group)?, Amount { records, bytes });
                    rollup.shrink();
                }
                (None, None) => {
                    self.fill(row, &mut values)?;
                    rollup.add_row(self.key(row, group)?, &values);
                    rollup.shrink();
                }
            }
        }
        Ok(())
    }

    /// What differs between groups of this file.
    fn group_id(&self, row: usize) -> ([u32; GROUP_TEXTS.len()], Option<u64>) {
        let number = |column: usize| self.texts[column].as_ref().map_or(0, |it| it.number(row));
        (array::from_fn(number), self.propensity[row])
    }

    fn group(&self, row: usize) -> Group {
        let mut group = Group { propensity: self.propensity[row], ..Group::default() };
        for (column, texts) in GROUP_TEXTS.iter().zip(&self.texts) {
            if let Some(text) = texts.as_ref().and_then(|texts| texts.get(row)) {
                (column.set)(&mut group, text.clone());
            }
        }
        group
    }

    fn key(&self, row: usize, group: u32) -> Result<Key, RollupError> {
        let fold = Fold::from_number(required(&self.fold, row, columns::FOLD)?);
        let size = required(&self.size, row, columns::SIZE)?;
        Ok(Key {
            group,
            fold: fold.ok_or_else(|| wrong(columns::FOLD))?,
            asn: narrow(&self.asn, row, columns::ASN)?,
            client: self.client.get(row).cloned(),
            unit: self.unit[row],
            bucket: narrow(&self.bucket, row, columns::BUCKET)?,
            class: SIZE_LIMITS.iter().filter(|limit| size >= **limit).count() as u8,
        })
    }

    fn traffic_key(&self, row: usize, group: u32) -> Result<TrafficKey, RollupError> {
        let Key { fold, asn, client, class, .. } = self.key(row, group)?;
        Ok(TrafficKey { group, fold, asn, client, is_large: smallest(class) >= LARGE_BYTES })
    }

    /// Replaces the values by those of the row. One place in memory is enough for all rows.
    fn fill(&self, row: usize, values: &mut Values) -> Result<(), RollupError> {
        values.records = required(&self.records, row, columns::RECORDS)?;
        values.bytes = required(&self.bytes, row, columns::BYTES)?;
        for (it, [of, per]) in Ratio::ALL.into_iter().zip(&self.sums) {
            let parts = of[row].zip(per[row]);
            values.sums[it as usize] = parts.ok_or_else(|| wrong(&columns::ratio(it)[0]))?;
        }
        values.bins.clear();
        for (metric, bins, counts) in &self.bins {
            let (metric, bins, counts) = (*metric, bins.get(row), counts.get(row));
            if bins.len() != counts.len() {
                return Err(wrong(&columns::distribution(metric)[1]));
            }
            for (bin, count) in bins.iter().zip(counts) {
                let it = BinCount { metric, bin: *bin, count: count.cast_unsigned() };
                if values.bins.last().is_some_and(|last| last.key() >= it.key()) {
                    values.add_bin(metric, it.bin, it.count);
                } else {
                    values.bins.push(it);
                }
            }
        }
        Ok(())
    }

    fn health(&self, row: usize, first_ns: u64) -> Result<Health, RollupError> {
        let mut contradictions = [0; Contradiction::ALL.len()];
        for (it, counts) in Contradiction::ALL.into_iter().zip(&self.contradictions) {
            contradictions[it as usize] = required(counts, row, columns::contradiction(it))?;
        }
        let last_ns = required(&self.times[1], row, columns::LAST)?;
        Ok(Health { first_ns, last_ns, contradictions })
    }
}

fn required(cells: &Counts, row: usize, name: &str) -> Result<u64, RollupError> {
    cells[row].ok_or_else(|| wrong(name))
}

fn narrow<T: TryFrom<u64>>(
    cells: &Counts,
    row: usize,
    name: &str,
) -> Result<Option<T>, RollupError> {
    cells[row].map(|it| T::try_from(it).map_err(|_| wrong(name))).transpose()
}
