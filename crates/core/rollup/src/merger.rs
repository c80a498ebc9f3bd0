//! Roll-ups of many hosts, and of parts of an hour or a day, as one. Each file counts once.

use std::collections::BTreeSet;

use crate::error::RollupError;
use crate::hash::content_hash;
use crate::metric::Metric;
use crate::parquet::RollupFile;
use crate::rollup::Rollup;
use crate::spec::RollupSpec;

/// Adds up files of roll-ups. It knows a file by its content, and the files that another merger counts by the metadata of that one.
///
/// Rows stay as the files have them: a client that one host folded keeps its rows of other hosts. So everything that adds rows up
/// gets the same from the merger as from the files, but for what the merger's own limit folds.
#[derive(Clone, Debug)]
pub struct Merger {
    rollup: Rollup,
    sources: BTreeSet<u64>,
    metrics: Vec<Metric>,
}

impl Merger {
    /// Of no files, for the period of a time since 1970. The host of `spec` is the name of the merger, such as a place.
    pub fn new(spec: RollupSpec, unix_ns: u64) -> Self {
        Self {
            rollup: Rollup::new(spec, unix_ns),
            sources: BTreeSet::new(),
            metrics: Metric::ALL.to_vec(),
        }
    }

    /// Without the bins of other metrics: most of the bytes, and of the time, are theirs.
    #[must_use]
    pub fn only(self, metrics: &[Metric]) -> Self {
        Self { metrics: metrics.to_vec(), ..self }
    }

    /// Counts a file, unless it is counted already: then the answer is false. Of two mergers that have files in common, the one with
    /// more files must be first.
    ///
    /// # Errors
    ///
    /// If the file is not a roll-up, not within the period, or a merger that has some of its files in common with what is counted.
    pub fn add(&mut self, file: Vec<u8>) -> Result<bool, RollupError> {
        let hash = content_hash(&file);
        let file = RollupFile::open(file)?;
        let found = file.empty_rollup()?;
        let own = if found.sources().is_empty() { &[hash][..] } else { found.sources() };
        let known = own.iter().filter(|hash| self.sources.contains(hash)).count();
        if known == own.len() {
            return Ok(false);
        }
        if known > 0 {
            return Err(RollupError::Overlap(known));
        }
        self.check_period(&found)?;
        if !found.sources().is_empty() {
            // What a merger folded has no rows there: rows of the same clients must not come back.
            self.rollup.set_levels(self.rollup.levels().max(found.levels()));
        }
        file.add_to(&mut self.rollup, &self.metrics)?;
        self.sources.extend(own);
        Ok(true)
    }

    fn check_period(&self, found: &Rollup) -> Result<(), RollupError> {
        let period = self.rollup.spec().period;
        let is_within = found.start_ns() >= self.rollup.start_ns()
            && found.spec().period.next(found.start_ns()) <= period.next(self.rollup.start_ns());
        if is_within {
            return Ok(());
        }
        let (expected, found) = (self.rollup.period_text(), found.period_text());
        Err(RollupError::NotWithin { expected, found })
    }

    /// The roll-up of all files. Its bytes do not depend on their order.
    pub fn into_rollup(mut self) -> Rollup {
        self.rollup.set_sources(self.sources.into_iter().collect());
        self.rollup
    }
}
