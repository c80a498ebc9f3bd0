//! How a connection uses Explicit Congestion Notification.

use core::fmt;
use core::str::FromStr;

use crate::spec::Algorithm;

/// How a connection uses Explicit Congestion Notification: the codepoint of its packets, and what a mark means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnMode {
    /// Not-ECT: queues drop.
    None,
    /// ECT(0): a mark counts as a loss (RFC 3168, RFC 9002 §7.1).
    Classic,
    /// ECT(1): marks are frequent and answered in proportion (L4S, RFC 9331). ECT(0) once a queue has been found that is not
    /// for L4S, or marks cannot be trusted.
    L4s,
}

/// The text is not an ECN mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEcnMode;

impl EcnMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::None, Self::Classic, Self::L4s];

    /// The mode of a controller that nothing else was chosen for.
    pub const fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Prague => Self::L4s,
            _ => Self::Classic,
        }
    }

    /// Whether RFC 9331 §4 permits an algorithm to send in this mode.
    pub const fn suits(self, algorithm: Algorithm) -> bool {
        !matches!(self, Self::L4s) || matches!(algorithm, Algorithm::Prague)
    }

    /// Its name in policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Classic => "classic",
            Self::L4s => "l4s",
        }
    }
}

impl fmt::Display for EcnMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EcnMode {
    type Err = UnknownEcnMode;

    fn from_str(text: &str) -> Result<Self, UnknownEcnMode> {
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or(UnknownEcnMode)
    }
}

impl fmt::Display for UnknownEcnMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected \"none\", \"classic\" or \"l4s\"")
    }
}

impl core::error::Error for UnknownEcnMode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_parse_as_they_print() {
        for mode in EcnMode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
        }
        assert_eq!("ect1".parse::<EcnMode>(), Err(UnknownEcnMode));
    }

    #[test]
    fn only_prague_suits_l4s() {
        for algorithm in Algorithm::ALL {
            assert!(EcnMode::of(algorithm).suits(algorithm), "{algorithm:?}");
            assert_eq!(
                EcnMode::L4s.suits(algorithm),
                algorithm == Algorithm::Prague,
                "{algorithm:?}"
            );
            assert!(EcnMode::None.suits(algorithm) && EcnMode::Classic.suits(algorithm));
        }
    }
}
