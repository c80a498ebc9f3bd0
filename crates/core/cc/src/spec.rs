//! Names of controllers: `bbr3`, `cubic`, `cubic:linux`.

use core::fmt;
use core::str::FromStr;

use crate::in_linux::InLinux;

/// Option of CUBIC: as in Linux.
pub(crate) const LINUX: &str = "linux";
/// Option: the initial slow start ends by SEARCH.
pub(crate) const SEARCH: &str = "start=search";
/// Option: the initial slow start is Rapid Start.
pub(crate) const RAPID: &str = "start=rapid";
/// Options that exclude each other: each is a slow start.
const STARTS: [&str; 3] = [LINUX, SEARCH, RAPID];

/// The algorithms of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// NewReno: RFC 5681, RFC 6582, RFC 9002 §7.
    Reno,
    /// CUBIC: RFC 9438.
    Cubic,
    /// BBR version 1, as in mainline Linux.
    Bbr1,
    /// BBR version 2, as in Linux's branch `v2alpha`.
    Bbr2,
    /// BBR version 3: draft-ietf-ccwg-bbr-06.
    Bbr3,
    /// Prague, for L4S: draft-briscoe-iccrg-prague-congestion-control-04, RFC 9331.
    Prague,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 6] =
        [Self::Reno, Self::Cubic, Self::Bbr1, Self::Bbr2, Self::Bbr3, Self::Prague];

    /// The name used in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr1 => "bbr1",
            Self::Bbr2 => "bbr2",
            Self::Bbr3 => "bbr3",
            Self::Prague => "prague",
        }
    }

    /// The options it supports.
    ///
    /// `cubic:linux` is Linux's implementation of CUBIC: RFC 8312's region in whole segments, and
    /// the original HyStart. `reno:start=search` and `cubic:start=search` end slow start by SEARCH
    /// ([`crate::start::Search`]); `start=rapid` is Rapid Start ([`crate::start::RapidStart`]). `bbr3:strict_draft` keeps the defects of the draft, to measure the cost of
    /// each; `bbr3:loss_floor` distinguishes random loss from congestion; `bbr3:rtt_fair` lets flows with
    /// different RTTs share a queue more evenly.
    pub const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Reno => &[SEARCH, RAPID],
            Self::Cubic => &[LINUX, SEARCH, RAPID],
            Self::Bbr3 => &["strict_draft", "loss_floor", "rtt_fair"],
            Self::Bbr1 | Self::Bbr2 | Self::Prague => &[],
        }
    }
}

/// A controller to build: an algorithm and its options, written `NAME`, `NAME:OPTION` or
/// `NAME:OPTION:OPTION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CcSpec {
    algorithm: Algorithm,
    /// One bit for each of [`Algorithm::options`].
    chosen: u8,
}

/// Why a text is not a valid controller name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// The name before the colon is unknown.
    UnknownAlgorithm,
    /// The algorithm has no such option.
    UnknownOption(Algorithm),
    /// A colon is not followed by an option.
    MissingOption(Algorithm),
    /// An option is given twice.
    RepeatedOption(&'static str),
    /// Two options exclude each other.
    ConflictingOptions(&'static str, &'static str),
}

impl CcSpec {
    /// `algorithm` with its defaults.
    pub const fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, chosen: 0 }
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The options chosen, in the order of [`Algorithm::options`].
    pub fn chosen(&self) -> impl Iterator<Item = &'static str> + use<> {
        let Self { algorithm, chosen } = *self;
        let named = algorithm.options().iter().enumerate();
        named.filter(move |(bit, _)| chosen & (1 << bit) != 0).map(|(_, name)| *name)
    }

    /// Whether `option` is chosen.
    pub fn has(&self, option: &str) -> bool {
        self.chosen().any(|name| name == option)
    }

    /// The variant that Linux has, where the default follows a standard from which Linux departs:
    /// `cubic:linux` for `cubic`. Options that were chosen stay.
    #[must_use]
    pub fn as_in_linux(self) -> Self {
        let mut linux = self;
        match self.algorithm {
            Algorithm::Cubic if linux.choose(LINUX).is_ok() => linux,
            _ => self,
        }
    }

    fn choose(&mut self, option: &str) -> Result<(), SpecError> {
        if option.is_empty() {
            return Err(SpecError::MissingOption(self.algorithm));
        }
        let mut options = self.algorithm.options().iter().enumerate();
        let (bit, name) = options
            .find(|(_, name)| **name == option)
            .ok_or(SpecError::UnknownOption(self.algorithm))?;
        if self.has(name) {
            return Err(SpecError::RepeatedOption(name));
        }
        self.chosen |= 1 << bit;
        let mut starts = self.chosen().filter(|name| STARTS.contains(name));
        match (starts.next(), starts.next()) {
            (Some(one), Some(other)) => Err(SpecError::ConflictingOptions(one, other)),
            _ => Ok(()),
        }
    }
}

impl FromStr for CcSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = match text.split_once(':') {
            Some((name, options)) => (name, Some(options)),
            None => (text, None),
        };
        let algorithm = Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or(SpecError::UnknownAlgorithm)?;
        let mut spec = Self::new(algorithm);
        for option in options.into_iter().flat_map(|options| options.split(':')) {
            spec.choose(option)?;
        }
        Ok(spec)
    }
}

impl fmt::Display for CcSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm.name())?;
        self.chosen().try_for_each(|option| write!(f, ":{option}"))
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm => {
                f.write_str("unknown controller; expected reno, cubic, bbr1, bbr2, bbr3 or prague")
            }
            Self::UnknownOption(algorithm) => {
                f.write_str("unknown option; ")?;
                write_options(f, *algorithm)
            }
            Self::MissingOption(algorithm) => {
                f.write_str("missing option after ':'; ")?;
                write_options(f, *algorithm)
            }
            Self::RepeatedOption(option) => write!(f, "{option} is given twice"),
            Self::ConflictingOptions(one, other) => {
                write!(f, "{one} and {other} exclude each other; leave one out")
            }
        }
    }
}

fn write_options(f: &mut fmt::Formatter<'_>, algorithm: Algorithm) -> fmt::Result {
    write!(f, "{} takes ", algorithm.name())?;
    let [first, rest @ ..] = algorithm.options() else { return f.write_str("none") };
    f.write_str(first)?;
    rest.iter().try_for_each(|option| write!(f, ", {option}"))
}

impl core::error::Error for SpecError {}

impl CcSpec {
    /// The controller that a Linux socket has by this name: the kernel's own `reno`, `cubic` and `bbr`, or
    /// this crate's as `uncork kernel load` registers them, such as `uncork_bbr3`. `None`: not a controller of
    /// this crate.
    pub fn in_kernel(name: &str) -> Option<Self> {
        match name {
            "reno" => Some(Self::new(Algorithm::Reno)),
            "cubic" => Some(Self::new(Algorithm::Cubic).as_in_linux()),
            "bbr" => Some(Self::new(Algorithm::Bbr1)),
            _ => {
                let name = InLinux::without_resume(name).strip_prefix("uncork_")?;
                let own = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
                own.map(Self::new)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;
    use uncork_testkit::assert_message;

    #[test]
    fn display_and_parse_round_trip() {
        for text in [
            "reno",
            "reno:start=search",
            "reno:start=rapid",
            "cubic",
            "cubic:linux",
            "cubic:start=search",
            "cubic:start=rapid",
            "bbr1",
            "bbr2",
            "bbr3",
            "bbr3:strict_draft",
            "bbr3:loss_floor",
            "bbr3:rtt_fair",
        ] {
            let spec: CcSpec = text.parse().expect("a controller of this crate");
            assert_eq!(spec.to_string(), text);
            assert_eq!(spec.chosen().next(), text.split_once(':').map(|(_, option)| option));
            assert_eq!(spec.algorithm().name(), text.split(':').next().expect("a name"));
        }
    }

    #[test]
    fn options_are_combined() {
        let spec: CcSpec = "bbr3:loss_floor:strict_draft".parse().expect("two options");
        assert!(spec.has("loss_floor") && spec.has("strict_draft"));
        assert_eq!(spec.to_string(), "bbr3:strict_draft:loss_floor");
    }

    #[test]
    fn only_cubic_differs_in_linux() {
        let in_linux = |text: &str| text.parse().map(|spec: CcSpec| spec.as_in_linux().to_string());
        assert_eq!(in_linux("cubic"), Ok("cubic:linux".into()));
        for text in
            ["cubic:linux", "cubic:start=search", "reno", "bbr1", "bbr2", "bbr3", "bbr3:loss_floor"]
        {
            assert_eq!(in_linux(text), Ok(text.into()));
        }
    }

    #[test]
    fn the_kernels_names_are_of_controllers() {
        for (name, cc) in [
            ("reno", "reno"),
            ("cubic", "cubic:linux"),
            ("bbr", "bbr1"),
            ("uncork_bbr1", "bbr1"),
            ("uncork_bbr2", "bbr2"),
            ("uncork_bbr3", "bbr3"),
            ("uncork_cubic", "cubic"),
            ("uncork_reno", "reno"),
            ("uncork_reno_r", "reno"),
        ] {
            assert_eq!(CcSpec::in_kernel(name), cc.parse().ok(), "{name}");
        }
        for name in ["", "bbr1", "bbr3", "dctcp", "unknown", "uncork_", "uncork_vegas"] {
            assert_eq!(CcSpec::in_kernel(name), None, "{name}");
        }
    }

    #[test]
    fn name_alone_selects_the_defaults() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(CcSpec::new(algorithm)));
        }
    }

    #[test]
    fn unknown_name_lists_the_known_ones() {
        for text in ["", "bbr", "BBR3", "bbr3 ", ":strict_draft"] {
            let error = text.parse::<CcSpec>().expect_err("no such controller");
            assert_eq!(error, SpecError::UnknownAlgorithm, "{text:?}");
        }
        let message = SpecError::UnknownAlgorithm.to_string();
        assert!(Algorithm::ALL.iter().all(|algorithm| message.contains(algorithm.name())));
    }

    #[test]
    fn unknown_option_lists_the_known_ones() {
        for text in ["bbr3:fast", "bbr1:strict_draft", "bbr2:strict_draft"] {
            assert_message!(text, text.parse::<CcSpec>().expect_err("no such option"));
        }
    }

    #[test]
    fn trailing_colon_is_a_missing_option() {
        for text in ["bbr3:", "bbr3::loss_floor", "bbr3:loss_floor:"] {
            let error = text.parse::<CcSpec>().expect_err("no option");
            assert_eq!(error, SpecError::MissingOption(Algorithm::Bbr3), "{text}");
        }
        assert_message!("cubic:", SpecError::MissingOption(Algorithm::Cubic));
    }

    #[test]
    fn two_slow_starts_exclude_each_other() {
        for text in [
            "cubic:linux:start=search",
            "cubic:start=search:linux",
            "reno:start=search:start=rapid",
        ] {
            assert_message!(text, text.parse::<CcSpec>().expect_err("two slow starts"));
        }
    }

    #[test]
    fn repeated_option_is_rejected() {
        for text in ["bbr3:loss_floor:loss_floor", "bbr3:loss_floor:rtt_fair:loss_floor"] {
            let error = text.parse::<CcSpec>().expect_err("twice");
            assert_eq!(error, SpecError::RepeatedOption("loss_floor"), "{text}");
            assert_eq!(error.to_string(), "loss_floor is given twice");
        }
    }
}
