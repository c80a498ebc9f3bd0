//! Changes of the ECN field by routers and middleboxes, other than marks by a queue.

use std::fmt;
use std::str::FromStr;

use crate::{Ecn, LossError, LossSpec};

/// What a middlebox does to the ECN field of the packets that cross it. RFC 3168 §18.1 discusses these changes; a
/// router may only set CE, and only on ECN-capable packets (§5, RFC 9331 §5).
///
/// Written as `bleach`; as `ect1-to-ect0`, with `ect0`, `ect1` or `ce` before and `none`, `ect0` or `ect1` after
/// `-to-`; or as `ce:` and a loss, such as `ce:1%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnChange {
    /// Every field becomes Not-ECT (§18.1.3): also where a router overwrites the former type-of-service octet.
    Bleach,
    /// One codepoint becomes another: CE is erased (§18.1.1), or one kind of ECT becomes the other (§18.1.4).
    Rewrite {
        /// The codepoint that is changed.
        from: Ecn,
        /// What it becomes.
        to: Ecn,
    },
    /// ECN-capable packets get CE without congestion (§18.1.2), where this process would lose a packet.
    Mark(LossSpec),
}

/// Why a text is not a valid change of the ECN field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EcnChangeError {
    /// Unknown change.
    #[error(
        "unknown change of the ECN field '{0}'; expected bleach, ect1-to-none, ect1-to-ect0, ect0-to-none, \
         ect0-to-ect1, ce-to-none, ce-to-ect0, ce-to-ect1 or ce:1%"
    )]
    Unknown(String),
    /// `ce:` without a valid process.
    #[error("{0}")]
    Process(LossError),
}

/// The codepoints and their names.
const NAMES: [(Ecn, &str); 4] =
    [(Ecn::NotEct, "none"), (Ecn::Ect0, "ect0"), (Ecn::Ect1, "ect1"), (Ecn::Ce, "ce")];

impl EcnChange {
    /// The changed field. `strikes` says whether [`Self::Mark`] marks this packet, and is called for each packet.
    pub(crate) fn apply(self, ecn: Ecn, strikes: impl FnOnce() -> bool) -> Ecn {
        match self {
            Self::Bleach => Ecn::NotEct,
            Self::Rewrite { from, to } if ecn == from => to,
            Self::Mark(_) if strikes() && ecn.is_capable() => Ecn::Ce,
            Self::Rewrite { .. } | Self::Mark(_) => ecn,
        }
    }
}

impl FromStr for EcnChange {
    type Err = EcnChangeError;

    fn from_str(text: &str) -> Result<Self, EcnChangeError> {
        if text == "bleach" {
            return Ok(Self::Bleach);
        }
        if let Some(process) = text.strip_prefix("ce:") {
            return process.parse().map(Self::Mark).map_err(EcnChangeError::Process);
        }
        let codepoint = |name| NAMES.iter().find(|(_, known)| *known == name).map(|(ecn, _)| *ecn);
        let rewrite = text.split_once("-to-").and_then(|(from, to)| {
            let (from, to) = (codepoint(from)?, codepoint(to)?);
            (from != to && from != Ecn::NotEct && to != Ecn::Ce)
                .then_some(Self::Rewrite { from, to })
        });
        rewrite.ok_or_else(|| EcnChangeError::Unknown(text.to_owned()))
    }
}

/// Writes the format that [`EcnChange::from_str`] parses.
impl fmt::Display for EcnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |ecn| NAMES.iter().find(|(known, _)| *known == ecn).map_or("", |(_, name)| name);
        match self {
            Self::Bleach => f.write_str("bleach"),
            Self::Rewrite { from, to } => write!(f, "{}-to-{}", name(*from), name(*to)),
            Self::Mark(process) => write!(f, "ce:{process}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> EcnChange {
        text.parse().expect("a change")
    }

    #[test]
    fn display_and_parse_round_trip() {
        for text in [
            "bleach",
            "ect1-to-none",
            "ect1-to-ect0",
            "ect0-to-none",
            "ect0-to-ect1",
            "ce-to-none",
            "ce-to-ect0",
            "ce-to-ect1",
            "ce:1%",
            "ce:every:100",
            "ce:gilbert:mean=1%,burst=5",
        ] {
            assert_eq!(change(text).to_string(), text);
        }
    }

    #[test]
    fn change_affects_exactly_the_named_codepoints() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        for (text, after) in [
            ("bleach", [NotEct; 4]),
            ("ect1-to-none", [NotEct, Ect0, NotEct, Ce]),
            ("ect1-to-ect0", [NotEct, Ect0, Ect0, Ce]),
            ("ect0-to-ect1", [NotEct, Ect1, Ect1, Ce]),
            ("ce-to-ect1", [NotEct, Ect0, Ect1, Ect1]),
            ("ce:1%", [NotEct, Ce, Ce, Ce]),
        ] {
            let all = NAMES.map(|(ecn, _)| change(text).apply(ecn, || true));
            assert_eq!(all, after, "{text}");
        }
        assert_eq!(change("ce:1%").apply(Ect1, || false), Ect1);
    }

    #[test]
    fn errors_name_the_word_and_the_known_changes() {
        for text in ["", "blech", "ect1", "none-to-ect1", "ect1-to-ce", "ce-to-ce", "ce-to-"] {
            let error = text.parse::<EcnChange>().expect_err(text).to_string();
            let start =
                format!("unknown change of the ECN field '{text}'; expected bleach, ect1-to-none");
            assert!(error.starts_with(&start), "{error}");
        }
        for text in ["ce:", "ce:1", "ce:every:0"] {
            let error = text.parse::<EcnChange>().expect_err(text);
            assert!(matches!(error, EcnChangeError::Process(_)), "{error}");
        }
    }
}
