//! Reading what [`super::write`] wrote.

use std::collections::HashMap;

use bytes::Bytes;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row as Cells};
use uncork_flow::LARGE_BYTES;

use super::SCHEMA;
use super::columns::{self, GROUP_TEXTS};
use crate::error::RollupError;
use crate::group::Group;
use crate::health::{Contradiction, Health};
use crate::key::{Fold, Key, Levels};
use crate::metric::{Metric, Ratio, SIZE_LIMITS, smallest};
use crate::rollup::Rollup;
use crate::spec::{Period, RollupSpec};
use crate::traffic::{Amount, TrafficKey};
use crate::values::Values;

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
        let reader = SerializedFileReader::new(Bytes::from(file))?;
        let mut rollup = empty(reader.metadata().file_metadata())?;
        for cells in reader.get_row_iter(None)? {
            Line::of(cells?).add_to(&mut rollup)?;
        }
        Ok(rollup)
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
    Ok(rollup)
}

/// The cells of a row by their column's name.
struct Line(HashMap<String, Field>);

impl Line {
    fn of(cells: Cells) -> Self {
        Self(cells.into_columns().into_iter().collect())
    }

    fn add_to(&self, rollup: &mut Rollup) -> Result<(), RollupError> {
        let group = self.group();
        match (self.maybe(columns::FIRST), self.maybe(columns::TRAFFIC_RECORDS)) {
            (Some(first_ns), _) => rollup.add_health(&group, &self.health(first_ns)?),
            (None, Some(records)) => {
                let amount = Amount { records, bytes: self.count(columns::TRAFFIC_BYTES)? };
                rollup.add_traffic(&group, self.traffic_key()?, amount);
            }
            (None, None) => rollup.add_other(&group, self.key()?, &self.values()?),
        }
        Ok(())
    }

    fn group(&self) -> Group {
        let mut group = Group::default();
        for column in &GROUP_TEXTS {
            if let Some(Field::Str(text)) = self.0.get(column.name) {
                (column.set)(&mut group, text.into());
            }
        }
        if let Some(Field::Double(number)) = self.0.get(columns::PROPENSITY) {
            group.propensity = Some(number.to_bits());
        }
        group
    }

    fn key(&self) -> Result<Key, RollupError> {
        let narrow = |name: &'static str| {
            let value = self.maybe(name);
            value.map(|it| u32::try_from(it).map_err(|_| wrong(name))).transpose()
        };
        let fold = Fold::from_number(self.count(columns::FOLD)?);
        let bucket = narrow(columns::BUCKET)?.map(u8::try_from).transpose();
        let size = self.count(columns::SIZE)?;
        Ok(Key {
            group: 0,
            fold: fold.ok_or_else(|| wrong(columns::FOLD))?,
            asn: narrow(columns::ASN)?,
            client: match self.0.get(columns::CLIENT) {
                Some(Field::Str(text)) => Some(text.into()),
                _ => None,
            },
            unit: self.maybe(columns::UNIT),
            bucket: bucket.map_err(|_| wrong(columns::BUCKET))?,
            class: SIZE_LIMITS.iter().filter(|limit| size >= **limit).count() as u8,
        })
    }

    fn traffic_key(&self) -> Result<TrafficKey, RollupError> {
        let Key { fold, asn, client, class, .. } = self.key()?;
        Ok(TrafficKey { group: 0, fold, asn, client, is_large: smallest(class) >= LARGE_BYTES })
    }

    fn values(&self) -> Result<Values, RollupError> {
        let mut values = Values {
            records: self.count(columns::RECORDS)?,
            bytes: self.count(columns::BYTES)?,
            ..Values::default()
        };
        for it in Ratio::ALL {
            let [of, per] = columns::ratio(it);
            values.sums[it as usize] = (self.count(&of)?, self.count(&per)?);
        }
        for it in Metric::ALL {
            let [bins, counts] = columns::distribution(it);
            let (of_bins, of_counts) = (self.list(&bins)?, self.list(&counts)?);
            if of_bins.len() != of_counts.len() {
                return Err(wrong(&counts));
            }
            for (bin, count) in of_bins.iter().zip(of_counts) {
                let bin = i32::try_from(*bin).map_err(|_| wrong(&bins))?;
                values.add_bin(it, bin, count.cast_unsigned());
            }
        }
        Ok(values)
    }

    fn health(&self, first_ns: u64) -> Result<Health, RollupError> {
        let mut contradictions = [0; Contradiction::ALL.len()];
        for it in Contradiction::ALL {
            contradictions[it as usize] = self.count(columns::contradiction(it))?;
        }
        Ok(Health { first_ns, last_ns: self.count(columns::LAST)?, contradictions })
    }

    fn maybe(&self, name: &str) -> Option<u64> {
        match self.0.get(name) {
            Some(Field::ULong(count)) => Some(*count),
            _ => None,
        }
    }

    fn count(&self, name: &str) -> Result<u64, RollupError> {
        self.maybe(name).ok_or_else(|| wrong(name))
    }

    fn list(&self, name: &str) -> Result<Vec<i64>, RollupError> {
        let Some(Field::ListInternal(list)) = self.0.get(name) else { return Err(wrong(name)) };
        let number = |field: &Field| match field {
            Field::Int(number) => Ok(i64::from(*number)),
            Field::Long(number) => Ok(*number),
            _ => Err(wrong(name)),
        };
        list.elements().iter().map(number).collect()
    }
}

fn wrong(column: &str) -> RollupError {
    RollupError::NotARollup(format!("column {column} is missing or has another type"))
}
