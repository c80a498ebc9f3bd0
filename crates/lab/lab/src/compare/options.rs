//! The options of a comparison by name, as `uncork compare` has them, and the command that repeats it.

use std::fmt::Display;
use std::str::FromStr;

use uncork_config::nearest;
use uncork_path::{HostJitter, LossPosition, LossSpec};

use super::{CompareError, CompareSpec, Start, Workload};
use crate::Preset;

/// Every option with the value that it has if it is not given. Without a value: absent.
const OPTIONS: [(&str, Option<&str>); 17] = [
    ("preset", None),
    ("rate", Some("20mbit")),
    ("rtt", Some("50ms")),
    ("loss", Some("1%")),
    ("loss-position", Some("after")),
    ("buffer", Some("1bdp")),
    ("queue", None),
    ("jitter", None),
    ("host-jitter", Some("usual")),
    ("size", Some("10MB")),
    ("duration", None),
    ("flows", Some("1")),
    ("start", None),
    ("initial-window", None),
    ("cc", Some("cubic,bbr1,bbr3")),
    ("seeds", Some("10")),
    ("seed", Some("1")),
];

/// Options that describe the path: their defaults do not override a preset.
const OF_PATH: [&str; 5] = ["rate", "rtt", "loss", "loss-position", "buffer"];

/// An option that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The name is unknown.
    #[error("unknown option '{name}'{}; expected one of {}", meant(*.near), names())]
    Unknown {
        /// Its name.
        name: String,
        /// The option with a similar name.
        near: Option<&'static str>,
    },
    /// It is given twice.
    #[error("'{0}' is given twice; leave one out")]
    Twice(&'static str),
    /// The traffic has a size and a duration.
    #[error("'size' and 'duration' exclude each other; leave one out")]
    SizeAndDuration,
    /// Its value is invalid.
    #[error("invalid value '{value}' for '{name}': {reason}")]
    Value {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// The problem and its remedy.
        reason: String,
    },
}

impl OptionError {
    /// The name of the option.
    pub fn option(&self) -> &str {
        match self {
            Self::Unknown { name, .. } => name,
            Self::Twice(name) | Self::Value { name, .. } => name,
            Self::SizeAndDuration => "duration",
        }
    }
}

impl CompareSpec {
    /// The comparison with these options and the defaults of `uncork compare`. It can be run.
    ///
    /// # Errors
    ///
    /// The first option that cannot be used.
    pub fn of_options<'a>(
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, OptionError> {
        let options = Options::of(given)?;
        let spec = options.spec()?;
        spec.check().map_err(|error| {
            let name = spec.option_of(&error);
            options.wrong(name, error)
        })?;
        Ok(spec)
    }

    /// The command that repeats it, with every value that affects the results.
    pub fn command(&self) -> String {
        let path = [
            option("preset", self.preset.as_ref().map(|preset| &preset.name)),
            option("rate", listed(&self.rates)),
            option("rtt", listed(&self.rtts)),
            option("loss", listed(&self.losses)),
            option("loss-position", self.position()),
            option("buffer", listed(&self.buffers)),
            option("queue", self.queue),
            option("jitter", self.jitter),
        ];
        let workload = match self.workload {
            Workload::Duration(duration) => option("duration", Some(duration)),
            Workload::Transfer(size) => option("size", Some(size)),
        };
        let Self { flows, seeds, first_seed, host_jitter, .. } = self;
        let columns = listed(&self.columns).unwrap_or_default();
        format!(
            "uncork compare{} --host-jitter {host_jitter}{workload}{}{} --flows {flows} --cc {columns} \
             --seeds {seeds} --seed {first_seed}",
            path.concat(),
            option("start", self.start.map(Start::name)),
            option("initial-window", self.initial_window),
        )
    }

    /// The option with the most values.
    fn longest(&self) -> &'static str {
        let counts = [
            ("cc", self.columns.len()),
            ("rate", self.rates.len()),
            ("rtt", self.rtts.len()),
            ("loss", self.losses.len()),
            ("buffer", self.buffers.len()),
        ];
        counts.iter().max_by_key(|(_, count)| *count).map_or("cc", |(option, _)| option)
    }

    /// The option that caused `error`.
    pub fn option_of(&self, error: &CompareError) -> &'static str {
        use uncork_path::PathSpecError as Path;
        match error {
            CompareError::Path(Path::Rate(_)) => "rate",
            CompareError::Path(Path::Rtt(_)) => "rtt",
            CompareError::Path(Path::LosesEverything) => "loss",
            CompareError::Path(Path::Queue(_)) => "queue",
            CompareError::Path(Path::Jitter(_)) => "jitter",
            CompareError::Path(_) => "buffer",
            CompareError::Duration(_) => "duration",
            CompareError::Start => "start",
            CompareError::NoColumns | CompareError::Twice(_) => "cc",
            CompareError::ValueTwice { option, .. } => option,
            CompareError::TooManyCells(_) => self.longest(),
            CompareError::Flows(_) => "flows",
            CompareError::Seeds(_) | CompareError::TooManyFlows(_) => "seeds",
            CompareError::FirstSeed(_) => "seed",
            CompareError::EmptyTransfer
            | CompareError::TooSlow(_)
            | CompareError::TooManyPackets(_) => match self.workload {
                Workload::Transfer(_) => "size",
                Workload::Duration(_) => "duration",
            },
        }
    }
}

impl Start {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::InTurn, Self::Iperf3, Self::Random, Self::Together];

    /// Its name as an option.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InTurn => "in-turn",
            Self::Iperf3 => "iperf3",
            Self::Random => "random",
            Self::Together => "together",
        }
    }
}

/// One or several random losses: `0%,1%`, `gilbert:mean=1%,burst=5`.
#[derive(Clone, Debug)]
pub struct Losses(pub Vec<LossSpec>);

impl FromStr for Losses {
    type Err = <LossSpec as FromStr>::Err;

    /// The parameters of a loss also have commas between them: `burst=5` is not a separate loss.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut texts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match texts.last_mut() {
                Some(last) if part.contains('=') && !part.contains(':') => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => texts.push(part.to_owned()),
            }
        }
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Self)
    }
}

/// Options with their values, without repetition.
struct Options<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Options<'a> {
    fn of(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, OptionError> {
        let mut options = Self(Vec::new());
        for (name, value) in given {
            let known = OPTIONS.iter().find(|(known, _)| *known == name);
            let (known, _) = known.ok_or_else(|| OptionError::Unknown {
                name: name.to_owned(),
                near: nearest(name, OPTIONS.map(|(known, _)| known)),
            })?;
            if options.given(known).is_some() {
                return Err(OptionError::Twice(known));
            }
            options.0.push((known, value));
        }
        match (options.given("size"), options.given("duration")) {
            (Some(_), Some(_)) => Err(OptionError::SizeAndDuration),
            _ => Ok(options),
        }
    }

    fn given(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// The value of `name`, given or by default. A preset has the defaults of its path.
    fn value(&self, name: &str) -> Option<&'a str> {
        let is_preset = OF_PATH.contains(&name) && self.given("preset").is_some();
        let usual = || OPTIONS.iter().find(|(known, _)| *known == name).and_then(|(_, it)| *it);
        self.given(name).or_else(|| usual().filter(|_| !is_preset))
    }

    fn wrong(&self, name: &'static str, reason: impl Display) -> OptionError {
        let value = self.value(name).unwrap_or_default().to_owned();
        OptionError::Value { name, value, reason: reason.to_string() }
    }

    fn parse<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, OptionError> {
        let parsed = self.value(name).map(|text| text.trim().parse());
        parsed.transpose().map_err(|error| self.wrong(name, error))
    }

    /// The values of a list with commas; empty if there is none.
    fn list<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Vec<T>, OptionError> {
        let Some(text) = self.value(name) else { return Ok(Vec::new()) };
        let values = text.split(',').map(|text| text.trim().parse());
        values.collect::<Result<_, _>>().map_err(|error| self.wrong(name, error))
    }

    /// A whole number.
    fn number(&self, name: &'static str) -> Result<u64, OptionError> {
        let number = self.value(name).and_then(|text| text.trim().parse().ok());
        number.ok_or_else(|| self.wrong(name, "expected a whole number, such as 10"))
    }

    /// A number that does not fit exceeds every limit, which the check reports.
    fn count(&self, name: &'static str) -> Result<u32, OptionError> {
        self.number(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// One of a few words.
    fn word<T: Copy>(
        &self,
        name: &'static str,
        known: &[(&'static str, T)],
    ) -> Result<Option<T>, OptionError> {
        let Some(text) = self.value(name) else { return Ok(None) };
        let found = known.iter().find(|(word, _)| *word == text.trim()).map(|(_, value)| *value);
        let words = || known.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        match found {
            None => Err(self.wrong(name, format!("expected one of {}", words()))),
            found => Ok(found),
        }
    }

    fn preset(&self) -> Result<Option<Preset>, OptionError> {
        let Some(name) = self.given("preset") else { return Ok(None) };
        let found = Preset::find(name.trim());
        let names = || Preset::all().iter().map(|preset| preset.name).collect::<Vec<_>>();
        match found {
            None => Err(self.wrong("preset", format!("expected one of {}", names().join(", ")))),
            found => Ok(found),
        }
    }

    fn spec(&self) -> Result<CompareSpec, OptionError> {
        let positions = [("after", LossPosition::After), ("before", LossPosition::Before)];
        Ok(CompareSpec {
            preset: self.preset()?,
            rates: self.list("rate")?,
            rtts: self.list("rtt")?,
            losses: self.parse("loss")?.map_or_else(Vec::new, |Losses(losses)| losses),
            loss_position: self.word("loss-position", &positions)?,
            buffers: self.list("buffer")?,
            queue: self.parse("queue")?,
            jitter: self.parse("jitter")?,
            host_jitter: self.parse("host-jitter")?.unwrap_or(HostJitter::Usual),
            workload: match self.parse("duration")? {
                Some(duration) => Workload::Duration(duration),
                None => Workload::Transfer(self.parse("size")?.unwrap_or_default()),
            },
            start: self.word("start", &Start::ALL.map(|start| (start.name(), start)))?,
            initial_window: self.parse("initial-window")?,
            columns: self.list("cc")?,
            flows: self.count("flows")?,
            seeds: self.count("seeds")?,
            first_seed: self.number("seed")?,
        })
    }
}

/// ` --name value`; empty without a value.
fn option(name: &str, value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| format!(" --{name} {value}"))
}

/// `0%,1%`; `None` for an empty list.
fn listed<T: ToString>(values: &[T]) -> Option<String> {
    let values: Vec<String> = values.iter().map(T::to_string).collect();
    (!values.is_empty()).then(|| values.join(","))
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

fn names() -> String {
    OPTIONS.map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(options: &[(&str, &str)]) -> String {
        CompareSpec::of_options(options.iter().copied()).unwrap().command()
    }

    fn error(options: &[(&str, &str)]) -> String {
        CompareSpec::of_options(options.iter().copied()).unwrap_err().to_string()
    }

    #[test]
    fn options_without_a_value_have_their_defaults() {
        assert_eq!(
            command(&[]),
            "uncork compare --rate 20mbit --rtt 50ms --loss 1% --loss-position after --buffer 1bdp \
             --host-jitter usual --size 10MB --flows 1 --cc cubic,bbr1,bbr3 --seeds 10 --seed 1"
        );
    }

    #[test]
    fn command_has_every_option_that_is_given() {
        let given = [
            ("preset", "lte"),
            ("queue", "codel:target=10ms"),
            ("jitter", "2ms"),
            ("rate", "5mbit,10mbit"),
            ("loss", "0%,gilbert:mean=1%,burst=5"),
            ("duration", "3s"),
            ("start", "together"),
            ("initial-window", "40p"),
            ("cc", "bbr3+cubic"),
        ];
        assert_eq!(
            command(&given),
            "uncork compare --preset lte --rate 5mbit,10mbit --loss 0%,gilbert:mean=1%,burst=5 \
             --queue codel:target=10ms --jitter 2ms \
             --host-jitter usual --duration 3s --start together --initial-window 40p --flows 1 --cc bbr3+cubic --seeds 10 --seed 1"
        );
    }

    #[test]
    fn preset_keeps_its_path() {
        let spec = CompareSpec::of_options([("preset", "lte")]).unwrap();
        assert_eq!(
            Some(spec.paths()),
            Preset::find("lte").and_then(|it| it.path()).map(|it| vec![it])
        );
    }

    #[test]
    fn invalid_options_are_named_with_a_remedy() {
        for (options, expected) in [
            (&[("rat", "1mbit")][..], "unknown option 'rat' (did you mean rate?); expected one of"),
            (&[("rtt", "1s"), ("rtt", "2s")], "'rtt' is given twice; leave one out"),
            (&[("size", "1MB"), ("duration", "1s")], "'size' and 'duration' exclude each other"),
            (&[("rate", "fast")], "invalid value 'fast' for 'rate': "),
            (&[("rate", "")], "invalid value '' for 'rate': "),
            (&[("queue", "red")], "invalid value 'red' for 'queue': unknown queue discipline"),
            (&[("jitter", "61s")], "invalid value '61s' for 'jitter': jitter of 61s is out of"),
            (&[("loss", "100%")], "invalid value '100%' for 'loss': every packet would be lost"),
            (&[("preset", "mars")], "invalid value 'mars' for 'preset': expected one of fibre, "),
            (&[("start", "now")], "invalid value 'now' for 'start': expected one of in-turn, "),
            (&[("cc", "")], "invalid value '' for 'cc': missing controller"),
            (
                &[("cc", "cubic,cubic")],
                "invalid value 'cubic,cubic' for 'cc': cubic is listed twice",
            ),
            (&[("seeds", "-1")], "invalid value '-1' for 'seeds': expected a whole number"),
            (&[("flows", "99999999999")], "invalid value '99999999999' for 'flows': expected 1 to"),
            (&[("size", "10TB")], "invalid value '10TB' for 'size': 207182320470 packets"),
            (&[("duration", "0s")], "invalid value '0s' for 'duration': expected 1ms to"),
        ] {
            let error = error(options);
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
