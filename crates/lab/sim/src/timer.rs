//! A host's timer and its schedule entries.

use uncork_units::Time;

/// Tracks the schedule entries of one timer, because entries cannot be removed from the schedule.
///
/// Deadlines move with every ACK, mostly to later times. Only a deadline earlier than all entries
/// needs a new one: when an entry comes up, the host checks what is due. So a timer has a few
/// entries, not one per ACK.
#[derive(Debug)]
pub(crate) struct FlowTimer {
    /// Times of the next entries, padded with [`Time::NEVER`].
    near: [Time; 2],
    /// Times of the other entries, the earliest last.
    far: Vec<Time>,
}

impl Default for FlowTimer {
    fn default() -> Self {
        Self { near: [Time::NEVER; 2], far: Vec::new() }
    }
}

impl FlowTimer {
    /// Whether `deadline` needs a new entry; if so, records it.
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

    /// A pacing deadline every 10 ns, with a retransmission timeout that keeps moving.
    #[test]
    fn far_deadline_is_scheduled_once_despite_many_near_ones() {
        let mut timer = FlowTimer::default();
        let mut scheduled = Vec::new();
        let mut arm = |timer: &mut FlowTimer, deadline: u64| {
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

    /// Ten deadlines, each earlier than the previous: the entries come up in order.
    #[test]
    fn number_of_entries_is_not_limited() {
        let mut timer = FlowTimer::default();
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
        assert!(!FlowTimer::default().needs_entry(Time::NEVER));
    }
}
