//! The table of objects.

use std::io::Write;

use super::read::{Row, read_table};
use super::write::Cells::{Count, MaybeCount, Text};
use super::write::{Column, column, grouped, write_table};
use crate::error::FileError;
use crate::labelled::{Labelled, TableHead};
use crate::record::{FlowRecord, ObjectRow, RequestRecord};

/// An object and its flow.
type Carried<'a> = (&'a FlowRecord, RequestRecord);

/// The schema in the file's metadata.
const SCHEMA: &str = "uncork.objects/1";

pub(super) fn columns<'a>() -> [Column<Carried<'a>>; 9] {
    [
        column("group", Text(|(flow, _)| &flow.group)),
        column("cc", Text(|(flow, _)| &flow.cc)),
        column("seed", Count(|(flow, _)| flow.seed)),
        column("flow", Count(|(flow, _)| u64::from(flow.flow))),
        column("start_ns", Count(|(_, object)| object.start_ns)),
        column("first_byte_ns", MaybeCount(|(_, object)| object.first_byte_ns)),
        column("completion_ns", MaybeCount(|(_, object)| object.completion_ns)),
        column("size_bytes", Count(|(_, object)| object.size_bytes)),
        column("bytes_delivered", Count(|(_, object)| object.bytes_delivered)),
    ]
}

/// Writes one row per object with its flow, after the columns of `head`.
pub fn write_objects<'a>(
    out: impl Write + Send,
    head: &TableHead,
    objects: impl Iterator<Item = Labelled<'a, (&'a FlowRecord, RequestRecord)>>,
) -> Result<(), FileError> {
    Ok(write_table(out, (SCHEMA, head), &columns(), grouped(objects))?)
}

/// Parses the bytes of a file from [`write_objects`], with the restrictions of
/// [`super::read_flows`].
pub fn read_objects(file: Vec<u8>) -> Result<Vec<ObjectRow>, FileError> {
    read_table(file, None, object)
}

fn object(row: &mut Row) -> Result<ObjectRow, FileError> {
    Ok(ObjectRow {
        group: row.text("group")?,
        cc: row.text("cc")?,
        seed: row.count("seed")?,
        object: RequestRecord {
            flow: row.index("flow")?,
            start_ns: row.count("start_ns")?,
            first_byte_ns: row.maybe_count("first_byte_ns")?,
            completion_ns: row.maybe_count("completion_ns")?,
            size_bytes: row.count("size_bytes")?,
            bytes_delivered: row.count("bytes_delivered")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labelled::LabelColumn;
    use crate::sample::record;

    fn object(completion_ns: Option<u64>) -> RequestRecord {
        RequestRecord {
            flow: 1,
            start_ns: 5,
            first_byte_ns: Some(7),
            completion_ns,
            size_bytes: 1_000,
            bytes_delivered: 900,
        }
    }

    #[test]
    fn objects_read_back_with_their_flow() {
        let (flow, objects) = (record(), [object(Some(9)), object(None)]);
        let rows = objects.iter().map(|object| Labelled::plain((&flow, *object)));
        let mut file = Vec::new();
        write_objects(&mut file, &TableHead::default(), rows).unwrap();
        let row = |object: RequestRecord| ObjectRow {
            group: flow.group.clone(),
            cc: flow.cc.clone(),
            seed: flow.seed,
            object,
        };
        assert_eq!(read_objects(file).unwrap(), objects.map(row));
    }

    #[test]
    fn flows_without_objects_give_an_empty_table() {
        let labels = vec![LabelColumn { name: "path.loss".to_owned(), is_number: false }];
        let head = TableHead { labels, ..TableHead::default() };
        let mut file = Vec::new();
        write_objects(&mut file, &head, std::iter::empty()).unwrap();
        assert_eq!(read_objects(file).unwrap(), []);
    }
}
