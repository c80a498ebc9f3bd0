//! Reads tables: the whole text is checked before anything of it is used.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::str::FromStr;

use ring::digest;

use super::networks::Networks;
use super::{Section, Table, TableError};
use crate::prefix::Prefix;
use crate::prefix_map::TooLarge;
use crate::{Country, UnixTime};

const FIRST_LINE: &str = "uncork-table 1";
const LAST: &str = "sha256 ";
/// Arms have an index of one byte.
const MAX_ARMS: usize = 255;

type Result<T> = std::result::Result<T, TableError>;

impl Table {
    /// Reads a table from `text`, whole or not at all.
    pub(crate) fn parse(text: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(text).map_err(|_| {
            whole(
                "it is not text",
                "name a table of networks, as `uncork learn` and `uncork policy ecn` write",
            )
        })?;
        let (body, digest) = checked(text)?;
        let mut lines = TableLines { numbered: body.lines().enumerate(), at: 0 };
        if lines.next() != Some(FIRST_LINE) {
            return Err(lines.error(
                format!("the first line is not `{FIRST_LINE}`"),
                "name a table of networks, as `uncork learn` and `uncork policy ecn` write, or update uncork",
            ));
        }
        let version = lines.header("version", "a number")?;
        let made: UnixTime = lines.header("made", "2026-12-01T18:00:00Z")?;
        let expires: UnixTime = lines.header("expires", "2026-12-08T18:00:00Z")?;
        if expires <= made {
            return Err(lines.error("it expires before it was made".to_owned(), AGAIN));
        }
        let (arms, sections) = sections(&mut lines)?;
        Ok(Self { version, expires, digest, arms, sections })
    }
}

const AGAIN: &str = "make the table again";

fn whole(problem: &str, remedy: &str) -> TableError {
    TableError { line: None, problem: problem.to_owned(), remedy: remedy.to_owned() }
}

/// The text before its last line, which has the text's hash.
fn checked(text: &str) -> Result<(&str, [u8; 32])> {
    let cut = "it ends before its last line, `sha256 …`";
    let remedy = "copy the whole file again";
    let unfinished = || whole(cut, remedy);
    let inner = text.strip_suffix('\n').ok_or_else(unfinished)?;
    let start = inner.rfind('\n').ok_or_else(unfinished)? + 1;
    let (body, last) = inner.split_at(start);
    let written = last.strip_prefix(LAST).ok_or_else(unfinished)?;
    let found = digest::digest(&digest::SHA256, body.as_bytes());
    let found: [u8; 32] = found.as_ref().try_into().map_err(|_| unfinished())?;
    let digits = found.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    if written.chars().eq(digits.filter_map(|digit| char::from_digit(digit.into(), 16))) {
        Ok((body, found))
    } else {
        Err(whole("checksum mismatch: file truncated or edited", remedy))
    }
}

/// The lines, and the number of the latest.
struct TableLines<'a, I: Iterator<Item = (usize, &'a str)>> {
    numbered: I,
    at: usize,
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> TableLines<'a, I> {
    fn next(&mut self) -> Option<&'a str> {
        let (index, line) = self.numbered.next()?;
        self.at = index + 1;
        Some(line)
    }

    fn error(&self, problem: String, remedy: &str) -> TableError {
        TableError { line: Some(self.at), problem, remedy: remedy.to_owned() }
    }

    /// The value of a line `name VALUE`.
    fn header<T: FromStr>(&mut self, name: &str, example: &str) -> Result<T> {
        let line = self.next().unwrap_or_default();
        let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).ok_or_else(|| {
            self.error(
                format!("expected `{name}` and its value"),
                &format!("write {name} {example}"),
            )
        })
    }
}

type Arms = Box<[Box<str>]>;

fn sections<'a>(
    lines: &mut TableLines<'a, impl Iterator<Item = (usize, &'a str)>>,
) -> Result<(Arms, Box<[Section]>)> {
    let mut arms: Vec<&str> = Vec::new();
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    while let Some(line) = lines.next() {
        let Some((key, value)) = line.split_once(' ') else {
            return Err(lines.error(format!("`{line}` is not an entry"), "write NETWORK ARM"));
        };
        if key == "section" {
            if drafts.iter().any(|draft| draft.name == value) {
                return Err(lines.error(format!("a second section `{value}`"), AGAIN));
            }
            drafts.push(Draft { name: value, ..Draft::default() });
            continue;
        }
        let arm = match arms.iter().position(|arm| *arm == value) {
            Some(arm) => arm,
            None if arms.len() == MAX_ARMS => {
                return Err(lines.error(format!("more than {MAX_ARMS} arms"), "use fewer"));
            }
            None => {
                arms.push(value);
                arms.len() - 1
            }
        };
        let Some(draft) = drafts.last_mut() else {
            let problem = "an entry before the first section".to_owned();
            return Err(lines.error(problem, "write section NAME before it"));
        };
        let added = draft.add(key, arm as u8);
        added.map_err(|(problem, remedy)| lines.error(problem, &remedy))?;
    }
    let sections = drafts.into_iter().map(Draft::finish).collect::<Result<_>>()?;
    Ok((arms.into_iter().map(Into::into).collect(), sections))
}

/// A section while it is read.
#[derive(Default)]
struct Draft<'a> {
    name: &'a str,
    /// IPv4 mapped, with 96 bits more.
    networks: HashMap<(u128, u8), u8>,
    systems: HashMap<u32, u8>,
    countries: HashMap<Country, u8>,
    all_clients: Option<u8>,
}

impl Draft<'_> {
    fn add(&mut self, key: &str, arm: u8) -> std::result::Result<(), (String, String)> {
        let wrong =
            |remedy: String| (format!("`{key}` is not a network, AS, country or *"), remedy);
        let mut network_written = None;
        let is_new = if key == "*" {
            self.all_clients.replace(arm).is_none()
        } else if key.contains(['.', ':']) {
            let network: Prefix = key.parse().map_err(|error| wrong(format!("{error}")))?;
            network_written = Some(network);
            insert(&mut self.networks, network.mapped(), arm)
        } else if let Some(asn) = key.strip_prefix("AS").and_then(|digits| digits.parse().ok()) {
            insert(&mut self.systems, asn, arm)
        } else {
            let country = key.parse().map_err(|error| wrong(format!("{error}")))?;
            insert(&mut self.countries, country, arm)
        };
        if is_new {
            return Ok(());
        }
        let written = network_written.map_or_else(|| key.to_owned(), |it| it.to_string());
        Err((
            format!("`{written}` is there twice in the section `{}`", self.name),
            AGAIN.to_owned(),
        ))
    }

    fn finish(self) -> Result<Section> {
        let networks = self.networks.into_iter().map(|((first, bits), arm)| (first, bits, arm));
        let networks = Networks::new(networks).map_err(|TooLarge| {
            let problem = format!("the networks of section `{}` take more than 256 MiB", self.name);
            whole(&problem, "use fewer, or shorter ones")
        })?;
        Ok(Section {
            name: self.name.into(),
            networks,
            systems: sorted(self.systems),
            countries: sorted(self.countries),
            all_clients: self.all_clients,
        })
    }
}

/// Whether the key was not there yet.
fn insert<K: Eq + std::hash::Hash>(map: &mut HashMap<K, u8>, key: K, arm: u8) -> bool {
    match map.entry(key) {
        Slot::Occupied(_) => false,
        Slot::Vacant(slot) => {
            slot.insert(arm);
            true
        }
    }
}

fn sorted<K: Ord + Copy>(map: HashMap<K, u8>) -> Box<[(K, u8)]> {
    let mut all: Vec<_> = map.into_iter().collect();
    all.sort_unstable_by_key(|(key, _)| *key);
    all.into()
}
