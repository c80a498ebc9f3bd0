//! Which discipline a queue follows, and how people write it.

use std::fmt;
use std::str::FromStr;

use super::{
    Cake, CakeSpec, Codel, CodelSpec, DropTail, DualPi2, DualPi2Spec, FqCodel, FqCodelSpec, Pie,
    PieSpec, Queue,
};

/// A queue discipline with its parameters. The size of the queue is not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueSpec {
    /// First in, first out; what does not fit is lost.
    #[default]
    DropTail,
    /// First in, first out, and drops when packets wait too long (RFC 8289).
    Codel(CodelSpec),
    /// Flows take turns, each under CoDel (RFC 8290).
    FqCodel(FqCodelSpec),
    /// Hosts take turns, and their flows, each under CoDel.
    Cake(CakeSpec),
    /// Two coupled queues (RFC 9332).
    DualPi2(DualPi2Spec),
    /// Proportional integral controller, enhanced (RFC 8033).
    Pie(PieSpec),
}

/// Why a text describes no queue discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueError {
    /// No discipline has this name.
    Discipline(String),
    /// The discipline has no such parameter.
    Parameter {
        /// Its name.
        discipline: &'static str,
        /// What was given.
        word: String,
        /// What it has.
        known: &'static [&'static str],
    },
    /// A parameter's value is missing, superfluous or out of range.
    Value {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        key: &'static str,
        /// What was given.
        word: String,
        /// What ought to be.
        expected: &'static str,
    },
    /// A parameter came twice.
    Twice {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        key: &'static str,
    },
}

impl QueueSpec {
    /// An empty queue for at most `limit_bytes` bytes.
    pub fn build<T>(&self, limit_bytes: u64) -> Queue<T> {
        match self {
            Self::DropTail => Queue::DropTail(DropTail::new(limit_bytes)),
            Self::Codel(spec) => Queue::Codel(Codel::new(*spec, limit_bytes)),
            Self::FqCodel(spec) => Queue::FqCodel(FqCodel::new(*spec, limit_bytes)),
            Self::Cake(spec) => Queue::Cake(Cake::new(*spec, limit_bytes)),
            Self::DualPi2(spec) => Queue::DualPi2(DualPi2::new(*spec, limit_bytes)),
            Self::Pie(spec) => Queue::Pie(Pie::new(*spec, limit_bytes)),
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
            "droptail" if list.is_none() => Ok(Self::DropTail),
            "codel" => CodelSpec::parse(list).map(Self::Codel),
            "fq_codel" => FqCodelSpec::parse(list).map(Self::FqCodel),
            "cake" => CakeSpec::parse(list).map(Self::Cake),
            "dualpi2" => DualPi2Spec::parse(list).map(Self::DualPi2),
            "pie" => PieSpec::parse(list).map(Self::Pie),
            _ => Err(QueueError::Discipline(text.to_owned())),
        }
    }
}

/// Writes what [`QueueSpec::from_str`] reads.
impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTail => f.write_str("droptail"),
            Self::Codel(spec) => spec.fmt(f),
            Self::FqCodel(spec) => spec.fmt(f),
            Self::Cake(spec) => spec.fmt(f),
            Self::DualPi2(spec) => spec.fmt(f),
            Self::Pie(spec) => spec.fmt(f),
        }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discipline(text) => {
                write!(
                    f,
                    "there is no queue discipline {text}: write droptail, codel, fq_codel, cake, dualpi2 or pie"
                )
            }
            Self::Parameter { discipline, word, known } => {
                write!(f, "{discipline} has no parameter {word}; it has {}", known.join(", "))
            }
            Self::Value { discipline, key, word, expected } => {
                write!(f, "the {key} of {discipline} needs {expected}, not {word}")
            }
            Self::Twice { discipline, key } => {
                write!(f, "the {key} of {discipline} comes twice: give it once")
            }
        }
    }
}

impl std::error::Error for QueueError {}
