//! PIE's parameters.

use std::fmt;

use uncork_units::TimeDelta;

use crate::queue::params::{Param, ParamWriter, Params};
use crate::queue::pi::{gain, period};
use crate::queue::{Gain, QueueError};

/// Parameters of PIE, with the defaults of RFC 8033, appendix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieSpec {
    /// Target queueing delay (QDELAY_REF).
    pub target: TimeDelta,
    /// The time between updates of the drop probability (T_UPDATE).
    pub tupdate: TimeDelta,
    /// Gain for the delay error (integral).
    pub alpha: Gain,
    /// Gain for the delay change (proportional).
    pub beta: Gain,
    /// How long a burst may last before packets are dropped (MAX_BURST).
    pub burst: TimeDelta,
    /// Marks ECN-capable packets rather than dropping them, up to a probability of 10 % (RFC 8033
    /// §5.1).
    pub ecn: bool,
    /// Keeps drops from being too close together or too far apart (RFC 8033 §5.4). Optional in the
    /// RFC; on by default because deployed PIE has it (RFC 8034, Linux), and because irregular
    /// drops hurt most with few flows. It makes drops rarer than the probability, one in 1.85 / p;
    /// the controller compensates for that.
    pub derandomize: bool,
}

impl Default for PieSpec {
    fn default() -> Self {
        Self {
            target: TimeDelta::from_millis(15),
            tupdate: TimeDelta::from_millis(15),
            alpha: Gain::from_millihertz(125),
            beta: Gain::from_millihertz(1250),
            burst: TimeDelta::from_millis(150),
            ecn: false,
            derandomize: true,
        }
    }
}

impl PieSpec {
    const KEYS: &'static [&'static str] = &[
        "target",
        "tupdate",
        "alpha",
        "beta",
        "burst",
        "ecn",
        "noecn",
        "derandomize",
        "noderandomize",
    ];

    /// Parses the parameters after `pie`.
    pub(in crate::queue) fn parse(list: Option<&str>) -> Result<Self, QueueError> {
        let mut spec = Self::default();
        for param in Params::new("pie", Self::KEYS, list) {
            spec.set(&param?)?;
        }
        Ok(spec)
    }

    fn set(&mut self, param: &Param<'_>) -> Result<(), QueueError> {
        match param.key {
            "target" => self.target = period(param)?,
            "tupdate" => self.tupdate = period(param)?,
            "alpha" => self.alpha = gain(param)?,
            "beta" => self.beta = gain(param)?,
            "burst" => {
                let range = TimeDelta::ZERO..=TimeDelta::from_secs(10);
                self.burst = param.read(&range, "a time up to 10s, such as 150ms")?;
            }
            word => {
                param.flag()?;
                match word {
                    "ecn" | "noecn" => self.ecn = word == "ecn",
                    _ => self.derandomize = word == "derandomize",
                }
            }
        }
        Ok(())
    }
}

/// Writes the discipline with its non-default parameters.
impl fmt::Display for PieSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut list = ParamWriter::new(f, "pie")?;
        list.value("target", &self.target, &default.target)?;
        list.value("tupdate", &self.tupdate, &default.tupdate)?;
        list.value("alpha", &self.alpha, &default.alpha)?;
        list.value("beta", &self.beta, &default.beta)?;
        list.value("burst", &self.burst, &default.burst)?;
        list.flag("ecn", "noecn", self.ecn, default.ecn)?;
        list.flag("derandomize", "noderandomize", self.derandomize, default.derandomize)
    }
}

#[cfg(test)]
mod tests {
    use crate::QueueSpec;

    #[test]
    fn display_and_parse_round_trip() {
        for text in [
            "pie",
            "pie:target=5ms,tupdate=10ms,alpha=0.25,beta=2.5,burst=100ms,ecn,noderandomize",
            "pie:burst=0ns",
        ] {
            let spec: QueueSpec = text.parse().expect("a discipline");
            assert_eq!(spec.to_string(), text);
        }
        let default = "pie:target=15ms,tupdate=15ms,alpha=0.125,beta=1.25,burst=150ms";
        assert_eq!(default.parse::<QueueSpec>(), "pie".parse());
    }

    #[test]
    fn errors_describe_the_problem() {
        for (text, says) in [
            (
                "pie:goal=1ms",
                "pie has no parameter 'goal'; it has target, tupdate, alpha, beta, burst,",
            ),
            ("pie:target", "the target of pie needs a time from 100us to 10s, such as 15ms, not"),
            ("pie:target=15", "the target of pie needs a time"),
            ("pie:tupdate=0ms", "the tupdate of pie needs a time from 100us"),
            ("pie:alpha=0", "the alpha of pie needs a gain from 0.001 to 1000 hertz, such as"),
            ("pie:ecn=yes", "the ecn of pie needs no value, not ecn=yes"),
            ("pie:", "pie has no parameter ''; it has"),
            ("pie:ecn,ecn", "ecn of pie is given twice"),
            ("pies", "unknown queue discipline 'pies'; expected droptail,"),
        ] {
            let error = text.parse::<QueueSpec>().expect_err("refused").to_string();
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }
}
