//! Writing a table, column by column.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::labelled::{Labelled, TableHead};

/// Rows per row group, which a reader loads into memory at once.
pub(super) const GROUP_ROWS: usize = 100_000;

/// A column of a table of `R`.
pub(super) struct Column<R> {
    pub(super) name: &'static str,
    pub(super) cells: Cells<R>,
}

pub(super) const fn column<R>(name: &'static str, cells: Cells<R>) -> Column<R> {
    Column { name, cells }
}

/// The source of a column's cells, and its type.
pub(super) enum Cells<R> {
    /// UTF-8.
    Text(fn(&R) -> &str),
    /// UTF-8 or null.
    MaybeText(fn(&R) -> Option<&str>),
    /// Unsigned 64-bit integers.
    Count(fn(&R) -> u64),
    /// Unsigned 64-bit integers or null.
    MaybeCount(fn(&R) -> Option<u64>),
    /// Double-precision numbers or null.
    MaybeNumber(fn(&R) -> Option<f64>),
}

/// `rows` in groups of [`GROUP_ROWS`].
pub(super) fn grouped<T>(rows: impl Iterator<Item = T>) -> impl Iterator<Item = Vec<T>> {
    let mut rows = rows.fuse();
    std::iter::from_fn(move || {
        let group: Vec<T> = rows.by_ref().take(GROUP_ROWS).collect();
        (!group.is_empty()).then_some(group)
    })
}

/// Writes a table with `schema` and the rows of `groups`: the columns of `head`, then `columns`.
pub(super) fn write_table<'a, R: 'a>(
    out: impl Write + Send,
    (schema, head): (&str, &TableHead),
    columns: &[Column<R>],
    groups: impl Iterator<Item = Vec<Labelled<'a, R>>>,
) -> Result<(), ParquetError> {
    let properties = Arc::new(properties(schema, head));
    let mut file = SerializedFileWriter::new(out, fields(head, columns)?, properties)?;
    for rows in groups {
        let mut group = file.next_row_group()?;
        for (nth, label) in head.labels.iter().enumerate() {
            if let Some(mut chunk) = group.next_column()? {
                if label.is_number {
                    write::<DoubleType>(&mut chunk, rows.iter().map(|row| row.number(nth)))?;
                } else {
                    let text = |row: &Labelled<'_, R>| Some(ByteArray::from(row.text(nth)));
                    write::<ByteArrayType>(&mut chunk, rows.iter().map(text))?;
                }
                chunk.close()?;
            }
        }
        for column in columns {
            if let Some(mut chunk) = group.next_column()? {
                column.write(&rows, &mut chunk)?;
                chunk.close()?;
            }
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

fn properties(schema: &str, head: &TableHead) -> WriterProperties {
    let own = KeyValue::new("uncork.schema".to_owned(), schema.to_owned());
    let others = head.metadata.iter();
    let others = others.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    WriterProperties::builder()
        .set_key_value_metadata(Some(std::iter::once(own).chain(others).collect()))
        .set_created_by(concat!("uncork version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build()
}

fn fields<R>(head: &TableHead, columns: &[Column<R>]) -> Result<TypePtr, ParquetError> {
    let labels = head.labels.iter().map(|label| {
        let cells =
            if label.is_number { Cells::MaybeNumber(|_| None) } else { Cells::Text(|_| "") };
        field::<R>(&label.name, &cells)
    });
    let columns = columns.iter().map(|column| field(column.name, &column.cells));
    let fields = labels.chain(columns).map(|field| field.map(Arc::new));
    let fields = fields.collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn field<R>(name: &str, cells: &Cells<R>) -> Result<Type, ParquetError> {
    let count = LogicalType::integer(64, false);
    let (physical, logical, repetition) = match cells {
        Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
        Cells::MaybeText(_) => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL)
        }
        Cells::Count(_) => (Physical::INT64, Some(count), Repetition::REQUIRED),
        Cells::MaybeCount(_) => (Physical::INT64, Some(count), Repetition::OPTIONAL),
        Cells::MaybeNumber(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

impl<R> Column<R> {
    fn write(
        &self,
        rows: &[Labelled<'_, R>],
        chunk: &mut SerializedColumnWriter,
    ) -> Result<(), ParquetError> {
        let rows = rows.iter().map(|labelled| &labelled.row);
        match self.cells {
            Cells::Text(get) => {
                write::<ByteArrayType>(chunk, rows.map(|row| Some(ByteArray::from(get(row)))))
            }
            Cells::MaybeText(get) => {
                write::<ByteArrayType>(chunk, rows.map(|row| get(row).map(ByteArray::from)))
            }
            Cells::Count(get) => {
                write::<Int64Type>(chunk, rows.map(|row| Some(get(row).cast_signed())))
            }
            Cells::MaybeCount(get) => {
                write::<Int64Type>(chunk, rows.map(|row| get(row).map(u64::cast_signed)))
            }
            Cells::MaybeNumber(get) => write::<DoubleType>(chunk, rows.map(get)),
        }
    }
}

/// Writes the cells of one column: the values, and for each row whether it has one.
fn write<T: DataType>(
    chunk: &mut SerializedColumnWriter,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    chunk.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}
