//! A column of a comparison: `bbr3`, or a mix such as `bbr3+cubic`.

use std::fmt;
use std::str::FromStr;

use uncork_cc::{Algorithm, CcSpec, InLinux, SpecError};

/// The controllers that share the path in one column of a comparison. Written `bbr3`, or
/// `bbr3+cubic` for a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column(Vec<CcSpec>);

/// Why a text is not a valid column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// A name is missing, possibly on one side of a `+`.
    #[error("missing controller; {}", known())]
    Empty,
    /// A name is not a known controller.
    #[error("unknown controller '{name}'{}; {}", meant(near), known())]
    Unknown {
        /// The name.
        name: String,
        /// The known controllers with the closest names.
        near: Vec<&'static str>,
    },
    /// A controller has no such option.
    #[error("{} has no option '{option}'{}; it takes {}", algorithm.name(), meant(near), taken(*algorithm))]
    UnknownOption {
        /// The controller.
        algorithm: Algorithm,
        /// The option.
        option: String,
        /// The controller's options with the closest names.
        near: Vec<&'static str>,
    },
    /// The syntax of a controller's options is wrong.
    #[error("'{text}': {error}")]
    Option {
        /// The controller with its option, as written.
        text: String,
        /// The error.
        error: SpecError,
    },
}

/// ` (did you mean bbr1 or bbr3?)`, if there are close names.
fn meant(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", near.join(" or ")) }
}

fn taken(algorithm: Algorithm) -> String {
    match algorithm.options() {
        [] => "none".to_owned(),
        options => options.join(", "),
    }
}

impl Column {
    /// A column with one controller.
    pub fn of(cc: CcSpec) -> Self {
        Self(vec![cc])
    }

    /// The controllers in the order written; never empty.
    pub fn members(&self) -> &[CcSpec] {
        &self.0
    }

    /// The distinct controllers in the order written.
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

fn member(text: &str) -> Result<CcSpec, ColumnError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ColumnError::Empty);
    }
    text.parse().map_err(|error| match error {
        SpecError::UnknownAlgorithm => {
            let name = text.split(':').next().unwrap_or(text).to_owned();
            let near = match InLinux::named(&name).and_then(|it| CcSpec::in_kernel(it.name())) {
                Some(spec) => vec![spec.algorithm().name()],
                None => nearest(&name.to_lowercase(), &Algorithm::ALL.map(Algorithm::name)),
            };
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
    format!("expected {names}, or a mix such as bbr3+cubic")
}

/// The entries of `known` with the smallest edit distance (Levenshtein) from `name`, if that is at
/// most half of its length.
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
    fn suggests_the_nearest_names() {
        let unknown = |name: &str, near: &[&'static str]| {
            assert_eq!(
                name.parse::<Column>(),
                Err(ColumnError::Unknown { name: name.into(), near: near.into() })
            );
        };
        unknown("cubci", &["cubic"]);
        unknown("bbr", &["bbr1"]);
        unknown("BBRv3", &["bbr3"]);
        unknown("newreno", &["reno"]);
        unknown("westwood", &[]);
        for text in ["bbr3+", ""] {
            assert_eq!(text.parse::<Column>(), Err(ColumnError::Empty));
        }
        for (text, options) in [("loss-floor", 1), ("LossFloor", 1), ("loss_flor", 1), ("x", 0)] {
            match format!("bbr1+bbr3:rtt_fair:{text}").parse::<Column>() {
                Err(ColumnError::UnknownOption { algorithm: Algorithm::Bbr3, option, near }) => {
                    assert_eq!((option.as_str(), near.len()), (text, options));
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        for text in ["cubic:", "bbr3:rtt_fair:rtt_fair"] {
            match format!("bbr1+{text}").parse::<Column>() {
                Err(ColumnError::Option { text: found, .. }) => assert_eq!(found, text),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
