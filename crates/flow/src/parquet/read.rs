//! Reading a table, row by row.

use std::mem;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use smol_str::SmolStr;

use crate::error::FileError;

/// Reads a file and converts each row to a `T`.
pub(super) fn read_table<T>(
    file: Vec<u8>,
    from_row: impl Fn(&mut Row) -> Result<T, FileError>,
) -> Result<Vec<T>, FileError> {
    let reader = SerializedFileReader::new(Bytes::from(file))?;
    let rows = reader.get_row_iter(None)?;
    rows.map(|row| from_row(&mut Row { cells: row?.into_columns() })).collect()
}

/// One row. Columns are found by name: their order and additional columns do not matter.
pub(super) struct Row {
    cells: Vec<(String, Field)>,
}

impl Row {
    pub(super) fn text(&mut self, name: &'static str) -> Result<SmolStr, FileError> {
        match self.take(name)? {
            Field::Str(text) => Ok(text.into()),
            _ => Err(FileError::UnexpectedValue(name)),
        }
    }

    /// Reads an optional column.
    pub(super) fn text_if_any(&mut self, name: &'static str) -> Result<Option<SmolStr>, FileError> {
        match self.take(name) {
            Ok(Field::Str(text)) => Ok(Some(text.into())),
            Ok(Field::Null) | Err(FileError::MissingColumn(_)) => Ok(None),
            _ => Err(FileError::UnexpectedValue(name)),
        }
    }

    pub(super) fn count(&mut self, name: &'static str) -> Result<u64, FileError> {
        self.maybe_count(name)?.ok_or(FileError::UnexpectedValue(name))
    }

    pub(super) fn index(&mut self, name: &'static str) -> Result<u32, FileError> {
        u32::try_from(self.count(name)?).map_err(|_| FileError::UnexpectedValue(name))
    }

    pub(super) fn maybe_count(&mut self, name: &'static str) -> Result<Option<u64>, FileError> {
        match self.take(name)? {
            Field::ULong(count) => Ok(Some(count)),
            Field::Null => Ok(None),
            _ => Err(FileError::UnexpectedValue(name)),
        }
    }

    /// Reads an optional column.
    pub(super) fn count_if_any(&mut self, name: &'static str) -> Result<Option<u64>, FileError> {
        match self.maybe_count(name) {
            Err(FileError::MissingColumn(_)) => Ok(None),
            count => count,
        }
    }

    pub(super) fn maybe_number(&mut self, name: &'static str) -> Result<Option<f64>, FileError> {
        match self.take(name)? {
            Field::Double(number) => Ok(Some(number)),
            Field::Null => Ok(None),
            _ => Err(FileError::UnexpectedValue(name)),
        }
    }

    fn take(&mut self, name: &'static str) -> Result<Field, FileError> {
        let cell = self.cells.iter_mut().find(|(column, _)| column == name);
        let (_, field) = cell.ok_or(FileError::MissingColumn(name))?;
        Ok(mem::replace(field, Field::Null))
    }
}
