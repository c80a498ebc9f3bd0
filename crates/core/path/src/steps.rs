//! Values that change at given times.

use uncork_units::Time;

/// A value from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<T> {
    /// When.
    pub at: Time,
    /// The value from then on.
    pub value: T,
}

impl<T: Copy> Step<T> {
    /// The value of the last of `steps`, which are in order of time, that is due by `now` and was not taken
    /// before. `next` is the first step to come.
    #[inline]
    pub fn take_due(steps: &[Self], next: &mut usize, now: Time) -> Option<T> {
        let mut due = None;
        while let Some(step) = steps.get(*next).filter(|step| step.at <= now) {
            due = Some(step.value);
            *next += 1;
        }
        due
    }

    /// Whether each step comes after the one before.
    pub fn are_in_order(steps: &[Self]) -> bool {
        steps.is_sorted_by(|one, next| one.at < next.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_taken_once_when_it_is_due() {
        let at = Time::from_nanos;
        let steps =
            [(10, 'a'), (20, 'b'), (30, 'c')].map(|(time, value)| Step { at: at(time), value });
        let mut next = 0;
        let mut take = |now| Step::take_due(&steps, &mut next, at(now));
        assert_eq!([9, 10, 15, 40, 50].map(&mut take), [None, Some('a'), None, Some('c'), None]);
        assert!(Step::are_in_order(&steps) && !Step::are_in_order(&[steps[1], steps[0]]));
        assert!(!Step::are_in_order(&[steps[0], steps[0]]));
    }
}
