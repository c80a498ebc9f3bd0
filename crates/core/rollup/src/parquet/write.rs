//! Writing. Equal roll-ups give equal bytes.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use uncork_flow::LARGE_BYTES;

use super::columns::{self, GROUP_TEXTS, GroupText, REGION};
use super::{SCHEMA, SOURCES};
use crate::error::RollupError;
use crate::group::Group;
use crate::health::{Contradiction, Health};
use crate::key::{Fold, Key};
use crate::metric::{Metric, Ratio, smallest};
use crate::rollup::Rollup;
use crate::traffic::{Amount, TrafficKey};
use crate::values::{BinCount, Values};

/// Rows per row group.
const GROUP_ROWS: usize = 100_000;

/// A row of the file: counts, the checks of a group, or the traffic of a network.
#[derive(Clone, Copy)]
enum Line<'a> {
    Counts(&'a Group, &'a Key, &'a Values),
    Checks(&'a Group, &'a Health),
    Traffic(&'a Group, &'a TrafficKey, Amount),
}

type RowGroup<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

impl Rollup {
    /// The roll-up as a Parquet file.
    ///
    /// # Errors
    ///
    /// An error of the Parquet library.
    pub fn to_parquet(&self) -> Result<Vec<u8>, RollupError> {
        let (rows, checks, traffic) = (self.sorted(), self.sorted_health(), self.sorted_traffic());
        let counts = rows.iter().map(|row| Line::Counts(row.group, row.key, row.values));
        let checks = checks.iter().map(|row| Line::Checks(row.group, row.health));
        let traffic = traffic.iter().map(|row| Line::Traffic(row.group, row.key, row.amount));
        let lines: Vec<Line<'_>> = checks.chain(traffic).chain(counts).collect();
        let properties = Arc::new(self.properties()?);
        let texts = texts(&lines);
        let mut file = SerializedFileWriter::new(Vec::new(), schema(&texts)?, properties)?;
        for lines in lines.chunks(GROUP_ROWS) {
            let mut group = file.next_row_group()?;
            self.write_group(&mut group, &texts, lines)?;
            group.close()?;
        }
        Ok(file.into_inner()?)
    }

    fn properties(&self) -> Result<WriterProperties, RollupError> {
        let levels = self.levels();
        let levels_text = format!("{},{},{}", levels.units, levels.asns, levels.clients);
        let pairs = [
            ("uncork.schema", SCHEMA.to_owned()),
            ("rollup.host", self.spec().host.clone()),
            ("rollup.period_s", self.spec().period.as_secs().to_string()),
            ("rollup.start_unix_ns", self.start_ns().to_string()),
            ("rollup.max_rows", self.spec().max_rows.to_string()),
            ("rollup.levels", levels_text),
            ("rollup.folded_records", self.folded().to_string()),
        ];
        let part = (self.part() > 0).then(|| ("rollup.part", self.part().to_string()));
        let mut sources = String::new();
        for hash in self.sources() {
            // Writing into a string cannot fail.
            let _ = write!(sources, "{hash:016x}");
        }
        let sources = (!sources.is_empty()).then_some((SOURCES, sources));
        let pairs = pairs.into_iter().chain(part).chain(sources);
        let pairs = pairs.map(|(key, value)| KeyValue::new(key.to_owned(), value));
        let builder = WriterProperties::builder()
            .set_key_value_metadata(Some(pairs.collect()))
            .set_created_by(concat!("uncork version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(6)?))
            // A dictionary of hashes is as large as the hashes.
            .set_column_dictionary_enabled(ColumnPath::from(columns::UNIT), false)
            .set_statistics_enabled(EnabledStatistics::Chunk);
        Ok(builder.build())
    }

    fn write_group(
        &self,
        to: &mut RowGroup<'_>,
        texts: &[&GroupText],
        lines: &[Line<'_>],
    ) -> Result<(), ParquetError> {
        let same = |value: u64| move |_: &Line<'_>| Some(value);
        text(to, lines, |_| Some(&self.spec().host))?;
        count(to, lines, same(self.spec().period.as_secs().into()))?;
        count(to, lines, same(self.start_ns()))?;
        for column in texts {
            text(to, lines, |line| (column.get)(line.group()).map(smol_str::SmolStr::as_str))?;
        }
        count(to, lines, |line| line.fold().map(Fold::number))?;
        text(to, lines, Line::client)?;
        count(to, lines, |line| line.asn().map(u64::from))?;
        count(to, lines, |line| line.key().and_then(|key| key.unit))?;
        count(to, lines, |line| line.key().and_then(|key| key.bucket).map(u64::from))?;
        number(to, lines, |line| line.group().propensity.map(f64::from_bits))?;
        count(to, lines, Line::smallest)?;
        count(to, lines, |line| Some(line.values().map_or(0, |it| it.records)))?;
        count(to, lines, |line| Some(line.values().map_or(0, |it| it.bytes)))?;
        count(to, lines, |line| line.traffic().map(|it| it.records))?;
        count(to, lines, |line| line.traffic().map(|it| it.bytes))?;
        count(to, lines, |line| line.health().map(|it| it.first_ns))?;
        count(to, lines, |line| line.health().map(|it| it.last_ns))?;
        for it in Contradiction::ALL {
            count(to, lines, |line| line.health().map(|of| of.contradictions[it as usize]))?;
        }
        for it in Ratio::ALL {
            count(to, lines, |line| Some(line.values().map_or(0, |of| of.sums[it as usize].0)))?;
            count(to, lines, |line| Some(line.values().map_or(0, |of| of.sums[it as usize].1)))?;
        }
        for it in Metric::ALL {
            list::<Int32Type>(to, lines, it, |of| of.bin)?;
            list::<Int64Type>(to, lines, it, |of| of.count.cast_signed())?;
        }
        Ok(())
    }
}

impl<'a> Line<'a> {
    fn group(&self) -> &'a Group {
        match self {
            Self::Counts(group, ..) | Self::Checks(group, _) | Self::Traffic(group, ..) => group,
        }
    }

    fn key(&self) -> Option<&'a Key> {
        match self {
            Self::Counts(_, key, _) => Some(key),
            Self::Checks(..) | Self::Traffic(..) => None,
        }
    }

    fn fold(&self) -> Option<Fold> {
        match self {
            Self::Counts(_, key, _) => Some(key.fold),
            Self::Traffic(_, key, _) => Some(key.fold),
            Self::Checks(..) => None,
        }
    }

    fn client(&'a self) -> Option<&'a str> {
        match self {
            Self::Counts(_, key, _) => key.client.as_deref(),
            Self::Traffic(_, key, _) => key.client.as_deref(),
            Self::Checks(..) => None,
        }
    }

    fn asn(&self) -> Option<u32> {
        match self {
            Self::Counts(_, key, _) => key.asn,
            Self::Traffic(_, key, _) => key.asn,
            Self::Checks(..) => None,
        }
    }

    fn smallest(&self) -> Option<u64> {
        match self {
            Self::Counts(_, key, _) => Some(smallest(key.class)),
            Self::Traffic(_, key, _) => Some(if key.is_large { LARGE_BYTES } else { 0 }),
            Self::Checks(..) => None,
        }
    }

    fn traffic(&self) -> Option<Amount> {
        match self {
            Self::Traffic(_, _, amount) => Some(*amount),
            Self::Counts(..) | Self::Checks(..) => None,
        }
    }

    fn values(&self) -> Option<&'a Values> {
        match self {
            Self::Counts(_, _, values) => Some(values),
            Self::Checks(..) | Self::Traffic(..) => None,
        }
    }

    fn health(&self) -> Option<&'a Health> {
        match self {
            Self::Checks(_, health) => Some(health),
            Self::Counts(..) | Self::Traffic(..) => None,
        }
    }

    fn bins(&self, metric: Metric) -> impl Iterator<Item = &'a BinCount> {
        let all = self.values().map_or(&[][..], |values| &values.bins);
        all.iter().filter(move |it| it.metric == metric)
    }
}

/// Without the names of networks, if no record has one: a column of this name goes before the regions that countries are in.
fn texts(lines: &[Line<'_>]) -> Vec<&'static GroupText> {
    let has_region = lines.iter().any(|line| line.group().region.is_some());
    GROUP_TEXTS.iter().filter(|column| column.name != REGION || has_region).collect()
}

fn schema(texts: &[&GroupText]) -> Result<TypePtr, ParquetError> {
    use Physical::{BYTE_ARRAY, DOUBLE, INT64};
    let count = LogicalType::integer(64, false);
    let text = |name: &str| primitive(name, BYTE_ARRAY, Some(LogicalType::String));
    let counted = |name: &str| primitive(name, INT64, Some(count.clone()));
    let mut fields = vec![text(columns::HOST), counted(columns::PERIOD), counted(columns::START)];
    fields.extend(texts.iter().map(|column| text(column.name)));
    fields.extend([
        counted(columns::FOLD),
        text(columns::CLIENT),
        counted(columns::ASN),
        counted(columns::UNIT),
        counted(columns::BUCKET),
        primitive(columns::PROPENSITY, DOUBLE, None),
        counted(columns::SIZE),
        counted(columns::RECORDS),
        counted(columns::BYTES),
        counted(columns::TRAFFIC_RECORDS),
        counted(columns::TRAFFIC_BYTES),
        counted(columns::FIRST),
        counted(columns::LAST),
    ]);
    fields.extend(Contradiction::ALL.map(|it| counted(columns::contradiction(it))));
    fields.extend(Ratio::ALL.iter().flat_map(|it| columns::ratio(*it)).map(|it| counted(&it)));
    for it in Metric::ALL {
        let [bins, counts] = columns::distribution(it);
        fields.push(list_type(&bins, Physical::INT32));
        fields.push(list_type(&counts, INT64));
    }
    let fields = fields.into_iter().map(|field| field.map(Arc::new)).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn primitive(
    name: &str,
    physical: Physical,
    logical: Option<LogicalType>,
) -> Result<Type, ParquetError> {
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

/// A list of numbers, in the three levels that the format's specification recommends.
fn list_type(name: &str, physical: Physical) -> Result<Type, ParquetError> {
    let element = Type::primitive_type_builder("element", physical)
        .with_repetition(Repetition::REQUIRED)
        .build()?;
    let list = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    Type::group_type_builder(name)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(list)])
        .build()
}

fn text<'a>(
    to: &mut RowGroup<'_>,
    lines: &'a [Line<'a>],
    get: impl Fn(&'a Line<'a>) -> Option<&'a str>,
) -> Result<(), ParquetError> {
    cells::<ByteArrayType>(to, lines.iter().map(|line| get(line).map(ByteArray::from)))
}

fn count<'a>(
    to: &mut RowGroup<'_>,
    lines: &'a [Line<'a>],
    get: impl Fn(&'a Line<'a>) -> Option<u64>,
) -> Result<(), ParquetError> {
    cells::<Int64Type>(to, lines.iter().map(|line| get(line).map(u64::cast_signed)))
}

fn number(
    to: &mut RowGroup<'_>,
    lines: &[Line<'_>],
    get: impl Fn(&Line<'_>) -> Option<f64>,
) -> Result<(), ParquetError> {
    cells::<DoubleType>(to, lines.iter().map(get))
}

fn cells<T: DataType>(
    to: &mut RowGroup<'_>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    write::<T>(to, &values, &levels, None)
}

/// A column of lists. An empty list has one place, without a value (definition level 0).
fn list<T: DataType>(
    to: &mut RowGroup<'_>,
    lines: &[Line<'_>],
    metric: Metric,
    get: impl Fn(&BinCount) -> T::T,
) -> Result<(), ParquetError> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        let before = values.len();
        values.extend(line.bins(metric).map(&get));
        let count = values.len() - before;
        for place in 0..count.max(1) {
            defined.push(i16::from(count > 0));
            repeated.push(i16::from(place > 0));
        }
    }
    write::<T>(to, &values, &defined, Some(&repeated))
}

fn write<T: DataType>(
    to: &mut RowGroup<'_>,
    values: &[T::T],
    defined: &[i16],
    repeated: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut chunk) = to.next_column()? else { return Ok(()) };
    chunk.typed::<T>().write_batch(values, Some(defined), repeated)?;
    chunk.close()
}
