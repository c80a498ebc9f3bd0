//! The recovery episode, shared by all algorithms.

use uncork_units::Time;

use crate::event::{Feedback, Lost};

/// Reductions in a row that may be undone; the next one stands. A receiver that claims to have received everything, however late, could
/// otherwise take back every reduction (RFC 9000 §21.4 knows the like of undelivered packets). With it one of sixteen stands: by the formulas of
/// Reno and CUBIC such a receiver gets what four and eight connections get, which it could open. Honest paths that reorder pay one of
/// sixteen reductions.
const MAX_UNDONE: u8 = 15;

/// A recovery episode lasts from the first loss until the first packet sent after it is
/// acknowledged (RFC 9002 §7.3.2). One episode is one congestion event, however many packets it
/// lost.
///
/// A packet belongs to the first episode that starts after the packet left. Packets of an older
/// flight do not affect the current episode, whenever they are declared lost or found to have
/// arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecoveryEpisode {
    /// Packets sent before this belonged to earlier episodes.
    since: Time,
    /// Packets sent from `since` until before this belong to the episode.
    started: Time,
    active: bool,
    /// Bytes of this episode declared lost and not (yet) known to have been delivered.
    lost: u32,
    /// Whether the episode may still turn out to be spurious.
    undoable: bool,
    /// Episodes undone since the latest one that stands.
    undone: u8,
}

/// The effect of a feedback on the episode.
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

    /// Processes a feedback: ACKs may end an episode; losses of packets sent after its start begin
    /// the next one.
    //= rfc5681 6582-3.2-1 4.3-1
    //= rfc9002 7.3.2-4 7.3.2-5
    pub(crate) fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) -> RecoveryChange {
        let (newest_acked, newest_lost) = (feedback.acked.last(), feedback.lost.last());
        if newest_lost.is_some_and(|packet| packet.token.send_time >= self.started) {
            self.enter(now);
            self.lost = self.count(feedback.lost);
            return RecoveryChange::Entered;
        }
        self.lost = self.lost.saturating_add(self.count(feedback.lost));
        if self.active && newest_acked.is_some_and(|packet| packet.token.send_time >= self.started)
        {
            self.active = false;
            return RecoveryChange::Exited;
        }
        RecoveryChange::None
    }

    /// Starts an episode: by loss, by a timeout or by a CE mark.
    pub(crate) fn enter(&mut self, now: Time) {
        let undone = if self.lost > 0 { 0 } else { self.undone };
        let since = self.started;
        *self = Self { since, started: now, active: true, lost: 0, undoable: true, undone };
    }

    /// How many bytes of `packets` belong to the episode. All of them were declared lost, so they left
    /// before it started.
    fn count(&self, packets: &[Lost]) -> u32 {
        let of_episode = packets.iter().filter(|packet| packet.token.send_time >= self.since);
        of_episode.fold(0, |sum, packet| packet.bytes.max(1).saturating_add(sum))
    }

    /// A repeated timeout: the same episode now covers everything sent until `now`.
    pub(crate) fn extend(&mut self, now: Time) {
        self.started = now;
        self.active = true;
    }

    /// Ends the episode by a rule other than the ACK of the first packet sent after it.
    pub(crate) fn end(&mut self) {
        self.active = false;
    }

    /// Ignores packets sent before `now` from now on.
    pub(crate) fn forget(&mut self, now: Time) {
        *self = Self { since: now, started: now, undone: self.undone, ..Self::default() };
    }

    /// Whether a packet sent at `sent` left before the latest episode began, so that it does not
    /// affect the episode.
    pub(crate) fn covers(&self, sent: Time) -> bool {
        sent < self.started
    }

    /// Packets declared lost had been delivered. Returns true if that makes the whole episode
    /// spurious, because every packet lost in it has arrived. After [`MAX_UNDONE`] in a row it stands in any case.
    //= bbr-06 5.5.11.2-1
    pub(crate) fn on_spurious(&mut self, packets: &[Lost]) -> bool {
        let lost_any = self.lost > 0;
        self.lost = self.lost.saturating_sub(self.count(packets));
        let spurious = self.undoable && lost_any && self.lost == 0;
        if !spurious {
            return false;
        }
        self.undoable = false;
        if self.undone == MAX_UNDONE {
            self.undone = 0;
            return false;
        }
        self.undone += 1;
        self.active = false;
        true
    }

    /// The episode was real (persistent congestion, idle time, migration), so it cannot be undone.
    pub(crate) fn confirm(&mut self) {
        self.undoable = false;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use uncork_units::TimeDelta;

    use super::*;
    use crate::event::{Acked, Token};

    fn at(ms: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(ms)
    }

    fn token(sent: Time) -> Token {
        Token::new(sent, (0, Time::ZERO, TimeDelta::ZERO, 0), 0, false)
    }

    /// Lost packets sent at these times, in milliseconds.
    fn lost(sent: &[u64]) -> Vec<Lost> {
        let packet = |&ms| Lost { token: token(at(ms)), bytes: 1_000, contiguous: false };
        sent.iter().map(packet).collect()
    }

    /// At `now`, the packet sent at `acked` is acknowledged, and those sent at `lost` are declared
    /// lost.
    fn report(
        episode: &mut RecoveryEpisode,
        now: u64,
        acked: u64,
        missing: &[u64],
    ) -> RecoveryChange {
        let feedback = Feedback {
            acked: &[Acked { token: token(at(acked)), bytes: 1_000 }],
            lost: &lost(missing),
            rtt: None,
            ce_packets: 0,
            in_flight: 0,
            unacked: 0,
            una_advanced: false,
            oldest_sent: Time::NEVER,
            repaired_by_probe: false,
        };
        episode.on_feedback(at(now), &feedback)
    }

    #[test]
    fn an_episode_without_losses_is_not_spurious() {
        let mut episode = RecoveryEpisode::default();
        episode.enter(at(1));
        assert!(!episode.on_spurious(&lost(&[0])));
        assert_eq!(report(&mut episode, 20, 6, &[5]), RecoveryChange::Entered);
        assert!(episode.on_spurious(&lost(&[5])));
        assert!(!episode.on_spurious(&lost(&[5])), "once is enough");
    }

    #[test]
    fn episode_covers_packets_sent_before_it() {
        let mut episode = RecoveryEpisode::default();
        assert!(!episode.covers(Time::ZERO));
        report(&mut episode, 10, 2, &[1]);
        assert!(episode.covers(at(9)));
        assert!(!episode.covers(at(10)));
        episode.extend(at(20));
        assert!(episode.covers(at(19)));
        assert!(episode.on_spurious(&lost(&[1])), "it is still an episode with one loss");
    }

    #[test]
    //= rfc9002 7.3.2-5 test
    fn an_episode_ends_with_a_packet_sent_in_it() {
        let mut episode = RecoveryEpisode::default();
        report(&mut episode, 10, 2, &[1]);
        assert_eq!(report(&mut episode, 12, 9, &[4]), RecoveryChange::None);
        assert_eq!(report(&mut episode, 20, 10, &[]), RecoveryChange::Exited);
        assert!(!episode.is_active());
    }

    #[test]
    //= bbr-06 5.5.11.2-1 test
    fn packets_of_an_older_episode_do_not_make_the_next_one_spurious() {
        let mut episode = RecoveryEpisode::default();
        report(&mut episode, 10, 4, &[1, 2]);
        // What recovery sent is lost too, and with it a straggler of the first flight.
        assert_eq!(report(&mut episode, 20, 13, &[3, 11, 12]), RecoveryChange::Entered);
        assert!(!episode.on_spurious(&lost(&[1, 2, 3])));
        assert!(!episode.on_spurious(&lost(&[11])), "one of two may still be lost");
        assert!(episode.on_spurious(&lost(&[12])));
    }

    #[test]
    fn straggler_of_an_older_flight_does_not_prevent_an_undo() {
        let mut episode = RecoveryEpisode::default();
        report(&mut episode, 10, 4, &[1]);
        report(&mut episode, 20, 13, &[11]);
        assert_eq!(report(&mut episode, 21, 14, &[3]), RecoveryChange::None);
        assert!(episode.on_spurious(&lost(&[11])));
    }

    /// Ends an episode at `ms` as spurious.
    fn is_undone(episode: &mut RecoveryEpisode, ms: u64) -> bool {
        assert_eq!(report(episode, ms, ms - 1, &[ms - 2]), RecoveryChange::Entered);
        episode.on_spurious(&lost(&[ms - 2]))
    }

    #[test]
    fn one_of_sixteen_spurious_episodes_in_a_row_stands() {
        let mut episode = RecoveryEpisode::default();
        for run in 0..3 {
            let undone = (1..=16).map(|n| is_undone(&mut episode, (run * 16 + n) * 10));
            let undone: Vec<_> = undone.collect();
            assert_eq!(undone.iter().position(|undone| !undone), Some(15), "run {run}: {undone:?}");
        }
        // It stays active, like one with a real loss.
        assert!(episode.is_active());
    }

    #[test]
    fn real_loss_allows_further_undos_and_a_new_path_does_not() {
        let mut episode = RecoveryEpisode::default();
        assert!((1..=15).all(|n| is_undone(&mut episode, n * 10)));
        assert_eq!(report(&mut episode, 200, 199, &[198]), RecoveryChange::Entered);
        assert!((31..=45).all(|n| is_undone(&mut episode, n * 10)), "the loss at 198 was real");
        episode.forget(at(500));
        assert!(!is_undone(&mut episode, 510));
    }

    #[test]
    fn forgotten_episode_is_over() {
        let mut episode = RecoveryEpisode::default();
        report(&mut episode, 10, 2, &[1]);
        episode.forget(at(20));
        assert!(!episode.is_active());
        assert!(!episode.on_spurious(&lost(&[1])));
        assert!(episode.covers(at(19)));
        // Packets sent before do not count for the next episode.
        assert_eq!(report(&mut episode, 30, 25, &[15, 22]), RecoveryChange::Entered);
        assert!(episode.on_spurious(&lost(&[22])));
    }
}
