//! The controllers that there are as BPF objects.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A controller that can run in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// BBR version 1.
    Bbr1,
    /// BBR version 2.
    Bbr2,
    /// BBR version 3.
    Bbr3,
    /// CUBIC.
    Cubic,
    /// Prague, for L4S.
    Prague,
    /// NewReno.
    Reno,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Bbr1, Self::Bbr2, Self::Bbr3, Self::Cubic, Self::Prague, Self::Reno];

    /// The name by which sockets choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bbr1 => "uncork_bbr1",
            Self::Bbr2 => "uncork_bbr2",
            Self::Bbr3 => "uncork_bbr3",
            Self::Cubic => "uncork_cubic",
            Self::Prague => "uncork_prague",
            Self::Reno => "uncork_reno",
        }
    }

    /// The name by which sockets choose it with Careful Resume, where it was loaded with that.
    pub const fn resuming_name(self) -> &'static str {
        match self {
            Self::Bbr1 => "uncork_bbr1_r",
            Self::Bbr2 => "uncork_bbr2_r",
            Self::Bbr3 => "uncork_bbr3_r",
            Self::Cubic => "uncork_cubic_r",
            Self::Prague => "uncork_prague_r",
            Self::Reno => "uncork_reno_r",
        }
    }

    /// Both names.
    pub const fn names(self) -> [&'static str; 2] {
        [self.name(), self.resuming_name()]
    }

    /// The controller with this name, of the two that each has.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.names().contains(&name))
    }

    /// What it is.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Bbr1 => "BBRv1 (as in Linux)",
            Self::Bbr2 => "BBRv2 (as in Linux's branch v2alpha)",
            Self::Bbr3 => "BBRv3 (draft-ietf-ccwg-bbr-06)",
            Self::Cubic => "CUBIC (RFC 9438)",
            Self::Prague => "Prague for L4S (draft-briscoe-iccrg-prague-congestion-control-04)",
            Self::Reno => "NewReno (RFC 5681, RFC 6582)",
        }
    }

    /// Whether its packets leave as ECT(1), for which the kernel must negotiate AccECN (RFC 9331 §4.1, RFC 9768).
    pub const fn sends_ect1(self) -> bool {
        matches!(self, Self::Prague)
    }

    /// The compiled object.
    pub(crate) const fn object(self) -> &'static [u8] {
        match self {
            Self::Bbr1 => include_bytes!("../bpf/bbr1.bpf.o"),
            Self::Bbr2 => include_bytes!("../bpf/bbr2.bpf.o"),
            Self::Bbr3 => include_bytes!("../bpf/bbr3.bpf.o"),
            Self::Cubic => include_bytes!("../bpf/cubic.bpf.o"),
            Self::Prague => include_bytes!("../bpf/prague.bpf.o"),
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
            for name in algorithm.names() {
                assert_eq!(Algorithm::named(name), Some(algorithm));
                assert!(name.len() < 16, "the kernel's names have 15 characters");
            }
        }
        let error = "uncork_vegas".parse::<Algorithm>().expect_err("it does not exist");
        let names = Algorithm::ALL.map(Algorithm::name);
        assert_eq!(
            error.to_string(),
            format!("unknown controller uncork_vegas (available: {})", names.join(", "))
        );
    }
}
