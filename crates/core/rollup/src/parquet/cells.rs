//! The cells of a row group, a whole column at a time: a fleet has millions of files, and cells by row and name cost ten times as much.

use std::collections::HashMap;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;
use smol_str::SmolStr;

use crate::error::RollupError;

/// The columns of a row group by their name.
pub(super) struct Columns<'a> {
    group: &'a dyn RowGroupReader,
    places: HashMap<&'a str, usize>,
    rows: usize,
}

/// A column of texts: each text once, and which of them each row has. None of them is the number 0.
pub(super) struct Texts {
    words: Vec<Option<SmolStr>>,
    numbers: Vec<u32>,
}

/// Columns of lists: the values of all rows, and where those of each row end.
pub(super) struct Lists<T> {
    values: Vec<T>,
    ends: Vec<usize>,
}

/// Values, and of each place the levels of definition and repetition.
struct Read<T> {
    values: Vec<T>,
    defined: Vec<i16>,
    repeated: Vec<i16>,
    /// The level of a value that is there.
    present: i16,
}

impl<'a> Columns<'a> {
    pub(super) fn of(group: &'a dyn RowGroupReader) -> Self {
        let columns = group.metadata().columns().iter().enumerate();
        let places = columns.filter_map(|(place, column)| {
            Some((column.column_path().parts().first()?.as_str(), place))
        });
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
        Self { places: places.collect(), group, rows }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Whole numbers.
    pub(super) fn counts(&self, name: &str) -> Result<Vec<Option<u64>>, RollupError> {
        let ColumnReader::Int64ColumnReader(mut reader) = self.reader(name)? else {
            return Err(wrong(name));
        };
        let cells = flat(self.read(name, &mut reader)?, self.rows);
        Ok(cells
            .ok_or_else(|| wrong(name))?
            .into_iter()
            .map(|it| it.map(i64::cast_unsigned))
            .collect())
    }

    /// Numbers, as their bits.
    pub(super) fn bits(&self, name: &str) -> Result<Vec<Option<u64>>, RollupError> {
        let ColumnReader::DoubleColumnReader(mut reader) = self.reader(name)? else {
            return Err(wrong(name));
        };
        let cells = flat(self.read(name, &mut reader)?, self.rows);
        Ok(cells.ok_or_else(|| wrong(name))?.into_iter().map(|it| it.map(f64::to_bits)).collect())
    }

    pub(super) fn texts(&self, name: &str) -> Result<Texts, RollupError> {
        let ColumnReader::ByteArrayColumnReader(mut reader) = self.reader(name)? else {
            return Err(wrong(name));
        };
        let cells = flat(self.read(name, &mut reader)?, self.rows);
        Texts::of(&cells.ok_or_else(|| wrong(name))?).ok_or_else(|| wrong(name))
    }

    pub(super) fn bins(&self, name: &str) -> Result<Lists<i32>, RollupError> {
        let ColumnReader::Int32ColumnReader(mut reader) = self.reader(name)? else {
            return Err(wrong(name));
        };
        lists(self.read(name, &mut reader)?, self.rows).ok_or_else(|| wrong(name))
    }

    pub(super) fn bin_counts(&self, name: &str) -> Result<Lists<i64>, RollupError> {
        let ColumnReader::Int64ColumnReader(mut reader) = self.reader(name)? else {
            return Err(wrong(name));
        };
        lists(self.read(name, &mut reader)?, self.rows).ok_or_else(|| wrong(name))
    }

    fn reader(&self, name: &str) -> Result<ColumnReader, RollupError> {
        let place = self.places.get(name).ok_or_else(|| wrong(name))?;
        Ok(self.group.get_column_reader(*place)?)
    }

    fn read<T: DataType>(
        &self,
        name: &str,
        reader: &mut ColumnReaderImpl<T>,
    ) -> Result<Read<T::T>, ParquetError> {
        let column = self.group.metadata().column(self.places[name]).column_descr();
        let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        let mut left = self.rows;
        while left > 0 {
            let (levels, lists) = (Some(&mut defined), Some(&mut repeated));
            let (rows, ..) = reader.read_records(left, levels, lists, &mut values)?;
            if rows == 0 {
                break;
            }
            left -= rows;
        }
        Ok(Read { values, defined, repeated, present: column.max_def_level() })
    }
}

impl Texts {
    fn of(cells: &[Option<ByteArray>]) -> Option<Self> {
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        let (mut words, mut numbers) = (vec![None], Vec::with_capacity(cells.len()));
        let mut last: (&[u8], u32) = (&[], 0);
        for cell in cells {
            let Some(cell) = cell else {
                numbers.push(0);
                continue;
            };
            // Neighbours are alike.
            if last.1 == 0 || last.0 != cell.data() {
                let next = words.len() as u32;
                let number = *known.entry(cell.data()).or_insert(next);
                if number == next {
                    words.push(Some(SmolStr::new(cell.as_utf8().ok()?)));
                }
                last = (cell.data(), number);
            }
            numbers.push(last.1);
        }
        Some(Self { words, numbers })
    }

    /// Which of the texts a row has.
    pub(super) fn number(&self, row: usize) -> u32 {
        self.numbers[row]
    }

    pub(super) fn get(&self, row: usize) -> Option<&SmolStr> {
        self.words[self.numbers[row] as usize].as_ref()
    }
}

impl<T> Lists<T> {
    pub(super) fn get(&self, row: usize) -> &[T] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[row]]
    }
}

/// A value or none for each row; `None` if the column is a list, or has another number of rows.
fn flat<T>(read: Read<T>, rows: usize) -> Option<Vec<Option<T>>> {
    let Read { values, defined, repeated, present } = read;
    if !repeated.is_empty() {
        return None;
    }
    let mut values = values.into_iter();
    let cells: Vec<Option<T>> = if present == 0 {
        values.map(Some).collect()
    } else {
        defined
            .into_iter()
            .map(|level| if level == present { values.next() } else { None })
            .collect()
    };
    (cells.len() == rows).then_some(cells)
}

/// A list for each row; `None` if the column is not a list, or has another number of rows.
fn lists<T>(read: Read<T>, rows: usize) -> Option<Lists<T>> {
    let Read { values, defined, repeated, present } = read;
    if repeated.len() != defined.len() || repeated.first().is_some_and(|level| *level != 0) {
        return None;
    }
    let (mut ends, mut seen) = (Vec::with_capacity(rows), 0);
    for (place, (defined, repeated)) in defined.iter().zip(&repeated).enumerate() {
        if place > 0 && *repeated == 0 {
            ends.push(seen);
        }
        seen += usize::from(*defined == present);
    }
    if !defined.is_empty() {
        ends.push(seen);
    }
    (ends.len() == rows && seen == values.len()).then_some(Lists { values, ends })
}

pub(super) fn wrong(column: &str) -> RollupError {
    RollupError::NotARollup(format!("column {column} is missing or has another type"))
}
