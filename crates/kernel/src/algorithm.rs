//! The controllers that there are as BPF objects.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A controller that can run in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// BBR version 3.
    Bbr3,
    /// NewReno.
    Reno,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Bbr3, Self::Reno];

    /// The name by which sockets choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bbr3 => "uncork_bbr3",
            Self::Reno => "uncork_reno",
        }
    }

    /// What it is.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Bbr3 => "BBRv3 (draft-ietf-ccwg-bbr-06)",
            Self::Reno => "NewReno (RFC 5681, RFC 6582)",
        }
    }

    /// The compiled object.
    pub(crate) const fn object(self) -> &'static [u8] {
        match self {
            Self::Bbr3 => include_bytes!("../bpf/bbr3.bpf.o"),
            Self::Reno => include_bytes!("../bpf/reno.bpf.o"),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        found.ok_or_else(|| Error::Unknown(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse::<Algorithm>().ok(), Some(algorithm));
            assert!(algorithm.name().len() < 16, "the kernel's names have 15 characters");
        }
        let error = "uncork_vegas".parse::<Algorithm>().expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "unknown controller uncork_vegas; there are uncork_bbr3 and uncork_reno"
        );
    }
}
