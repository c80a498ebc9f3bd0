//! Errors in the text of a quantity.

use core::fmt;

use crate::decimal::Decimal;

/// Why a text is not a quantity. Prints the problem and what to write instead; the caller adds the text and
/// its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub(crate) grammar: &'static Grammar,
    pub(crate) problem: Problem,
}

/// The words for one kind of quantity.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Grammar {
    /// Its name.
    pub(crate) name: &'static str,
    /// Examples of its syntax.
    pub(crate) examples: &'static str,
    /// The most common units, suggested for a number without one.
    pub(crate) units: &'static [&'static str],
    /// The smallest quantity that is not zero.
    pub(crate) smallest: &'static str,
    /// The largest quantity.
    pub(crate) largest: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The text is empty.
    Empty,
    /// It does not start with a number.
    NotANumber,
    /// It starts with a minus sign.
    Negative,
    /// Too many decimal places.
    TooManyPlaces,
    /// Above the type's maximum.
    TooLarge,
    /// Not zero, but below the type's resolution.
    TooSmall,
    /// A number without a unit.
    NoUnit(Decimal),
    /// A probability written as a fraction of 1.
    Fraction(Decimal),
    /// A unit with two common meanings.
    Ambiguous(Decimal, [&'static str; 2]),
    /// A unit that this quantity does not have.
    UnknownUnit,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grammar { name, examples, smallest, largest, .. } = self.grammar;
        match self.problem {
            Problem::Empty => write!(f, "missing {name}; write {examples}"),
            Problem::NotANumber => write!(f, "{name} must start with a number; write {examples}"),
            Problem::Negative => write!(f, "{name} must not be negative; write {examples}"),
            Problem::TooManyPlaces => f.write_str("too many decimal places; the limit is 9"),
            Problem::TooLarge => write!(f, "too large; the limit is {largest}"),
            Problem::TooSmall => write!(f, "too small; use 0 or at least {smallest}"),
            Problem::NoUnit(number) => self.write_units(f, number),
            Problem::Fraction(number) => {
                let percent = number.hundredfold();
                write!(f, "missing %; write {number}%, or {percent}% for a fraction of {number}")
            }
            Problem::Ambiguous(number, [one, other]) => {
                write!(f, "ambiguous unit; write {number}{one} or {number}{other}")
            }
            Problem::UnknownUnit => write!(f, "unknown unit; write {examples}"),
        }
    }
}

impl ParseError {
    /// Suggests `number` in each common unit: `write 20mbit, 20kbit or 20MB/s`.
    fn write_units(&self, f: &mut fmt::Formatter<'_>, number: Decimal) -> fmt::Result {
        f.write_str("missing unit; write ")?;
        let units = self.grammar.units;
        for (index, unit) in units.iter().enumerate() {
            let separator = match index {
                0 => "",
                _ if index + 1 == units.len() => " or ",
                _ => ", ",
            };
            write!(f, "{separator}{number}{unit}")?;
        }
        Ok(())
    }
}

impl core::error::Error for ParseError {}
