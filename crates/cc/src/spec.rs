//! Naming a controller: `bbr3`, `cubic`, `bbr3:strict_draft`.

use core::fmt;
use core::str::FromStr;

/// The algorithms of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// NewReno: RFC 5681, RFC 6582, RFC 9002 §7.
    Reno,
    /// CUBIC: RFC 9438.
    Cubic,
    /// BBR version 1, as in mainline Linux.
    Bbr1,
    /// BBR version 3: draft-ietf-ccwg-bbr-06.
    Bbr3,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 4] = [Self::Reno, Self::Cubic, Self::Bbr1, Self::Bbr3];

    /// The name by which it is asked for.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr1 => "bbr1",
            Self::Bbr3 => "bbr3",
        }
    }
}

/// Which controller to build: an algorithm and its options, written `NAME` or `NAME:OPTION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CcSpec {
    algorithm: Algorithm,
    strict_draft: bool,
}

/// Why a text names no controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// The name before the colon is not an algorithm's.
    UnknownAlgorithm,
    /// The algorithm has no such option.
    UnknownOption(Algorithm),
}

impl CcSpec {
    /// `algorithm` with its defaults.
    pub const fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, strict_draft: false }
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Whether the draft's defects are kept (`bbr3:strict_draft`), to show what each one costs.
    pub const fn strict_draft(&self) -> bool {
        self.strict_draft
    }
}

impl FromStr for CcSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, option) = match text.split_once(':') {
            Some((name, option)) => (name, Some(option)),
            None => (text, None),
        };
        let algorithm = Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or(SpecError::UnknownAlgorithm)?;
        match (algorithm, option) {
            (_, None) => Ok(Self::new(algorithm)),
            (Algorithm::Bbr3, Some("strict_draft")) => Ok(Self { algorithm, strict_draft: true }),
            (_, Some(_)) => Err(SpecError::UnknownOption(algorithm)),
        }
    }
}

impl fmt::Display for CcSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm.name())?;
        f.write_str(if self.strict_draft { ":strict_draft" } else { "" })
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm => {
                f.write_str("unknown controller; known are reno, cubic, bbr1 and bbr3")
            }
            Self::UnknownOption(Algorithm::Bbr3) => {
                f.write_str("unknown option; bbr3 takes strict_draft")
            }
            Self::UnknownOption(algorithm) => {
                write!(f, "unknown option; {} takes none", algorithm.name())
            }
        }
    }
}

impl core::error::Error for SpecError {}
