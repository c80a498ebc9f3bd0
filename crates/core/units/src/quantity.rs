//! Parsing of numbers with units.

use crate::ParseError;
use crate::decimal::Decimal;
use crate::error::{Grammar, Problem};

/// The meaning of a unit.
pub(crate) enum QuantityUnit {
    /// `num` / `den` of the type's base unit.
    Scale { num: u64, den: u64 },
    /// It has two common meanings; these are their unambiguous names.
    Ambiguous([&'static str; 2]),
    /// Not a unit of this quantity.
    Unknown,
}

impl QuantityUnit {
    /// `n` of the type's base unit.
    pub(crate) const fn of(n: u64) -> Self {
        Self::Scale { num: n, den: 1 }
    }
}

/// Parses a number with a unit, interpreted by `unit`. Returns the quantity in the type's base unit, rounded
/// down.
pub(crate) fn parse(
    text: &str,
    grammar: &'static Grammar,
    unit: impl Fn(&str) -> QuantityUnit,
) -> Result<u64, ParseError> {
    count(text.trim(), unit).map_err(|problem| ParseError { grammar, problem })
}

fn count(text: &str, unit: impl Fn(&str) -> QuantityUnit) -> Result<u64, Problem> {
    let (number, name) = Decimal::split(text)?;
    let name = name.trim_start();
    if name.is_empty() {
        return Err(Problem::NoUnit(number));
    }
    match unit(name) {
        QuantityUnit::Scale { num, den } => number.scaled(num, den),
        QuantityUnit::Ambiguous(names) => Err(Problem::Ambiguous(number, names)),
        QuantityUnit::Unknown => Err(Problem::UnknownUnit),
    }
}

/// The prefix of a unit: decimal (`k`, `M`, `G`, `T`, in either case) or binary (`Ki`, `Mi`, …).
#[derive(Clone, Copy)]
pub(crate) struct UnitPrefix {
    /// 0 for none, 1 for kilo, 2 for mega, 3 for giga, 4 for tera.
    pub(crate) order: usize,
    /// Whether an order counts 1024 rather than 1000.
    pub(crate) binary: bool,
}

impl UnitPrefix {
    /// Splits `unit` into its prefix and what follows.
    pub(crate) fn split(unit: &str) -> (Self, &str) {
        let order = match unit.bytes().next() {
            Some(b'k' | b'K') => 1,
            Some(b'm' | b'M') => 2,
            Some(b'g' | b'G') => 3,
            Some(b't' | b'T') => 4,
            _ => return (Self { order: 0, binary: false }, unit),
        };
        let rest = &unit[1..];
        match rest.strip_prefix(['i', 'I']) {
            Some(rest) => (Self { order, binary: true }, rest),
            None => (Self { order, binary: false }, rest),
        }
    }

    /// The factor to the unprefixed unit.
    pub(crate) const fn factor(self) -> u64 {
        let base: u64 = if self.binary { 1024 } else { 1000 };
        base.pow(self.order as u32)
    }
}
