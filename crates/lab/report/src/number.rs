//! Number formatting.

/// `value` rounded to `digits` significant decimal digits.
pub(crate) fn rounded(value: f64, digits: usize) -> f64 {
    scientific(value, digits).parse().unwrap_or(value)
}

/// `value` with at most `digits` significant decimal digits, as `{}` prints what [`rounded`] returns. It reads no number back:
/// the tables for that are the largest part of a page that formats numbers.
pub(crate) fn text(value: f64, digits: usize) -> String {
    let scientific = scientific(value, digits);
    let Some((mantissa, exponent)) = split(&scientific) else { return scientific };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let significant: String = mantissa.chars().filter(|it| *it != '.').collect();
    let significant = significant.trim_end_matches('0');
    let point = exponent + 1;
    if significant.is_empty() {
        format!("{sign}0")
    } else if point <= 0 {
        format!("{sign}0.{}{significant}", "0".repeat(-point as usize))
    } else if point as usize >= significant.len() {
        format!("{sign}{significant}{}", "0".repeat(point as usize - significant.len()))
    } else {
        let (whole, part) = significant.split_at(point as usize);
        format!("{sign}{whole}.{part}")
    }
}

/// `1.25e-3`.
fn scientific(value: f64, digits: usize) -> String {
    format!("{value:.*e}", digits.saturating_sub(1))
}

/// Mantissa and exponent of a finite number.
fn split(scientific: &str) -> Option<(&str, i32)> {
    let (mantissa, exponent) = scientific.split_once('e')?;
    Some((mantissa, exponent.parse().ok()?))
}

/// Three significant digits without trailing zeros: `20`, `1.25`, `0.0123`.
pub(crate) fn short(value: f64) -> String {
    text(value, 3)
}

/// Three significant digits including trailing zeros: `4.40`, `18.4`, `131`; larger numbers as
/// integers.
pub(crate) fn three(value: f64) -> String {
    let decimals = if value == 0.0 { 0 } else { (2 - magnitude(value.abs())).clamp(0, 6) as usize };
    format!("{value:.decimals$}")
}

/// Number of decimals for all of `values`, so that decimal points align: three significant digits
/// for the smallest, but at most four for the largest, and at most three decimals.
pub(crate) fn decimals(values: impl Iterator<Item = f64>) -> usize {
    let (mut smallest, mut largest) = (f64::INFINITY, 0.0_f64);
    for value in values.map(f64::abs).filter(|v| v.is_finite() && *v > 0.0) {
        smallest = smallest.min(value);
        largest = largest.max(value);
    }
    if largest == 0.0 {
        return 0;
    }
    (2 - magnitude(smallest)).min(3 - magnitude(largest)).clamp(0, 3) as usize
}

/// The power of ten of the leading digit, after rounding to three digits.
fn magnitude(value: f64) -> i32 {
    split(&scientific(value, 3)).map_or(0, |(_, exponent)| exponent)
}

/// A unit and its size in base units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) size: f64,
}

const RATES: [Unit; 4] = [
    Unit { name: "Gbit/s", size: 1e9 },
    Unit { name: "Mbit/s", size: 1e6 },
    Unit { name: "kbit/s", size: 1e3 },
    Unit { name: "bit/s", size: 1.0 },
];
const BYTES: [Unit; 4] = [
    Unit { name: "GB", size: 1e9 },
    Unit { name: "MB", size: 1e6 },
    Unit { name: "kB", size: 1e3 },
    Unit { name: "B", size: 1.0 },
];
const TIMES: [Unit; 3] = [
    Unit { name: "s", size: 1.0 },
    Unit { name: "ms", size: 1e-3 },
    Unit { name: "µs", size: 1e-6 },
];

/// The best unit for `bps` bits per second.
pub(crate) fn rate_unit(bps: f64) -> Unit {
    largest_within(&RATES, bps)
}

/// The best unit for `bytes`.
pub(crate) fn byte_unit(bytes: f64) -> Unit {
    largest_within(&BYTES, bytes)
}

/// The best unit for `seconds`.
pub(crate) fn time_unit(seconds: f64) -> Unit {
    largest_within(&TIMES, seconds)
}

fn largest_within(units: &[Unit], value: f64) -> Unit {
    let base = units[units.len() - 1];
    *units.iter().find(|unit| value.abs() >= unit.size).unwrap_or(&base)
}

/// `20 Mbit/s`
pub(crate) fn rate(bps: f64) -> String {
    with_unit(bps, rate_unit(bps))
}

/// `10 MB`
pub(crate) fn bytes(bytes: f64) -> String {
    with_unit(bytes, byte_unit(bytes))
}

/// `40 ms`
pub(crate) fn seconds(seconds: f64) -> String {
    with_unit(seconds, time_unit(seconds))
}

/// `1 %`
pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", short(fraction * 100.0))
}

/// `1 234 567`, with non-breaking spaces.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let head = digits.len() % 3;
    let mut parts: Vec<&str> = Vec::new();
    parts.extend((head > 0).then_some(&digits[..head]));
    parts.extend((head..digits.len()).step_by(3).map(|at| &digits[at..at + 3]));
    parts.join("\u{202f}")
}

fn with_unit(value: f64, unit: Unit) -> String {
    format!("{} {}", short(value / unit.size), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_three_significant_digits() {
        assert_eq!(short(20.0), "20");
        assert_eq!(short(1.2549), "1.25");
        assert_eq!(short(0.012_345), "0.0123");
        assert_eq!(short(66.67), "66.7");
        assert_eq!(short(0.0), "0");
    }

    #[test]
    fn text_is_that_of_the_rounded_number() {
        let mantissas =
            [1.0, 1.000_000_1, 1.25, 3.0, 9.999_994, 9.999_995_1, 0.1 + 0.2, 123_456.789];
        let scaled = (-30..30).flat_map(|power| mantissas.map(|it| it * 10_f64.powi(power)));
        let special = [0.0, -0.0, f64::INFINITY, f64::NAN];
        for value in scaled.chain(special).flat_map(|value| [value, -value]) {
            for digits in [1, 3, 6] {
                assert_eq!(text(value, digits), format!("{}", rounded(value, digits)));
            }
        }
    }

    #[test]
    fn significant_trailing_zeros_are_kept() {
        assert_eq!([0.0, 4.4, 18.3912, 131.45].map(three), ["0", "4.40", "18.4", "131"]);
        assert_eq!([-0.64, 12_345.6, 9.999].map(three), ["-0.640", "12346", "10.0"]);
    }

    #[test]
    fn best_unit_is_chosen() {
        assert_eq!(rate(20e6), "20 Mbit/s");
        assert_eq!(rate(1.5e9), "1.5 Gbit/s");
        assert_eq!(bytes(100_000.0), "100 kB");
        assert_eq!(bytes(999.0), "999 B");
        assert_eq!(seconds(0.04), "40 ms");
        assert_eq!(seconds(30.0), "30 s");
        assert_eq!(percent(0.01), "1 %");
    }

    #[test]
    fn decimals_fit_the_smallest_and_limit_the_largest() {
        assert_eq!(decimals([9.4, 94.32].into_iter()), 2);
        assert_eq!(decimals([94.32, 0.0].into_iter()), 1);
        assert_eq!(decimals([0.012, 21.3].into_iter()), 2);
        assert_eq!(decimals([0.5, 240.0].into_iter()), 1);
        assert_eq!(decimals([240.0].into_iter()), 0);
        assert_eq!(decimals([0.000_1].into_iter()), 3);
        assert_eq!(decimals(std::iter::empty()), 0);
        assert_eq!(decimals([99.99].into_iter()), 0, "rounds to 100");
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(123_456), "123\u{202f}456");
        assert_eq!(thousands(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
