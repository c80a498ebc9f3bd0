//! Queue sizes and their text format.

use std::fmt;
use std::str::FromStr;

use uncork_units::ByteCount;

use crate::decimal::{self, thousandths, whole};

/// The size of a queue, in the unit it was given in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Bytes on the wire.
    Bytes(ByteCount),
    /// Full-sized packets.
    Packets(u64),
    /// Thousandths of the path's bandwidth-delay product (its first rate times its RTT).
    MilliBdp(u64),
}

/// A text that is not a valid queue size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a size with a unit, such as 1bdp, 0.5bdp, 100kB or 83p")]
pub struct BufferError;

/// Parses `1bdp`, `0.5bdp`, `83p` or a number of bytes such as `100kB`.
impl FromStr for Buffer {
    type Err = BufferError;

    fn from_str(text: &str) -> Result<Self, BufferError> {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        if let Some(number) = lower.strip_suffix("bdp") {
            return thousandths(number.trim_end()).map(Self::MilliBdp).ok_or(BufferError);
        }
        let packets = ["packets", "packet", "p"].iter().find_map(|unit| lower.strip_suffix(unit));
        if let Some(number) = packets {
            return whole(number.trim_end()).map(Self::Packets).ok_or(BufferError);
        }
        text.parse().map(Self::Bytes).map_err(|_| BufferError)
    }
}

/// Writes the format that [`Buffer::from_str`] parses.
impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::MilliBdp(n) => write!(f, "{}bdp", decimal::of_thousandths(*n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_parsed() {
        for (text, buffer) in [
            ("1bdp", Buffer::MilliBdp(1000)),
            ("0.5 BDP", Buffer::MilliBdp(500)),
            ("1.25bdp", Buffer::MilliBdp(1250)),
            ("83p", Buffer::Packets(83)),
            ("1 packet", Buffer::Packets(1)),
            ("83 packets", Buffer::Packets(83)),
            ("100kB", Buffer::Bytes("100kB".parse().unwrap())),
            ("64KiB", Buffer::Bytes("64KiB".parse().unwrap())),
        ] {
            assert_eq!(text.parse(), Ok(buffer), "{text}");
        }
    }

    #[test]
    fn ambiguous_sizes_are_rejected() {
        let texts = "100 64k -1bdp +1p 1.5p 1.2345bdp bdp p .bdp 1.bdpx 99999999999999999999p \
                     18446744073709551615bdp 1e3p 5mbit ٣p";
        for text in texts.split_whitespace().chain([""]) {
            assert_eq!(text.parse::<Buffer>(), Err(BufferError), "{text}");
        }
    }

    #[test]
    fn display_and_parse_round_trip() {
        for text in ["1bdp", "0.5bdp", "0.05bdp", "12.345bdp", "83p", "100kB", "0bdp"] {
            assert_eq!(
                text.parse::<Buffer>().map(|buffer| buffer.to_string()),
                Ok(text.to_owned())
            );
        }
    }
}
