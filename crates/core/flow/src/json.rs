//! Flow records as JSON Lines: one object per line, in the order of the fields.

use std::io::{BufRead, Write};

use crate::error::FileError;
use crate::record::FlowRecord;

/// Writes one line per record.
pub fn write_json_lines<'a>(
    mut out: impl Write,
    records: impl IntoIterator<Item = &'a FlowRecord>,
) -> Result<(), FileError> {
    for record in records {
        serde_json::to_writer(&mut out, record).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Parses the output of [`write_json_lines`]; blank lines are skipped, unknown fields ignored. A line that ends in the
/// middle of its object is left out: a process was killed while it wrote.
pub fn read_json_lines(input: impl BufRead) -> Result<Vec<FlowRecord>, FileError> {
    let mut records = Vec::new();
    for (index, line) in input.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(&line) {
            Ok(record) => records.push(record),
            Err(error) if error.is_eof() => {}
            Err(error) => return Err(FileError::Json { line: index + 1, error }),
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prop_assert_eq, proptest};

    use super::*;
    use crate::sample::{any_record, record};

    fn written(records: &[FlowRecord]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_json_lines(&mut bytes, records).unwrap();
        bytes
    }

    #[test]
    fn record_is_a_line_of_named_fields() {
        let text = String::from_utf8(written(&[record()])).unwrap();
        let start = r#"{"engine":"sim","group":"bbr3 vs cubic","cc":"bbr3","seed":7,"flow":1,"#;
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains(r#""rtt_ms":{"min":40.0,"p50":44.25,"p95":61.5},"bytes_delivered_early":0,"packets_dropped_queue":2"#));
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn blank_lines_and_unknown_fields_are_ignored() {
        let line = String::from_utf8(written(&[record()])).unwrap();
        let text = format!("\n{}\n", line.replacen('{', r#"{"new":1,"#, 1));
        assert_eq!(read_json_lines(text.as_bytes()).unwrap(), [record()]);
    }

    #[test]
    fn a_line_that_a_killed_process_left_is_left_out() {
        let whole = written(&[record()]);
        for end in [1, 10, whole.len() / 2, whole.len() - 2] {
            let text = [&whole[..], &whole[..end], b"\n", &whole, &whole[..end]].concat();
            assert_eq!(read_json_lines(text.as_slice()).unwrap(), [record(), record()], "{end}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        let mut bytes = written(&[record()]);
        bytes.extend_from_slice(b"\n{\"engine\":\"sim\"}\n");
        let error = read_json_lines(bytes.as_slice()).unwrap_err();
        assert!(error.to_string().starts_with("line 3: missing field `group`"), "{error}");
    }

    #[test]
    fn failing_writer_is_an_error() {
        let full: &mut [u8] = &mut [0; 10];
        let error = write_json_lines(full, &[record()]).unwrap_err();
        assert!(matches!(error, FileError::Io(_)), "{error:?}");
    }

    proptest! {
        #[test]
        fn written_records_read_back(records in vec(any_record(), 0..5)) {
            prop_assert_eq!(read_json_lines(written(&records).as_slice()).unwrap(), records);
        }
    }
}
