//! How the program saw a connection start.

use uncork_flow::{FlowRecord, StartExit, StartRecord};
use uncork_watch::UNKNOWN_CC;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const OBSERVED: u8 = 1;
const WAS_PACED: u8 = 2;
const WAS_NOT_PACED: u8 = 4;
/// Of the round trips, the first that the initial window decides.
const EARLY_ROUNDS: u8 = 2;
/// A start is followed for this many round trips: `MAX_ROUNDS`.
const MAX_ROUNDS: u8 = 64;

/// The start of a connection: `struct start`. Places are sequence numbers, counts are packets.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub(crate) struct StartFigures {
    /// Where the data began.
    pub(crate) first: u32,
    /// The end of what was sent in the first two round trips, until slow start ended, and until the latest round trip began.
    pub(crate) early_end: u32,
    pub(crate) exit_end: u32,
    pub(crate) round_end: u32,
    pub(crate) lost: u32,
    pub(crate) early_resent: u16,
    pub(crate) exit_window: u16,
    pub(crate) exit_in_flight: u16,
    pub(crate) mss: u16,
    pub(crate) rounds: u8,
    /// 0 if 100 kB were not acknowledged.
    pub(crate) rounds_to_100kb: u8,
    pub(crate) exit: u8,
    pub(crate) flags: u8,
}
const _: () = assert!(size_of::<StartFigures>() == 32);

impl StartFigures {
    /// Adds the start to the record of a connection that began with `window` packets, if the program observed it.
    pub(crate) fn add_to(&self, record: &mut FlowRecord, window: u16) {
        if let Some(start) = self.record(window, record) {
            record.start = Some(Box::new(start));
        }
        if let Some(service) = &mut record.service {
            service.initial_window = Some(window).filter(|window| *window > 0).map(u32::from);
        }
    }

    fn record(&self, window: u16, record: &FlowRecord) -> Option<StartRecord> {
        if self.flags & OBSERVED == 0 {
            return None;
        }
        let bytes = |packets: u32| u64::from(packets) * u64::from(self.mss);
        // The largest number stands for all larger ones.
        let counted = |packets: u16| {
            Some(packets).filter(|it| !matches!(*it, 0 | u16::MAX)).map(|it| bytes(it.into()))
        };
        let all = record.bytes_sent.saturating_sub(record.bytes_retransmitted);
        let up_to = |end: u32| u64::from(end.wrapping_sub(self.first)).min(all);
        let early_sent = if self.rounds < EARLY_ROUNDS { all } else { up_to(self.early_end) };
        let exit = self.exit(&record.cc);
        let sent = match exit {
            Some(_) => Some(up_to(self.exit_end)),
            None if self.exit != 0 || self.rounds >= MAX_ROUNDS => None,
            None => Some(all),
        };
        // BBR's threshold is not its window.
        let is_window = exit != Some(StartExit::Plateau);
        let before = record.start.as_deref().copied().unwrap_or_default();
        Some(StartRecord {
            window_bytes: counted(window),
            paced: match self.flags & (WAS_PACED | WAS_NOT_PACED) {
                0 => None,
                flags => Some(flags & WAS_PACED != 0),
            },
            exit,
            exit_window_bytes: exit.and(counted(self.exit_window)).filter(|_| is_window),
            exit_in_flight_bytes: exit.and(counted(self.exit_in_flight)).filter(|_| is_window),
            sent_bytes: sent,
            // Packets were counted; the last may be shorter.
            lost_bytes: sent.map(|sent| bytes(self.lost).min(sent)),
            early_sent_bytes: Some(early_sent),
            early_resent_bytes: Some(bytes(self.early_resent.into()).min(early_sent)),
            rounds_to_100kb: Some(self.rounds_to_100kb.into()).filter(|rounds| *rounds > 0),
            ..before
        })
    }

    /// What ended it: with BBR in the kernel always a rate that stopped to grow.
    fn exit(&self, cc: &str) -> Option<StartExit> {
        match (self.exit, cc) {
            // BBR's exit would look like another one's.
            (_, UNKNOWN_CC) => None,
            (1..=4, "bbr") => Some(StartExit::Plateau),
            (1, _) => Some(StartExit::Loss),
            (2, _) => Some(StartExit::Mark),
            (3, _) => Some(StartExit::Timeout),
            (4, _) => Some(StartExit::Delay),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> StartFigures {
        StartFigures {
            first: u32::MAX - 999,
            early_end: 39_000,
            exit_end: 59_000,
            lost: 7,
            early_resent: 5,
            exit_window: 60,
            exit_in_flight: 55,
            mss: 1000,
            rounds: 3,
            rounds_to_100kb: 3,
            exit: 1,
            flags: OBSERVED | WAS_NOT_PACED,
            ..StartFigures::default()
        }
    }

    fn record(cc: &str, bytes_sent: u64) -> FlowRecord {
        FlowRecord { bytes_sent, ..FlowRecord::blank("watch", "80", cc, (0, 0)) }
    }

    #[test]
    fn start_has_bytes_and_the_sequence_numbers_wrap() {
        let start = seen().record(40, &record("cubic", 200_000)).expect("observed");
        let expected = StartRecord {
            window_bytes: Some(40_000),
            paced: Some(false),
            exit: Some(StartExit::Loss),
            exit_window_bytes: Some(60_000),
            exit_in_flight_bytes: Some(55_000),
            sent_bytes: Some(60_000),
            lost_bytes: Some(7_000),
            early_sent_bytes: Some(40_000),
            early_resent_bytes: Some(5_000),
            rounds_to_100kb: Some(3),
            ..StartRecord::default()
        };
        assert_eq!(start, expected);
    }

    #[test]
    fn start_that_was_not_observed_is_unknown() {
        let unseen = StartFigures { flags: 0, ..seen() };
        assert_eq!(unseen.record(40, &record("cubic", 200_000)), None);
    }

    #[test]
    fn short_connection_sends_everything_in_its_first_round_trips() {
        let short = StartFigures {
            rounds: 1,
            rounds_to_100kb: 0,
            exit: 0,
            early_resent: 2,
            lost: 2,
            exit_window: 0,
            exit_in_flight: 0,
            ..seen()
        };
        let start = short.record(10, &record("cubic", 1_500)).expect("observed");
        assert_eq!(
            (start.exit, start.rounds_to_100kb, start.exit_window_bytes),
            (None, None, None)
        );
        assert_eq!((start.early_sent_bytes, start.sent_bytes), (Some(1_500), Some(1_500)));
        assert_eq!((start.early_resent_bytes, start.lost_bytes), (Some(1_500), Some(1_500)));
    }

    #[test]
    fn bbr_leaves_startup_at_a_plateau_without_a_window() {
        let start = seen().record(40, &record("bbr", 200_000)).expect("observed");
        assert_eq!((start.exit, start.exit_window_bytes), (Some(StartExit::Plateau), None));
        assert_eq!(start.exit_in_flight_bytes, None);
    }

    #[test]
    fn exit_of_an_unknown_controller_is_unknown() {
        let start = seen().record(40, &record(UNKNOWN_CC, 200_000)).expect("observed");
        assert_eq!((start.exit, start.exit_window_bytes, start.sent_bytes), (None, None, None));
        assert_eq!(start.early_resent_bytes, Some(5_000));
    }

    #[test]
    fn start_that_outlives_the_observation_has_no_end_and_no_sum() {
        let long = StartFigures { exit: 0, rounds: MAX_ROUNDS, ..seen() };
        let start = long.record(10, &record("cubic", 9_000_000)).expect("observed");
        assert_eq!((start.exit, start.sent_bytes, start.lost_bytes), (None, None, None));
        assert_eq!(start.early_sent_bytes, Some(40_000));
    }
}
