//! Reading a table of any program, row by row.
//!
//! Other programs choose their own codec, integer width and order of columns, leave columns out, and write missing
//! values as null or, as pandas does, as NaN. The column's name is what counts.

use std::mem;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use smol_str::SmolStr;

use crate::error::FileError;

/// What a cell of a count holds.
const COUNT: &str = "a whole number from 0";
/// What a cell of a 32-bit count holds.
pub(super) const U32: &str = "a whole number from 0 to 4294967295";

/// Reads the columns `names` of a file, or all columns, and converts each row to a `T`.
pub(super) fn read_table<T>(
    file: Vec<u8>,
    names: Option<&[&str]>,
    from_row: impl Fn(&mut Row) -> Result<T, FileError>,
) -> Result<Vec<T>, FileError> {
    let reader = SerializedFileReader::new(Bytes::from(file))?;
    check_codecs(reader.metadata())?;
    let rows = reader.get_row_iter(names.map(|names| selected(reader.metadata(), names)))?;
    let row = |(index, row): (usize, parquet::errors::Result<parquet::record::Row>)| {
        from_row(&mut Row { number: index + 1, cells: row?.into_columns() })
    };
    rows.enumerate().map(row).collect()
}

/// The file's schema with `names` alone: columns of other programs may have types that no record has.
fn selected(metadata: &ParquetMetaData, names: &[&str]) -> Type {
    let schema = metadata.file_metadata().schema();
    let fields = schema.get_fields().iter().filter(|field| names.contains(&field.name()));
    let builder = Type::group_type_builder(schema.name());
    builder.with_fields(fields.cloned().collect()).build().unwrap_or_else(|_| schema.clone())
}

fn check_codecs(metadata: &ParquetMetaData) -> Result<(), FileError> {
    let chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    for chunk in chunks {
        let codec = match chunk.compression() {
            Compression::BROTLI(_) => "brotli",
            Compression::LZO => "lzo",
            _ => continue,
        };
        return Err(FileError::Codec { column: chunk.column_path().string(), codec });
    }
    Ok(())
}

/// One row. Columns are found by name: their order and additional columns do not matter.
pub(super) struct Row {
    /// Its number in the file, from 1.
    number: usize,
    cells: Vec<(String, Field)>,
}

impl Row {
    /// A column that the table must have; null is empty.
    pub(super) fn text(&mut self, name: &'static str) -> Result<SmolStr, FileError> {
        self.require(name)?;
        Ok(self.text_if_any(name)?.unwrap_or_default())
    }

    /// `None` without the column, or where it is null.
    pub(super) fn text_if_any(&mut self, name: &'static str) -> Result<Option<SmolStr>, FileError> {
        match self.take(name) {
            Field::Null => Ok(None),
            Field::Str(text) => Ok(Some(text.into())),
            Field::Bytes(bytes) => match bytes.as_utf8() {
                Ok(text) => Ok(Some(text.into())),
                Err(_) => Err(self.unexpected(name, "UTF-8 text", &Field::Bytes(bytes))),
            },
            other => Err(self.unexpected(name, "text", &other)),
        }
    }

    /// A column that the table must have; null is an error.
    pub(super) fn count(&mut self, name: &'static str) -> Result<u64, FileError> {
        self.require(name)?;
        self.count_if_any(name)?.ok_or_else(|| self.unexpected(name, COUNT, &Field::Null))
    }

    /// As [`Self::count`], below 2^32.
    pub(super) fn index(&mut self, name: &'static str) -> Result<u32, FileError> {
        self.require(name)?;
        self.narrow(name, U32)?.ok_or_else(|| self.unexpected(name, U32, &Field::Null))
    }

    /// A column that the table must have; it may be null.
    pub(super) fn maybe_count(&mut self, name: &'static str) -> Result<Option<u64>, FileError> {
        self.require(name)?;
        self.count_if_any(name)
    }

    /// `None` without the column, or where it is null.
    pub(super) fn count_if_any(&mut self, name: &'static str) -> Result<Option<u64>, FileError> {
        let field = self.take(name);
        match whole(&field) {
            Some(count) => Ok(Some(count)),
            None if is_missing(&field) => Ok(None),
            None => Err(self.unexpected(name, COUNT, &field)),
        }
    }

    /// 0 without the column, or where it is null.
    pub(super) fn count_or_zero(&mut self, name: &'static str) -> Result<u64, FileError> {
        Ok(self.count_if_any(name)?.unwrap_or_default())
    }

    /// As [`Self::count_if_any`], in the range of `T`, which is `expected`.
    pub(super) fn narrow<T: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, FileError> {
        let Some(count) = self.count_if_any(name)? else { return Ok(None) };
        let narrow = T::try_from(count);
        narrow.map(Some).map_err(|_| self.unexpected(name, expected, &Field::ULong(count)))
    }

    /// `None` without the column, or where it is null or NaN.
    pub(super) fn maybe_number(&mut self, name: &'static str) -> Result<Option<f64>, FileError> {
        let field = self.take(name);
        match number(&field) {
            Some(number) => Ok(Some(number).filter(|number| !number.is_nan())),
            None if is_missing(&field) => Ok(None),
            None => Err(self.unexpected(name, "a number", &field)),
        }
    }

    /// The error of a cell that does not hold what is `expected`.
    pub(super) fn unexpected(
        &self,
        column: &'static str,
        expected: &'static str,
        found: &Field,
    ) -> FileError {
        FileError::Cell { row: self.number, column, expected, found: found.to_string() }
    }

    /// An error without the column.
    pub(super) fn require(&self, name: &'static str) -> Result<(), FileError> {
        let is_there = self.cells.iter().any(|(column, _)| column == name);
        is_there.then_some(()).ok_or(FileError::MissingColumn(name))
    }

    /// Null without the column.
    fn take(&mut self, name: &str) -> Field {
        let cell = self.cells.iter_mut().find(|(column, _)| column == name);
        cell.map_or(Field::Null, |(_, field)| mem::replace(field, Field::Null))
    }
}

fn is_missing(field: &Field) -> bool {
    matches!(field, Field::Null) || number(field).is_some_and(f64::is_nan)
}

/// A whole number from 0, of any type that holds one.
fn whole(field: &Field) -> Option<u64> {
    let signed = match *field {
        Field::ULong(count) => return Some(count),
        Field::UByte(count) => return Some(count.into()),
        Field::UShort(count) => return Some(count.into()),
        Field::UInt(count) => return Some(count.into()),
        Field::Byte(count) => count.into(),
        Field::Short(count) => count.into(),
        Field::Int(count) => count.into(),
        Field::Long(count) => count,
        // Times since 1970, in nanoseconds.
        Field::TimestampMillis(time) => time.checked_mul(1_000_000)?,
        Field::TimestampMicros(time) => time.checked_mul(1_000)?,
        Field::Float(_) | Field::Double(_) => return whole_of_float(number(field)?),
        _ => return None,
    };
    u64::try_from(signed).ok()
}

/// Pandas writes a column of integers with missing values as doubles.
fn whole_of_float(number: f64) -> Option<u64> {
    let is_whole = number >= 0.0 && number < u64::MAX as f64 && number.fract() == 0.0;
    is_whole.then_some(number as u64)
}

fn number(field: &Field) -> Option<f64> {
    match *field {
        Field::Double(number) => Some(number),
        Field::Float(number) => Some(number.into()),
        Field::Int(count) => Some(count.into()),
        Field::Long(count) => Some(count as f64),
        Field::ULong(count) => Some(count as f64),
        Field::UInt(count) => Some(count.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::GzipLevel;
    use parquet::column::writer::ColumnWriter;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use uncork_testkit::assert_message;

    use super::*;
    use crate::{FlowRecord, Scope, read_flows};

    /// Two rows in the types of other programs: the second is null where it may be.
    const OTHER: &str = "message schema {
        OPTIONAL BYTE_ARRAY cc (STRING);
        OPTIONAL INT32 flow (UINT_8);
        OPTIONAL INT32 engine;
        OPTIONAL INT32 service_asn;
        OPTIONAL INT64 bytes_delivered;
        OPTIONAL DOUBLE busy_ns;
        OPTIONAL DOUBLE rtt_p50_ms;
        OPTIONAL INT64 service_start_unix_ns (TIMESTAMP_MICROS);
        OPTIONAL BYTE_ARRAY arm_experiment (STRING);
        OPTIONAL BYTE_ARRAY arm (STRING);
        OPTIONAL DOUBLE arm_propensity;
        OPTIONAL INT96 unrelated;
    }";

    /// A table of one row of `values` and one of nulls; a column without a value is null in both.
    fn table(values: &[(&str, i32)], codec: Compression) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(OTHER).expect("a schema"));
        let properties = Arc::new(WriterProperties::builder().set_compression(codec).build());
        let mut file = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut file, schema, properties).expect("a writer");
        let mut group = writer.next_row_group().expect("a group");
        while let Some(mut column) = group.next_column().expect("a column") {
            let name = match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(it) => it.get_descriptor().name().to_owned(),
                ColumnWriter::Int32ColumnWriter(it) => it.get_descriptor().name().to_owned(),
                ColumnWriter::Int64ColumnWriter(it) => it.get_descriptor().name().to_owned(),
                ColumnWriter::DoubleColumnWriter(it) => it.get_descriptor().name().to_owned(),
                _ => String::new(),
            };
            let value = values.iter().find(|(column, _)| *column == name).map(|(_, value)| *value);
            let levels = Some([i16::from(value.is_some()), 0]);
            let (value, levels) = (value.unwrap_or_default(), levels.as_ref().map(|it| &it[..]));
            let written = match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(it) => {
                    it.write_batch(&["cubic".into()], levels, None)
                }
                ColumnWriter::Int32ColumnWriter(it) => it.write_batch(&[value], levels, None),
                ColumnWriter::Int64ColumnWriter(it) => {
                    it.write_batch(&[value.into()], levels, None)
                }
                ColumnWriter::DoubleColumnWriter(it) => {
                    it.write_batch(&[value.into()], levels, None)
                }
                ColumnWriter::Int96ColumnWriter(it) => it.write_batch(&[], levels, None),
                _ => unreachable!("no such column in the schema"),
            };
            written.expect("cells");
            column.close().expect("a column");
        }
        group.close().expect("a group");
        writer.close().expect("a file");
        file
    }

    const VALUES: [(&str, i32); 9] = [
        ("cc", 0),
        ("flow", 200),
        ("service_asn", 64_501),
        ("bytes_delivered", 5_000_000),
        ("busy_ns", 1_000_000_000),
        ("service_start_unix_ns", 1_700_000_000),
        ("arm_experiment", 0),
        ("arm", 0),
        ("arm_propensity", 1),
    ];

    #[test]
    fn a_record_without_a_policy_keeps_its_arm() {
        let records = read_flows(table(&VALUES, Compression::SNAPPY)).expect("records");
        let choice = records[0].choice.as_ref().expect("a choice");
        let arm = choice.arm.as_ref().expect("an arm");
        assert_eq!((choice.policy.as_str(), arm.arm.as_str(), arm.propensity), ("", "cubic", 1.0));
        assert!(records[1].choice.is_none(), "without an arm");
    }

    #[test]
    fn tables_of_other_programs_read_in_any_codec_and_integer_type() {
        let zstd = Compression::ZSTD(parquet::basic::ZstdLevel::default());
        let gzip = Compression::GZIP(GzipLevel::default());
        for codec in
            [Compression::UNCOMPRESSED, Compression::SNAPPY, zstd, gzip, Compression::LZ4_RAW]
        {
            let records = read_flows(table(&VALUES, codec)).expect("records");
            let [first, second] = &records[..] else { panic!("two records: {records:?}") };
            let service = first.service.as_ref().expect("the line of a log");
            assert_eq!(
                (first.cc.as_str(), first.flow, first.busy_ns),
                ("cubic", 200, 1_000_000_000)
            );
            assert_eq!((service.asn, service.scope), (Some(64_501), Scope::Response), "{codec:?}");
            assert_eq!(service.start_unix_ns, 1_700_000_000_000);
            assert_eq!(first.rtt_ms, None);
            assert_eq!(*second, FlowRecord::blank("", "", "", (0, 0)), "unknown is not an error");
        }
    }

    #[test]
    fn a_value_beyond_its_range_is_reported_with_its_place() {
        let values =
            VALUES.map(|(name, value)| (name, if name == "service_asn" { -1 } else { value }));
        let error = read_flows(table(&values, Compression::SNAPPY)).expect_err("no such AS");
        let error = error.to_string();
        assert!(error.starts_with("row 1, column service_asn: "), "{error}");
        assert_message!(-1, error);
    }

    #[test]
    fn doubles_are_counts_if_they_are_whole() {
        let whole = [(0.0, Some(0)), (7.0, Some(7)), (0.5, None), (-1.0, None), (1e300, None)];
        for (number, expected) in whole {
            assert_eq!(whole_of_float(number), expected, "{number}");
        }
        assert!(is_missing(&Field::Double(f64::NAN)), "pandas' missing value");
    }
}
