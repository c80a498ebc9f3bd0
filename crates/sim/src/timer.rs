//! A host's timer and its entries in the schedule.

use uncork_units::Time;

/// Knows which entries one timer has in the schedule, where none can be withdrawn.
///
/// Deadlines move with every ACK, mostly later. Only a deadline before all entries needs one of its
/// own: when an entry comes up, the host looks again at what is due. So a timer has a few entries, not
/// one for each ACK.
#[derive(Debug)]
pub(crate) struct Timer {
    /// When the next ones come up, filled up with [`Time::NEVER`].
    near: [Time; 2],
    /// When the others come up, the earliest last.
    far: Vec<Time>,
}

impl Default for Timer {
    fn default() -> Self {
        Self { near: [Time::NEVER; 2], far: Vec::new() }
    }
}

impl Timer {
    /// Whether `deadline` must be scheduled; it then counts as such.
    pub(crate) fn needs_entry(&mut self, deadline: Time) -> bool {
        let [next, second] = self.near;
        let needed = deadline < next;
        if needed {
            if second < Time::NEVER {
                self.far.push(second);
            }
            self.near = [deadline, next];
        }
        needed
    }

    /// The next entry has come up.
    pub(crate) fn on_entry(&mut self) {
        let [_, second] = self.near;
        self.near = [second, self.far.pop().unwrap_or(Time::NEVER)];
    }

    /// Whether it has no entry.
    pub(crate) fn is_idle(&self) -> bool {
        self.near[0] == Time::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pacer's deadline every 10 ns under a retransmission timeout that moves ahead of it.
    #[test]
    fn a_far_deadline_is_scheduled_once_however_often_a_near_one_is() {
        let mut timer = Timer::default();
        let mut scheduled = Vec::new();
        let mut arm = |timer: &mut Timer, deadline: u64| {
            if timer.needs_entry(Time::from_nanos(deadline)) {
                scheduled.push(deadline);
            }
        };
        for now in (0..50).step_by(10) {
            arm(&mut timer, now + 1000);
            arm(&mut timer, now + 10);
            timer.on_entry();
        }
        assert_eq!(scheduled, [1000, 10, 20, 30, 40, 50]);
        timer.on_entry();
        assert!(timer.needs_entry(Time::from_nanos(1040)), "the entry for 1000 came up");
    }

    /// Ten deadlines, each before the last: they come up in order, however many there are.
    #[test]
    fn as_many_entries_as_it_takes() {
        let mut timer = Timer::default();
        for deadline in (1..=10).rev() {
            assert!(timer.needs_entry(Time::from_nanos(deadline)));
        }
        for deadline in 1..=10 {
            assert!(!timer.needs_entry(Time::from_nanos(deadline)), "{deadline} is the next");
            timer.on_entry();
        }
        assert!(timer.is_idle());
    }

    #[test]
    fn never_is_not_scheduled() {
        assert!(!Timer::default().needs_entry(Time::NEVER));
    }
}
