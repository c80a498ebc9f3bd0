//! Decimal numbers, read and written in exact thousandths.

/// `1.25` as 1250; at most three decimal places.
pub(crate) fn thousandths(number: &str) -> Option<u64> {
    let (whole_part, places) = number.split_once('.').unwrap_or((number, "0"));
    if places.len() > 3 {
        return None;
    }
    let fraction = whole(&format!("{places:0<3}"))?;
    whole(whole_part)?.checked_mul(1000)?.checked_add(fraction)
}

/// Digits only: `str::parse` would also accept a plus sign.
pub(crate) fn whole(digits: &str) -> Option<u64> {
    let only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if only_digits { digits.parse().ok() } else { None }
}

/// 1250 as `1.25`, the format that [`thousandths`] parses.
pub(crate) fn of_thousandths(n: u64) -> String {
    let decimal = format!("{}.{:03}", n / 1000, n % 1000);
    decimal.trim_end_matches('0').trim_end_matches('.').to_owned()
}
