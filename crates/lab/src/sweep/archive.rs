//! The file that runs are kept in: one entry after the other, as runs end.
//!
//! Entries are only ever added. What ends while it writes leaves at most one entry that is cut short,
//! at the end; the file can be read without repair.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Seek, SeekFrom};
use std::ops::Range;

use super::plan::Item;
use super::stored::Header;

/// The name of the file.
pub const ARCHIVE_NAME: &str = "runs.archive";

/// Where the entries of an archive are, found by walking over their headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveIndex {
    entries: BTreeMap<Item, Range<u64>>,
    /// Stretches that hold no entry, though they should.
    pub damage: Vec<Range<u64>>,
    /// Where the last whole entry ends: what follows is cut short.
    pub end: u64,
}

impl ArchiveIndex {
    /// The index of `archive`.
    ///
    /// # Errors
    ///
    /// If it cannot be read. Damage is no error.
    pub fn of(archive: &mut (impl BufRead + Seek)) -> io::Result<Self> {
        let length = archive.seek(SeekFrom::End(0))?;
        archive.rewind()?;
        let mut index = Self::default();
        let (mut position, mut line) = (0, Vec::new());
        while position < length {
            line.clear();
            let before = position;
            position += archive.read_until(b'\n', &mut line)? as u64;
            let Some((offset, header)) = header_in(&line) else { continue };
            let start = before + offset as u64;
            let end = position.saturating_add(header.bytes).saturating_add(1);
            if end > length || !ends_line(archive, position, end)? {
                archive.seek(SeekFrom::Start(position))?;
                continue;
            }
            index.add(header.item(), start..end);
            position = end;
        }
        if index.end < length {
            index.damage.push(index.end..length);
        }
        Ok(index)
    }

    /// Adds an entry after all others. A run may be there twice: the later entry was made because the
    /// earlier one is damaged.
    fn add(&mut self, item: Item, entry: Range<u64>) {
        if self.end < entry.start {
            self.damage.push(self.end..entry.start);
        }
        self.end = entry.end;
        self.entries.insert(item, entry);
    }

    /// Where the entry of `item` is.
    pub fn entry(&self, item: Item) -> Option<Range<u64>> {
        self.entries.get(&item).cloned()
    }
}

/// The header in `line` and where it begins: after something that lost its end, if not at once.
fn header_in(line: &[u8]) -> Option<(usize, Header)> {
    const BEGIN: &[u8] = br#"{"schema":"#;
    let whole = line.strip_suffix(b"\n")?;
    let offset = whole.windows(BEGIN.len()).rposition(|bytes| bytes == BEGIN)?;
    Some((offset, Header::parse(&whole[offset..])?))
}

/// Whether the byte before `end` ends a line; the archive stands at `end` then.
fn ends_line(archive: &mut (impl BufRead + Seek), position: u64, end: u64) -> io::Result<bool> {
    archive.seek_relative((end - 1 - position).cast_signed())?;
    let mut last = [0];
    archive.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::run::FinishedRun;
    use super::*;
    use crate::evaluate::RunOutcome;

    fn entry(seed: u64) -> Vec<u8> {
        let outcome = RunOutcome {
            cell: 3,
            seed,
            flows: vec![],
            requests: vec![],
            clients: vec![0],
            packets: 9,
            doubts: vec!["two\nlines".into()],
            commands: vec![],
        };
        FinishedRun { outcome, series: vec![] }.to_entry("ab")
    }

    fn index(bytes: &[u8]) -> ArchiveIndex {
        ArchiveIndex::of(&mut Cursor::new(bytes)).expect("a cursor")
    }

    fn seeds(index: &ArchiveIndex) -> Vec<u64> {
        index.entries.keys().map(|item| item.seed).collect()
    }

    #[test]
    fn index_has_every_entry_with_its_place() {
        let entries = [entry(1), entry(2), entry(3)];
        let bytes = entries.concat();
        let index = index(&bytes);
        assert_eq!((seeds(&index), index.end), (vec![1, 2, 3], bytes.len() as u64));
        let place = index.entry(Item { cell: 3, seed: 2 }).unwrap();
        assert_eq!(bytes[place.start as usize..place.end as usize], entries[1]);
        assert_eq!(index.damage, []);
        assert_eq!(index.entry(Item { cell: 2, seed: 2 }), None);
    }

    /// Wherever the process is killed, the entries before stay.
    #[test]
    fn index_of_a_file_that_is_cut_short_has_all_but_the_last_entry() {
        let (first, bytes) = (entry(1).len(), [entry(1), entry(2)].concat());
        for length in first + 1..bytes.len() {
            let index = index(&bytes[..length]);
            assert_eq!((seeds(&index), index.end), (vec![1], first as u64), "{length}");
            assert_eq!(index.damage, std::slice::from_ref(&(first as u64..length as u64)));
        }
    }

    /// Whatever byte is damaged, at most its own entry is lost, and what is found is still there.
    #[test]
    fn index_finds_the_entries_after_damage() {
        let bytes = [entry(1), entry(2), entry(3)].concat();
        let middle = entry(1).len()..entry(1).len() + entry(2).len();
        for place in middle {
            for damage in [b'\n', b'9', 0xff] {
                let mut bytes = bytes.clone();
                bytes[place] = damage;
                let seeds = seeds(&index(&bytes));
                assert!(seeds.contains(&1) && seeds.contains(&3), "{place}: {seeds:?}");
            }
        }
    }

    #[test]
    fn index_takes_the_later_of_two_entries() {
        let bytes = [entry(1), entry(2), entry(1)].concat();
        let place = index(&bytes).entry(Item { cell: 3, seed: 1 }).unwrap();
        assert_eq!(place.end, bytes.len() as u64);
    }

    #[test]
    fn index_survives_absurd_headers() {
        let text = String::from_utf8(entry(1)).unwrap();
        let bytes = text.lines().nth(1).unwrap().len();
        let absurd = format!("\"bytes\":{}", u64::MAX);
        let text = text.replace(&format!("\"bytes\":{bytes}"), &absurd);
        assert!(text.contains(&absurd));
        assert_eq!(seeds(&index(text.as_bytes())), [0; 0]);
    }
}
