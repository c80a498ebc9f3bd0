//! Connection deadlines, earliest first.

use std::collections::BTreeSet;
use std::time::Instant;

/// The next deadline of each connection.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    deadlines: BTreeSet<(Instant, usize)>,
}

impl Timers {
    /// Moves the deadline of `slot` from `armed` to `deadline` and returns the armed time. A later
    /// deadline stays armed at the earlier time and is checked when that fires: most deadlines move
    /// back with every packet.
    pub(crate) fn arm(
        &mut self,
        slot: usize,
        armed: Option<Instant>,
        deadline: Option<Instant>,
    ) -> Option<Instant> {
        match (armed, deadline) {
            (Some(armed), Some(deadline)) if armed <= deadline => Some(armed),
            (Some(armed), None) => Some(armed),
            (None, None) => None,
            (armed, Some(deadline)) => {
                if let Some(armed) = armed {
                    self.disarm(slot, armed);
                }
                self.deadlines.insert((deadline, slot));
                Some(deadline)
            }
        }
    }

    pub(crate) fn disarm(&mut self, slot: usize, armed: Instant) {
        self.deadlines.remove(&(armed, slot));
    }

    /// Removes and returns a slot that is due by `now`.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let first = self.deadlines.first().filter(|(time, _)| *time <= now)?;
        let slot = first.1;
        self.deadlines.pop_first();
        Some(slot)
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.deadlines.first().map(|(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timers_fire_once_in_order_of_deadlines() {
        let epoch = crate::worker::now();
        let at = |ms| epoch + Duration::from_millis(ms);
        let mut timers = Timers::default();
        let armed = timers.arm(1, None, Some(at(20)));
        assert_eq!(timers.arm(1, armed, Some(at(30))), Some(at(20)), "it moved away");
        assert_eq!(timers.arm(1, armed, Some(at(10))), Some(at(10)));
        timers.arm(2, None, Some(at(15)));
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop_due(at(9)), None);
        assert_eq!(timers.pop_due(at(15)), Some(1));
        assert_eq!(timers.pop_due(at(15)), Some(2));
        assert_eq!(timers.pop_due(at(99)), None, "the deadline at 20 ms is gone");
        assert_eq!(timers.next(), None);
    }
}
