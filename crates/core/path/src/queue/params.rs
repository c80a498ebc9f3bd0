//! Parsing and writing the `key=value` list after a discipline's name.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::QueueError;

/// Parses a list such as `target=5ms,ecn`, word by word. Unknown and repeated keys are errors.
#[derive(Clone, Debug)]
pub(super) struct Params<'a> {
    discipline: &'static str,
    known: &'static [&'static str],
    /// The known keys seen so far, one bit each.
    seen_keys: u64,
    rest: Option<&'a str>,
}

/// One item of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Param<'a> {
    discipline: &'static str,
    word: &'a str,
    /// Its key, one of the known ones.
    pub(super) key: &'static str,
    value: Option<&'a str>,
}

impl<'a> Params<'a> {
    /// The items of `list`, parameters of `discipline` with one of the `known` keys (at most 64).
    /// `None` means no list.
    pub(super) fn new(
        discipline: &'static str,
        known: &'static [&'static str],
        list: Option<&'a str>,
    ) -> Self {
        Self { discipline, known, seen_keys: 0, rest: list }
    }

    fn param(&mut self, word: &'a str) -> Result<Param<'a>, QueueError> {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        };
        let Self { discipline, known, .. } = *self;
        let Some(index) = known.iter().position(|known| *known == key) else {
            return Err(QueueError::Parameter { discipline, word: key.to_owned(), known });
        };
        let bit = 1 << index;
        if self.seen_keys & bit != 0 {
            return Err(QueueError::Twice { discipline, key: known[index] });
        }
        self.seen_keys |= bit;
        Ok(Param { discipline, word, key: known[index], value })
    }
}

impl<'a> Iterator for Params<'a> {
    type Item = Result<Param<'a>, QueueError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest?;
        let (word, rest) = match rest.split_once(',') {
            Some((word, rest)) => (word, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Some(self.param(word))
    }
}

impl Param<'_> {
    /// Its value, which must be within `range`; `expected` describes the range in error messages.
    pub(super) fn read<V: FromStr + PartialOrd>(
        &self,
        range: &RangeInclusive<V>,
        expected: &'static str,
    ) -> Result<V, QueueError> {
        let value = self.value.and_then(|value| value.parse().ok());
        value.filter(|value| range.contains(value)).ok_or_else(|| self.error(expected))
    }

    /// Checks that it has no value.
    pub(super) fn flag(&self) -> Result<(), QueueError> {
        match self.value {
            None => Ok(()),
            Some(_) => Err(self.error("no value")),
        }
    }

    fn error(&self, expected: &'static str) -> QueueError {
        let Self { discipline, word, key, .. } = *self;
        QueueError::Value { discipline, key, word: word.to_owned(), expected }
    }
}

/// Writes a discipline's name and its non-default parameters.
pub(super) struct ParamWriter<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    separator: char,
}

impl<'a, 'b> ParamWriter<'a, 'b> {
    /// Writes the name of the discipline.
    pub(super) fn new(f: &'a mut fmt::Formatter<'b>, discipline: &str) -> Result<Self, fmt::Error> {
        f.write_str(discipline)?;
        Ok(Self { f, separator: ':' })
    }

    /// Writes `key=value` unless it is the default.
    pub(super) fn value<V: fmt::Display + PartialEq>(
        &mut self,
        key: &str,
        value: &V,
        default: &V,
    ) -> fmt::Result {
        if value == default {
            return Ok(());
        }
        write!(self.f, "{}{key}={value}", self.separator)?;
        self.separator = ',';
        Ok(())
    }

    /// Writes `on` or `off` according to `value`, unless it is the default.
    pub(super) fn flag(&mut self, on: &str, off: &str, value: bool, default: bool) -> fmt::Result {
        if value == default {
            return Ok(());
        }
        write!(self.f, "{}{}", self.separator, if value { on } else { off })?;
        self.separator = ',';
        Ok(())
    }
}
