//! Three-valued logic: yes, no, or not known yet.

use std::fmt;

/// Whether a condition holds, as far as the facts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Holds; more facts do not change that.
    Yes,
    /// Does not hold; more facts do not change that.
    No,
    /// Depends on unknown facts.
    Unknown,
}

impl Verdict {
    /// The conjunction of `verdicts`: `No` if any is `No`, even if others are unknown.
    pub(crate) fn all(verdicts: impl Iterator<Item = Self>) -> Self {
        let mut all = Self::Yes;
        for verdict in verdicts {
            match verdict {
                Self::No => return Self::No,
                Self::Unknown => all = Self::Unknown,
                Self::Yes => {}
            }
        }
        all
    }
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "not known yet",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{self, No, Unknown, Yes};

    #[test]
    fn conjunction_follows_kleene() {
        for (one, other, both) in [
            (Yes, Yes, Yes),
            (Yes, No, No),
            (Yes, Unknown, Unknown),
            (No, Unknown, No),
            (Unknown, Unknown, Unknown),
        ] {
            assert_eq!(Verdict::all([one, other].into_iter()), both);
            assert_eq!(Verdict::all([other, one].into_iter()), both);
        }
        assert_eq!(Verdict::all(std::iter::empty()), Yes);
    }
}
