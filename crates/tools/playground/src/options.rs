//! The page's options, as `uncork compare` has them, and the limits of a page.

use serde::Serialize;
use uncork_lab::{CompareError, CompareSpec, OptionError, Scenario, Workload};
use uncork_path::PathSpec;

/// Maximum number of packets of all runs: some seconds on one core.
const MAX_PACKETS: u64 = 4_000_000;
/// Maximum number of flows of all runs.
const MAX_FLOWS: u64 = 20_000;

/// Why options are not run: the option and a message with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The option at fault.
    pub option: String,
    /// The problem and its remedy.
    pub message: String,
}

impl Refusal {
    fn new(option: &str, message: impl Into<String>) -> Self {
        Self { option: option.to_owned(), message: message.into() }
    }

    /// A comparison that its own check refuses.
    pub(crate) fn of_check(spec: &CompareSpec, error: &CompareError) -> Self {
        Self::new(spec.option_of(error), error.to_string())
    }

    /// A comparison that its own check has accepted, and that cannot be run nevertheless.
    pub(crate) fn of_scenario(error: &impl ToString) -> Self {
        Self::new("", error.to_string())
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<OptionError> for Refusal {
    fn from(error: OptionError) -> Self {
        Self::new(error.option(), error.to_string())
    }
}

/// A comparison of controllers on one path that a page can run.
pub(crate) struct Options {
    pub(crate) spec: CompareSpec,
    pub(crate) scenario: Scenario,
    pub(crate) path: PathSpec,
}

impl Options {
    /// The comparison of `text`, which has a line `name=value` for each option that is given.
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let pairs = lines.map(|line| line.split_once('=').unwrap_or((line, "")));
        let spec = CompareSpec::of_options(pairs.map(|(name, value)| (name.trim(), value)))?;
        let path = one_path(&spec)?;
        check_size(&spec)?;
        let scenario = spec.scenario(None).map_err(|error| Refusal::of_check(&spec, &error))?;
        Ok(Self { spec, scenario, path })
    }
}

fn one_path(spec: &CompareSpec) -> Result<PathSpec, Refusal> {
    let counts = [
        ("rate", spec.rates.len()),
        ("rtt", spec.rtts.len()),
        ("loss", spec.losses.len()),
        ("buffer", spec.buffers.len()),
    ];
    if let Some((option, _)) = counts.iter().find(|(_, count)| *count > 1) {
        let message = format!(
            "'{option}' has several values, and this page runs one path; use one value, or run in a terminal: {}",
            spec.command()
        );
        return Err(Refusal::new(option, message));
    }
    let paths = spec.paths().into_iter();
    paths.last().ok_or_else(|| Refusal::new("preset", "the preset has no path; use another"))
}

fn check_size(spec: &CompareSpec) -> Result<(), Refusal> {
    let flows = spec.flow_count();
    let (option, what, count, max) = if flows > MAX_FLOWS {
        ("seeds", "flows", flows, MAX_FLOWS)
    } else if spec.packet_count() > MAX_PACKETS {
        let option =
            if matches!(spec.workload, Workload::Duration(_)) { "duration" } else { "size" };
        (option, "packets", spec.packet_count(), MAX_PACKETS)
    } else {
        return Ok(());
    };
    let message = format!(
        "{count} {what} in all are too many for a page; the limit is {max}: use less data, fewer flows, or fewer seeds, \
         or run in a terminal: {}",
        spec.command()
    );
    Err(Refusal::new(option, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Refusal {
        Options::parse(text).map(|_| ()).unwrap_err()
    }

    #[test]
    fn options_without_text_are_the_defaults() {
        let options = Options::parse("").unwrap_or_else(|refusal| panic!("{}", refusal.message));
        assert_eq!(options.spec.columns.len(), 3);
    }

    #[test]
    fn refusals_name_the_option_and_the_remedy() {
        for (text, option, message) in [
            ("rate=fast", "rate", "invalid value 'fast' for 'rate'"),
            ("bogus", "bogus", "unknown option 'bogus'"),
            ("rtt=10ms,20ms", "rtt", "one value, or run in a terminal: uncork compare --rate"),
            ("size=10GB", "size", "packets in all are too many for a page"),
            ("duration=60s\nrate=10gbit", "duration", "packets in all are too many for a page"),
            ("seeds=10000", "seeds", "30000 flows in all are too many for a page"),
        ] {
            let refused = refusal(text);
            assert_eq!(refused.option, option, "{text}");
            assert!(refused.message.contains(message), "{}", refused.message);
        }
    }
}
