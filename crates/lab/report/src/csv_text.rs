//! Comma-separated values in memory.

use csv::Writer;

/// The CSV text produced by `write`.
pub(crate) fn csv_text(write: impl FnOnce(&mut Writer<Vec<u8>>) -> csv::Result<()>) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    write(&mut writer).expect("flat rows of equal length, into memory");
    let bytes = writer.into_inner().expect("memory takes every byte");
    String::from_utf8(bytes).expect("made of strings")
}
