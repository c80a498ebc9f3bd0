//! CAKE's parameters.

use std::fmt;

use uncork_units::TimeDelta;

use crate::queue::params::{ParamWriter, Params};
use crate::queue::{CodelSpec, QueueError};

/// Parameters of CAKE, with Linux's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeSpec {
    /// Typical RTT of the flows: CoDel's interval.
    pub rtt: TimeDelta,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CakeSpec {
    fn default() -> Self {
        Self { rtt: TimeDelta::from_millis(100), ecn: true }
    }
}

impl CakeSpec {
    /// Parses the parameters after `cake`.
    pub(in crate::queue) fn parse(list: Option<&str>) -> Result<Self, QueueError> {
        let mut spec = Self::default();
        for param in Params::new("cake", &["rtt", "ecn", "noecn"], list) {
            let param = param?;
            if param.key == "rtt" {
                spec.rtt = CodelSpec::time(&param)?;
            } else {
                param.flag()?;
                spec.ecn = param.key == "ecn";
            }
        }
        Ok(spec)
    }

    /// The CoDel of each flow.
    pub(super) fn codel(&self) -> CodelSpec {
        CodelSpec { target: self.rtt.divided_by(20), interval: self.rtt, ecn: self.ecn }
    }
}

impl fmt::Display for CakeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut list = ParamWriter::new(f, "cake")?;
        list.value("rtt", &self.rtt, &default.rtt)?;
        list.flag("ecn", "noecn", self.ecn, default.ecn)
    }
}
