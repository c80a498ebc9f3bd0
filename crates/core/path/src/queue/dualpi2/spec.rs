//! DualPI2's parameters.

use std::fmt;

use uncork_units::TimeDelta;

use crate::queue::params::{Param, ParamWriter, Params};
use crate::queue::pi::{gain, period};
use crate::queue::{Gain, QueueError};

/// Parameters of DualPI2, with the defaults of RFC 9332, figure 2 and appendix A. The RFC's limit,
/// 250 ms at the link's rate, is the queue size here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualPi2Spec {
    /// Target queueing delay of the classic queue.
    pub target: TimeDelta,
    /// The time between updates of the base probability (Tupdate).
    pub tupdate: TimeDelta,
    /// Gain for the delay error (integral).
    pub alpha: Gain,
    /// Gain for the delay change (proportional).
    pub beta: Gain,
    /// Coupling factor: ratio of the L queue's probability to the base probability.
    pub k: u32,
    /// L queue delay below which its own AQM does not mark (minTh).
    pub min_threshold: TimeDelta,
    /// Above it the marking probability rises to 1 over this range; 0 makes it a step (range).
    pub range: TimeDelta,
    /// Weight of the L queue relative to the classic queue.
    pub weight: u32,
    /// Signals as Linux gives them: drawn at random, none by probability with less than two packets left, and the L
    /// queue's own threshold also holds for its last packet.
    pub linux: bool,
}

impl Default for DualPi2Spec {
    fn default() -> Self {
        Self {
            target: TimeDelta::from_millis(15),
            tupdate: TimeDelta::from_millis(16),
            alpha: Gain::from_millihertz(160),
            beta: Gain::from_millihertz(3200),
            k: 2,
            min_threshold: TimeDelta::from_micros(800),
            range: TimeDelta::from_micros(400),
            weight: 15,
            linux: false,
        }
    }
}

impl DualPi2Spec {
    const KEYS: &'static [&'static str] =
        &["target", "tupdate", "alpha", "beta", "k", "step", "minth", "range", "weight", "linux"];

    /// Linux' defaults, where they differ (`net/sched/sch_dualpi2.c`).
    fn linux() -> Self {
        let min_threshold = TimeDelta::from_millis(1);
        Self { min_threshold, range: TimeDelta::ZERO, weight: 9, linux: true, ..Self::default() }
    }

    /// Parses the parameters after `dualpi2`.
    pub(in crate::queue) fn parse(list: Option<&str>) -> Result<Self, QueueError> {
        let is_linux = list.is_some_and(|list| list.split(',').any(|word| word == "linux"));
        let mut spec = if is_linux { Self::linux() } else { Self::default() };
        for param in Params::new("dualpi2", Self::KEYS, list) {
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
            "k" => self.k = param.read(&(1..=16), "a whole number from 1 to 16")?,
            "minth" => self.min_threshold = threshold(param)?,
            "range" => self.range = threshold(param)?,
            "step" => (self.min_threshold, self.range) = (threshold(param)?, TimeDelta::ZERO),
            "linux" => param.flag()?,
            _ => self.weight = param.read(&(1..=1000), "a whole number from 1 to 1000")?,
        }
        Ok(())
    }
}

/// A delay in the L queue.
fn threshold(param: &Param<'_>) -> Result<TimeDelta, QueueError> {
    let range = TimeDelta::ZERO..=TimeDelta::from_secs(10);
    param.read(&range, "a time up to 10s, such as 1ms")
}

/// Writes the discipline with its non-default parameters.
impl fmt::Display for DualPi2Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = if self.linux { Self::linux() } else { Self::default() };
        let mut list = ParamWriter::new(f, "dualpi2")?;
        list.flag("linux", "", self.linux, false)?;
        list.value("target", &self.target, &default.target)?;
        list.value("tupdate", &self.tupdate, &default.tupdate)?;
        list.value("alpha", &self.alpha, &default.alpha)?;
        list.value("beta", &self.beta, &default.beta)?;
        list.value("k", &self.k, &default.k)?;
        if self.range.is_zero() {
            // The RFC's default is a ramp.
            let step = if default.range.is_zero() { default.min_threshold } else { TimeDelta::MAX };
            list.value("step", &self.min_threshold, &step)?;
        } else {
            list.value("minth", &self.min_threshold, &default.min_threshold)?;
            list.value("range", &self.range, &default.range)?;
        }
        list.value("weight", &self.weight, &default.weight)
    }
}

#[cfg(test)]
mod tests {
    use crate::QueueSpec;

    #[test]
    fn display_and_parse_round_trip() {
        for text in [
            "dualpi2",
            "dualpi2:target=20ms,tupdate=10ms,alpha=0.25,beta=2.5,k=4,step=1ms,weight=9",
            "dualpi2:minth=475us,range=525us",
            "dualpi2:linux",
            "dualpi2:linux,target=20ms,step=2ms,weight=15",
            "dualpi2:linux,minth=800us,range=400us",
        ] {
            let spec: QueueSpec = text.parse().expect("a discipline");
            assert_eq!(spec.to_string(), text);
        }
        let default = "dualpi2:target=15ms,tupdate=16ms,alpha=0.16,beta=3.2,k=2,minth=800us,\
                       range=400us,weight=15";
        assert_eq!(default.parse::<QueueSpec>(), "dualpi2".parse());
        assert_eq!("dualpi2:weight=9,step=1ms,linux".parse::<QueueSpec>(), "dualpi2:linux".parse());
    }

    #[test]
    fn errors_describe_the_problem() {
        for (text, says) in [
            (
                "dualpi2:ecn",
                "dualpi2 has no parameter 'ecn'; it has target, tupdate, alpha, beta, k, step",
            ),
            ("dualpi2:k=0", "the k of dualpi2 needs a whole number from 1 to 16, not k=0"),
            ("dualpi2:k=1.5", "the k of dualpi2 needs a whole"),
            ("dualpi2:linux=1", "the linux of dualpi2 needs no value, not linux=1"),
            ("dualpi2:step=11s", "the step of dualpi2 needs a time up to 10s"),
        ] {
            let error = text.parse::<QueueSpec>().expect_err("refused").to_string();
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }
}
