//! The run archive: a file of entries appended as runs finish.
//!
//! Entries are only appended. A process that dies while writing leaves at most one truncated entry
//! at the end; the file can be read without repair.
//!
//! An object store cannot append: there, each part of an archive is an object of its own, named by its content. So two processes
//! that run the same shard write no object of the other, and equal parts are one object.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Seek, SeekFrom};
use std::ops::Range;

use super::plan::Item;
use super::stored::{Header, checksum};

/// The name of the file.
pub const ARCHIVE_NAME: &str = "runs.archive";

/// The name of `part` of an archive.
pub fn part_name(part: &[u8]) -> String {
    format!("runs-{}.archive", checksum(part))
}

/// Whether a file among the runs is an archive, or a part of one.
pub fn is_archive(name: &str) -> bool {
    let part = name.strip_prefix("runs-").and_then(|rest| rest.strip_suffix(".archive"));
    name == ARCHIVE_NAME || part.is_some_and(|hash| !hash.is_empty())
}

/// Positions of the entries of an archive, found by scanning their headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveIndex {
    entries: BTreeMap<Item, Range<u64>>,
    /// Ranges that should contain entries but do not.
    pub damage: Vec<Range<u64>>,
    /// End of the last complete entry; the rest is truncated.
    pub end: u64,
}

impl ArchiveIndex {
    /// The index of `archive`.
    ///
    /// # Errors
    ///
    /// If it cannot be read. Damage is not an error.
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

    /// Adds an entry after all others. A run may occur twice: the later entry replaces a damaged
    /// one.
    fn add(&mut self, item: Item, entry: Range<u64>) {
        if self.end < entry.start {
            self.damage.push(self.end..entry.start);
        }
        self.end = entry.end;
        self.entries.insert(item, entry);
    }

    /// Position of the entry of `item`.
    pub fn entry(&self, item: Item) -> Option<Range<u64>> {
        self.entries.get(&item).cloned()
    }
}

/// The header in `line` and its offset, which is not zero after an entry without a line end.
fn header_in(line: &[u8]) -> Option<(usize, Header)> {
    const BEGIN: &[u8] = br#"{"schema":"#;
    let whole = line.strip_suffix(b"\n")?;
    let offset = whole.windows(BEGIN.len()).rposition(|bytes| bytes == BEGIN)?;
    Some((offset, Header::parse(&whole[offset..])?))
}

/// Whether the byte before `end` ends a line. Leaves the archive positioned at `end`.
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

    /// If the process is killed at any point, the earlier entries remain.
    #[test]
    fn index_of_a_truncated_file_has_all_but_the_last_entry() {
        let (first, bytes) = (entry(1).len(), [entry(1), entry(2)].concat());
        for length in first + 1..bytes.len() {
            let index = index(&bytes[..length]);
            assert_eq!((seeds(&index), index.end), (vec![1], first as u64), "{length}");
            assert_eq!(index.damage, std::slice::from_ref(&(first as u64..length as u64)));
        }
    }

    /// Damage to any byte loses at most its own entry, and all entries found are valid.
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
    fn index_uses_the_later_of_two_entries() {
        let bytes = [entry(1), entry(2), entry(1)].concat();
        let place = index(&bytes).entry(Item { cell: 3, seed: 1 }).unwrap();
        assert_eq!(place.end, bytes.len() as u64);
    }

    #[test]
    fn parts_are_named_by_their_content_and_found_as_archives() {
        let [one, two] = [entry(1), entry(2)].map(|part| part_name(&part));
        assert_ne!(one, two);
        assert_eq!(one, part_name(&entry(1)));
        assert!([one.as_str(), two.as_str(), ARCHIVE_NAME].into_iter().all(is_archive));
        for other in ["sweep.json", "runs-.archive", ".runs-1.archive", "runs.archive.part"] {
            assert!(!is_archive(other), "{other}");
        }
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
