//! Parsing of an initial window: `10p`, `32KiB`.

use core::fmt;
use core::str::FromStr;

use uncork_units::ByteCount;

/// An initial congestion window, written `10p` or `32KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// Packets of the connection's size.
    Packets(u32),
    /// Bytes.
    Bytes(ByteCount),
}

/// Why a text is not a valid initial window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindowError {
    /// Not a number with a known unit.
    NoUnit,
    /// Less than a packet, or more than any network accepts at once.
    OutOfRange,
}

impl InitialWindow {
    const PACKET_BYTES: u32 = 1500;
    const PACKETS: core::ops::RangeInclusive<u32> = 1..=1000;
    /// From the smallest packet that QUIC must be able to send (RFC 9000 §14) to a thousand packets
    /// of 1500.
    const BYTES: core::ops::RangeInclusive<u64> = 1200..=1_500_000;

    /// The window in bytes for packets of `mss` bytes.
    pub fn bytes(self, mss: u32) -> u64 {
        match self {
            Self::Packets(packets) => u64::from(packets) * u64::from(mss),
            Self::Bytes(bytes) => bytes.as_u64(),
        }
    }

    /// Whether it is larger than `max`, for packets of 1500 bytes.
    pub fn exceeds(self, max: Self) -> bool {
        self.bytes(Self::PACKET_BYTES) > max.bytes(Self::PACKET_BYTES)
    }

    /// The window in packets of `mss` bytes, at least one.
    pub fn packets(self, mss: u32) -> u32 {
        match self {
            Self::Packets(packets) => packets,
            // At most `BYTES`.
            Self::Bytes(bytes) => (bytes.as_u64() / u64::from(mss.max(1))).max(1) as u32,
        }
    }
}

impl FromStr for InitialWindow {
    type Err = InitialWindowError;

    fn from_str(text: &str) -> Result<Self, InitialWindowError> {
        if let Some(packets) = text.strip_suffix('p') {
            let packets = packets.trim_end().parse().map_err(|_| InitialWindowError::NoUnit)?;
            let known = Self::PACKETS.contains(&packets);
            return known.then_some(Self::Packets(packets)).ok_or(InitialWindowError::OutOfRange);
        }
        let bytes: ByteCount = text.parse().map_err(|_| InitialWindowError::NoUnit)?;
        let known = Self::BYTES.contains(&bytes.as_u64());
        known.then_some(Self::Bytes(bytes)).ok_or(InitialWindowError::OutOfRange)
    }
}

impl fmt::Display for InitialWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}

impl fmt::Display for InitialWindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUnit => "expected packets or bytes, such as 10p or 32KiB",
            Self::OutOfRange => "out of range; expected 1p to 1000p, or 1200B to 1500kB",
        })
    }
}

impl core::error::Error for InitialWindowError {}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    #[test]
    fn parse_and_display_round_trip() {
        for (text, bytes) in [("10p", 12_000), ("32KiB", 32_768), ("1200B", 1200)] {
            let window: InitialWindow = text.parse().expect("a window");
            assert_eq!((window.to_string().as_str(), window.bytes(1_200)), (text, bytes));
            assert_eq!(u64::from(window.packets(1_200)), bytes / 1_200, "{text}");
        }
        for text in ["10", "", "p", "-1p", "1.5p", "10 packets", "10mbit"] {
            assert_eq!(text.parse::<InitialWindow>(), Err(InitialWindowError::NoUnit), "{text}");
        }
        for text in ["0p", "1001p", "1199B", "2MB"] {
            assert_eq!(
                text.parse::<InitialWindow>(),
                Err(InitialWindowError::OutOfRange),
                "{text}"
            );
        }
    }
}
