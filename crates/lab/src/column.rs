//! A column of a comparison: `bbr3`, or a mix such as `bbr3+cubic`.

use std::fmt;
use std::str::FromStr;

use uncork_cc::{Algorithm, CcSpec, SpecError};

/// The controllers that share the path in one column of a comparison. Written `bbr3`, or
/// `bbr3+cubic` for a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column(Vec<CcSpec>);

/// Why a text is no column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnError {
    /// There is no name, or none on one side of a `+`.
    Empty,
    /// A name is not a controller's.
    Unknown {
        /// The name.
        name: String,
        /// The controllers whose names are closest to it.
        near: Vec<&'static str>,
    },
    /// A controller was given an option that it does not have.
    UnknownOption {
        /// The controller.
        algorithm: Algorithm,
        /// The option.
        option: String,
        /// The options of the controller that are closest to it.
        near: Vec<&'static str>,
    },
    /// The options of a controller are not written as they should be.
    Option {
        /// The controller with its option, as written.
        text: String,
        /// What is wrong.
        error: SpecError,
    },
}

impl Column {
    /// A column of one controller.
    pub fn of(cc: CcSpec) -> Self {
        Self(vec![cc])
    }

    /// The controllers, in the order written; never empty.
    pub fn members(&self) -> &[CcSpec] {
        &self.0
    }

    /// The different controllers, in the order written.
    pub fn distinct(&self) -> Vec<CcSpec> {
        let mut distinct = Vec::new();
        for cc in &self.0 {
            if !distinct.contains(cc) {
                distinct.push(*cc);
            }
        }
        distinct
    }
}

impl FromStr for Column {
    type Err = ColumnError;

    fn from_str(text: &str) -> Result<Self, ColumnError> {
        text.split('+').map(member).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<String> = self.0.iter().map(CcSpec::to_string).collect();
        f.write_str(&members.join("+"))
    }
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a controller is missing; {}", known()),
            Self::Unknown { name, near } if near.is_empty() => {
                write!(f, "unknown controller '{name}'; {}", known())
            }
            Self::Unknown { name, near } => {
                let near = near.join(" or ");
                write!(f, "unknown controller '{name}', did you mean {near}? {}", known())
            }
            Self::UnknownOption { algorithm, option, near } => {
                let name = algorithm.name();
                write!(f, "{name} has no option '{option}'")?;
                match (near.as_slice(), algorithm.options()) {
                    (_, []) => f.write_str("; it takes none"),
                    ([], options) => write!(f, "; it takes {}", options.join(", ")),
                    (near, options) => {
                        let near = near.join(" or ");
                        write!(f, ", did you mean {near}? It takes {}", options.join(", "))
                    }
                }
            }
            Self::Option { text, error } => write!(f, "'{text}': {error}"),
        }
    }
}

impl std::error::Error for ColumnError {}

fn member(text: &str) -> Result<CcSpec, ColumnError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ColumnError::Empty);
    }
    text.parse().map_err(|error| match error {
        SpecError::UnknownAlgorithm => {
            let name = text.split(':').next().unwrap_or(text).to_owned();
            let near = nearest(&name.to_lowercase(), &Algorithm::ALL.map(Algorithm::name));
            ColumnError::Unknown { name, near }
        }
        SpecError::UnknownOption(algorithm) => {
            let known = algorithm.options();
            let mut options = text.split(':').skip(1);
            let option = options.find(|option| !known.contains(option)).unwrap_or(text).to_owned();
            let near = nearest(&option.to_lowercase().replace('-', "_"), known);
            ColumnError::UnknownOption { algorithm, option, near }
        }
        error => ColumnError::Option { text: text.to_owned(), error },
    })
}

fn known() -> String {
    let names = Algorithm::ALL.map(Algorithm::name).join(", ");
    format!("known are {names}, and mixes such as bbr3+cubic")
}

/// Those of `known` that take the fewest changes (Levenshtein) to get from `name`, if at most half of
/// it has to change.
pub(crate) fn nearest(name: &str, known: &[&'static str]) -> Vec<&'static str> {
    let distances = known.iter().map(|known| (strsim::levenshtein(name, known), *known));
    let least = distances.clone().map(|(distance, _)| distance).min().unwrap_or(usize::MAX);
    if least > name.chars().count().div_ceil(2) {
        return Vec::new();
    }
    distances.filter(|(distance, _)| *distance == least).map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Column>().unwrap_err().to_string()
    }

    #[test]
    fn reads_and_writes_single_controllers_and_mixes() {
        for text in ["cubic", "bbr3+cubic", "bbr3:strict_draft+bbr3", "reno+reno+bbr1"] {
            assert_eq!(text.parse::<Column>().unwrap().to_string(), text);
        }
        let mix: Column = "reno+bbr1+reno".parse().unwrap();
        assert_eq!(mix.members().len(), 3);
        assert_eq!(mix.distinct(), ["reno", "bbr1"].map(|name| name.parse().unwrap()));
    }

    #[test]
    fn suggests_what_was_meant() {
        let known = "known are reno, cubic, bbr1, bbr2, bbr3, and mixes such as bbr3+cubic";
        assert_eq!(
            error("cubci"),
            format!("unknown controller 'cubci', did you mean cubic? {known}")
        );
        assert_eq!(
            error("bbr"),
            format!("unknown controller 'bbr', did you mean bbr1 or bbr2 or bbr3? {known}")
        );
        assert_eq!(
            error("BBRv3"),
            format!("unknown controller 'BBRv3', did you mean bbr3? {known}")
        );
        assert_eq!(
            error("newreno"),
            format!("unknown controller 'newreno', did you mean reno? {known}")
        );
        assert_eq!(error("westwood"), format!("unknown controller 'westwood'; {known}"));
        assert_eq!(error("bbr3+"), format!("a controller is missing; {known}"));
        assert_eq!(error(""), format!("a controller is missing; {known}"));
    }

    #[test]
    fn an_option_that_is_not_there_is_named() {
        assert_eq!(error("reno:fast"), "reno has no option 'fast'; it takes none");
        let takes = "t takes strict_draft, loss_floor, rtt_fair";
        assert_eq!(error("bbr1+bbr3:x"), format!("bbr3 has no option 'x'; i{takes}"));
        for option in ["loss-floor", "LossFloor", "loss_flor"] {
            assert_eq!(
                error(&format!("bbr3:rtt_fair:{option}")),
                format!("bbr3 has no option '{option}', did you mean loss_floor? I{takes}")
            );
        }
    }

    #[test]
    fn an_option_that_is_missing_or_there_twice_is_shown_in_its_place() {
        assert_eq!(
            error("bbr1+cubic:"),
            "'cubic:': an option is missing after ':'; cubic takes rfc8312"
        );
        assert_eq!(
            error("bbr3:rtt_fair:rtt_fair"),
            "'bbr3:rtt_fair:rtt_fair': rtt_fair is given twice; give it once"
        );
    }
}
