//! Queue disciplines and their text format.

use std::fmt;
use std::str::FromStr;

use super::params::Params;
use super::{
    Cake, CakeSpec, Codel, CodelSpec, DropTail, DualPi2, DualPi2Spec, FqCodel, FqCodelSpec, Pie,
    PieSpec, Queue, StepMarking, StepSpec,
};

/// A queue discipline with its parameters. The size of the queue is not part of it.
///
/// Written as its name and, after a colon, its non-default parameters, such as
/// `codel:target=10ms,ecn`:
///
/// | name       | parameter                      | default         | meaning                        |
/// |------------|--------------------------------|-----------------|--------------------------------|
/// | `droptail` |                                |                 |                                |
/// | `codel`    | `target`                       | `5ms`           | sojourn time that is accepted  |
/// |            | `interval`                     | `100ms`         | for how long it may be more    |
/// |            | `ecn`, `noecn`                 | `noecn`         | whether marks replace drops    |
/// | `fq_codel` | `flows`                        | `1024`          | queues that flows are hashed to |
/// |            | `quantum`                      | `1500B`         | bytes of a queue's turn        |
/// |            | `limit`                        | `10240`         | packets that wait at most      |
/// |            | `target`, `interval`           | as for `codel`  |                                |
/// |            | `ecn`, `noecn`                 | `ecn`           |                                |
/// | `cake`     | `rtt`                          | `100ms`         | interval; target is rtt / 20   |
/// |            | `ecn`, `noecn`                 | `ecn`           |                                |
/// | `pie`      | see [`PieSpec`]                |                 |                                |
/// | `step`     | `threshold`                    | `1ms`           | sojourn time that is marked    |
/// | `dualpi2`  | see [`DualPi2Spec`]            |                 |                                |
///
/// The defaults are those of RFC 8289 §5.3 and RFC 8290 §5.2, and Linux's for `cake`. A target
/// should be at least one packet's transmission time (RFC 8290 §5.2.2), so set it on links below
/// 2.4 Mbit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueSpec {
    /// FIFO with tail drop.
    #[default]
    DropTail,
    /// FIFO that drops when packets wait too long (RFC 8289).
    Codel(CodelSpec),
    /// Fair queueing among flows, each with CoDel (RFC 8290).
    FqCodel(FqCodelSpec),
    /// Fair queueing among hosts and their flows, each with CoDel.
    Cake(CakeSpec),
    /// Two coupled queues (RFC 9332).
    DualPi2(DualPi2Spec),
    /// Proportional integral controller, enhanced (RFC 8033).
    Pie(PieSpec),
    /// FIFO that marks above a fixed sojourn time.
    Step(StepSpec),
}

/// Why a text is not a valid queue discipline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Unknown discipline.
    #[error(
        "unknown queue discipline '{0}'; expected droptail, codel, fq_codel, cake, dualpi2, pie or step"
    )]
    Discipline(String),
    /// Unknown parameter.
    #[error("{}", unknown_parameter(discipline, word, known))]
    Parameter {
        /// Its name.
        discipline: &'static str,
        /// The given word.
        word: String,
        /// The known parameters.
        known: &'static [&'static str],
    },
    /// A parameter's value is missing, unexpected or out of range.
    #[error("the {key} of {discipline} needs {expected}, not {word}")]
    Value {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        key: &'static str,
        /// The given word.
        word: String,
        /// The requirement.
        expected: &'static str,
    },
    /// A parameter is given twice.
    #[error("{key} of {discipline} is given twice")]
    Twice {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        key: &'static str,
    },
}

impl QueueSpec {
    /// Checks that the parameters are within the ranges of the text format.
    pub fn check(&self) -> Result<(), QueueError> {
        self.to_string().parse::<Self>().map(drop)
    }

    /// An empty queue for at most `limit_bytes` bytes.
    pub fn build<T>(&self, limit_bytes: u64) -> Queue<T> {
        match self {
            Self::DropTail => Queue::DropTail(DropTail::new(limit_bytes)),
            Self::Codel(spec) => Queue::Codel(Codel::new(*spec, limit_bytes)),
            Self::FqCodel(spec) => Queue::FqCodel(FqCodel::new(*spec, limit_bytes)),
            Self::Cake(spec) => Queue::Cake(Cake::new(*spec, limit_bytes)),
            Self::DualPi2(spec) => Queue::DualPi2(DualPi2::new(*spec, limit_bytes)),
            Self::Pie(spec) => Queue::Pie(Pie::new(*spec, limit_bytes)),
            Self::Step(spec) => Queue::Step(StepMarking::new(*spec, limit_bytes)),
        }
    }
}

impl FromStr for QueueSpec {
    type Err = QueueError;

    fn from_str(text: &str) -> Result<Self, QueueError> {
        let (name, list) = match text.split_once(':') {
            Some((name, list)) => (name, Some(list)),
            None => (text, None),
        };
        match name {
            "droptail" => {
                let mut params = Params::new("droptail", &[], list);
                params.try_for_each(|param| param.map(drop)).map(|()| Self::DropTail)
            }
            "codel" => CodelSpec::parse(list).map(Self::Codel),
            "fq_codel" => FqCodelSpec::parse(list).map(Self::FqCodel),
            "cake" => CakeSpec::parse(list).map(Self::Cake),
            "dualpi2" => DualPi2Spec::parse(list).map(Self::DualPi2),
            "pie" => PieSpec::parse(list).map(Self::Pie),
            "step" => StepSpec::parse(list).map(Self::Step),
            _ => Err(QueueError::Discipline(name.to_owned())),
        }
    }
}

/// Writes the format that [`QueueSpec::from_str`] parses.
impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTail => f.write_str("droptail"),
            Self::Codel(spec) => spec.fmt(f),
            Self::FqCodel(spec) => spec.fmt(f),
            Self::Cake(spec) => spec.fmt(f),
            Self::DualPi2(spec) => spec.fmt(f),
            Self::Pie(spec) => spec.fmt(f),
            Self::Step(spec) => spec.fmt(f),
        }
    }
}

fn unknown_parameter(discipline: &str, word: &str, known: &[&str]) -> String {
    match known {
        [] => format!("{discipline} has no parameters: leave out {word}"),
        known => format!("{discipline} has no parameter '{word}'; it has {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_units::{ByteCount, TimeDelta};

    fn spec(text: &str) -> QueueSpec {
        text.parse().expect("a discipline")
    }

    fn error(text: &str) -> String {
        text.parse::<QueueSpec>().expect_err("no discipline").to_string()
    }

    #[test]
    fn display_and_parse_round_trip() {
        for text in [
            "droptail",
            "codel",
            "codel:target=10ms,interval=200ms,ecn",
            "fq_codel",
            "fq_codel:flows=16,quantum=300B,limit=100,target=1ms,interval=20ms,noecn",
            "cake",
            "cake:rtt=50ms,noecn",
            "step",
            "step:threshold=500us",
        ] {
            assert_eq!(spec(text).to_string(), text);
        }
        assert_eq!(spec("codel:noecn,target=5ms"), spec("codel"));
        assert_eq!(spec("fq_codel:quantum=1500B,ecn").to_string(), "fq_codel");
    }

    /// RFC 8289 §5.3, RFC 8290 §5.2.
    #[test]
    fn defaults_follow_the_rfcs() {
        let ms = TimeDelta::from_millis;
        let codel = CodelSpec { target: ms(5), interval: ms(100), ecn: false };
        assert_eq!(spec("codel"), QueueSpec::Codel(codel));
        let fq_codel = FqCodelSpec {
            flows: 1024,
            quantum: ByteCount::new(1500),
            limit: 10_240,
            codel: CodelSpec { ecn: true, ..codel },
        };
        assert_eq!(spec("fq_codel"), QueueSpec::FqCodel(fq_codel));
        assert_eq!(spec("cake"), QueueSpec::Cake(CakeSpec { rtt: ms(100), ecn: true }));
    }

    /// A controller with period zero would never finish its updates; zero flows would become one.
    #[test]
    fn parameters_outside_the_text_format_are_rejected() {
        for text in ["droptail", "codel:ecn", "fq_codel", "cake", "pie", "dualpi2:step=0ns"] {
            assert_eq!(spec(text).check(), Ok(()), "{text}");
        }
        let pie = PieSpec { tupdate: TimeDelta::ZERO, ..PieSpec::default() };
        let dualpi2 = DualPi2Spec { tupdate: TimeDelta::from_nanos(1), ..DualPi2Spec::default() };
        let fq_codel = FqCodelSpec { flows: 0, ..FqCodelSpec::default() };
        let interval = TimeDelta::from_secs(11);
        let codel = CodelSpec { interval, ..CodelSpec::default() };
        for (spec, message) in [
            (QueueSpec::Pie(pie), "the tupdate of pie needs a time from 100us to 10s"),
            (QueueSpec::DualPi2(dualpi2), "the tupdate of dualpi2 needs a time from 100us"),
            (QueueSpec::FqCodel(fq_codel), "the flows of fq_codel needs a number from 1 to 65536"),
            (QueueSpec::Codel(codel), "the interval of codel needs a time from 1us to 10s"),
            (QueueSpec::FqCodel(FqCodelSpec { codel, ..FqCodelSpec::default() }), "the interval"),
        ] {
            let error = spec.check().expect_err("refused").to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn errors_name_the_word_and_the_correct_form() {
        let time = "a time from 1us to 10s, such as 5ms";
        for (text, message) in [
            (
                "red:ecn",
                "unknown queue discipline 'red'; expected droptail, codel, fq_codel, cake,",
            ),
            ("droptail:ecn", "droptail has no parameters: leave out ecn"),
            (
                "codel:tarjet=5ms",
                "codel has no parameter 'tarjet'; it has target, interval, ecn, noecn",
            ),
            ("cake:", "cake has no parameter ''; it has rtt, ecn, noecn"),
            ("cake:rtt=1ms,", "cake has no parameter ''; it has rtt, ecn, noecn"),
            ("codel:target=5", &format!("the target of codel needs {time}, not target=5")),
            ("cake:rtt=11s", &format!("the rtt of cake needs {time}, not rtt=11s")),
            ("codel:interval", &format!("the interval of codel needs {time}, not interval")),
            ("codel:ecn=1", "the ecn of codel needs no value, not ecn=1"),
            ("fq_codel:flows=0", "the flows of fq_codel needs a number from 1 to 65536"),
            ("fq_codel:quantum=255B", "the quantum of fq_codel needs a size from 256B to 1MiB"),
            ("step:1ms", "step has no parameter '1ms'; it has threshold"),
            ("step:threshold=0s", "the threshold of step needs a time from 1us to 10s"),
            ("codel:ecn,ecn", "ecn of codel is given twice"),
        ] {
            assert!(error(text).starts_with(message), "{text}: {}", error(text));
        }
    }
}
