//! Bytes as hexadecimal digits, for the journal.

use std::fmt::Write;

/// Two lower-case digits for each byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // A String takes all that is written to it.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The bytes of [`encode`].
pub(crate) fn decode(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| {
        let digits = digits.get(at..at + 2).filter(|digits| !digits.starts_with('+'))?;
        u8::from_str_radix(digits, 16).ok()
    };
    (0..digits.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive() {
        assert_eq!(encode(&[0, 15, 255]), "000fff");
        assert_eq!(decode("000fff"), Some(vec![0, 15, 255]));
        assert_eq!(decode(""), Some(Vec::new()));
        assert_eq!(
            [decode("0"), decode("0g"), decode("+1"), decode("é0")],
            [None, None, None, None]
        );
    }
}
