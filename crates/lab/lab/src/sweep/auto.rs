//! The shard of a task, by the variables that schedulers set for the tasks of an array.

use std::fmt;
use std::str::FromStr;

use super::plan::{Shard, ShardError};

/// What `--shard` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardChoice {
    /// This shard.
    Of(Shard),
    /// The shard of this task; of this number of shards, if it is given.
    Auto(Option<u64>),
}

/// Why the variables name no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AutoShardError {
    /// No scheduler.
    #[error(
        "this is not a task of an array: none of SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX and \
         BATCH_TASK_INDEX is set; write --shard I/N"
    )]
    NoVariable,
    /// A value that is not a number.
    #[error("the variable {0} is {1:?}, expected a number; write --shard I/N")]
    Number(&'static str, String),
    /// The number of tasks is unknown.
    #[error("{0} says nothing of the number of tasks; write --shard auto/N")]
    NoCount(&'static str),
    /// The scheduler has another number of tasks.
    #[error("{0} has {1} tasks ({2}), and --shard auto/{3} says {3}; leave one of them out")]
    OtherCount(&'static str, u64, &'static str, u64),
    /// The task is none of these.
    #[error("{0} numbers this task {1}, and there are {2} tasks; use an array without gaps")]
    Outside(&'static str, String, u64),
    /// Variables of two schedulers.
    #[error("{0} says shard {1}, and {2} says {3}; write --shard I/N")]
    TwoSchedulers(&'static str, Shard, &'static str, Shard),
}

/// A scheduler's variables.
struct Scheduler {
    name: &'static str,
    index: &'static str,
    count: Option<&'static str>,
    /// The index of the first task, and the distance of two, if they are not 0 and 1.
    first: Option<&'static str>,
    step: Option<&'static str>,
}

const SCHEDULERS: [Scheduler; 4] = [
    Scheduler {
        name: "Slurm",
        index: "SLURM_ARRAY_TASK_ID",
        count: Some("SLURM_ARRAY_TASK_COUNT"),
        first: Some("SLURM_ARRAY_TASK_MIN"),
        step: Some("SLURM_ARRAY_TASK_STEP"),
    },
    // A Job does not say how many completions it has.
    Scheduler {
        name: "Kubernetes",
        index: "JOB_COMPLETION_INDEX",
        count: None,
        first: None,
        step: None,
    },
    Scheduler {
        name: "AWS Batch",
        index: "AWS_BATCH_JOB_ARRAY_INDEX",
        count: Some("AWS_BATCH_JOB_ARRAY_SIZE"),
        first: None,
        step: None,
    },
    Scheduler {
        name: "Google Batch",
        index: "BATCH_TASK_INDEX",
        count: Some("BATCH_TASK_COUNT"),
        first: None,
        step: None,
    },
];

impl ShardChoice {
    /// The shard, with the variables of the environment as an argument.
    ///
    /// # Errors
    ///
    /// See [`AutoShardError`].
    pub fn resolve(self, get: impl Fn(&str) -> Option<String>) -> Result<Shard, AutoShardError> {
        let given = match self {
            Self::Of(shard) => return Ok(shard),
            Self::Auto(given) => given,
        };
        let mut found: Option<(&'static str, Shard)> = None;
        for scheduler in &SCHEDULERS {
            let Some(shard) = scheduler.shard(&get, given)? else { continue };
            match found {
                Some((name, other)) if other != shard => {
                    return Err(AutoShardError::TwoSchedulers(name, other, scheduler.name, shard));
                }
                _ => found = Some((scheduler.name, shard)),
            }
        }
        found.map(|(_, shard)| shard).ok_or(AutoShardError::NoVariable)
    }
}

impl Scheduler {
    /// The task's shard, if it is a task of this scheduler.
    fn shard(
        &self,
        get: &impl Fn(&str) -> Option<String>,
        given: Option<u64>,
    ) -> Result<Option<Shard>, AutoShardError> {
        let Some(index) = number(get, self.index)? else { return Ok(None) };
        let of = |name: Option<&'static str>| name.map_or(Ok(None), |name| number(get, name));
        let counted = of(self.count)?;
        if let (Some(found), Some(given), Some(name)) = (counted, given, self.count)
            && found != given
        {
            return Err(AutoShardError::OtherCount(self.name, found, name, given));
        }
        let count = counted.or(given).ok_or(AutoShardError::NoCount(self.name))?;
        let (first, step) = (of(self.first)?.unwrap_or(0), of(self.step)?.unwrap_or(1));
        let place = index.checked_sub(first).filter(|it| it.is_multiple_of(step.max(1)));
        let place = place.map(|it| it / step.max(1)).filter(|it| *it < count);
        let outside = || AutoShardError::Outside(self.name, index.to_string(), count);
        let shard = Shard::new(place.ok_or_else(outside)? + 1, count);
        Ok(Some(shard.map_err(|_| outside())?))
    }
}

/// The number in a variable. An empty one is not set.
fn number(
    get: &impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<u64>, AutoShardError> {
    let Some(text) = get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| AutoShardError::Number(name, text))
}

impl FromStr for ShardChoice {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        match text.strip_prefix("auto") {
            Some("") => Ok(Self::Auto(None)),
            Some(count) => {
                let count = count.strip_prefix('/').and_then(|it| it.parse().ok());
                match count.ok_or(ShardError::Form)? {
                    0 => Err(ShardError::None),
                    count => Ok(Self::Auto(Some(count))),
                }
            }
            None => text.parse().map(Self::Of),
        }
    }
}

impl fmt::Display for ShardChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(shard) => shard.fmt(f),
            Self::Auto(None) => f.write_str("auto"),
            Self::Auto(Some(count)) => write!(f, "auto/{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_message;

    use super::*;

    fn resolved(choice: &str, variables: &[(&str, &str)]) -> Result<String, AutoShardError> {
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let choice: ShardChoice = choice.parse().expect("a choice");
        choice.resolve(get).map(|shard| shard.to_string())
    }

    #[test]
    fn task_of_each_scheduler_gets_its_shard() {
        let slurm = |id, count, min, step| {
            [
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_COUNT", count),
                ("SLURM_ARRAY_TASK_MIN", min),
                ("SLURM_ARRAY_TASK_STEP", step),
            ]
        };
        assert_eq!(resolved("auto", &slurm("1", "8", "1", "1")).as_deref(), Ok("1/8"));
        assert_eq!(resolved("auto", &slurm("8", "8", "1", "1")).as_deref(), Ok("8/8"));
        assert_eq!(resolved("auto", &slurm("14", "4", "8", "2")).as_deref(), Ok("4/4"));
        let kubernetes = [("JOB_COMPLETION_INDEX", "0")];
        assert_eq!(resolved("auto/8", &kubernetes).as_deref(), Ok("1/8"));
        let aws = [("AWS_BATCH_JOB_ARRAY_INDEX", "9"), ("AWS_BATCH_JOB_ARRAY_SIZE", "10")];
        assert_eq!(resolved("auto", &aws).as_deref(), Ok("10/10"));
        let google = [("BATCH_TASK_INDEX", "2"), ("BATCH_TASK_COUNT", "3")];
        assert_eq!(resolved("auto/3", &google).as_deref(), Ok("3/3"));
        assert_eq!(resolved("2/3", &google).as_deref(), Ok("2/3"), "given by hand");
        let two = [("JOB_COMPLETION_INDEX", "2"), google[0], google[1]];
        assert_eq!(resolved("auto/3", &two).as_deref(), Ok("3/3"), "they agree");
    }

    #[test]
    fn variables_that_are_missing_or_contradict_each_other_are_errors_that_name_them() {
        let kubernetes = [("JOB_COMPLETION_INDEX", "3")];
        let google = [("BATCH_TASK_INDEX", "2"), ("BATCH_TASK_COUNT", "4")];
        let gap = [
            ("SLURM_ARRAY_TASK_ID", "7"),
            ("SLURM_ARRAY_TASK_COUNT", "2"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
        ];
        for (what, choice, variables) in [
            ("none", "auto", &[][..]),
            ("empty", "auto", &[("BATCH_TASK_INDEX", "")][..]),
            ("no number", "auto", &[("BATCH_TASK_INDEX", "one")][..]),
            ("no count", "auto", &kubernetes[..]),
            ("other count", "auto/8", &google[..]),
            ("gap", "auto", &gap[..]),
            ("outside", "auto/3", &kubernetes[..]),
            ("two", "auto/4", &[kubernetes[0], google[0]][..]),
        ] {
            assert_message!(what, resolved(choice, variables).expect_err(what));
        }
        for text in ["auto/0", "auto/", "auto8", "automatic"] {
            assert!(text.parse::<ShardChoice>().is_err(), "{text}");
        }
    }
}
