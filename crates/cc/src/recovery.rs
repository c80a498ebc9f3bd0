//! The recovery episode, shared by all algorithms.

use uncork_units::Time;

use crate::event::Feedback;

/// From the first loss until the first packet sent after it is acknowledged (RFC 9002 §7.3.2): one
/// episode is one congestion event, however many packets it lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecoveryEpisode {
    /// Packets that left before this belong to the episode.
    started: Time,
    active: bool,
    /// Packets declared lost in this episode and not (yet) found to have been delivered.
    lost: u32,
    /// Whether the episode may still turn out to be spurious.
    undoable: bool,
}

/// What a feedback did to the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryChange {
    None,
    Entered,
    Exited,
}

impl RecoveryEpisode {
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Takes in a feedback: acknowledgements may end an episode, losses of packets sent after its
    /// start begin the next one.
    pub(crate) fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) -> RecoveryChange {
        let newest_acked = feedback.acked.last().map(|packet| packet.token.send_time);
        let newest_lost = feedback.lost.last().map(|packet| packet.token.send_time);
        if newest_lost.is_some_and(|sent| sent >= self.started) {
            self.enter(now, feedback.lost.len() as u32);
            return RecoveryChange::Entered;
        }
        self.lost = self.lost.saturating_add(feedback.lost.len() as u32);
        if self.active && newest_acked.is_some_and(|sent| sent >= self.started) {
            self.active = false;
            return RecoveryChange::Exited;
        }
        RecoveryChange::None
    }

    /// Starts an episode: by loss, by a timeout or by a CE mark.
    pub(crate) fn enter(&mut self, now: Time, lost: u32) {
        *self = Self { started: now, active: true, lost, undoable: true };
    }

    /// A repeated timeout: the same episode, now of all that left until `now`.
    pub(crate) fn extend(&mut self, now: Time) {
        self.started = now;
        self.active = true;
    }

    /// Packets that left before `now` are of no consequence any more.
    pub(crate) fn forget(&mut self, now: Time) {
        *self = Self { started: now, ..Self::default() };
    }

    /// Whether a packet that left at `sent` did so before the latest episode began: its fate adds
    /// nothing to what the episode says.
    pub(crate) fn covers(&self, sent: Time) -> bool {
        sent < self.started
    }

    /// Packets of the episode were delivered after all. True when that makes the whole episode
    /// spurious: every packet that was declared lost in it arrived.
    pub(crate) fn on_spurious(&mut self, packets: u32) -> bool {
        let lost_any = self.lost > 0;
        self.lost = self.lost.saturating_sub(packets);
        let spurious = self.undoable && lost_any && self.lost == 0;
        if spurious {
            self.undoable = false;
            self.active = false;
        }
        spurious
    }

    /// The episode was real (persistent congestion, idle time, another path): it cannot be undone.
    pub(crate) fn confirm(&mut self) {
        self.undoable = false;
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::TimeDelta;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(ms)
    }

    #[test]
    fn an_episode_without_losses_is_not_spurious() {
        let mut episode = RecoveryEpisode::default();
        episode.enter(at(1), 0);
        assert!(!episode.on_spurious(1));
        episode.enter(at(2), 1);
        assert!(episode.on_spurious(1));
        assert!(!episode.on_spurious(1), "once is enough");
    }

    #[test]
    fn an_episode_covers_what_left_before_it() {
        let mut episode = RecoveryEpisode::default();
        assert!(!episode.covers(Time::ZERO));
        episode.enter(at(10), 1);
        assert!(episode.covers(at(9)));
        assert!(!episode.covers(at(10)));
        episode.extend(at(20));
        assert!(episode.covers(at(19)));
        assert!(episode.on_spurious(1), "it is still the episode of one loss");
    }

    #[test]
    fn a_forgotten_episode_is_over() {
        let mut episode = RecoveryEpisode::default();
        episode.enter(at(10), 1);
        episode.forget(at(20));
        assert!(!episode.is_active());
        assert!(!episode.on_spurious(1));
        assert!(episode.covers(at(19)));
    }
}
