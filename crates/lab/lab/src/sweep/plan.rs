//! The list of a scenario's runs, and its division into shards.

use std::fmt;
use std::str::FromStr;

use crate::scenario::Scenario;

/// A run: a cell with a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// Index of the cell.
    pub cell: usize,
    /// The seed.
    pub seed: u64,
}

impl Item {
    /// The order in which runs are started: first one of each cell, to measure the cost of the rest.
    pub fn order(&self) -> (u64, usize) {
        (self.seed, self.cell)
    }
}

/// All runs of `scenario`, by cell and seed.
pub fn items(scenario: &Scenario) -> Vec<Item> {
    let seeds =
        || (0..u64::from(scenario.seeds)).map(|nth| scenario.first_seed.saturating_add(nth));
    let cells = 0..scenario.cells.len();
    cells.flat_map(|cell| seeds().map(move |seed| Item { cell, seed })).collect()
}

/// One of several equal parts of all runs, written `3/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    nth: u64,
    of: u64,
}

/// Why a text is not a valid shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Not two whole numbers separated by a slash.
    #[error("expected INDEX/COUNT, such as 1/8")]
    Form,
    /// The number of shards is zero.
    #[error("there must be at least one shard, such as 1/8")]
    None,
    /// The index is not a part.
    #[error("the index is out of range; expected 1/{of} to {of}/{of}", of = .0.of)]
    Outside(Shard),
}

impl Shard {
    /// The single shard with all runs.
    pub const WHOLE: Self = Self { nth: 1, of: 1 };

    /// The `nth` of `of` parts, counted from 1.
    ///
    /// # Errors
    ///
    /// `nth` is not from 1 to `of`.
    pub fn new(nth: u64, of: u64) -> Result<Self, ShardError> {
        let shard = Self { nth, of };
        match of {
            0 => Err(ShardError::None),
            of if (1..=of).contains(&nth) => Ok(shard),
            _ => Err(ShardError::Outside(shard)),
        }
    }

    /// Its number, from 1.
    pub fn number(self) -> u64 {
        self.nth
    }

    /// The number of shards.
    pub fn count(self) -> u64 {
        self.of
    }

    /// Whether it contains all runs.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// Its part of `items`: every `of`-th one. Runs of the same cell cost about the same, runs of
    /// different cells do not, so each shard gets some of every cell.
    pub fn of(self, items: &[Item]) -> Vec<Item> {
        let mine = (0..self.of).cycle().zip(items).filter(|(nth, _)| nth + 1 == self.nth);
        mine.map(|(_, item)| *item).collect()
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (nth, of) = text.split_once('/').ok_or(ShardError::Form)?;
        let number = |text: &str| text.parse().map_err(|_| ShardError::Form);
        Self::new(number(nth)?, number(of)?)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.nth, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(cells: usize, seeds: u64) -> Vec<Item> {
        (0..cells).flat_map(|cell| (1..=seeds).map(move |seed| Item { cell, seed })).collect()
    }

    #[test]
    fn shards_have_every_run_once_and_similar_sizes() {
        for (cells, seeds, of) in [(3, 5, 4), (1, 2, 8), (15, 10, 8), (2, 2, 1)] {
            let all = sheet(cells, seeds);
            let shard = |nth| Shard { nth, of }.of(&all);
            let parts: Vec<Vec<Item>> = (1..=of).map(shard).collect();
            let mut together = parts.concat();
            together.sort_unstable();
            assert_eq!(together, all);
            let sizes = || parts.iter().map(Vec::len);
            assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
        }
        assert_eq!(Shard::WHOLE.of(&sheet(2, 3)), sheet(2, 3));
    }

    #[test]
    fn shard_is_written_with_a_slash() {
        assert_eq!("3/8".parse::<Shard>().unwrap().to_string(), "3/8");
        assert!("1/1".parse::<Shard>().unwrap().is_whole());
        for (text, words) in [
            ("3", "expected INDEX/COUNT, such as 1/8"),
            ("a/8", "expected INDEX/COUNT, such as 1/8"),
            ("0/8", "the index is out of range; expected 1/8 to 8/8"),
            ("9/8", "the index is out of range; expected 1/8 to 8/8"),
            ("1/0", "there must be at least one shard, such as 1/8"),
        ] {
            assert_eq!(text.parse::<Shard>().unwrap_err().to_string(), words, "{text}");
        }
    }
}
