//! Plain decimal numbers.

/// The number of a text such as `0.64`, `-3` or `1e6`; `None` for other texts, and for more than 19 digits. Up to 15 digits it is the number
/// that `parse` returns. That one has tables for any number of digits, which are larger than the rest of a page's numbers.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => (-1.0, mantissa),
        None => (1.0, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, part].concat();
    if digits.is_empty() || digits.len() > 19 || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let digits: u64 = digits.parse().ok()?;
    let power = exponent.checked_sub(part.len() as i32)?;
    let scale = power_of_ten(power.unsigned_abs())?;
    let number = if power < 0 { digits as f64 / scale } else { digits as f64 * scale };
    Some(sign * number)
}

/// Exact: larger powers are not.
fn power_of_ten(power: u32) -> Option<f64> {
    (power <= 22).then(|| (0..power).fold(1.0, |product, _| product * 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_is_the_number_that_parse_returns() {
        for text in [
            "0",
            "16",
            "0.64",
            "-3",
            "+7.5",
            "1e6",
            "2.5E-3",
            "5.",
            ".5",
            "123456789012.345",
            "1e-9",
            "-0",
        ] {
            let parsed: f64 = text.parse().unwrap();
            assert_eq!(decimal(text).map(f64::to_bits), Some(parsed.to_bits()), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in
            ["", ".", "-", "e5", "1e", "cubic", "50ms", "inf", "nan", "1_000", "1e400", " 1", "--1"]
        {
            assert_eq!(decimal(text), None, "{text}");
        }
    }
}
