//! Text format of loss models.

use std::fmt;
use std::str::FromStr;

use uncork_units::{ParseError, Probability};

use crate::decimal::{of_thousandths, thousandths, whole};
use crate::{GilbertElliott, LossSpec};

/// Why a text is not a valid loss model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LossError {
    /// Not a probability, and none of the other models.
    #[error("{0}")]
    Probability(ParseError),
    /// `every:` without a count of packets.
    #[error("every:N drops every Nth packet; N must be at least 1, such as every:100")]
    Every,
    /// `gilbert:` with missing or invalid values.
    #[error(
        "a loss in bursts has a mean and a burst of at least 1 packet, with at most 3 decimal \
         places: write gilbert:mean=1%,burst=5"
    )]
    Gilbert,
    /// `gemodel:` with missing or invalid values.
    #[error(
        "a Gilbert-Elliott channel has the probabilities to enter the bad state and to leave it, \
         and of loss in both: write gemodel:p=1%,r=20%,bad=100%,good=0%"
    )]
    Gemodel,
    /// Unknown value name.
    #[error("unknown parameter '{}'; expected {}", .0, .1.join(", "))]
    Name(String, &'static [&'static str]),
    /// The value of this name is not a probability.
    #[error("{0}: {1}")]
    Value(&'static str, ParseError),
    /// No simple channel has this mean with such short bursts, in thousandths of a packet.
    #[error("{}", bursts_too_short(*mean, *least))]
    Burst {
        /// The loss rate.
        mean: Probability,
        /// The shortest possible bursts, in thousandths of a packet.
        least: u64,
    },
}

/// Parses `1%`; `every:100` (each hundredth packet); `gilbert:mean=1%,burst=5` (1 % loss in bursts
/// of 5 packets on average); and `gemodel:p=1%,r=20%,bad=100%,good=0%`. Its last two values are
/// optional, as in `tc-netem`.
impl FromStr for LossSpec {
    type Err = LossError;

    fn from_str(text: &str) -> Result<Self, LossError> {
        let trimmed = text.trim();
        match trimmed.split_once(':') {
            Some(("every", count)) => every(count),
            Some(("gilbert", values)) => gilbert(values).map(Self::GilbertElliott),
            Some(("gemodel", values)) => gemodel(values).map(Self::GilbertElliott),
            _ => text.parse().map(Self::Bernoulli).map_err(LossError::Probability),
        }
    }
}

fn every(count: &str) -> Result<LossSpec, LossError> {
    match whole(count) {
        Some(n) if n > 0 => Ok(LossSpec::EveryNth(n)),
        _ => Err(LossError::Every),
    }
}

fn gilbert(text: &str) -> Result<GilbertElliott, LossError> {
    let [mean, burst] = values(text, &["mean", "burst"], LossError::Gilbert)?;
    let (Some(mean), Some(burst)) = (mean, burst) else { return Err(LossError::Gilbert) };
    let mean = probability("mean", mean)?;
    let burst = thousandths(burst).ok_or(LossError::Gilbert)?;
    GilbertElliott::simple(mean, burst).ok_or(LossError::Burst { mean, least: least_burst(mean) })
}

/// In thousandths of a packet.
fn least_burst(mean: Probability) -> u64 {
    let (lost, all) = (mean.steps(), Probability::ALWAYS.steps());
    (lost * 1000).div_ceil((all - lost).max(1)).max(1000)
}

fn gemodel(text: &str) -> Result<GilbertElliott, LossError> {
    let [p, r, bad, good] = values(text, &["p", "r", "bad", "good"], LossError::Gemodel)?;
    let (Some(p), Some(r)) = (p, r) else { return Err(LossError::Gemodel) };
    let optional = |name, value: Option<_>, otherwise| {
        value.map_or(Ok(otherwise), |value| probability(name, value))
    };
    Ok(GilbertElliott {
        enter_bad: probability("p", p)?,
        leave_bad: probability("r", r)?,
        loss_bad: optional("bad", bad, Probability::ALWAYS)?,
        loss_good: optional("good", good, Probability::NEVER)?,
    })
}

fn probability(name: &'static str, text: &str) -> Result<Probability, LossError> {
    text.parse().map_err(|error| LossError::Value(name, error))
}

/// The values of `name=value,…` in the order of `names`. Returns the error `form` for another
/// syntax or a repeated name.
fn values<'text, const N: usize>(
    text: &'text str,
    names: &'static [&'static str; N],
    form: LossError,
) -> Result<[Option<&'text str>; N], LossError> {
    let mut values = [None; N];
    for part in text.split(',') {
        let Some((name, value)) = part.split_once('=') else { return Err(form) };
        let name = name.trim();
        let Some(place) = names.iter().position(|known| *known == name) else {
            return Err(LossError::Name(name.to_owned(), names));
        };
        if values[place].replace(value.trim()).is_some() {
            return Err(form);
        }
    }
    Ok(values)
}

/// Writes the format that [`LossSpec::from_str`] parses: the simple channel by mean and burst if
/// they give exactly this channel, otherwise by its probabilities.
impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bernoulli(probability) => probability.fmt(f),
            Self::EveryNth(0) => Probability::NEVER.fmt(f),
            Self::EveryNth(n) => write!(f, "every:{n}"),
            Self::GilbertElliott(channel) => {
                if let Some((mean, burst)) = mean_and_burst(*channel) {
                    return write!(f, "gilbert:mean={mean},burst={}", of_thousandths(burst));
                }
                let GilbertElliott { enter_bad, leave_bad, loss_bad, loss_good } = channel;
                write!(f, "gemodel:p={enter_bad},r={leave_bad},bad={loss_bad},good={loss_good}")
            }
        }
    }
}

/// The shortest mean and the burst in thousandths that give `channel`.
fn mean_and_burst(channel: GilbertElliott) -> Option<(Probability, u64)> {
    let (enter, leave) = (channel.enter_bad.steps(), channel.leave_bad.steps());
    let all = Probability::ALWAYS.steps();
    let burst = (all * 1000 + leave / 2).checked_div(leave)?;
    let mean = Probability::of(enter, enter + leave).steps();
    let roundings = (0..=11).rev().map(|digits| 10_u64.pow(digits));
    let mut means = roundings.map(|unit| Probability::of((mean + unit / 2) / unit * unit, all));
    let mean = means.find(|mean| GilbertElliott::simple(*mean, burst) == Some(channel))?;
    Some((mean, burst))
}

fn bursts_too_short(mean: Probability, least: u64) -> String {
    if mean == Probability::ALWAYS {
        return "a burst that loses everything never ends; write 100%".to_owned();
    }
    let least = of_thousandths(least);
    format!("a mean of {mean} needs bursts of at least {least} packets; use burst={least}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uncork_testkit::assert_message;

    fn error(text: &str) -> String {
        text.parse::<LossSpec>().expect_err("no loss").to_string()
    }

    #[test]
    fn display_and_parse_round_trip() {
        for text in [
            "1%",
            "0.000000001%",
            "every:1",
            "every:100",
            "gilbert:mean=1%,burst=5",
            "gilbert:mean=0.37%,burst=1.125",
            "gilbert:mean=50%,burst=1",
            "gemodel:p=2%,r=10%,bad=50%,good=1%",
            "gemodel:p=0.123456789%,r=0%,bad=100%,good=0%",
        ] {
            let spec: LossSpec = text.parse().expect(text);
            assert_eq!(spec.to_string(), text);
        }
        for (text, canonical) in [
            (" 2 %", "2%"),
            ("gilbert: burst = 5, mean = 1%", "gilbert:mean=1%,burst=5"),
            ("gemodel:r=20%,p=1%,good=1%", "gemodel:p=1%,r=20%,bad=100%,good=1%"),
            ("gemodel:p=25%,r=25%", "gilbert:mean=50%,burst=4"),
        ] {
            let spec: LossSpec = text.parse().expect(text);
            assert_eq!(spec.to_string(), canonical);
        }
        assert_eq!(LossSpec::EveryNth(0).to_string(), "0%");
    }

    #[test]
    fn errors_suggest_the_correct_form() {
        for text in ["1", "0.01", "101%", "-1%", "x:1%", ""] {
            let of_probability = text.parse::<Probability>().expect_err("none").to_string();
            assert_eq!(error(text), of_probability, "{text:?}: as without the other kinds");
        }
        for text in [
            "every:",
            "every:0",
            "every:x",
            "every:+1",
            "every:1%",
            "gilbert:",
            "gilbert:mean=1%",
            "gilbert:burst=5",
            "gilbert:mean=1%,burst=5,mean=1%",
            "gilbert:mean=1%,burst=five",
            "gilbert:mean=1%,burst=1.0001",
            "gilbert:mean=0.01,burst=5",
            "gilbert:mean=1%,brust=5",
            "gilbert:mean=90%,burst=5",
            "gilbert:mean=1%,burst=0.5",
            "gilbert:mean=100%,burst=5",
            "gemodel:",
            "gemodel:p=1%",
            "gemodel:1%,2%",
            "gemodel:p=1%,r=1%,q=1%",
            "gemodel:p=1%,r=2",
        ] {
            assert_message!(text, error(text));
        }
    }

    proptest! {
        #[test]
        fn every_channel_reads_back(steps in proptest::array::uniform4(0_u64..=100_000_000_000)) {
            let all = Probability::ALWAYS.steps();
            let [enter_bad, leave_bad, loss_bad, loss_good] =
                steps.map(|steps| Probability::of(steps, all));
            let channel = GilbertElliott { enter_bad, leave_bad, loss_bad, loss_good };
            let spec = LossSpec::GilbertElliott(channel);
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }

        #[test]
        fn every_simple_channel_reads_back(mean in 0_u64..=50_000, burst in 1000_u64..=100_000) {
            let mean = Probability::of(mean, 100_000);
            let channel = GilbertElliott::simple(mean, burst).expect("at most half is lost");
            let spec = LossSpec::GilbertElliott(channel);
            prop_assert!(spec.to_string().len() < 36, "{spec}");
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }

        #[test]
        fn the_least_burst_is_enough(mean in 0_u64..100_000) {
            let mean = Probability::of(mean, 100_000);
            let least = least_burst(mean);
            prop_assert!(GilbertElliott::simple(mean, least).is_some());
            prop_assert!(GilbertElliott::simple(mean, least - 1).is_none());
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(every:|gilbert:|gemodel:)?[a-z=,.%0-9:]{0,20}") {
            if let Err(error) = text.parse::<LossSpec>() {
                prop_assert!(error.to_string().len() > 10);
            }
        }
    }
}
