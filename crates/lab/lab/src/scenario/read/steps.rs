//! Values that change during a run.

use uncork_config::{Node, Result};
use uncork_path::Step;
use uncork_units::{Time, TimeDelta};

use super::super::ScenarioError;

/// `[["10s", "5mbit"], ["20s", "0mbit"]]`: pairs of a time and the value from then on, which `value` reads.
/// `example` is such a pair.
pub(crate) fn steps<T>(
    node: &Node,
    example: &str,
    value: impl Fn(&Node) -> Result<T>,
) -> Result<Vec<Step<T>>> {
    let mut last = TimeDelta::ZERO;
    let mut step = |[at, given]: [&Node; 2]| {
        let after: TimeDelta = at.parse()?;
        if after <= last {
            let message = format!("a change at {after} does not come after {last}");
            return Err(ScenarioError::new(&at.place, message)
                .help("sort the changes by time; the first must be after 0s"));
        }
        last = after;
        Ok(Step { at: Time::ZERO + after, value: value(given)? })
    };
    node.pairs(example)?.into_iter().map(&mut step).collect()
}
